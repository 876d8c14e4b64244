// SPDX-License-Identifier: BSD-2-Clause
// What each kind of collective call gives to and takes from each other member. Between two groups only name, root and
// operation are told.
#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/check/signature.hpp"
#include "mpi-adi/engine/coll/coll.hpp"

namespace viaduct::mpi::checking {
namespace {

// The last description, and which schedule it is of.
struct Last {
    const Communicator* comm = nullptr;
    int tag = -1;
    Description what;
};

Last& last() {
    static Last* one = new Last;  // never destroyed: a program may leave from anywhere
    return *one;
}

Description& begin_for(Schedule& s) {
    Last& one = last();
    one.comm = &s.comm();
    one.tag = s.tag();
    one.what = {};
    if (!s.comm().inter) {
        one.what.gives.resize(static_cast<size_t>(s.comm().size));
        one.what.takes.resize(static_cast<size_t>(s.comm().size));
    }
    return one.what;
}

MPI_Datatype only_basic(const Datatype& type) {
    MPI_Datatype found = MPI_DATATYPE_NULL;
    bool several = false;
    for_each_basic(type, 0, [&](const Datatype& basic, MPI_Aint, MPI_Count) {
        several = several || (found != MPI_DATATYPE_NULL && found != basic.handle);
        found = basic.handle;
    });
    return several ? MPI_DATATYPE_NULL : found;
}

Flow flow(MPI_Count count, const Datatype* type) {
    if (type == nullptr) return {};
    return {count * type->size, count == 0 ? MPI_DATATYPE_NULL : only_basic(*type)};
}

void fill(std::vector<Flow>& all, const Flow& each) { all.assign(all.size(), each); }

void fill(std::vector<Flow>& all, const coll::Shares& shares) {
    const Flow one = flow(1, shares.type);
    for (size_t i = 0; i < all.size() && one.bytes >= 0; i++) {
        const MPI_Count count = shares.count_of(static_cast<int>(i));
        all[i] = {count * one.bytes, count == 0 ? MPI_DATATYPE_NULL : one.basic};
    }
}

void fill(std::vector<Flow>& all, const coll::TypedShares& shares) {
    for (size_t i = 0; i < all.size(); i++) all[i] = flow(shares.counts[i], shares.types[i]);
}

bool is_member(const std::vector<Flow>& all, int root) { return root >= 0 && static_cast<size_t>(root) < all.size(); }

}  // namespace

Description description_of(const Schedule& s) {
    const Last& one = last();
    auto& comm = const_cast<Schedule&>(s).comm();
    return one.comm == &comm && one.tag == s.tag() ? one.what : Description{};
}

void describe(Schedule& s) { begin_for(s); }

void describe_bcast(Schedule& s, const coll::Items& items, int root) {
    Description& what = begin_for(s);
    what.root = root;
    if (!is_member(what.takes, root)) return;
    if (s.comm().rank == root)
        fill(what.gives, flow(items.count, items.type));
    else
        what.takes[static_cast<size_t>(root)] = flow(items.count, items.type);
}

void describe_gather(Schedule& s, const coll::Items& in, const coll::Shares& out, int root) {
    Description& what = begin_for(s);
    what.root = root;
    if (!is_member(what.takes, root)) return;
    if (s.comm().rank == root)
        fill(what.takes, out);
    else
        what.gives[static_cast<size_t>(root)] = flow(in.count, in.type);
}

void describe_scatter(Schedule& s, const coll::Shares& in, const coll::Items& out, int root) {
    Description& what = begin_for(s);
    what.root = root;
    if (!is_member(what.takes, root)) return;
    if (s.comm().rank == root)
        fill(what.gives, in);
    else
        what.takes[static_cast<size_t>(root)] = flow(out.count, out.type);
}

void describe_allgather(Schedule& s, const coll::Items& in, const coll::Shares& out) {
    Description& what = begin_for(s);
    fill(what.takes, out);
    fill(what.gives, in.in_place() ? flow(out.count_of(s.comm().rank), out.type) : flow(in.count, in.type));
}

void describe_alltoall(Schedule& s, const coll::Shares& in, const coll::Shares& out) {
    Description& what = begin_for(s);
    fill(what.gives, in.in_place() ? out : in);
    fill(what.takes, out);
}

void describe_alltoallw(Schedule& s, const coll::TypedShares& in, const coll::TypedShares& out) {
    Description& what = begin_for(s);
    fill(what.gives, in.in_place() ? out : in);
    fill(what.takes, out);
}

void describe_reduction(Schedule& s, MPI_Count count, const Datatype& type, const Operator& op, int root) {
    Description& what = begin_for(s);
    what.root = root;
    what.op = op.is_builtin() ? op.handle : kOpOfProgram;
    fill(what.gives, flow(count, &type));
    what.takes = what.gives;
}

void describe_reduce_scatter(Schedule& s, const coll::Numbers& counts, const Datatype& type, const Operator& op) {
    Description& what = begin_for(s);
    what.op = op.is_builtin() ? op.handle : kOpOfProgram;
    for (size_t i = 0; i < what.gives.size(); i++) what.gives[i] = flow(counts[i], &type);
    if (!what.takes.empty()) fill(what.takes, what.gives[static_cast<size_t>(s.comm().rank)]);
}

}  // namespace viaduct::mpi::checking
