// SPDX-License-Identifier: BSD-2-Clause
// MPI_Init, MPI_Finalize, MPI_Abort, and what a program may ask about the job and its threads.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/dynamic/spawn.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/mpi/call.hpp"
#include "mpi-adi/mpi/job_life.hpp"

namespace viaduct::mpi {
namespace {

// Of the world model; sessions come and go beside it.
enum class WorldStage { before, running, after };
std::atomic<WorldStage> stage{WorldStage::before};  // any thread may ask
pthread_t main_thread;

int initialise(int required, int* provided, const char* function) {
    if (stage != WorldStage::before) return Call(function).result(MPI_ERR_OTHER);
    main_thread = ::pthread_self();
    const int error = enter_job(std::clamp(required, MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE));
    // Without a job there is no communicator whose error handler could be called.
    if (error != MPI_SUCCESS) end_job(error, "%s failed", function);
    stage = WorldStage::running;
    {
        Critical guard;
        meet_parents();
    }
    if (provided != nullptr) *provided = thread_level();
    return MPI_SUCCESS;
}

}  // namespace

bool is_in_world_model() { return stage == WorldStage::running; }

}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_ENTRY(MPI_Init, (int*, char***)) try {
    return initialise(MPI_THREAD_SINGLE, nullptr, "MPI_Init");
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Init_thread, (int*, char***, int required, int* provided)) try {
    return initialise(required, provided, "MPI_Init_thread");
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Initialized, (int* flag)) try {
    if (flag == nullptr) return Call("MPI_Initialized").result(MPI_ERR_ARG);
    *flag = stage != WorldStage::before ? 1 : 0;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Finalize, ()) try {
    Critical guard;
    if (stage != WorldStage::running) return raise(nullptr, MPI_ERR_OTHER, "MPI_Finalize");
    // Delete callbacks of attributes may still send and receive.
    if (const int error = mpi_teardown(session_is_open()); error != MPI_SUCCESS) return error;
    stage = WorldStage::after;
    return exit_job(Leaving::world);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Finalized, (int* flag)) try {
    if (flag == nullptr) return Call("MPI_Finalized").result(MPI_ERR_ARG);
    *flag = stage == WorldStage::after ? 1 : 0;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Abort, (MPI_Comm, int errorcode)) try { end_job(errorcode, "MPI_Abort with code %d", errorcode); }
VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Query_thread, (int* provided)) try {
    if (provided == nullptr) return Call("MPI_Query_thread").result(MPI_ERR_ARG);
    *provided = thread_level();
    return stage == WorldStage::running ? MPI_SUCCESS : Call("MPI_Query_thread").result(MPI_ERR_OTHER);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Is_thread_main, (int* flag)) try {
    if (flag == nullptr) return Call("MPI_Is_thread_main").result(MPI_ERR_ARG);
    *flag = ::pthread_equal(main_thread, ::pthread_self()) != 0 ? 1 : 0;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Get_processor_name, (char* name, int* resultlen)) try {
    if (name == nullptr || resultlen == nullptr) return Call("MPI_Get_processor_name").result(MPI_ERR_ARG);
    std::memset(name, 0, MPI_MAX_PROCESSOR_NAME);
    ::gethostname(name, MPI_MAX_PROCESSOR_NAME - 1);
    *resultlen = static_cast<int>(std::strlen(name));
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()
