// SPDX-License-Identifier: BSD-2-Clause
// Agreement among the members of a communicator that are left, also when further members fail meanwhile. Members agree
// on one thing after the other; each such instance has a number.
//
// The lowest member that is not lost leads. Each member sends it a vote: its flags, the members that it has found to be
// lost, those whose loss it has acknowledged. When all that are not lost have voted, the leader decides, and sends the
// decision to all. A member that is told of the loss of the leader turns to the next one. That one queries all first: a
// member that has the decision of an earlier leader answers with it, and then it stands; without one the new leader
// decides. A member takes no decision of a process that it has found lost. A vote for an instance shows that its
// sender has the decision of the one before; so each member keeps two decisions, also those of a communicator that has
// ended here (ended.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "mpi-adi/engine/robust/control.hpp"

namespace viaduct::mpi::robust {

struct State;

// By index of members.
using MemberSet = std::vector<bool>;

// A vote, or what was decided.
struct Vote {
    int64_t flags = 0;                  // decided: the bits that all have set
    std::array<uint64_t, 2> contexts{};  // of the leader: for a communicator of those that are left
    MemberSet lost;
    MemberSet acknowledged;  // decided: what all have acknowledged
};

// In the form in which it is sent.
struct Decision {
    uint32_t instance;
    std::vector<char> bytes;
};
using Decisions = std::vector<Decision>;

// The instances of one communicator.
struct Rounds {
    struct Slot {
        uint32_t instance = 0;
        std::optional<Vote> own;  // this process takes part
        std::optional<Vote> decided;
        int leader = -1;         // that the own vote was sent to, or that has queried the others
        bool must_tell = false;  // the others, what this process has decided
        std::vector<std::optional<Vote>> votes;
    };
    uint32_t begun = 0;  // instances that this process has begun
    Slot slots[2];       // by the lowest bit of the instance
};

Decisions decisions_of(const State& state);
// Of a message; 0: it is none.
uint32_t instance_of(const char* data, size_t bytes);
// A vote, question or decision has come from that member.
void take_agreement(Communicator& comm, int from, Control kind, const char* data, size_t bytes);

// Takes part in the next instance. `end` gets the decision, when the request completes, and gives the error.
Request* agree(Communicator& comm, int64_t flags, std::function<int(const Vote&)> end);

// MPIX_Comm_iagree and MPIX_Comm_ishrink.
Request* comm_agree(Communicator& comm, int* flag);
Request* comm_shrink(Communicator& comm, MPI_Comm* newcomm);

}  // namespace viaduct::mpi::robust
