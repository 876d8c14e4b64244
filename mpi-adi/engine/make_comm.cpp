// SPDX-License-Identifier: BSD-2-Clause
// Making communicators out of others. See make_comm.hpp.
#include "mpi-adi/engine/make_comm.hpp"

#include <algorithm>

#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/dynamic/meet.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi {
namespace {

const Datatype& bytes_type() { return *type_of(MPI_BYTE); }

// A value of the first process (of `root`) to all of one group.
template <typename T>
int tell_all(Communicator& comm, T* values, MPI_Count n, int root) {
    Schedule s(comm);
    coll::bcast_within(s, {values, n * MPI_Count(sizeof(T)), &bytes_type()}, root);
    return s.run();
}

// The record of each process, in the order of ranks of one group.
template <typename T>
int collect(Communicator& comm, const T& own, std::vector<T>* all) {
    all->resize(size_t(comm.size));
    Schedule s(comm);
    coll::allgather(s, {&own, sizeof(T), &bytes_type()}, {all->data(), {}, {}, sizeof(T), &bytes_type()});
    return s.run();
}

template <typename T>
Payload payload(T* values, size_t n) {
    return {const_cast<void*>(static_cast<const void*>(values)), n * sizeof(T), nullptr, 0};
}

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

// What is wrong with a call that this process or another one refuses.
int own_or(int refused, int64_t others) { return refused != MPI_SUCCESS ? refused : int(others); }

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

int comm_dup(Communicator& old, const Info* hints, Communicator** made) {
    AttributeSet attributes;
    const int refused = old.attributes.copy_to(old.handle, attributes);
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

int comm_idup(Communicator& old, const Info* hints, MPI_Comm* newcomm, Request** request) {
    struct State {
        AttributeSet attributes;
        Contexts contexts;
        std::unique_ptr<Info> hints;
    };
    auto state = std::make_shared<State>();
    // Attributes are copied now: the standard's callbacks belong to this call. Where one fails, the call does, and the
    // request of the others; it goes on without this process's program.
    const int refused = old.attributes.copy_to(old.handle, state->attributes);
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

// The first error of those that all members have said.
template <typename Word>
int first_refusal(const std::vector<Word>& all) {
    for (const Word& word : all) {
        if (word.refused != MPI_SUCCESS) {
            return int(word.refused);
        }
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

namespace {

struct SplitWord {
    int color;
    int key;
    int process;  // set by the receiver, whose own number it is
    int rank;     // in the parent
    uint64_t context;
    int64_t refused;
};

// Words by rank in the group.
void number_by(const Group& group, std::vector<SplitWord>& words) {
    for (size_t rank = 0; rank < words.size(); ++rank) {
        words[rank].process = group.world[rank];
    }
}

// Members of one color in the order of keys, then of ranks.
std::vector<SplitWord> chosen(const std::vector<SplitWord>& all, int color) {
    std::vector<SplitWord> members;
    std::copy_if(all.begin(), all.end(), std::back_inserter(members),
                 [&](const SplitWord& w) { return w.color == color; });
    std::stable_sort(members.begin(), members.end(),
                     [](const SplitWord& a, const SplitWord& b) { return a.key < b.key; });
    return members;
}

Group* group_from(const std::vector<SplitWord>& members) {
    std::vector<int> processes;
    for (const SplitWord& word : members) {
        processes.push_back(word.process);
    }
    return new Group(std::move(processes), world().rank);
}

}  // namespace

int comm_split(Communicator& old, int color, int key, int refused, Communicator** made) {
    *made = nullptr;
    // Each process offers a context; that of the first member of each color is taken.
    SplitWord mine{color, key, 0, old.rank, new_context(), refused};
    std::vector<SplitWord> all;
    if (int error = collect(old.inter ? *old.within : old, mine, &all)) {
        return error;
    }
    std::vector<SplitWord> others;
    if (old.inter) {
        others.resize(size_t(old.remote_size));
        Schedule s(old);
        coll::allgather(s, {&mine, sizeof mine, &bytes_type()}, {others.data(), {}, {}, sizeof mine, &bytes_type()});
        if (int error = s.run()) {
            return error;
        }
    }
    number_by(*old.local, all);
    number_by(*old.remote, others);
    const int here_refused = first_refusal(all);
    if (int error = own_or(refused, own_or(here_refused, first_refusal(others)))) {
        return error;
    }
    if (color == MPI_UNDEFINED) {
        return MPI_SUCCESS;
    }
    std::vector<SplitWord> here = chosen(all, color);
    if (!old.inter) {
        *made = make_intra(group_from(here), here[0].context, &old);
        return MPI_SUCCESS;
    }
    std::vector<SplitWord> there = chosen(others, color);
    if (!there.empty()) {
        *made = make_inter(group_from(here), group_from(there), here[0].context, there[0].context, &old);
    }
    return MPI_SUCCESS;
}

namespace {

uint64_t job_of(const Group& group) {
    const bool ours = std::all_of(group.world.begin(), group.world.end(), [](int p) { return p < world().size; });
    return ours ? world().numbers[0] : 0;
}

// Whether the leaders' words can name processes by their ranks in the world.
template <typename Word>
bool of_one_job(const Word& a, const Word& b) {
    return a.job != 0 && a.job == b.job;
}

int swap_texts(Communicator& peer, int with, int tag, const std::string& mine, std::string* theirs) {
    uint64_t sizes[2] = {mine.size(), 0};
    if (int error = sendrecv(peer, Channel::groups, with, tag, payload(&sizes[0], 1), with, tag,
                             payload(&sizes[1], 1))) {
        return error;
    }
    theirs->resize(sizes[1]);
    return sendrecv(peer, Channel::groups, with, tag, payload(mine.data(), mine.size()), with, tag,
                    payload(theirs->data(), theirs->size()));
}

}  // namespace

int intercomm_create(Communicator& local, int local_leader, Communicator* peer, int remote_leader, int tag, int refused,
                     Communicator** made) {
    struct Word {
        uint64_t context;
        int64_t members;
        int64_t error;
        uint64_t job;  // the first process number of the job that all members belong to; 0: of several
    };
    *made = nullptr;
    Word mine{0, local.size, MPI_SUCCESS, job_of(*local.local)};
    Word theirs{0, 0, MPI_SUCCESS, 0};
    std::vector<int> members;
    if (local.rank == local_leader && refused != MPI_SUCCESS) {
        theirs.error = refused;
    } else if (local.rank == local_leader) {
        mine.context = new_context();
        theirs.error = sendrecv(*peer, Channel::groups, remote_leader, tag, payload(&mine, 1), remote_leader, tag,
                                payload(&theirs, 1));
        if (theirs.error == MPI_SUCCESS && of_one_job(mine, theirs)) {
            members.resize(size_t(theirs.members));
            theirs.error = sendrecv(*peer, Channel::groups, remote_leader, tag,
                                    payload(local.local->world.data(), local.local->world.size()), remote_leader, tag,
                                    payload(members.data(), members.size()));
        }
    }
    Word both[2] = {mine, theirs};
    if (int error = tell_all(local, both, 2, local_leader)) {
        return error;
    }
    if (both[1].error != MPI_SUCCESS) {
        return int(both[1].error);
    }
    if (!of_one_job(both[0], both[1])) {
        return meet(local, local_leader, [=](RootLink* link) {
            link->swap = [=](const std::string& out, std::string* in) {
                return swap_texts(*peer, remote_leader, tag, out, in);
            };
            return MPI_SUCCESS;
        }, false, made);
    }
    members.resize(size_t(both[1].members));
    if (int error = tell_all(local, members.data(), MPI_Count(members.size()), local_leader)) {
        return error;
    }
    // A process on both sides would talk to itself through two groups.
    for (int process : members) {
        if (local.local->rank_of(process) != MPI_UNDEFINED) {
            return MPI_ERR_COMM;
        }
    }
    group_retain(local.local);
    *made = make_inter(local.local, new Group(members, world().rank), both[0].context, both[1].context, &local);
    return MPI_SUCCESS;
}

int intercomm_merge(Communicator& inter, bool high, Communicator** made) {
    struct Word {
        uint64_t context;
        int64_t high;
        int64_t first;  // a number that both sides have
    };
    *made = nullptr;
    Word mine{inter.rank == 0 ? new_context() : 0, high, world().numbers[size_t(inter.local->world[0])]};
    Word theirs{};
    Schedule s(inter);
    if (inter.rank == 0) {
        s.send(&mine, sizeof mine, bytes_type(), 0);
        s.recv(&theirs, sizeof theirs, bytes_type(), 0);
    }
    if (int error = s.run()) {
        return error;
    }
    Word both[2] = {mine, theirs};
    if (int error = tell_all(*inter.within, both, 2, 0)) {
        return error;
    }
    // Sides that say the same are ordered by which side has the lower first process.
    bool first = both[0].high != both[1].high ? !both[0].high : both[0].first < both[1].first;
    const Group& a = first ? *inter.local : *inter.remote;
    const Group& b = first ? *inter.remote : *inter.local;
    std::vector<int> processes = a.world;
    processes.insert(processes.end(), b.world.begin(), b.world.end());
    *made = make_intra(new Group(std::move(processes), world().rank), both[first ? 0 : 1].context, &inter);
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
