// SPDX-License-Identifier: BSD-2-Clause
// Data through the memory of a node: broadcast, gather, scatter, and exchanges of all with all. See node_coll.hpp.
#include <algorithm>
#include <cstring>

#include "mpi-adi/engine/coll/node_coll.hpp"

namespace viaduct::mpi::coll {
namespace {

using Buffer = NodeSegment::Buffer;

uint64_t bytes_of(const Items& items) { return uint64_t(items.count) * uint64_t(items.type->size); }

// `bytes` of the items from byte `at` of their packed form on; and back.
void pack(const Items& items, uint64_t at, uint64_t bytes, std::byte* out) {
    if (bytes == 0) return;
    if (items.type->contiguous)
        std::memcpy(out, items.at(0) + items.type->true_lb + at, bytes);
    else
        items.type->pack(items.base, uint64_t(items.count), at, bytes, out);
}

void unpack(const Items& items, uint64_t at, uint64_t bytes, const std::byte* in) {
    if (bytes == 0) return;
    if (items.type->contiguous)
        std::memcpy(items.at(0) + items.type->true_lb + at, in, bytes);
    else
        items.type->unpack(items.at(0), uint64_t(items.count), at, bytes, in);
}

// As much of what another member gives as fits.
int take(const Items& items, uint64_t told, const std::byte* in) {
    const uint64_t room = bytes_of(items);
    unpack(items, 0, std::min(told, room), in);
    return told > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

// Where the members' data of one call lies: in a small buffer behind the notes, or in a large one. The notes are always
// in the small one.
struct Place {
    Place(NodeColl& node, uint64_t number, uint64_t bytes)
        : notes(node.segment.small(number)),
          data(bytes <= NodeSegment::kSmall ? Buffer{} : node.segment.large_buffer(number)) {}

    int wait_free(NodeColl& node) const {
        if (const int error = node_wait_free(node, notes)) return error;
        return data.base == nullptr ? MPI_SUCCESS : node_wait_free(node, data);
    }
    std::byte* of(int rank) const {
        return data.base == nullptr ? NodeSegment::data(notes.of(rank)) : data.of(rank);
    }
    uint64_t& told(int rank) const { return NodeSegment::note(notes.of(rank)).bytes; }

    Buffer notes, data;
};

}  // namespace

bool node_bcast(NodeColl& node, Items items, int root, int* error) {
    NodeSegment& segment = node.segment;
    const bool gives = segment.own() == root;
    const uint64_t own = bytes_of(items);
    uint64_t number = segment.next();
    const Buffer head = segment.small(number);
    uint64_t& note = NodeSegment::note(head.of(root)).bytes;
    if (gives) {
        if ((*error = node_wait_free(node, head)) != MPI_SUCCESS) return true;
        note = own;
    } else {
        node_arrive(node, number);
        if ((*error = node_wait(node, Wanted::of(root, number))) != MPI_SUCCESS) return true;
    }
    // Only the root knows it for sure.
    const uint64_t told = note;
    if (told > kMostNodeBytes || told <= NodeSegment::kSmall) {
        if (told <= NodeSegment::kSmall) {
            if (gives)
                pack(items, 0, told, NodeSegment::data(head.of(root)));
            else
                unpack(items, 0, std::min(told, own), NodeSegment::data(head.of(root)));
        }
        if (gives) node_arrive(node, number);
        if (told > kMostNodeBytes) return false;
    } else {
        for (uint64_t at = 0; at < told; at += segment.large()) {
            if (at != 0) number = segment.next();
            const Buffer buffer = segment.large_buffer(number);
            const uint64_t bytes = std::min<uint64_t>(segment.large(), told - at);
            if (gives) {
                if ((*error = node_wait_free(node, buffer)) != MPI_SUCCESS) return true;
                pack(items, at, bytes, buffer.of(root));
                node_arrive(node, number);
                continue;
            }
            if (at != 0) {
                node_arrive(node, number);
                if ((*error = node_wait(node, Wanted::of(root, number))) != MPI_SUCCESS) return true;
            }
            if (at < own) unpack(items, at, std::min(bytes, own - at), buffer.of(root));
        }
    }
    *error = told > own ? MPI_ERR_TRUNCATE : told < own ? MPI_ERR_COUNT : MPI_SUCCESS;
    return true;
}

int node_allgather(NodeColl& node, Items in, Shares out) {
    NodeSegment& segment = node.segment;
    const int own = segment.own();
    const auto share_of = [&](int rank) { return Items{out.at(rank), out.count, out.type}; };
    const Items mine = in.in_place() ? share_of(own) : in;
    const uint64_t share = bytes_of(share_of(own)), given = std::min(bytes_of(mine), share);
    const uint64_t number = segment.next();
    const Place place(node, number, share);
    if (const int error = place.wait_free(node)) return error;
    place.told(own) = bytes_of(mine);
    pack(mine, 0, given, place.of(own));
    node_arrive(node, number);
    if (const int error = node_wait(node, Wanted::all(number))) return error;
    int first_error = MPI_SUCCESS;
    for (int rank = 0; rank < segment.members(); ++rank) {
        if (rank == own && in.in_place()) continue;
        const int error = take(share_of(rank), place.told(rank), place.of(rank));
        if (first_error == MPI_SUCCESS) first_error = error;
    }
    return first_error;
}

int node_alltoall(NodeColl& node, Shares in, Shares out) {
    NodeSegment& segment = node.segment;
    const int own = segment.own(), members = segment.members();
    const Shares& from = in.in_place() ? out : in;
    const Items mine{from.base, from.count * members, from.type};
    const uint64_t share = uint64_t(out.count) * uint64_t(out.type->size);
    const uint64_t all = share * uint64_t(members);
    const uint64_t given = uint64_t(from.count) * uint64_t(from.type->size);
    const uint64_t number = segment.next();
    const Place place(node, number, all);
    if (const int error = place.wait_free(node)) return error;
    place.told(own) = given;
    if (given <= share) pack(mine, 0, given * uint64_t(members), place.of(own));
    node_arrive(node, number);
    if (const int error = node_wait(node, Wanted::all(number))) return error;
    int first_error = MPI_SUCCESS;
    for (int rank = 0; rank < members; ++rank) {
        // What is more than the share has not been given.
        const uint64_t told = place.told(rank);
        const Items to{out.at(rank), out.count, out.type};
        const int error = told > share ? MPI_ERR_TRUNCATE : take(to, told, place.of(rank) + told * uint64_t(own));
        if (first_error == MPI_SUCCESS) first_error = error;
    }
    return first_error;
}

int node_gather(NodeColl& node, Items in, Shares out, int root) {
    NodeSegment& segment = node.segment;
    const int own = segment.own();
    const bool takes = own == root;
    const auto share_of = [&](int rank) { return Items{out.at(rank), out.count, out.type}; };
    const uint64_t share = bytes_of(takes ? share_of(own) : in);
    const uint64_t number = segment.next();
    const Place place(node, number, share);
    if (!takes) {
        if (const int error = place.wait_free(node)) return error;
        place.told(own) = share;
        pack(in, 0, share, place.of(own));
        node_arrive(node, number);
        return MPI_SUCCESS;
    }
    node_arrive(node, number);
    if (const int error = node_wait(node, Wanted::all_for_me(number))) return error;
    int first_error = MPI_SUCCESS;
    for (int rank = 0; rank < segment.members(); ++rank) {
        int error = MPI_SUCCESS;
        if (rank != own)
            error = take(share_of(rank), place.told(rank), place.of(rank));
        else if (!in.in_place() && !copy_typed(in.base, in.count, *in.type, out.at(own), out.count, *out.type))
            error = MPI_ERR_TRUNCATE;
        if (first_error == MPI_SUCCESS) first_error = error;
    }
    return first_error;
}

int node_scatter(NodeColl& node, Shares in, Items out, int root) {
    NodeSegment& segment = node.segment;
    const int own = segment.own(), members = segment.members();
    const bool gives = own == root;
    const uint64_t share = gives ? uint64_t(in.count) * uint64_t(in.type->size) : bytes_of(out);
    const uint64_t number = segment.next();
    const Place place(node, number, share * uint64_t(members));
    if (!gives) {
        node_arrive(node, number);
        if (const int error = node_wait(node, Wanted::of(root, number))) return error;
        const uint64_t told = place.told(root);
        return told > share ? MPI_ERR_TRUNCATE : take(out, told, place.of(root) + told * uint64_t(own));
    }
    if (const int error = place.wait_free(node)) return error;
    place.told(own) = share;
    pack({in.base, in.count * members, in.type}, 0, share * uint64_t(members), place.of(own));
    node_arrive(node, number);
    const bool fits =
        out.in_place() || copy_typed(in.at(own), in.count, *in.type, out.at(0), out.count, *out.type);
    return fits ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
}

}  // namespace viaduct::mpi::coll
