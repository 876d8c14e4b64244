// SPDX-License-Identifier: BSD-2-Clause
// C ends a process when the last of its threads has ended, and the program counts its own. The library's helper threads
// live on, with all signals blocked: without more, a program whose main() has called pthread_exit() would never end,
// and SIGTERM would wait for ever for a thread that takes it.
#pragma once

namespace viaduct::vipl {

// No thread of the program is left: main() has ended, and all that still run are helpers, ours and those of the
// libraries that providers use. Asked by the event thread, now and then.
bool only_helpers_are_left();

// What the last thread of a program does when it ends: exit(0), unless a signal that has waited ends the process. On a
// thread of its own, which has the stack for the program's exit handlers. False: there is none now; to be tried again.
[[nodiscard]] bool end_process();

// The calling helper takes the process' signals from now on.
void take_signals();

}  // namespace viaduct::vipl
