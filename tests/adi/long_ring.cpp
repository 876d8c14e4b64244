// SPDX-License-Identifier: BSD-2-Clause
// Long messages through the eager ring: whole ones up to the size of a slot, and pieces of longer ones.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "cases.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::adi_test {
namespace {

// A message of each length, sent before its receive is there or after; so many begin with a handshake.
void send_each(Engine& e, std::initializer_list<size_t> sizes, int mode, bool early, uint64_t handshakes) {
    const mpip_counters* counters = mpip_counters_of(MPIP_PROTO_VIA);
    std::vector<unsigned char> data(std::max(sizes) + 1);
    e.barrier();
    const uint64_t before = counters->mc_long;
    uint32_t number = 0;
    for (const size_t size : sizes) {
        unsigned char* at = data.data() + ++number % 2;  // at any address
        uint64_t word = 0;
        if (e.rank() == 0) {
            for (size_t i = 0; i < size; ++i) at[i] = byte_at(number, i);
            mpip_req_t req;
            if (!early) e.receive(1, 10, &word, sizeof word);
            e.isend(req, 1, 9, at, size, mode);
            if (early) e.send(1, 10, &word, sizeof word);
            CHECK(e.wait(req) == MPIP_SUCCESS);
        } else {
            std::memset(at, 0, size);
            mpip_req_t req;
            if (early) e.receive(0, 10, &word, sizeof word);
            e.irecv(req, 0, 9, at, size);
            if (!early) e.send(0, 10, &word, sizeof word);
            CHECK(e.wait(req) == MPIP_SUCCESS && req.r_length == static_cast<int64_t>(size));
            CHECK(holds(at, size, number));
        }
    }
    if (e.rank() == 0) CHECK(counters->mc_long == before + handshakes);
    e.barrier();
}

// A message that fits a long slot needs no handshake, with its receive posted or not; longer and synchronous ones do.
void whole_messages(Job& job) {
    Engine e(job, module);
    e.stays_awake = true;  // to a peer that sleeps, packets go by the queue
    open_ring(e, 1 - e.rank());
    const size_t most = via::via_module->nic.rings.most_written;
    CHECK(most > 32 * 1024 && most < 33 * 1024);
    for (const bool early : {true, false}) {
        send_each(e, {6144, 6145, 8191, 16'384, 20'001, 32'768, most - 1, most}, MPIP_MODE_STANDARD, early, 0);
        send_each(e, {6145, most}, MPIP_MODE_SYNC, early, 2);
        send_each(e, {most + 1, 40'000}, MPIP_MODE_STANDARD, early, 2);
    }
}

// More messages than slots while the receiver takes none: the rest waits for slots, without a handshake.
void written_more(Job& job) {
    Engine e(job, module);
    e.stays_awake = true;
    *job.word() = 0;
    via::Lane* c = open_ring(e, 1 - e.rank());
    constexpr size_t kBytes = 20'000;
    constexpr uint32_t kMessages = via::kSlotCount[via::kLong] + 5;
    std::vector<unsigned char> data(kMessages * kBytes);
    e.barrier();
    if (e.rank() == 0) {
        const uint64_t handshakes = mpip_counters_of(MPIP_PROTO_VIA)->mc_long;
        mpip_req_t out[kMessages];
        uint32_t done = 0;
        for (uint32_t i = 0; i < kMessages; ++i) {
            for (size_t k = 0; k < kBytes; ++k) data[i * kBytes + k] = byte_at(i, k);
            e.isend(out[i], 1, 8, data.data() + i * kBytes, kBytes);
            done += (out[i].r_state & MPIP_REQ_DONE) != 0 ? 1 : 0;
        }
        CHECK(done == via::kSlotCount[via::kLong] && !c->ring.counts[via::kLong].room());
        job.say(1);
        for (mpip_req_t& req : out) CHECK(e.wait(req) == MPIP_SUCCESS);
        CHECK(mpip_counters_of(MPIP_PROTO_VIA)->mc_long == handshakes);
    } else {
        job.await(1);
        for (uint32_t i = 0; i < kMessages; ++i) {
            CHECK(e.receive(0, 8, data.data(), kBytes) == kBytes);
            CHECK(holds(data.data(), kBytes, i));
        }
    }
    e.barrier();
}

// Long messages go through the ring while the tuner tries both routes, and arrive intact, several at once.
void in_pieces(Job& job) {
    Engine e(job, module);
    open_ring(e, 1 - e.rank());
    constexpr uint32_t kTogether = 3;
    for (const size_t size : {size_t{33'001}, size_t{65'536}, size_t{65'537}, size_t{300'001}, size_t{1} << 20}) {
        std::vector<std::vector<unsigned char>> data(kTogether, std::vector<unsigned char>(size + 1));
        e.barrier();
        const uint64_t before = mpip_counters_of(MPIP_PROTO_VIA)->mc_r3;
        for (uint32_t round = 0; round < 8; ++round) {
            mpip_req_t req[kTogether];
            for (uint32_t i = 0; i < kTogether; ++i) {
                unsigned char* at = data[i].data() + round % 2;
                if (e.rank() == 0) {
                    for (size_t k = 0; k < size; ++k) at[k] = byte_at(round * kTogether + i, k);
                    e.isend(req[i], 1, 7, at, size);
                } else {
                    std::memset(at, 0, size);
                    e.irecv(req[i], 0, 7, at, size);
                }
            }
            for (mpip_req_t& one : req) CHECK(e.wait(one) == MPIP_SUCCESS);
            for (uint32_t i = 0; e.rank() == 1 && i < kTogether; ++i)
                CHECK(holds(data[i].data() + round % 2, size, round * kTogether + i));
        }
        // At least those of the trial; 65'537 is in the same class of lengths as the one before, which has had its
        // trial.
        if (e.rank() == 0 && size != 65'537)
            CHECK(mpip_counters_of(MPIP_PROTO_VIA)->mc_r3 >=
                  before + protocol::TransferTuner::kTrials[protocol::TransferTuner::frames]);
    }
    e.barrier();
}

}  // namespace

std::vector<Case> long_ring_cases() {
    return {{"ring-whole", whole_messages, 2, 20, "via"},
            {"ring-more", written_more, 2, 20, "via"},
            {"ring-pieces", in_pieces, 2, 60, "via"}};
}

}  // namespace viaduct::adi_test
