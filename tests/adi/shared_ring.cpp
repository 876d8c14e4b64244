// SPDX-License-Identifier: BSD-2-Clause
// Rings beside peers without one: packets in rings do not delay those of the queue, and the place of a lost peer's ring
// is given to another peer.
#include <signal.h>
#include <unistd.h>

#include "cases.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::adi_test {
namespace {

// More messages than are needed to open the rings, where both sides have a place for one.
void exchange(Engine& e, int other, int times) {
    for (int i = 0; i < times; ++i) {
        uint64_t word = 0;
        e.send(other, 1, &word, sizeof word);
        e.receive(other, 1, &word, sizeof word);
    }
}

constexpr int kTimes = 200;

bool uses_ring_with(Engine& e, int other) { return via::connection_of(e.process(other))->ring.open; }

// Rank 0 offers a ring to one peer only, which is rank 1; there is no place for rank 2.
void offer_to_one(Engine& e, Job& job) {
    if (e.rank() == 0) via::via_module->nic.rings.most_offered = 1;
    for (int peer = 1; peer < e.size(); ++peer) {
        if (e.rank() == 0) exchange(e, peer, kTimes);
        if (e.rank() == peer) exchange(e, 0, kTimes);
        job.barrier();
    }
    if (e.rank() != 2) CHECK(uses_ring_with(e, 1 - e.rank()));
    if (e.rank() == 0) CHECK(!uses_ring_with(e, 2));
}

// All slots of rank 1 are full, and one packet of rank 2 is in the queue: it is taken before they are empty.
void turns(Job& job) {
    Engine e(job, module);
    offer_to_one(e, job);
    constexpr uint32_t kMessages = via::kSlotCount[via::kShort] - 4;
    uint64_t words[kMessages + 1] = {};
    mpip_req_t requests[kMessages + 1];
    if (e.rank() == 0) {
        for (mpip_req_t& req : requests) {
            const int from = &req == &requests[kMessages] ? 2 : 1;
            e.irecv(req, from, 3, &words[&req - requests], sizeof words[0]);
        }
        via::write_ring_status(via::connection_of(e.process(1)));
        job.barrier();
        job.barrier();
        uint32_t polls = 0;
        while ((requests[kMessages].r_state & MPIP_REQ_DONE) == 0 && polls < 1000) {
            via::via_module->nic.rings.packets_in_row = 0;  // one packet in each poll
            via::poll_packets(via::via_module->nic);
            ++polls;
        }
        uint32_t taken = 0;
        for (uint32_t i = 0; i < kMessages; ++i) taken += (requests[i].r_state & MPIP_REQ_DONE) != 0 ? 1 : 0;
        CHECK(polls <= 40);
        CHECK(taken < kMessages && taken + 1 >= polls);
        for (mpip_req_t& req : requests) CHECK(e.wait(req) == MPIP_SUCCESS);
    } else {
        job.barrier();
        const uint32_t count = e.rank() == 1 ? kMessages : 1;
        for (uint32_t i = 0; i < count; ++i) e.isend(requests[i], 0, 3, &words[i], sizeof words[i]);
        job.barrier();
        for (uint32_t i = 0; i < count; ++i) CHECK(e.wait(requests[i]) == MPIP_SUCCESS);
    }
    e.barrier();
}

constexpr int kOfferedTo = 1;
void place_of_a_lost_peer(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    offer_to_one(e, job);
    if (e.rank() == kOfferedTo) ::kill(::getpid(), SIGKILL);
    if (e.rank() == 0) {
        while (e.failed().empty()) e.progress();
        CHECK(e.failed().size() == 1 && e.failed()[0] == kOfferedTo);
        exchange(e, 2, kTimes);
        CHECK(via::via_module->nic.rings.offered == 1);
        CHECK(uses_ring_with(e, 2));
    } else {
        exchange(e, 0, kTimes);
        CHECK(uses_ring_with(e, 0));
    }
}

}  // namespace

std::vector<Case> shared_ring_cases() {
    return {{"ring-turns", turns, 3, 20, "via"},
            {"ring-place-of-a-lost-peer", place_of_a_lost_peer, 3, 20, "via", {}, {kOfferedTo}}};
}

}  // namespace viaduct::adi_test
