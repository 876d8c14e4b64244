// SPDX-License-Identifier: BSD-2-Clause
// The progress thread (CMPI_PROGRESS=thread): it moves messages on while the program computes. Calls of the program
// come first: it works after a call has left a long message or another activity under way, and when no call has come
// for a while, and it stops when a call comes. Then it sleeps at the transports, as a call that waits does.
// The engine's lock is in force while it is there, whatever thread level the program asked for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace viaduct::mpi {

struct Request;

// In MPI_Init, before any thread of the program is in MPI. Empty, or why there is none.
[[nodiscard]] std::string start_progress_thread(const std::string& processors);
// Before the job is left. The lock may be held; it is let go until the thread has ended.
void stop_progress_thread();

// With the lock: a call leaves this request to others. The thread is woken for it when the lock is released.
void leave_to_progress_thread(const Request& request);
// For the lock. The first is called with it, the second called without.
bool progress_thread_is_wanted();
void wake_progress_thread();

// Processor numbers of "0,2-3"; empty where the text is no such list.
std::vector<size_t> processors_of(const std::string& list);

}  // namespace viaduct::mpi
