// SPDX-License-Identifier: BSD-2-Clause
// Ctrl-C in a tool: the loop that runs ends, and what it has found is still printed. A second Ctrl-C ends the
// tool at once.
#pragma once

namespace viaduct::tools {

// SIGINT and SIGTERM from now on only set what stopped() tells.
void catch_stop();
bool stopped();
// As if a signal had come.
void stop();

}  // namespace viaduct::tools
