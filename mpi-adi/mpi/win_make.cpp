// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that make windows and end them, and those on memory of shared and dynamic ones.
#include <climits>

#include "mpi-adi/mpi/window.hpp"

namespace viaduct::mpi {
namespace {

// What all makers check; the error goes to the communicator's handler, and to the other members.
int check_new(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
              const void* made) {
    if (size < 0) return MPI_ERR_SIZE;
    if (disp_unit <= 0 || disp_unit > INT_MAX) return MPI_ERR_DISP;  // the attribute MPI_WIN_DISP_UNIT is an int
    if (!is_info_or_none(info)) return MPI_ERR_INFO;
    return made == nullptr ? MPI_ERR_ARG : MPI_SUCCESS;
}

template <typename Make>
int make_window(const char* name, MPI_Comm handle, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
                MPI_Win* win, Make&& make) {
    Communicator* comm = comm_of(handle);
    Call call(name, comm);
    if (comm == nullptr || comm->inter) return call.result(MPI_ERR_COMM);
    const int refused = check_new(size, disp_unit, info, win);
    rma::Window* made = nullptr;
    if (const int error = make(*comm, refused, info_of(info), &made)) return call.result(error);
    *win = made->handle;
    return MPI_SUCCESS;
}

int create(const char* name, void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
           MPI_Win* win) {
    return make_window(name, comm, size, disp_unit, info, win,
                       [&](Communicator& found, int refused, const Info* hints, rma::Window** made) {
                           if (refused == MPI_SUCCESS && base == nullptr && size > 0) refused = MPI_ERR_BASE;
                           return rma::win_create(found, base, size, static_cast<int>(disp_unit), refused, hints, made);
                       });
}

int allocate(const char* name, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
             MPI_Win* win, bool shared) {
    return make_window(name, comm, size, disp_unit, info, win,
                       [&](Communicator& found, int refused, const Info* hints, rma::Window** made) {
                           if (refused == MPI_SUCCESS && baseptr == nullptr) refused = MPI_ERR_ARG;
                           const int error = rma::win_allocate(found, size, static_cast<int>(disp_unit), refused, hints,
                                                               shared, made);
                           if (error == MPI_SUCCESS) *static_cast<void**>(baseptr) = (*made)->base;
                           return error;
                       });
}

template <typename Unit>
int query_shared(const WindowCall& call, int rank, MPI_Aint* size, Unit* disp_unit, void* baseptr) {
    if (call->flavor != MPI_WIN_FLAVOR_SHARED) return MPI_ERR_RMA_FLAVOR;
    if (rank != MPI_PROC_NULL && !call.has_rank(rank)) return MPI_ERR_RANK;
    if (size == nullptr || disp_unit == nullptr || baseptr == nullptr) return MPI_ERR_ARG;
    if (rank == MPI_PROC_NULL) {
        // The first that has any memory.
        rank = 0;
        while (rank + 1 < call->group_size() && call->member(rank).size == 0) rank++;
    }
    const rma::Member& member = call->member(rank);
    *size = member.size;
    *disp_unit = member.disp_unit;
    *static_cast<void**>(baseptr) = member.size > 0 ? member.direct : nullptr;
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_COUNTED_ON(comm, Win_create,
                    (void* base, MPI_Aint size, Displacement disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win),
                    { return create("MPI_Win_create", base, size, disp_unit, info, comm, win); })

VIADUCT_MPI_COUNTED_ON(comm, Win_allocate,
                    (MPI_Aint size, Displacement disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win),
                    { return allocate("MPI_Win_allocate", size, disp_unit, info, comm, baseptr, win, false); })

VIADUCT_MPI_COUNTED_ON(comm, Win_allocate_shared,
                    (MPI_Aint size, Displacement disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win),
                    { return allocate("MPI_Win_allocate_shared", size, disp_unit, info, comm, baseptr, win, true); })

VIADUCT_MPI(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win* win)) {
    return make_window("MPI_Win_create_dynamic", comm, 0, 1, info, win,
                       [](Communicator& found, int refused, const Info* hints, rma::Window** made) {
                           return rma::win_create_dynamic(found, refused, hints, made);
                       });
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Win_free, (MPI_Win * win)) {
    if (win == nullptr) return Call("MPI_Win_free").result(MPI_ERR_ARG);
    WindowCall call("MPI_Win_free", *win);
    if (!call.valid()) return call.result(MPI_ERR_WIN);
    // The window, and with it the handler, may be freed when an operation is found to have failed.
    if (const int error = rma::win_free(&*call)) {
        if (rma::win_of(*win) != nullptr) return call.result(error);
        *win = MPI_WIN_NULL;
        return rma::raise(nullptr, error, "MPI_Win_free");
    }
    *win = MPI_WIN_NULL;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_WIN(Win_attach, (MPI_Win win, void* base, MPI_Aint size),
                { return rma::win_attach(*call, base, size); })
VIADUCT_MPI_WIN(Win_detach, (MPI_Win win, const void* base), { return rma::win_detach(*call, base); })

VIADUCT_MPI_WIN(Win_shared_query, (MPI_Win win, int rank, MPI_Aint* size, int* disp_unit, void* baseptr),
                { return query_shared(call, rank, size, disp_unit, baseptr); })
VIADUCT_MPI_WIN(Win_shared_query_c, (MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* baseptr),
                { return query_shared(call, rank, size, disp_unit, baseptr); })
