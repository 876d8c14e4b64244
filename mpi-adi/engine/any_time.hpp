// SPDX-License-Identifier: BSD-2-Clause
// The lock of the tables behind the calls that MPI allows at any time from any thread: info objects, error handlers,
// error classes, codes and texts, sessions (MPI 4.1, 11.4.1 and 11.6.2). The engine's lock does not protect them: below
// MPI_THREAD_MULTIPLE, before MPI_Init and after MPI_Finalize it is not in force. A thread that takes both takes the
// engine's lock first. No thread sleeps and no function of the program runs while a thread holds this lock.
#pragma once

#include <mutex>

namespace viaduct::mpi {

// Holds the lock as long as it lives; one thread may hold it several times.
class AnyTime {
public:
    AnyTime() : held_(lock_) {}

private:
    static inline std::recursive_mutex lock_;
    const std::lock_guard<std::recursive_mutex> held_;
};

}  // namespace viaduct::mpi
