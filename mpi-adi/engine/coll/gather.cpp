// SPDX-License-Identifier: BSD-2-Clause
// Gather and scatter: up and down a binomial tree for small shares, straight for large or unequal ones.
#include <algorithm>

#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/coll/node_coll.hpp"

namespace viaduct::mpi::coll {
namespace {

constexpr MPI_Count kTreeBytes = 2 << 10;  // a share up to this goes through the tree
constexpr int kTreeProcesses = 4;

// How many relative ranks lie in the subtree below `relative`, itself included.
int subtree(int relative, int size) {
    int below = relative ? relative & -relative : size;
    return std::min(below, size - relative);
}

// All shares are `share` bytes. On the root `all` receives them in the order of relative ranks.
char* gather_tree(Schedule& s, const void* in, MPI_Count count, const Datatype& type, MPI_Count share, int root) {
    const Datatype& byte = *type_of(MPI_BYTE);
    const int size = s.size();
    const int relative = (s.rank() - root + size) % size;
    char* all = s.bytes(size_t(share) * size_t(subtree(relative, size)));
    s.copy(in, count, type, all, share, byte);
    int mask = 1;
    for (; mask < size && !(relative & mask); mask *= 2) {
        int child = relative + mask;
        if (child < size) {
            s.recv(all + mask * share, share * subtree(child, size), byte, (child + root) % size);
        }
    }
    s.round();
    if (relative) {
        s.send(all, share * subtree(relative, size), byte, (relative - mask + root) % size);
        s.round();
    }
    return all;
}

// `all` holds on the root the shares in the order of relative ranks; every process ends with its own at the front.
char* scatter_tree(Schedule& s, char* all, MPI_Count share, int root) {
    const Datatype& byte = *type_of(MPI_BYTE);
    const int size = s.size();
    const int relative = (s.rank() - root + size) % size;
    int mask = 1;
    while (mask < size && !(relative & mask)) {
        mask *= 2;
    }
    if (relative) {
        all = s.bytes(size_t(share) * size_t(subtree(relative, size)));
        s.recv(all, share * subtree(relative, size), byte, (relative - mask + root) % size);
        s.round();
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        int child = relative + mask;
        if (child < size) {
            s.send(all + mask * share, share * subtree(child, size), byte, (child + root) % size);
        }
    }
    s.round();
    return all;
}

bool small(const Schedule& s, MPI_Count share, bool varying) {
    return !varying && share <= kTreeBytes && s.size() >= kTreeProcesses;
}

void gather_straight(Schedule& s, Items in, Shares out, int root) {
    if (s.rank() != root) {
        s.send(in.base, in.count, *in.type, root);
        return;
    }
    for (int r = 0; r < s.size(); ++r) {
        if (r != root) {
            s.recv(out.at(r), out.count_of(r), *out.type, r);
        } else if (!in.in_place()) {
            s.copy(in.base, in.count, *in.type, out.at(r), out.count_of(r), *out.type);
        }
    }
}

void scatter_straight(Schedule& s, Shares in, Items out, int root) {
    if (s.rank() != root) {
        s.recv(out.at(0), out.count, *out.type, root);
        return;
    }
    for (int r = 0; r < s.size(); ++r) {
        if (r != root) {
            s.send(in.at(r), in.count_of(r), *in.type, r);
        } else if (!out.in_place()) {
            s.copy(in.at(r), in.count_of(r), *in.type, out.at(0), out.count, *out.type);
        }
    }
}

void gather_within(Schedule& s, Items in, Shares out, int root) {
    const bool at_root = s.rank() == root;
    const MPI_Count share = at_root ? out.count * out.type->size : in.count * in.type->size;
    const bool fits = is_crowd(s.comm()) && !out.varying && share <= MPI_Count(NodeSegment::large(s.size()));
    if (NodeColl* const node = fits ? node_of(s) : nullptr) {
        s.note(node_gather(*node, in, out, root));
        return;
    }
    if (!small(s, share, out.varying)) {
        gather_straight(s, in, out, root);
        return;
    }
    if (at_root && in.in_place()) {
        in = {out.at(root), out.count, out.type};
    }
    char* all = gather_tree(s, in.base, in.count, *in.type, share, root);
    if (at_root) {
        for (int relative = 0; relative < s.size(); ++relative) {
            int r = (relative + root) % s.size();
            s.copy(all + relative * share, share, *type_of(MPI_BYTE), out.at(r), out.count, *out.type);
        }
    }
}

void scatter_within(Schedule& s, Shares in, Items out, int root) {
    const bool at_root = s.rank() == root;
    const MPI_Count share = at_root ? in.count * in.type->size : out.count * out.type->size;
    const bool fits = is_crowd(s.comm()) && !in.varying && share <= MPI_Count(NodeSegment::large(s.size())) / s.size();
    if (NodeColl* const node = fits ? node_of(s) : nullptr) {
        s.note(node_scatter(*node, in, out, root));
        return;
    }
    if (!small(s, share, in.varying)) {
        scatter_straight(s, in, out, root);
        return;
    }
    char* all = nullptr;
    if (at_root) {
        all = s.bytes(size_t(share) * size_t(s.size()));
        for (int relative = 0; relative < s.size(); ++relative) {
            int r = (relative + root) % s.size();
            s.copy(in.at(r), in.count, *in.type, all + relative * share, share, *type_of(MPI_BYTE));
        }
        s.round();
    }
    all = scatter_tree(s, all, share, root);
    if (!out.in_place()) {
        s.copy(all, share, *type_of(MPI_BYTE), out.at(0), out.count, *out.type);
    }
}

}  // namespace

void gather(Schedule& s, Items in, Shares out, int root) {
    if (checking::on) checking::describe_gather(s, in, out, root);
    Communicator& comm = s.comm();
    if (!comm.inter) {
        gather_within(s, in, out, root);
    } else if (root == MPI_ROOT) {
        for (int r = 0; r < comm.remote_size; ++r) {
            s.recv(out.at(r), out.count_of(r), *out.type, r);
        }
    } else if (root != MPI_PROC_NULL) {
        s.send(in.base, in.count, *in.type, root);
    }
}

void scatter(Schedule& s, Shares in, Items out, int root) {
    if (checking::on) checking::describe_scatter(s, in, out, root);
    Communicator& comm = s.comm();
    if (!comm.inter) {
        scatter_within(s, in, out, root);
    } else if (root == MPI_ROOT) {
        for (int r = 0; r < comm.remote_size; ++r) {
            s.send(in.at(r), in.count_of(r), *in.type, r);
        }
    } else if (root != MPI_PROC_NULL) {
        s.recv(out.at(0), out.count, *out.type, root);
    }
}

}  // namespace viaduct::mpi::coll
