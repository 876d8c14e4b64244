// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that open and close epochs of a window.
#include "mpi-adi/engine/rma/direct_access.hpp"
#include "mpi-adi/mpi/window.hpp"

namespace viaduct::mpi {
namespace {

constexpr int kFenceAssertions = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
constexpr int kPostAssertions = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;

// Assertions that the call has, and no others.
int check_assertion(int given, int known) { return (given & ~known) == 0 ? MPI_SUCCESS : MPI_ERR_ASSERT; }

[[gnu::noinline]] int flush_slowly(int rank, MPI_Win win) {
    WindowCall call("MPI_Win_flush", win);
    if (!call.valid()) return call.result(MPI_ERR_WIN);
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    return call.result(call.has_rank(rank) ? rma::flush(*call, rank, false) : MPI_ERR_RANK);
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_WIN(Win_fence, (int assertion, MPI_Win win), {
    const int error = check_assertion(assertion, kFenceAssertions);
    return error != MPI_SUCCESS ? error : rma::fence(*call, assertion);
})

VIADUCT_MPI_WIN(Win_start, (MPI_Group group, int assertion, MPI_Win win), {
    const Group* found = group_of(group);
    if (found == nullptr) return MPI_ERR_GROUP;
    const int error = check_assertion(assertion, MPI_MODE_NOCHECK);
    return error != MPI_SUCCESS ? error : rma::start(*call, *found);
})

VIADUCT_MPI_WIN(Win_post, (MPI_Group group, int assertion, MPI_Win win), {
    const Group* found = group_of(group);
    if (found == nullptr) return MPI_ERR_GROUP;
    const int error = check_assertion(assertion, kPostAssertions);
    return error != MPI_SUCCESS ? error : rma::post(*call, *found);
})

VIADUCT_MPI_WIN(Win_complete, (MPI_Win win), { return rma::complete(*call); })
VIADUCT_MPI_WIN(Win_wait, (MPI_Win win), { return rma::wait_exposure(*call, nullptr); })

VIADUCT_MPI_WIN(Win_test, (MPI_Win win, int* flag), {
    if (flag == nullptr) return MPI_ERR_ARG;
    bool finished = false;
    const int error = rma::wait_exposure(*call, &finished);
    *flag = finished ? 1 : 0;
    return error;
})

VIADUCT_MPI_WIN(Win_lock, (int lock_type, int rank, int assertion, MPI_Win win), {
    if (lock_type != MPI_LOCK_SHARED && lock_type != MPI_LOCK_EXCLUSIVE) return MPI_ERR_LOCKTYPE;
    if (const int error = check_assertion(assertion, MPI_MODE_NOCHECK)) return error;
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    if (!call.has_rank(rank)) return MPI_ERR_RANK;
    const rma::LockKind kind =
        lock_type == MPI_LOCK_SHARED ? rma::LockKind::shared : rma::LockKind::exclusive;
    return rma::lock(*call, kind, rank, (assertion & MPI_MODE_NOCHECK) == 0);
})

VIADUCT_MPI_WIN(Win_unlock, (int rank, MPI_Win win), {
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    if (!call.has_rank(rank)) return MPI_ERR_RANK;
    return rma::unlock(*call, rank);
})

VIADUCT_MPI_WIN(Win_lock_all, (int assertion, MPI_Win win), {
    if (const int error = check_assertion(assertion, MPI_MODE_NOCHECK)) return error;
    return rma::lock_all(*call, (assertion & MPI_MODE_NOCHECK) == 0);
})

VIADUCT_MPI_WIN(Win_unlock_all, (MPI_Win win), { return rma::unlock_all(*call); })

VIADUCT_MPI(Win_flush, (int rank, MPI_Win win)) {
    rma::Window* const window = window_without_lock(win);
    if (window != nullptr && static_cast<unsigned>(rank) < window->group && rma::short_flush(*window, rank))
        [[likely]]
        return MPI_SUCCESS;
    return flush_slowly(rank, win);
} VIADUCT_MPI_CATCH(win)

VIADUCT_MPI_WIN(Win_flush_local, (int rank, MPI_Win win), {
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    return call.has_rank(rank) ? rma::flush(*call, rank, true) : MPI_ERR_RANK;
})

VIADUCT_MPI_WIN(Win_flush_all, (MPI_Win win), { return rma::flush(*call, -1, false); })
VIADUCT_MPI_WIN(Win_flush_local_all, (MPI_Win win), { return rma::flush(*call, -1, true); })
VIADUCT_MPI_WIN(Win_sync, (MPI_Win win), { return rma::sync(*call); })
