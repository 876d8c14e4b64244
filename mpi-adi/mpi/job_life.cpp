// SPDX-License-Identifier: BSD-2-Clause
// The job behind the world model and the sessions. See job_life.hpp.
#include "mpi-adi/mpi/job_life.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "mpi-adi/engine/communicator.hpp"
#include "core/wait/time_slice.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/mpi/data_symbols.hpp"
#include "mpi-adi/mpi/exit_watch.hpp"

namespace viaduct::mpi {
namespace {

std::mutex entering;
int users = 0;         // the world model and open sessions
bool parked = false;   // the last session is closed, the job runs on
std::atomic<int> level{MPI_THREAD_SINGLE};

// A process that only opened sessions closes its connections when it ends by itself: its peers may have reached that
// point or not.
void leave_at_exit() {
    if (parked && engine.stage == Stage::running) {
        Critical guard;
        (void)leave_job();  // the process ends, and what went wrong has been said
    }
}

}  // namespace

int enter_job(int wanted) {
    const std::lock_guard lock(entering);
    if (engine.stage != Stage::before && engine.stage != Stage::running) {
        return MPI_ERR_OTHER;
    }
    level = std::max(level.load(), wanted);
    if (engine.stage == Stage::before) {
        tell_fortran();
        int error = start_job();
        if (error == MPI_SUCCESS) {
            error = mpi_setup();
        }
        if (error == MPI_SUCCESS) {
            error = start_progress();
        }
        if (error != MPI_SUCCESS) {
            return error;
        }
        watch_exit_code();
    }
    if (level == MPI_THREAD_MULTIPLE) {
        EngineLock::enable();
    }
    if (parked) {
        take_short_slice();
    }
    parked = false;
    ++users;
    return MPI_SUCCESS;
}

int exit_job(Leaving what) {
    const std::lock_guard lock(entering);
    if (--users > 0) {
        return MPI_SUCCESS;
    }
    if (what == Leaving::world) {
        return leave_job();
    }
    static const bool registered = ::on_exit([](int, void*) { leave_at_exit(); }, nullptr) == 0;
    parked = registered;
    if (parked) {
        give_slice_back();
    }
    return registered ? MPI_SUCCESS : leave_job();
}

bool session_is_open() {
    const std::lock_guard lock(entering);
    return users > 1;  // besides the world model
}

int thread_level() { return level; }

}  // namespace viaduct::mpi
