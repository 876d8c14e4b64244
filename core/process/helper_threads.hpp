// SPDX-License-Identifier: BSD-2-Clause
// Threads of the library in a program's process. They block all signals, and their names begin with vipl-.
#pragma once

namespace viaduct {

// No thread of the program is left: main() has ended by pthread_exit(), and all that still run are the calling one and
// helpers, ours and those of the libraries that providers use.
bool only_helpers_are_left();

}  // namespace viaduct
