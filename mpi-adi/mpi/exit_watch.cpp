// SPDX-License-Identifier: BSD-2-Clause
// A process that calls exit() without MPI_Finalize cuts its job short, and the launcher has to be told: it sees
// nothing but the code of the process, which may be 0. Where all processes of a job end so with 0, no one is lost:
// each waits a moment for the others at the launcher, and the job ends with 0. That wait touches nothing of the
// engine, which a signal handler that calls exit() may have interrupted.
//
// The order at the end of a process: handlers of atexit() and on_exit(), the newest first; then, library by library,
// the functions with the attribute destructor, and behind them the destructors of objects with static storage. The
// program's handlers may call MPI_Finalize, and the connections must still stand: so a destructor of the library does
// the work. Only a handler is told the code. The library is linked with nodelete: a handler cannot be taken back.
#include "mpi-adi/mpi/exit_watch.hpp"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <new>

#include "core/clock/limits.hpp"
#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/critical.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/p2p.hpp"
#include "mpi-adi/mpi/job_life.hpp"

namespace viaduct::mpi {
namespace {

// In a child of fork() there is no job that could be left.
bool is_child = false;
int exit_code = 0;

// Nothing is said when a call under way does not end in time: its thread may wait for this one.
void tell_what_is_left() {
    const bool locks = EngineLock::enabled();
    if (locks && !EngineLock::acquire_within(limit_ns(TimeLimit::mpi_exit_call))) return;
    try {
        checking::at_exit();
    } catch (const std::bad_alloc&) {
        // What comes behind is not told.
    }
    if (locks) EngineLock::release();
}

__attribute__((destructor)) void end_of_process() {
    if (!is_child && !is_in_world_model() && checking::tells_at_exit()) tell_what_is_left();
    if (engine.stage != Stage::running || engine.world.size == 1 || is_child) return;
    if ((engine.task.ti_flags & TASK_ROBUST) != 0) return;  // the others find it lost, and go on
    engine.stage = Stage::finalizing;  // a thread of the library that sees another process end takes it for no loss
    if ((exit_code & 0xff) == 0 &&
        engine.job->leave_with_all(std::chrono::milliseconds(limit_ns(TimeLimit::mpi_exit) / 1'000'000)))
        return;
    end_job(kCutShort, "exit(%d) without MPI_Finalize", exit_code);
}

}  // namespace

void watch_exit_code() {
    ::on_exit([](int code, void*) { exit_code = code; }, nullptr);
    ::pthread_atfork(nullptr, nullptr, [] { is_child = true; });
}

}  // namespace viaduct::mpi
