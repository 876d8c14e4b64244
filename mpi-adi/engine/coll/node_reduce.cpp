// SPDX-License-Identifier: BSD-2-Clause
// Reductions in the memory of a node. Contributions are put together in the same order as by messages, whichever member
// computes, so sums of floating point have the same bits in all members and with either. Few bytes each member reduces
// for itself; many are divided into pieces, which go to the members that have a processor. See node_coll.hpp.
#include <algorithm>
#include <cstring>

#include "mpi-adi/engine/coll/node_coll.hpp"
#include "mpi-adi/engine/coll/reduce_order.hpp"

namespace viaduct::mpi::coll {
namespace {

using Buffer = NodeSegment::Buffer;

// What each member reduces for itself: contributions of all members up to so many bytes.
constexpr size_t kEachReduces = 4 << 10;
constexpr size_t kLeastPiece = 4 << 10;
constexpr size_t kAligned = 16;

size_t aligned(size_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

// Contributions of one part of a call: where each member's lie.
struct Contributions {
    std::byte* first;
    size_t stride;
    std::byte* of(int rank) const { return first + size_t(rank) * stride; }
};

Contributions in_small(const Buffer& buffer) { return {NodeSegment::data(buffer.base), buffer.stride}; }
Contributions in_large(const Buffer& buffer) { return {buffer.base, buffer.stride}; }

// The contributions, each in turn put together in place; where the result is then.
template <class Order>
std::byte* reduce_in_place(const Contributions& all, const Order& order, size_t first, size_t count, size_t item,
                           OpLoop loop) {
    const size_t at = first * item;
    const int last = order([&](int into, int from) { loop(all.of(from) + at, all.of(into) + at, count); });
    return all.of(last);
}

int reduce_for_oneself(const Contributions& all, int members, const AllOrder& order, char* out, size_t count,
                       size_t item, OpLoop loop) {
    alignas(kAligned) std::byte copies[kEachReduces];
    const size_t bytes = count * item;
    const Contributions mine{copies, aligned(bytes)};
    for (int rank = 0; rank < members; ++rank) std::memcpy(mine.of(rank), all.of(rank), bytes);
    std::memcpy(out, reduce_in_place(mine, order, 0, count, item, loop), bytes);
    return MPI_SUCCESS;
}

int reduce_together(NodeColl& node, uint64_t number, const Contributions& all, const AllOrder& order, char* out,
                    size_t count, size_t item, OpLoop loop) {
    NodeSegment& segment = node.segment;
    const size_t share = (count + size_t(segment.members()) - 1) / size_t(segment.members());
    const size_t piece = std::max(share, (kLeastPiece + item - 1) / item);
    const auto pieces = uint32_t((count + piece - 1) / piece);
    const bool some_sleep = segment.work_on(number, pieces, [&](uint32_t which) {
        const size_t first = which * piece;
        (void)reduce_in_place(all, order, first, std::min(piece, count - first), item, loop);
    });
    if (some_sleep) node_wake(node);
    if (const int error = node_wait(node, Wanted::reduced(number))) return error;
    std::memcpy(out, all.of(order.last()), count * item);
    return MPI_SUCCESS;
}

}  // namespace

NodeReduction node_reduction(const Communicator& comm, MPI_Count count, const Datatype& type, const Operator& op,
                             uint64_t most) {
    if (!op.is_builtin() || !type.contiguous || type.true_lb != 0 || type.extent() != type.size || type.size == 0 ||
        count <= 0 || uint64_t(count) > most / uint64_t(type.size))
        return {};
    if (!is_crowd(comm) && uint64_t(count) * uint64_t(type.size) <= kAtOnceBytes) return {};
    return {op_loop(op.handle, type), size_t(type.size)};
}

int node_allreduce(NodeColl& node, void* inout, MPI_Count items, const NodeReduction& what) {
    const auto [loop, item] = what;
    NodeSegment& segment = node.segment;
    const int own = segment.own(), members = segment.members();
    const auto total = size_t(items);
    const bool is_small = total * item <= NodeSegment::kSmall;
    const size_t most = is_small ? total : segment.large() / item;
    const AllOrder order = all_order(members, total, total * item);
    for (size_t first = 0; first < total; first += most) {
        const size_t count = std::min(most, total - first), bytes = count * item;
        char* const here = static_cast<char*>(inout) + first * item;
        const uint64_t number = segment.next();
        const Buffer buffer = is_small ? segment.small(number) : segment.large_buffer(number);
        const Contributions all = is_small ? in_small(buffer) : in_large(buffer);
        if (const int error = node_wait_free(node, buffer)) return error;
        std::memcpy(all.of(own), here, bytes);
        node_arrive(node, number);
        if (const int error = node_wait(node, Wanted::all(number))) return error;
        const bool by_each = size_t(members) * aligned(bytes) <= kEachReduces;
        const int error = by_each ? reduce_for_oneself(all, members, order, here, count, item, loop)
                                  : reduce_together(node, number, all, order, here, count, item, loop);
        if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

// The root puts all together: no other member waits.
int node_reduce(NodeColl& node, const void* in, void* out, MPI_Count items, const NodeReduction& what, int root) {
    const auto [loop, item] = what;
    NodeSegment& segment = node.segment;
    const auto count = size_t(items);
    const size_t bytes = count * item;
    const bool is_small = bytes <= NodeSegment::kSmall;
    const uint64_t number = segment.next();
    const Buffer buffer = is_small ? segment.small(number) : segment.large_buffer(number);
    const Contributions all = is_small ? in_small(buffer) : in_large(buffer);
    if (const int error = node_wait_free(node, buffer)) return error;
    std::memcpy(all.of(segment.own()), in, bytes);
    node_arrive(node, number);
    if (segment.own() != root) return MPI_SUCCESS;
    if (const int error = node_wait(node, Wanted::all_for_me(number))) return error;
    const RootOrder order{segment.members(), root};
    std::memcpy(out, reduce_in_place(all, order, 0, count, item, loop), bytes);
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi::coll
