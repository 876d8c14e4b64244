// SPDX-License-Identifier: BSD-2-Clause
// A process ends when its last thread ends. The helper threads of the library do not end by themselves, and they block
// all signals. So without more, a program whose main() has called pthread_exit() would never end, and a SIGTERM would
// wait for ever for a thread that takes it. The event thread therefore asks now and then whether only helper threads
// are left (core/process/helper_threads.hpp).
#pragma once

namespace viaduct::vipl {

// Does what the end of a program's last thread does: exit(0), unless a pending signal ends the process. Runs on a
// thread of its own, whose stack is large enough for the program's exit handlers. False: no thread could be started;
// the caller tries again.
[[nodiscard]] bool end_process();

// The calling helper takes the process' signals from now on.
void take_signals();

}  // namespace viaduct::vipl
