// SPDX-License-Identifier: BSD-2-Clause
// Making communicators out of others. See make_comm.hpp.
#include "mpi-adi/engine/make_comm.hpp"

#include "mpi-adi/engine/make_comm_words.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi {
namespace {

void inherit(const Communicator& old, const Info* hints, Communicator& made) {
    if (old.topology) {
        made.topology = std::make_unique<Topology>(*old.topology);
    }
    if (hints) {
        add_hints(*hints, made.hints);
        robust::use_hint(*hints, made);
    }
}

Communicator* make_like(Communicator& old, uint64_t recv_context, uint64_t send_context) {
    group_retain(old.local);
    if (!old.inter) {
        return make_intra(old.local, recv_context, &old);
    }
    group_retain(old.remote);
    return make_inter(old.local, old.remote, recv_context, send_context, &old);
}

// Contexts of a duplicate, what this side receives with and what it sends with, and the largest error of each side. In
// steps of a schedule. A context is no negative number, and processes that give none send 0.
struct Contexts {
    int64_t recv = 0;
    int64_t refused = MPI_SUCCESS;
    int64_t send = 0;
    int64_t refused_there = MPI_SUCCESS;

    int error(int own) const { return own_or(own, refused != MPI_SUCCESS ? refused : refused_there); }
};

void agree(Schedule& s, int refused, Contexts* contexts) {
    Communicator& comm = s.comm();
    const Datatype& words = *type_of(MPI_INT64_T);
    contexts->refused = refused;
    if (comm.rank == 0) {
        contexts->recv = int64_t(new_context());
    }
    if (!comm.inter) {
        coll::allreduce_within(s, &contexts->recv, 2, words, *op_of(MPI_MAX));
        s.round();
        s.call([contexts] {
            contexts->send = contexts->recv;
            return MPI_SUCCESS;
        });
        return;
    }
    s.through(*comm.within);
    coll::allreduce_within(s, &contexts->recv, 2, words, *op_of(MPI_MAX));
    s.round();
    if (comm.rank == 0) {
        s.through(comm);
        s.send(&contexts->recv, 2, words, 0);
        s.recv(&contexts->send, 2, words, 0);
        s.round();
        s.through(*comm.within);
    }
    coll::bcast_within(s, {&contexts->send, 2, &words}, 0);
}

int finish_dup(Communicator& old, AttributeSet& attributes, const Info* hints, Contexts contexts, Communicator** made) {
    *made = make_like(old, uint64_t(contexts.recv), uint64_t(contexts.send));
    std::swap((*made)->attributes, attributes);
    inherit(old, hints, **made);
    return MPI_SUCCESS;
}

}  // namespace

int comm_dup(Communicator& old, const Info* hints, int refused, Communicator** made) {
    AttributeSet attributes;
    if (refused == MPI_SUCCESS) refused = old.attributes.copy_to(old.handle, attributes);
    Contexts contexts;
    Schedule s(old);
    agree(s, refused, &contexts);
    const int failed = s.run();
    if (int error = contexts.error(own_or(refused, failed))) {
        (void)attributes.clear(old.handle);  // the error that came first is told
        return error;
    }
    return finish_dup(old, attributes, hints, contexts, made);
}

int comm_idup(Communicator& old, const Info* hints, int refused, MPI_Comm* newcomm, Request** request) {
    struct State {
        AttributeSet attributes;
        Contexts contexts;
        std::unique_ptr<Info> hints;
    };
    auto state = std::make_shared<State>();
    // Attributes are copied now: the standard's callbacks belong to this call. Where one fails, the call does, and the
    // request of the others; it goes on without this process's program.
    if (refused == MPI_SUCCESS) refused = old.attributes.copy_to(old.handle, state->attributes);
    if (hints) {
        state->hints = std::make_unique<Info>(*hints);
    }
    *newcomm = MPI_COMM_NULL;
    auto s = std::make_unique<Schedule>(old);
    agree(*s, refused, &state->contexts);
    s->round();
    Communicator* parent = &old;
    s->call([state, parent, refused, newcomm] {
        if (int error = state->contexts.error(refused)) {
            (void)state->attributes.clear(parent->handle);  // the error that came first is told
            return error;
        }
        Communicator* made = nullptr;
        int error = finish_dup(*parent, state->attributes, state->hints.get(), state->contexts, &made);
        *newcomm = made ? made->handle : MPI_COMM_NULL;
        return error;
    });
    Request* going = start(s.release(), &old);
    if (refused != MPI_SUCCESS) {
        done(going) ? void(finish(going)) : detach_request(going);
        return refused;
    }
    *request = going;
    return MPI_SUCCESS;
}

namespace {

int create_inter(Communicator& old, const Group& group, int refused, Communicator** made) {
    // What each process says: its side's group, by ranks in the parent, is known to the first one of the side. Process
    // numbers are this process's own: they mean nothing to one of another job.
    struct Word {
        int64_t context;
        int64_t members;
        int64_t refused;
    };
    Communicator& within = *old.within;
    // Every member of a side passes the same group; its first one gives the context.
    Word mine{group.rank == 0 ? int64_t(new_context()) : 0, group.size(), refused};
    {
        Schedule s(within);
        coll::allreduce(s, MPI_IN_PLACE, &mine, 3, *type_of(MPI_INT64_T), *op_of(MPI_MAX));
        if (int error = s.run()) {
            return error;
        }
    }
    Word theirs{0, 0, MPI_SUCCESS};
    std::vector<int> members;
    Schedule first(old);
    if (old.rank == 0) {
        first.send(&mine, sizeof mine, bytes_type(), 0);
        first.recv(&theirs, sizeof theirs, bytes_type(), 0);
    }
    if (int error = first.run()) {
        return error;
    }
    if (int error = tell_all(within, &theirs, 1, 0)) {
        return error;
    }
    if (int error = own_or(refused, mine.refused != MPI_SUCCESS ? mine.refused : theirs.refused)) {
        return error;
    }
    members.resize(size_t(theirs.members));
    Schedule second(old);
    std::vector<int> ours;
    for (int process : group.world) {
        ours.push_back(old.local->rank_of(process));
    }
    if (old.rank == 0) {
        second.send(ours.data(), MPI_Count(ours.size() * sizeof(int)), bytes_type(), 0);
        second.recv(members.data(), MPI_Count(members.size() * sizeof(int)), bytes_type(), 0);
    }
    if (int error = second.run()) {
        return error;
    }
    if (int error = tell_all(within, members.data(), MPI_Count(members.size()), 0)) {
        return error;
    }
    *made = nullptr;
    if (group.rank != MPI_UNDEFINED && !members.empty()) {
        for (int& member : members) {
            if (member < 0 || member >= old.remote_size) {
                return MPI_ERR_INTERN;
            }
            member = old.remote->world[size_t(member)];
        }
        auto* local = new Group(group.world, world().rank);
        auto* remote = new Group(members, world().rank);
        *made = make_inter(local, remote, uint64_t(mine.context), uint64_t(theirs.context), &old);
    }
    return MPI_SUCCESS;
}

}  // namespace

int comm_create(Communicator& old, const Group& group, int refused, Communicator** made) {
    *made = nullptr;
    if (old.inter) {
        return create_inter(old, group, refused, made);
    }
    // Groups of one call are equal or disjoint; a number that all see is that of each group's first member.
    struct Word {
        uint64_t context;
        int64_t refused;
    };
    std::vector<Word> offered;
    const Word mine{group.rank == 0 ? new_context() : 0, refused};
    if (int error = collect(old, mine, &offered)) {
        return error;
    }
    if (int error = own_or(refused, first_refusal(offered))) {
        return error;
    }
    if (group.rank != MPI_UNDEFINED) {
        uint64_t context = offered[size_t(old.local->rank_of(group.world[0]))].context;
        *made = make_intra(new Group(group.world, world().rank), context, &old);
    }
    return MPI_SUCCESS;
}

int comm_create_group(Communicator& old, Group& group, int tag, int refused, Communicator** made) {
    *made = nullptr;
    if (group.rank == MPI_UNDEFINED) {
        return refused;
    }
    // Up a binomial tree what members refuse, and down again with the context.
    struct Word {
        uint64_t context;
        int64_t refused;
    };
    Communicator& through = old.inter ? *old.within : old;
    const int size = group.size();
    const int rank = group.rank;
    auto in_parent = [&](int r) { return through.local->rank_of(group.world[size_t(r)]); };
    Word word{0, refused};
    int mask = 1;
    for (; mask < size && !(rank & mask); mask *= 2) {
        if (rank + mask < size) {
            Word theirs{0, MPI_SUCCESS};
            const int failed = recv(through, Channel::groups, in_parent(rank + mask), tag, payload(&theirs, 1));
            word.refused = own_or(int(word.refused), own_or(failed, theirs.refused));
        }
    }
    if (rank == 0) {
        word.context = new_context();
    } else if (int error = sendrecv(through, Channel::groups, in_parent(rank - mask), tag, payload(&word, 1),
                                    in_parent(rank - mask), tag, payload(&word, 1))) {
        word.refused = own_or(int(word.refused), error);
    }
    int unsent = MPI_SUCCESS;
    for (mask /= 2; mask > 0; mask /= 2) {
        if (rank + mask < size) {
            unsent = own_or(unsent, send(through, Channel::groups, in_parent(rank + mask), tag, payload(&word, 1)));
        }
    }
    if (int error = own_or(refused, own_or(int(word.refused), unsent))) {
        return error;
    }
    *made = make_intra(new Group(group.world, world().rank), word.context, &old);
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
