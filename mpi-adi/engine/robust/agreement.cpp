// SPDX-License-Identifier: BSD-2-Clause
// See agreement.hpp.
#include "mpi-adi/engine/robust/agreement.hpp"

#include <cstring>
#include <new>

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi::robust {
namespace {

// In front of the two sets of members, of a bit for each.
struct Head {
    uint32_t instance;
    uint32_t members;
    int64_t flags;
    uint64_t contexts[2];
};

size_t set_bytes(size_t members) { return (members + 7) / 8; }

void append(std::vector<char>* bytes, const MemberSet& set) {
    const size_t begin = bytes->size();
    bytes->resize(begin + set_bytes(set.size()));
    for (size_t i = 0; i < set.size(); i++)
        if (set[i]) (*bytes)[begin + i / 8] = char((*bytes)[begin + i / 8] | 1 << i % 8);
}

MemberSet read_set(const char* data, size_t members) {
    MemberSet set(members);
    for (size_t i = 0; i < members; i++) set[i] = (data[i / 8] >> i % 8 & 1) != 0;
    return set;
}

std::vector<char> encode(uint32_t instance, const Vote& vote) {
    const Head head{instance, uint32_t(vote.lost.size()), vote.flags, {vote.contexts[0], vote.contexts[1]}};
    std::vector<char> bytes(sizeof head);
    std::memcpy(bytes.data(), &head, sizeof head);
    append(&bytes, vote.lost);
    append(&bytes, vote.acknowledged);
    return bytes;
}

bool decode(const char* data, size_t bytes, int members, uint32_t* instance, Vote* vote) {
    Head head;
    const size_t set = set_bytes(size_t(members));
    if (bytes != sizeof head + 2 * set) return false;
    std::memcpy(&head, data, sizeof head);
    if (head.instance == 0 || head.members != uint32_t(members)) return false;
    *instance = head.instance;
    vote->flags = head.flags;
    vote->contexts = {head.contexts[0], head.contexts[1]};
    vote->lost = read_set(data + sizeof head, size_t(members));
    vote->acknowledged = read_set(data + sizeof head + set, size_t(members));
    return true;
}

Rounds& rounds_of(Communicator& comm) {
    State& state = state_of(comm);
    if (state.rounds == nullptr) state.rounds = std::make_unique<Rounds>();
    return *state.rounds;
}

// The place of an instance, made empty for one that is newer than what lies there; null for one that is over, and for
// one that no member can have begun yet.
Rounds::Slot* slot_of(Rounds& rounds, uint32_t instance) {
    Rounds::Slot& slot = rounds.slots[instance % 2];
    if (instance < slot.instance || instance > rounds.begun + 2) return nullptr;
    if (instance > slot.instance) {
        slot = Rounds::Slot();
        slot.instance = instance;
    }
    return &slot;
}

MemberSet lost_members(const Members& members) {
    MemberSet set(size_t(members.size()));
    for (int i = 0; i < members.size(); i++) set[size_t(i)] = members.is_lost(i);
    return set;
}

MemberSet acknowledged_members(const State& state, const Members& members) {
    MemberSet set(size_t(members.size()));
    for (size_t i = 0; i < state.acknowledged; i++)
        for (int index = 0; index < members.size(); index++)
            if (world_rank_of(members.process(index)) == state.lost[i].process) set[size_t(index)] = true;
    return set;
}

// A process that another member has found lost is lost for this process, too.
void add_lost(const Members& members, const MemberSet& set) {
    for (int i = 0; i < members.size(); i++)
        if (set[size_t(i)] && i != members.own() && !members.is_lost(i)) lost(members.process(i));
}

int lowest_left(const Members& members) {
    int leader = 0;
    while (members.is_lost(leader)) leader++;  // this process is not
    return leader;
}

void tell_others(const Members& members, Control kind, const std::vector<char>& bytes) {
    for (int i = 0; i < members.size(); i++)
        if (i != members.own() && !members.is_lost(i)) members.send(i, kind, bytes);
}

bool all_have_voted(const Members& members, const Rounds::Slot& slot) {
    for (int i = 0; i < members.size(); i++)
        if (i != members.own() && !members.is_lost(i) && (slot.votes.empty() || !slot.votes[size_t(i)])) return false;
    return true;
}

Vote decide(const Members& members, const Rounds::Slot& slot) {
    Vote decision = *slot.own;
    decision.lost = lost_members(members);
    for (int i = 0; i < members.size(); i++) {
        if (i == members.own() || members.is_lost(i)) continue;
        const Vote& vote = *slot.votes[size_t(i)];
        decision.flags &= vote.flags;
        for (size_t one = 0; one < vote.acknowledged.size(); one++)
            decision.acknowledged[one] = decision.acknowledged[one] && vote.acknowledged[one];
    }
    decision.contexts = {new_context(), new_context()};
    return decision;
}

class Agreement final : public Activity {
public:
    Agreement(Communicator& comm, int64_t flags, std::function<int(const Vote&)> end)
        : comm_(comm), rounds_(rounds_of(comm)), end_(std::move(end)) {
        own_.flags = flags;
        own_.acknowledged = acknowledged_members(*comm.robust, Members(comm));
    }

    // An instance that has begun must end, because others wait for this process. So it begins here, when it has its
    // place among the activities, and what lacks memory is done again in the next pass.
    bool advance(int* error) override {
        if (instance_ == 0) begin();
        Rounds::Slot& slot = rounds_.slots[instance_ % 2];
        try {
            if (!slot.decided) turn_to_leader(slot);
            if (slot.must_tell) tell_decision(slot);
        } catch (const std::bad_alloc&) {
            return false;
        }
        if (!slot.decided) return false;
        // The instance is over in all members: a caller that lacks memory from here on must not begin another one, in
        // which no other member takes part.
        try {
            const bool left_out = slot.decided->lost[size_t(Members(comm_).own())];
            *error = left_out ? MPIX_ERR_PROC_FAILED : end_(*slot.decided);
        } catch (const std::bad_alloc&) {
            *error = MPI_ERR_NO_MEM;
        }
        return true;
    }

private:
    void begin() {
        instance_ = ++rounds_.begun;
        slot_of(rounds_, instance_)->own = std::move(own_);
    }

    void turn_to_leader(Rounds::Slot& slot) {
        const Members members(comm_);
        const int leader = lowest_left(members);
        if (slot.leader != leader) {
            slot.own->lost = lost_members(members);
            const std::vector<char> bytes = encode(instance_, *slot.own);
            if (leader != members.own())
                members.send(leader, Control::vote, bytes);
            else if (leader != 0)  // otherwise none was there before
                tell_others(members, Control::question, bytes);
            slot.leader = leader;
        }
        if (leader != members.own() || !all_have_voted(members, slot)) return;
        slot.decided = decide(members, slot);
        slot.must_tell = true;
    }

    void tell_decision(Rounds::Slot& slot) {
        tell_others(Members(comm_), Control::decision, encode(instance_, *slot.decided));
        slot.must_tell = false;
    }

    Communicator& comm_;
    Rounds& rounds_;
    Vote own_;
    std::function<int(const Vote&)> end_;
    uint32_t instance_ = 0;  // 0: not begun
};

}  // namespace

Decisions decisions_of(const State& state) {
    Decisions all;
    if (state.rounds == nullptr) return all;
    for (const Rounds::Slot& slot : state.rounds->slots)
        if (slot.decided) all.push_back({slot.instance, encode(slot.instance, *slot.decided)});
    return all;
}

uint32_t instance_of(const char* data, size_t bytes) {
    Head head{};
    if (bytes >= sizeof head) std::memcpy(&head, data, sizeof head);
    return head.instance;
}

void take_agreement(Communicator& comm, int from, Control kind, const char* data, size_t bytes) {
    const Members members(comm);
    uint32_t instance = 0;
    Vote vote;
    if (!decode(data, bytes, members.size(), &instance, &vote) || members.is_lost(from)) return;
    Rounds::Slot* const slot = slot_of(rounds_of(comm), instance);
    if (slot == nullptr) return;
    add_lost(members, vote.lost);
    if (kind == Control::decision) {
        if (!slot->decided) slot->decided = std::move(vote);
    } else if (slot->decided) {
        members.send(from, Control::decision, encode(instance, *slot->decided));
    } else if (kind == Control::vote) {
        slot->votes.resize(size_t(members.size()));
        slot->votes[size_t(from)] = std::move(vote);
    }
}

Request* agree(Communicator& comm, int64_t flags, std::function<int(const Vote&)> end) {
    return start(new Agreement(comm, flags, std::move(end)), &comm);
}

Request* comm_agree(Communicator& comm, int* flag) {
    return agree(comm, *flag, [flag](const Vote& decision) {
        *flag = int(decision.flags);
        for (size_t i = 0; i < decision.lost.size(); i++)
            if (decision.lost[i] && !decision.acknowledged[i]) return MPIX_ERR_PROC_FAILED;
        return MPI_SUCCESS;
    });
}

namespace {

// Members of one group that are left; `first` is the index of its first one.
Group* those_left(const Group& group, size_t first, const MemberSet& lost) {
    std::vector<int> left;
    for (size_t rank = 0; rank < group.world.size(); rank++)
        if (!lost[first + rank]) left.push_back(group.world[rank]);
    return new Group(std::move(left), world().rank);
}

Communicator* make_from_those_left(Communicator& comm, const Vote& decision) {
    if (!comm.inter) return make_intra(those_left(*comm.local, 0, decision.lost), decision.contexts[0], &comm);
    const Members members(comm);
    const size_t local = size_t(members.index_of(false, 0));
    const size_t remote = size_t(members.index_of(true, 0));
    const size_t side = members.first_is_local() ? 0 : 1;
    return make_inter(those_left(*comm.local, local, decision.lost), those_left(*comm.remote, remote, decision.lost),
                      decision.contexts[side], decision.contexts[1 - side], &comm);
}

}  // namespace

Request* comm_shrink(Communicator& comm, MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    Communicator* const old = &comm;
    return agree(comm, 0, [old, newcomm](const Vote& decision) {
        *newcomm = make_from_those_left(*old, decision)->handle;
        return MPI_SUCCESS;
    });
}

}  // namespace viaduct::mpi::robust
