// SPDX-License-Identifier: BSD-2-Clause
// A process that calls exit() without MPI_Finalize cuts its job short, and the launcher has to be told: it sees
// nothing but the code of the process, which may be 0.
//
// The handler is registered when the library is loaded, so it runs behind those of the program, which may call
// MPI_Finalize. This file is linked as the last one of the library: the handler is registered behind the destructors of
// all objects with static storage of the library, and so runs before them, while the connections still stand. The
// library is linked with nodelete, because a handler of on_exit() cannot be taken back.
#include <pthread.h>

#include <cstdlib>

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/p2p.hpp"

namespace viaduct::mpi {
namespace {

// In a child of fork() there is no job that could be left.
bool is_child = false;

void end_without_finalize(int status, void*) {
    if (engine.stage == Stage::running && engine.world.size > 1 && !is_child)
        end_job(kCutShort, "exit(%d) without MPI_Finalize", status);
}

__attribute__((constructor)) void watch_exit() {
    ::on_exit(end_without_finalize, nullptr);
    ::pthread_atfork(nullptr, nullptr, [] { is_child = true; });
}

}  // namespace
}  // namespace viaduct::mpi
