// SPDX-License-Identifier: BSD-2-Clause
// The number of a process in our PID namespace.
#pragma once

namespace viaduct {

// Of the process that a pidfd stands for; 0 when it has ended or our namespace does not see it. Where the
// number comes from /proc, that may be of another namespace: the user of the number finds out
// whether it is the right process.
int process_number(int pidfd);

}  // namespace viaduct
