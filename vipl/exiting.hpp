// SPDX-License-Identifier: BSD-2-Clause
// Whether the process is inside exit(): from its first moment on, no error handler is called any more
// (spec/compat Q14). Asked by the handler thread, a few times in a program's life.
#pragma once

namespace viaduct::vipl {

// Once per process, by the first VipOpenNic.
bool watch_exit();

// Every control call does this for its thread: cheap after the first time.
void watch_this_thread();

enum class ProcessEnd {
    none,
    undecided,  // a thread is ending, or it is inside exit(): it will be known soon
    certain,
};
ProcessEnd process_end();

// In a forked child, which has none of the parent's ending threads.
void clear_ending_threads();

}  // namespace viaduct::vipl
