// SPDX-License-Identifier: BSD-2-Clause
// How a collective MPI function becomes a schedule that runs (blocking) or goes on by itself (non-blocking), and the
// checks that all of them share.
#pragma once

#include <algorithm>
#include <memory>

#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/mpi/call.hpp"

#define VIADUCT_UNPACK(...) __VA_ARGS__

// Defines the blocking, the non-blocking and the persistent function of one body, which fills the schedule `s` of
// `comm` and gives an error class; each with counts of int and of 64 bits (Count, Displacement).
#define VIADUCT_MPI_COLLECTIVE(name, iname, parameters, ...)                 \
    namespace viaduct::mpi::narrow {                                         \
    VIADUCT_MPI_COLLECTIVE_OF(name, iname, name##_init, parameters, __VA_ARGS__) \
    }                                                                        \
    namespace viaduct::mpi::wide {                                           \
    VIADUCT_MPI_COLLECTIVE_OF(name##_c, iname##_c, name##_init_c, parameters, __VA_ARGS__) \
    }

// The same with something that the blocking function tries first: an expression of the communicator `plain` and of
// where the error class goes, `error`; true when all is done.
#define VIADUCT_MPI_COLLECTIVE_OR_AT_ONCE(name, iname, parameters, at_once, ...)                                     \
    namespace viaduct::mpi::narrow {                                                                                 \
    VIADUCT_MPI_BLOCKING_OR_AT_ONCE(name, parameters, at_once, __VA_ARGS__)                                          \
    VIADUCT_MPI_UNFINISHED_OF(iname, name##_init, parameters, __VA_ARGS__)                                           \
    }                                                                                                                \
    namespace viaduct::mpi::wide {                                                                                   \
    VIADUCT_MPI_BLOCKING_OR_AT_ONCE(name##_c, parameters, at_once, __VA_ARGS__)                                      \
    VIADUCT_MPI_UNFINISHED_OF(iname##_c, name##_init_c, parameters, __VA_ARGS__)                                     \
    }

#define VIADUCT_MPI_COLLECTIVE_OF(name, iname, pname, parameters, ...)                                             \
    VIADUCT_MPI(name, (VIADUCT_UNPACK parameters, MPI_Comm comm)) {                                                \
        return run_collective("MPI_" #name, comm, [&](Schedule & s) -> int __VA_ARGS__);                           \
    } VIADUCT_MPI_CATCH(comm) \
    VIADUCT_MPI_UNFINISHED_OF(iname, pname, parameters, __VA_ARGS__)

#define VIADUCT_MPI_BLOCKING_OR_AT_ONCE(name, parameters, at_once, ...)                                            \
    VIADUCT_MPI(name, (VIADUCT_UNPACK parameters, MPI_Comm comm)) {                                                \
        return run_collective_or_at_once(                                                                          \
            "MPI_" #name, comm, [&](Communicator & plain, int* error) { return at_once; },                         \
            [&](Schedule & s) -> int __VA_ARGS__);                                                                 \
    } VIADUCT_MPI_CATCH(comm)

#define VIADUCT_MPI_UNFINISHED_OF(iname, pname, parameters, ...)                                                   \
    VIADUCT_MPI(iname, (VIADUCT_UNPACK parameters, MPI_Comm comm, MPI_Request * request)) {                        \
        return start_collective("MPI_" #iname, comm, request, [&](Schedule & s) -> int __VA_ARGS__);               \
    } VIADUCT_MPI_CATCH(comm) \
    VIADUCT_MPI(pname, (VIADUCT_UNPACK parameters, MPI_Comm comm, MPI_Info info, MPI_Request * request)) {         \
        return keep_collective("MPI_" #pname, comm, info, request, [&](Schedule & s) -> int __VA_ARGS__);          \
    } VIADUCT_MPI_CATCH(comm)

namespace viaduct::mpi {

template <typename Fill>
[[nodiscard]] int run_collective(const char* name, MPI_Comm handle, Fill&& fill) {
    Communicator* comm = comm_of(handle);
    Call call(name, comm);
    if (!comm) {
        return call.result(MPI_ERR_COMM);
    }
    Schedule s(*comm);
    if (!checking::on) s.will_block();  // else nothing is done before all have come
    if (int error = fill(s)) {
        comm->give_back_tag(s.tag());
        return call.result(error);
    }
    if (checking::on) checking::meet(s, name);
    return call.result(s.run());
}

// What is short needs no schedule; what is not, or not right, is told by that.
template <typename AtOnce, typename Fill>
[[nodiscard]] int run_collective_or_at_once(const char* name, MPI_Comm handle, AtOnce&& at_once, Fill&& fill) {
    if (Communicator* comm = comm_of(handle); comm != nullptr && comm->direct) [[likely]] {
        Call call(name, comm);
        comm_retain(*comm);  // a callback of the program may free it meanwhile
        int error = MPI_SUCCESS;
        const bool done = at_once(*comm, &error);
        comm_release(*comm);
        if (done) return call.result(error);
    }
    return run_collective(name, handle, std::forward<Fill>(fill));
}

// What calls that answer a request have in common: `give` hands out the request of a filled schedule.
template <typename Fill, typename Give>
[[nodiscard]] int request_collective(const char* name, MPI_Comm handle, MPI_Request* request, Fill& fill, Give give) {
    Communicator* comm = comm_of(handle);
    Call call(name, comm);
    if (!comm) {
        return call.result(MPI_ERR_COMM);
    }
    VIADUCT_MPI_NEED(request)
    if (!name_is_left()) {
        return call.result(MPI_ERR_NO_MEM);
    }
    auto s = std::make_unique<Schedule>(*comm);
    if (int error = fill(*s)) {
        comm->give_back_tag(s->tag());
        return call.result(error);
    }
    return give(*comm, std::move(s));
}

template <typename Fill>
[[nodiscard]] int start_collective(const char* name, MPI_Comm handle, MPI_Request* request, Fill&& fill) {
    return request_collective(name, handle, request, fill, [&](Communicator& comm, std::unique_ptr<Schedule> s) {
        Schedule* const filled = s.release();
        return publish(start(checking::on ? checking::meet_first(*filled, name, filled) : filled, &comm), request);
    });
}

// The arguments are read once: each start runs the schedule that they have filled, which keeps datatypes and operator
// while the request lives.
template <typename Fill>
[[nodiscard]] int keep_collective(const char* name, MPI_Comm handle, MPI_Info info, MPI_Request* request,
                                  Fill&& fill) {
    auto with_info = [&](Schedule& s) { return is_info_or_none(info) ? fill(s) : MPI_ERR_INFO; };
    return request_collective(name, handle, request, with_info, [&](Communicator& comm, std::unique_ptr<Schedule> s) {
        const std::shared_ptr<Schedule> kept = std::move(s);
        return publish(make_persistent(comm, [kept, name]() -> Activity* {
            auto* const run = new OneRun(kept);
            return checking::on ? checking::meet_first(*kept, name, run) : run;
        }), request);
    });
}

// The checks answer an error class; `type` is kept by the schedule when all is well. Of nothing the type is not asked:
// programs name MPI_DATATYPE_NULL for it.
[[nodiscard]] inline int check_data(Schedule& s, const void* buffer, MPI_Count count, MPI_Datatype handle,
                                    const Datatype** type) {
    *type = type_of(handle);
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    if (!*type || !(*type)->committed) {
        if (count > 0) {
            return MPI_ERR_TYPE;
        }
        *type = type_of(MPI_BYTE);
    }
    if (!buffer && count > 0 && (*type)->builtin) {
        return MPI_ERR_BUFFER;
    }
    s.keep(**type);
    return MPI_SUCCESS;
}

// Where shares lie apart, a null address with displacements that can hold an address is MPI_BOTTOM: they may be
// addresses.
template <typename Displacement>
const void* base_of_shares(const void* base, MPI_Count displacement) {
    const bool bottom = !base && sizeof(Displacement) >= sizeof(void*) && displacement != 0;
    return bottom ? MPI_IN_PLACE : base;
}

template <typename Count>
[[nodiscard]] int check_counts(Schedule& s, const Count* counts, int n, MPI_Datatype handle, const Datatype** type) {
    if (n > 0 && !counts) {
        return MPI_ERR_ARG;
    }
    MPI_Count most = 0;
    for (int i = 0; i < n; ++i) {
        if (counts[i] < 0) {
            return MPI_ERR_COUNT;
        }
        most = std::max<MPI_Count>(most, counts[i]);
    }
    return check_data(s, MPI_IN_PLACE, most, handle, type);
}

// Shares that lie apart.
template <typename Count, typename Displacement>
[[nodiscard]] int check_shares(Schedule& s, const void* base, const Count* counts, const Displacement* displacements,
                               int n, MPI_Datatype handle, const Datatype** type) {
    if (const int error = check_counts(s, counts, n, handle, type)) {
        return error;
    }
    for (int i = 0; i < n; ++i) {
        if (counts[i] == 0) {
            continue;
        }
        if (!displacements) {
            return MPI_ERR_ARG;
        }
        if (!base_of_shares<Displacement>(base, displacements[i]) && (*type)->builtin) {
            return MPI_ERR_BUFFER;
        }
    }
    return MPI_SUCCESS;
}

[[nodiscard]] inline int check_op(Schedule& s, MPI_Op handle, const Datatype& type, Operator** op) {
    *op = op_of(handle);
    if (!*op || handle == MPI_REPLACE || handle == MPI_NO_OP) {
        return MPI_ERR_OP;
    }
    if (int error = op_check(**op, type)) {
        return error;
    }
    s.keep(**op);
    return MPI_SUCCESS;
}

[[nodiscard]] inline int check_root(const Communicator& comm, int root) {
    if (comm.inter) {
        bool holds = root == MPI_ROOT || root == MPI_PROC_NULL || (root >= 0 && root < comm.remote_size);
        return holds ? MPI_SUCCESS : MPI_ERR_ROOT;
    }
    return root >= 0 && root < comm.size ? MPI_SUCCESS : MPI_ERR_ROOT;
}

// Whether this process sees the root's arguments.
inline bool at_root(const Communicator& comm, int root) { return comm.inter ? root == MPI_ROOT : root == comm.rank; }

// MPI_IN_PLACE is a buffer only where the standard names it: within one group, and in calls with a root, at the root.
[[nodiscard]] inline int check_in_place(const void* buffer, bool allowed) {
    return buffer == MPI_IN_PLACE && !allowed ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

// Data that cannot be in place.
[[nodiscard]] inline int check_own_data(Schedule& s, const void* buffer, MPI_Count count, MPI_Datatype handle,
                                        const Datatype** type) {
    if (const int error = check_in_place(buffer, false)) {
        return error;
    }
    return check_data(s, buffer, count, handle, type);
}

// What a process sends and where its own share of the result goes must not be the same memory: MPI_IN_PLACE is for
// that. Nothing, and items of no size, may be taken from anywhere.
[[nodiscard]] inline int check_apart(const Communicator& comm, const void* data, MPI_Count count, const void* base,
                                     MPI_Count items, const Datatype* type, MPI_Count share_count) {
    if (comm.inter || !data || data == MPI_IN_PLACE || count == 0 || share_count == 0 || type->size == 0) {
        return MPI_SUCCESS;
    }
    return data == static_cast<const char*>(base) + items * type->extent() ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

// The same where shares lie apart; displacements of nothing may be nowhere.
template <typename Count, typename Displacement>
[[nodiscard]] int check_apart(const Communicator& comm, const void* data, MPI_Count count, const void* base,
                              const Count* counts, const Displacement* displacements, const Datatype* type) {
    if (comm.inter || !displacements) {
        return MPI_SUCCESS;
    }
    return check_apart(comm, data, count, base, displacements[comm.rank], type, counts[comm.rank]);
}

// Two sets of shares are one when all that describes them is; `type_of_share(i)` is that of what is received.
template <typename Count, typename Displacement, typename TypeOfShare>
[[nodiscard]] int check_two_sets(const Communicator& comm, const void* in, const Count* sent, const Displacement* from,
                                 const void* out, const Count* received, const Displacement* to,
                                 TypeOfShare&& type_of_share) {
    if (in != out || !in || sent != received || from != to || comm.inter) {
        return MPI_SUCCESS;
    }
    for (int i = 0; i < comm.remote_size; ++i) {
        if (sent[i] > 0 && type_of_share(i)->size > 0) {
            return MPI_ERR_BUFFER;
        }
    }
    return MPI_SUCCESS;
}

// Shares as the program's arguments describe them.
inline coll::Shares equal(const void* base, MPI_Count count, const Datatype* type) {
    return {const_cast<void*>(base), {}, {}, count, type};
}

template <typename Count, typename Displacement>
coll::Shares unequal(const void* base, const Count* counts, const Displacement* displacements, int n,
                     const Datatype* type) {
    auto all = size_t(n);
    const size_t placed = displacements ? all : 0;
    return {const_cast<void*>(base), {counts, all}, {displacements, placed}, 0, type, true};
}

template <typename Count, typename Displacement>
int typed(Schedule& s, const void* base, const Count* counts, const Displacement* displacements,
          const MPI_Datatype* types, int n, coll::TypedShares* shares) {
    if (n > 0 && missing(counts, displacements, types)) {
        return MPI_ERR_ARG;
    }
    *shares = {const_cast<void*>(base), {counts, size_t(n)}, {displacements, size_t(n)}, {}};
    for (int i = 0; i < n; ++i) {
        const Datatype* type = nullptr;
        const void* const from = base_of_shares<Displacement>(base, displacements[i]);
        if (int error = check_data(s, from, counts[i], types[i], &type)) {
            return error;
        }
        shares->types.push_back(type);
    }
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi

// The first error of a chain of checks leaves the body.
#define VIADUCT_CHECK(expression)         \
    if (int error_ = (expression)) {      \
        return error_;                    \
    }
