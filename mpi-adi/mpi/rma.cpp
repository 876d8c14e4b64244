// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that put, get and accumulate (docs/mpi-rma.md), with and without a request. A WindowCall holds the
// engine's lock; operations done at once by direct access take it only when the program uses threads.
#include "mpi-adi/engine/rma/origin.hpp"

#include "mpi-adi/engine/op.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/engine/rma/direct_access.hpp"
#include "mpi-adi/mpi/window.hpp"

namespace viaduct::mpi {
namespace {

using rma::Items;
using rma::Place;

int check_items(const void* base, MPI_Count count, MPI_Datatype handle, Items* items) {
    if (count < 0) return MPI_ERR_COUNT;
    const Datatype* type = type_of(handle);
    if (type == nullptr || !type->committed) return MPI_ERR_TYPE;
    if (base == nullptr && count > 0 && type->builtin && type->size > 0) return MPI_ERR_BUFFER;
    *items = {const_cast<void*>(base), count, type};
    return MPI_SUCCESS;
}

int check_place(const WindowCall& call, int rank, MPI_Aint displacement, MPI_Count count, MPI_Datatype handle,
                Place* place) {
    if (!call.has_rank(rank) && rank != MPI_PROC_NULL) return MPI_ERR_RANK;
    if (count < 0) return MPI_ERR_COUNT;
    const Datatype* type = type_of(handle);
    if (type == nullptr || !type->committed) return MPI_ERR_TYPE;
    *place = {rank, displacement, count, type};
    return MPI_SUCCESS;
}

// Allowed are the predefined operators; MPI_NO_OP only in functions that fetch.
int check_op(MPI_Op handle, bool fetches) {
    const Operator* op = op_of(handle);
    const bool predefined = op != nullptr && op->is_builtin();
    return predefined && (handle != MPI_NO_OP || fetches) ? MPI_SUCCESS : MPI_ERR_OP;
}

// Whether both ends have the same count and type, which direct access requires.
bool are_alike(MPI_Count origin_count, MPI_Datatype origin_type, MPI_Count target_count,
               MPI_Datatype target_type) {
    return origin_count == target_count && origin_type == target_type;
}

// The type of MPI_Fetch_and_op and MPI_Compare_and_swap has to be one basic item.
int check_single(MPI_Datatype handle, const Datatype** type) {
    *type = type_of(handle);
    return *type != nullptr && (*type)->basic != BasicClass::none && (*type)->size > 0 ? MPI_SUCCESS
                                                                                       : MPI_ERR_TYPE;
}

// Runs `operation`, and publishes its request if the program gets one. For MPI_PROC_NULL nothing is run, and the
// request is complete.
template <typename Operation>
int run(int rank, bool needs_request, MPI_Request* handle, Operation&& operation) {
    Request* request = nullptr;
    if (needs_request && handle == nullptr) return MPI_ERR_ARG;
    if (needs_request && !name_is_left()) return MPI_ERR_NO_MEM;
    if (rank == MPI_PROC_NULL) {
        if (needs_request) {
            request = new_request(Request::Kind::activity);
            request->not_cancellable = true;
            mpi::complete(request, MPI_SUCCESS);
        }
    } else if (const int error = operation(needs_request ? &request : nullptr)) {
        return error;
    }
    return needs_request ? publish(request, handle) : MPI_SUCCESS;
}

int put_or_get(const WindowCall& call, bool puts, const void* origin, MPI_Count origin_count,
               MPI_Datatype origin_type, int rank, MPI_Aint displacement, MPI_Count target_count,
               MPI_Datatype target_type, bool needs_request, MPI_Request* request) {
    if (!call.valid()) return MPI_ERR_WIN;
    Items items;
    Place place{};
    if (const int error = check_items(origin, origin_count, origin_type, &items)) return error;
    if (const int error = check_place(call, rank, displacement, target_count, target_type, &place))
        return error;
    return run(rank, needs_request, request, [&](Request** made) {
        return puts ? rma::put(*call, items, place, made) : rma::get(*call, items, place, made);
    });
}

int accumulate(const WindowCall& call, const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
               int rank, MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
               bool needs_request, MPI_Request* request) {
    if (!call.valid()) return MPI_ERR_WIN;
    Items items;
    Place place{};
    if (const int error = check_items(origin, origin_count, origin_type, &items)) return error;
    if (const int error = check_place(call, rank, displacement, target_count, target_type, &place))
        return error;
    if (const int error = check_op(op, false)) return error;
    return run(rank, needs_request, request,
               [&](Request** made) { return rma::accumulate(*call, items, place, op, made); });
}

int get_accumulate(const WindowCall& call, const void* origin, MPI_Count origin_count,
                   MPI_Datatype origin_type, void* result, MPI_Count result_count, MPI_Datatype result_type,
                   int rank, MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_type,
                   MPI_Op op, bool needs_request, MPI_Request* request) {
    if (!call.valid()) return MPI_ERR_WIN;
    Items items;
    Items results;
    Place place{};
    if (const int error = check_op(op, true)) return error;
    // With MPI_NO_OP the origin's buffer, count and type are ignored.
    if (op != MPI_NO_OP)
        if (const int error = check_items(origin, origin_count, origin_type, &items)) return error;
    if (const int error = check_items(result, result_count, result_type, &results)) return error;
    if (const int error = check_place(call, rank, displacement, target_count, target_type, &place))
        return error;
    return run(rank, needs_request, request,
               [&](Request** made) { return rma::get_accumulate(*call, items, results, place, op, made); });
}

// The slow paths of the functions below: the operation cannot be done at once, or threads need the lock.

[[gnu::noinline]] int put_slowly(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                                 int rank, MPI_Aint displacement, MPI_Count target_count,
                                 MPI_Datatype target_type, MPI_Win win) {
    WindowCall call("MPI_Put", win);
    if (call.valid() && are_alike(origin_count, origin_type, target_count, target_type) &&
        rma::short_put(*call, origin, origin_count, origin_type, rank, displacement))
        return MPI_SUCCESS;
    return call.result(put_or_get(call, true, origin, origin_count, origin_type, rank, displacement,
                                  target_count, target_type, false, nullptr));
}

[[gnu::noinline]] int get_slowly(void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                                 int rank, MPI_Aint displacement, MPI_Count target_count,
                                 MPI_Datatype target_type, MPI_Win win) {
    WindowCall call("MPI_Get", win);
    if (call.valid() && are_alike(origin_count, origin_type, target_count, target_type) &&
        rma::short_get(*call, origin, origin_count, origin_type, rank, displacement))
        return MPI_SUCCESS;
    return call.result(put_or_get(call, false, origin, origin_count, origin_type, rank, displacement,
                                  target_count, target_type, false, nullptr));
}

[[gnu::noinline]] int accumulate_slowly(const void* origin, MPI_Count origin_count,
                                        MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                                        MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                                        MPI_Win win) {
    WindowCall call("MPI_Accumulate", win);
    if (call.valid() && are_alike(origin_count, origin_type, target_count, target_type) &&
        origin != nullptr && op != MPI_NO_OP &&
        rma::short_change(*call, origin, nullptr, origin_count, origin_type, rank, displacement, op))
        return MPI_SUCCESS;
    return call.result(accumulate(call, origin, origin_count, origin_type, rank, displacement,
                                  target_count, target_type, op, false, nullptr));
}

[[gnu::noinline]] int fetch_and_op_slowly(const void* origin, void* result, MPI_Datatype datatype, int rank,
                                          MPI_Aint displacement, MPI_Op op, MPI_Win win) {
    WindowCall call("MPI_Fetch_and_op", win);
    return call.result([&]() -> int {
        if (!call.valid()) return MPI_ERR_WIN;
        const bool given = result != nullptr && (origin != nullptr || op == MPI_NO_OP);
        if (given && rma::short_change(*call, origin, result, 1, datatype, rank, displacement, op))
            return MPI_SUCCESS;
        const Datatype* type = nullptr;
        if (const int error = check_single(datatype, &type)) return error;
        if (const int error = check_op(op, true)) return error;
        if (!call.has_rank(rank) && rank != MPI_PROC_NULL) return MPI_ERR_RANK;
        if (!given) return MPI_ERR_BUFFER;
        if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
        return rma::fetch_and_op(*call, origin, result, *type, rank, displacement, op);
    }());
}

[[gnu::noinline]] int compare_and_swap_slowly(const void* origin, const void* compare, void* result,
                                              MPI_Datatype type, int rank, MPI_Aint displacement,
                                              MPI_Win win) {
    WindowCall call("MPI_Compare_and_swap", win);
    return call.result([&]() -> int {
        if (!call.valid()) return MPI_ERR_WIN;
        if (rma::short_compare_and_swap(*call, origin, compare, result, type, rank, displacement))
            return MPI_SUCCESS;
        if (!rma::is_swappable(type)) return MPI_ERR_TYPE;
        if (!call.has_rank(rank) && rank != MPI_PROC_NULL) return MPI_ERR_RANK;
        if (origin == nullptr || compare == nullptr || result == nullptr) return MPI_ERR_BUFFER;
        if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
        return rma::compare_and_swap(*call, origin, compare, result, *type_of(type), rank, displacement);
    }());
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_COUNTED_ON(win, Put,
                    (const void* origin, Count origin_count, MPI_Datatype origin_type, int rank,
                     MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Win win),
                    {
                        rma::Window* const window = window_without_lock(win);
                        if (window != nullptr &&
                            are_alike(origin_count, origin_type, target_count, target_type) &&
                            rma::short_put(*window, origin, origin_count, origin_type, rank, displacement))
                            [[likely]]
                            return MPI_SUCCESS;
                        return put_slowly(origin, origin_count, origin_type, rank, displacement, target_count,
                                          target_type, win);
                    })

VIADUCT_MPI_COUNTED_ON(win, Rput,
                    (const void* origin, Count origin_count, MPI_Datatype origin_type, int rank,
                     MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Win win,
                     MPI_Request* request),
                    {
                        WindowCall call("MPI_Rput", win);
                        return call.result(put_or_get(call, true, origin, origin_count, origin_type, rank,
                                                      displacement, target_count, target_type, true,
                                                      request));
                    })

VIADUCT_MPI_COUNTED_ON(win, Get,
                    (void* origin, Count origin_count, MPI_Datatype origin_type, int rank,
                     MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Win win),
                    {
                        rma::Window* const window = window_without_lock(win);
                        if (window != nullptr &&
                            are_alike(origin_count, origin_type, target_count, target_type) &&
                            rma::short_get(*window, origin, origin_count, origin_type, rank, displacement))
                            [[likely]]
                            return MPI_SUCCESS;
                        return get_slowly(origin, origin_count, origin_type, rank, displacement, target_count,
                                          target_type, win);
                    })

VIADUCT_MPI_COUNTED_ON(win, Rget,
                    (void* origin, Count origin_count, MPI_Datatype origin_type, int rank,
                     MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Win win,
                     MPI_Request* request),
                    {
                        WindowCall call("MPI_Rget", win);
                        return call.result(put_or_get(call, false, origin, origin_count, origin_type, rank,
                                                      displacement, target_count, target_type, true,
                                                      request));
                    })

VIADUCT_MPI_COUNTED_ON(win, Accumulate,
                    (const void* origin, Count origin_count, MPI_Datatype origin_type, int rank,
                     MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Op op,
                     MPI_Win win),
                    {
                        rma::Window* const window = window_without_lock(win);
                        if (window != nullptr &&
                            are_alike(origin_count, origin_type, target_count, target_type) &&
                            origin_count == 1 && origin != nullptr && op != MPI_NO_OP &&
                            rma::short_step(*window, origin, nullptr, origin_type, rank, displacement, op))
                            [[likely]]
                            return MPI_SUCCESS;
                        return accumulate_slowly(origin, origin_count, origin_type, rank, displacement,
                                                 target_count, target_type, op, win);
                    })

VIADUCT_MPI_COUNTED_ON(win, Raccumulate,
                    (const void* origin, Count origin_count, MPI_Datatype origin_type, int rank,
                     MPI_Aint displacement, Count target_count, MPI_Datatype target_type, MPI_Op op,
                     MPI_Win win, MPI_Request* request),
                    {
                        WindowCall call("MPI_Raccumulate", win);
                        return call.result(accumulate(call, origin, origin_count, origin_type, rank,
                                                      displacement, target_count, target_type, op, true,
                                                      request));
                    })

VIADUCT_MPI_COUNTED_ON(win, Get_accumulate,
                    (const void* origin, Count origin_count, MPI_Datatype origin_type, void* result,
                     Count result_count, MPI_Datatype result_type, int rank, MPI_Aint displacement,
                     Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win),
                    {
                        WindowCall call("MPI_Get_accumulate", win);
                        return call.result(get_accumulate(call, origin, origin_count, origin_type, result,
                                                          result_count, result_type, rank, displacement,
                                                          target_count, target_type, op, false, nullptr));
                    })

VIADUCT_MPI_COUNTED_ON(win, Rget_accumulate,
                    (const void* origin, Count origin_count, MPI_Datatype origin_type, void* result,
                     Count result_count, MPI_Datatype result_type, int rank, MPI_Aint displacement,
                     Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                     MPI_Request* request),
                    {
                        WindowCall call("MPI_Rget_accumulate", win);
                        return call.result(get_accumulate(call, origin, origin_count, origin_type, result,
                                                          result_count, result_type, rank, displacement,
                                                          target_count, target_type, op, true, request));
                    })

VIADUCT_MPI(Fetch_and_op, (const void* origin, void* result, MPI_Datatype type, int rank,
                           MPI_Aint displacement, MPI_Op op, MPI_Win win)) {
    rma::Window* const window = window_without_lock(win);
    if (window != nullptr && (origin != nullptr || op == MPI_NO_OP) && result != nullptr &&
        rma::short_step(*window, origin, result, type, rank, displacement, op)) [[likely]]
        return MPI_SUCCESS;
    return fetch_and_op_slowly(origin, result, type, rank, displacement, op, win);
} VIADUCT_MPI_CATCH(win)

VIADUCT_MPI(Compare_and_swap, (const void* origin, const void* compare, void* result, MPI_Datatype type,
                               int rank, MPI_Aint displacement, MPI_Win win)) {
    rma::Window* const window = window_without_lock(win);
    if (window != nullptr &&
        rma::short_compare_and_swap(*window, origin, compare, result, type, rank, displacement)) [[likely]]
        return MPI_SUCCESS;
    return compare_and_swap_slowly(origin, compare, result, type, rank, displacement, win);
} VIADUCT_MPI_CATCH(win)
