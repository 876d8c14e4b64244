// SPDX-License-Identifier: BSD-2-Clause
// Invalid packets in an eager ring: the reader takes their writer for lost, and nothing else happens. And a reader that
// sleeps.
#include <unistd.h>

#include <cstring>

#include "cases.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::adi_test {

via::Lane* open_ring(Engine& e, int other) {
    via::Lane* c = via::connection_of(e.process(other));
    for (int i = 0; i < 1000 && !c->ring.open; ++i) {
        uint64_t word = 0;
        e.send(other, 1, &word, sizeof word);
        e.receive(other, 1, &word, sizeof word);
    }
    CHECK(c->ring.open);
    return c;
}

namespace {

using via::RingOffer;
using via::SlotEnd;

constexpr int kDamages = 13, kGood = 1;

struct Damage {
    size_t length = sizeof(via::EagerInSlot) + 8;
    size_t head = sizeof(via::EagerInSlot);
    via::PacketType type = via::PacketType::eager;
    uint32_t source = 1;
    uint32_t taken = 0;  // more than were
};

Damage damage() {
    Damage d;
    switch (seed) {
        case 2:
            d.length = via::kSlotBytes[via::kShort] - sizeof(SlotEnd) + 1;
            break;
        case 3:
            d.length = UINT16_MAX;
            break;
        case 4:
            d.length = 3;
            break;
        case 5:
            d.head = d.length + 1;
            break;
        case 6:
            d.head = UINT16_MAX;
            break;
        case 7:
            d.head = 8;
            break;
        case 8:
            d.type = static_cast<via::PacketType>(99);
            break;
        case 9:
            d.type = via::PacketType::closing;
            break;
        case 10:
            d.type = via::PacketType::data;
            break;
        case 11:
            d.source = 7;
            break;
        case 12:
            d.taken = 1;
            break;
        case 13:
            d.type = via::PacketType::reply;
            break;
        default:
            break;
    }
    return d;
}

void write_damaged(Engine& e, via::Lane* c, const Damage& d) {
    via::vbuf* v = via::via_module->nic.buffers.get();
    CHECK(v != nullptr);
    std::memset(v->buffer, 0, 64);
    auto* p = reinterpret_cast<via::EagerInSlot*>(v->buffer + 64 - sizeof(SlotEnd) - sizeof(via::EagerInSlot));
    auto* end = reinterpret_cast<SlotEnd*>(v->buffer + 64 - sizeof(SlotEnd));
    const uint64_t data = 4711;
    std::memcpy(v->buffer, &data, sizeof data);
    p->start.header.type = d.type;
    p->start.header.sequence = c->next_packet_tosend;
    p->start.header.source = d.source;
    p->start.context = e.comm()->c_sndctxt;
    p->start.tag = 2;
    p->start.rank = 1;
    via::SlotCounts& counts = c->ring.counts[via::kShort];
    end->taken[via::kShort] = counts.taken() + d.taken;
    end->taken[via::kLong] = c->ring.counts[via::kLong].taken();
    end->length = static_cast<uint16_t>(d.length);
    end->head = static_cast<uint16_t>(d.head);
    end->position = counts.next() + 1;
    via::vbuf_init_rdma(v, VIP_CONTROL_OP_RDMAWRITE, c->ring.remote + via::slot_end(via::kShort, counts.next()) - 64,
                        c->ring.remote_handle, v->buffer, v->handle, 64);
    CHECK(via::post_rdma(c, v, &v->desc) == MPIP_SUCCESS);
}

// Rank 1 writes one packet in each round and makes no progress: its peer fails it, unless the packet is valid.
void damaged_ring(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    *job.word() = 0;
    via::Lane* c = open_ring(e, 1 - e.rank());
    job.barrier();
    if (e.rank() == 1) {
        write_damaged(e, c, damage());
        job.await(1);
        ::_exit(0);
    }
    uint64_t data = 0;
    mpip_req_t req;
    e.irecv(req, 1, 2, &data, sizeof data);
    CHECK(e.wait(req) == (seed == kGood ? MPIP_SUCCESS : MPIP_ERR_PROC_FAILED));
    CHECK(data == (seed == kGood ? 4711u : 0u));
    CHECK(e.failed().empty() == (seed == kGood));
    job.say(1);
    ::_exit(0);  // nothing orderly is left to be done
}

// Invalid offers of a ring: a second one, at an odd address, beyond the end of memory, without a handle.
void damaged_offer(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    *job.word() = 0;
    if (seed == 1) open_ring(e, 1 - e.rank());
    job.barrier();
    if (e.rank() == 1) {
        via::Lane* c = via::connection_of(e.process(0));
        via::vbuf* v = via::via_module->nic.buffers.get();
        CHECK(v != nullptr);
        RingOffer* p = via::packet_of<RingOffer>(v);
        p->header.type = via::PacketType::ring_offer;
        p->header.flags = 0;
        p->address = seed == 2 ? 4096 + 8 : seed == 3 ? UINT64_MAX - 63 : seed == 4 ? 0 : 4096;
        p->memhandle = seed == 5 ? 0 : 77;
        via::vbuf_init_sendrecv(v, sizeof(RingOffer));
        CHECK(via::post_packet(c, v));
        job.await(1);
        ::_exit(0);
    }
    uint64_t data = 0;
    mpip_req_t req;
    e.irecv(req, 1, 2, &data, sizeof data);
    CHECK(e.wait(req) == MPIP_ERR_PROC_FAILED);
    job.say(1);
    ::_exit(0);
}

// Rank 0 sleeps on the queue, for longer than the job may take, whenever nothing is there; rank 1 sends through ring or
// queue.
void sleeper(Job& job) {
    Engine e(job, module);
    open_ring(e, 1 - e.rank());
    e.barrier();
    std::vector<unsigned char> data(3000);
    for (uint32_t round = 0; round < 300; ++round) {
        if (e.rank() == 1) {
            fill(data, round);
            if (round % 3 == 0) ::usleep(300);  // sleeps: the other rank falls asleep
            e.send(0, 3, data.data(), data.size());
            if (round % 7 == 0) e.receive(0, 4, data.data(), 1);
        } else {
            mpip_req_t req;
            e.irecv(req, 1, 3, data.data(), data.size());
            while ((req.r_state & MPIP_REQ_DONE) == 0) {
                if (e.progress() == 0) mpip_protocols[MPIP_PROTO_VIA].pt_block(100'000'000);
            }
            CHECK(holds(data.data(), data.size(), round));
            if (round % 7 == 0) e.send(1, 4, data.data(), 1);
        }
    }
    e.barrier();
}

// The data of a synchronous message follows its reply when all short slots are full: it waits for a free one.
void full_ring(Job& job) {
    Engine e(job, module);
    *job.word() = 0;
    const int other = 1 - e.rank();
    via::Lane* c = open_ring(e, other);
    constexpr uint64_t kMessages = via::kSlotCount[via::kShort];
    uint64_t value = 4711, word = 0;
    mpip_req_t late;
    if (e.rank() == 0) {
        e.isend(late, other, 5, &value, sizeof value, MPIP_MODE_SYNC);
        e.send(other, 6, &word, sizeof word);
        e.receive(other, 7, &word, sizeof word);  // and with it that all slots are free
        job.await(1);
        mpip_req_t out[kMessages];
        uint64_t numbers[kMessages];
        for (uint64_t i = 0; i < kMessages; ++i) {
            numbers[i] = i;
            e.isend(out[i], other, 8, &numbers[i], sizeof numbers[i]);
        }
        CHECK(!c->ring.counts[via::kShort].room());
        while ((late.r_state & MPIP_REQ_DONE) == 0 && !protocol::transfer_of(&late)->replied) e.progress();
        CHECK(c->ring.counts[via::kShort].free() == 0);
        job.say(2);
        for (mpip_req_t& req : out) CHECK(e.wait(req) == MPIP_SUCCESS);
        CHECK(e.wait(late) == MPIP_SUCCESS);
    } else {
        e.receive(other, 6, &word, sizeof word);  // behind the request of the other one
        e.send(other, 7, &word, sizeof word);
        value = 0;
        e.irecv(late, other, 5, &value, sizeof value);  // which is answered here
        job.say(1);
        job.await(2);
        for (uint64_t i = 0; i < kMessages; ++i) {
            e.receive(other, 8, &word, sizeof word);
            CHECK(word == i);
        }
        CHECK(e.wait(late) == MPIP_SUCCESS && value == 4711);
    }
    e.barrier();
}

}  // namespace

std::vector<Case> ring_cases() {
    return {{"ring-damaged", damaged_ring, 2, 20, "via", {}, {}, kDamages},
            {"ring-offer", damaged_offer, 2, 20, "via", {}, {}, 5},
            {"ring-full", full_ring, 2, 20, "via"},
            {"ring-sleeper", sleeper, 2, 60, "via"}};
}

}  // namespace viaduct::adi_test
