// SPDX-License-Identifier: BSD-2-Clause
// Barrier and small reductions of blocking calls, without a schedule: there is too little to do. Three or
// four ranks do it in one round, in which each sends to all others: a round costs more than a message, and
// is a switch of every rank where ranks are more than processors. (Eight in one round wait so long there that
// they go to sleep.)
#include <cstring>

#include "mpi-adi/engine/coll/node_coll.hpp"
#include "mpi-adi/engine/coll/reduce_order.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi::coll {
namespace {

constexpr int kFew = static_cast<int>(kMostSwaps) + 1;

// Between two, one message each is one round already.
bool is_few(const Comm& comm) { return comm.size > 2 && comm.size <= kFew; }

// The items of all processes, in the order of ranks, so that all come to the same bits.
int allreduce_among_few(Comm& comm, int tag, void* out, uint64_t bytes, MPI_Count count, OpLoop loop) {
    alignas(16) char items[kFew][kAtOnceBytes];
    Swap swaps[kMostSwaps];
    size_t n = 0;
    std::memcpy(items[comm.rank], out, bytes);
    for (int step = 1; step < comm.size; ++step) {
        const int to = (comm.rank + step) % comm.size;
        const int from = (comm.rank - step + comm.size) % comm.size;
        swaps[n++] = {to, {items[comm.rank], bytes, nullptr, 0}, from, {items[from], bytes, nullptr, 0}};
    }
    const int error = sendrecv_all(comm, Channel::collective, tag, {swaps, n});
    if (robust::is_loss(error)) return error;
    std::memcpy(out, items[0], bytes);
    for (int rank = 1; rank < comm.size; ++rank) loop(items[rank], out, static_cast<size_t>(count));
    return error;
}

// A short message each way. Ours is sent before this process prepares for the other one: preparing takes a fifth of the
// time that a message takes.
int swap_bytes(Comm& comm, int tag, int to, void* out, int from, void* in, uint64_t bytes) {
    if (send_now(comm, Channel::collective, to, tag, out, bytes)) [[likely]]
        return recv_bytes(comm, Channel::collective, from, tag, in, bytes, MPI_STATUS_IGNORE);
    return sendrecv(comm, Channel::collective, to, tag, {out, bytes, nullptr, 0}, from, tag, {in, bytes, nullptr, 0});
}

int allreduce_by_doubling(Comm& comm, int tag, void* out, uint64_t bytes, MPI_Count count, OpLoop loop) {
    alignas(16) char other[kAtOnceBytes];
    int first_error = MPI_SUCCESS;
    for (int mask = 1; mask < comm.size; mask *= 2) {
        const int partner = comm.rank ^ mask;
        const int error = swap_bytes(comm, tag, partner, out, partner, other, bytes);
        if (robust::is_loss(error)) return error;
        if (first_error == MPI_SUCCESS) first_error = error;
        loop(other, out, static_cast<size_t>(count));
    }
    return first_error;
}

}  // namespace

int barrier_at_once(Communicator& comm) {
    const int tag = comm.next_tag();
    int failed = MPI_SUCCESS;
    if (NodeColl* const node = node_coll(comm, tag, &failed)) return node_barrier(*node);
    if (robust::is_loss(failed)) return failed;
    const auto ahead = [&](int step) { return (comm.rank + step) % comm.size; };
    const auto behind = [&](int step) { return (comm.rank - step + comm.size) % comm.size; };
    if (is_few(comm)) {
        Swap swaps[kMostSwaps];
        for (int step = 1; step < comm.size; ++step) swaps[step - 1] = {ahead(step), {}, behind(step), {}};
        return sendrecv_all(comm, Channel::collective, tag, {swaps, static_cast<size_t>(comm.size - 1)});
    }
    int first_error = MPI_SUCCESS;
    for (int step = 1; step < comm.size; step *= 2) {
        const int error = swap_bytes(comm, tag, ahead(step), nullptr, behind(step), nullptr, 0);
        if (robust::is_loss(error)) return error;
        if (first_error == MPI_SUCCESS) first_error = error;
    }
    return first_error;
}

bool allreduce_at_once(Communicator& comm, const void* in, void* out, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                       int* error) {
    if (comm.inter || in == nullptr || out == nullptr || out == MPI_IN_PLACE || in == out) return false;
    const Datatype* type = type_of(datatype);
    const Operator* found = op_of(op);
    if (type == nullptr || !type->builtin || found == nullptr) return false;
    const NodeReduction what = node_reduction(comm, count, *type, *found, kMostNodeBytes);
    if (NodeColl* const node = what.loop != nullptr ? node_coll(comm, comm.collective_tag, error) : nullptr) {
        (void)comm.next_tag();
        if (in != MPI_IN_PLACE) std::memcpy(out, in, size_t(count) * what.item);
        *error = node_allreduce(*node, out, count, what);
        return true;
    }
    if (robust::is_loss(*error)) return true;
    const bool power_of_two = (comm.size & (comm.size - 1)) == 0;
    if ((!is_few(comm) && !power_of_two) || !type->contiguous || type->true_lb != 0 || type->extent() != type->size ||
        type->size == 0 || !found->is_builtin() || count <= 0 || count > MPI_Count(kAtOnceBytes))
        return false;
    const auto bytes = uint64_t(count * type->size);
    const OpLoop loop = op_loop(op, *type);
    if (bytes > kAtOnceBytes || loop == nullptr) return false;
    if (in != MPI_IN_PLACE) std::memcpy(out, in, bytes);
    const int tag = comm.next_tag();
    *error = is_few(comm) ? allreduce_among_few(comm, tag, out, bytes, count, loop)
                          : allreduce_by_doubling(comm, tag, out, bytes, count, loop);
    return true;
}

}  // namespace viaduct::mpi::coll
