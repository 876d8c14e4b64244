// SPDX-License-Identifier: BSD-2-Clause
// Long messages of data with gaps: the NIC gathers and scatters them by lists of pieces, or they go in
// packets. What lies between the pieces stays as it was.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "cases.hpp"
#include "pieces.hpp"

namespace viaduct::adi_test {
namespace {

struct Counts {
    uint64_t scattered, lists, packets;
};
Counts counted() {
    const mpip_counters& c = *mpip_counters_of(MPIP_PROTO_VIA);
    return {c.mc_scattered, c.mc_lists, c.mc_r3};
}

// What has been counted on both sides since `before`, told to rank 0.
Counts of_both(Engine& e, const Counts& before) {
    const Counts now = counted();
    Counts mine = {now.scattered - before.scattered, now.lists - before.lists, now.packets - before.packets};
    if (e.rank() == 1) {
        e.send(0, 90, &mine, sizeof mine);
        return mine;
    }
    Counts theirs = {};
    CHECK(e.receive(1, 90, &theirs, sizeof theirs) == sizeof theirs);
    return {mine.scattered + theirs.scattered, mine.lists + theirs.lists, mine.packets + theirs.packets};
}

bool on_via() { return std::strcmp(module, "via") == 0 || std::strcmp(module, "rails") == 0; }

bool by_packets() {
    const char* way = std::getenv("CMPI_RENDEZVOUS");
    return !on_via() || (way != nullptr && std::strcmp(way, "r3") == 0);
}

struct Shape {
    size_t bytes, out, in, room;  // pieces sent from and received into; room: of the receive
};
constexpr size_t kMany = 1200;  // a list of so many does not fit behind a packet
const Shape kShapes[] = {
    {60'000, 1, 9, 60'000},           {60'000, 9, 1, 60'000},
    {200'000, 20, 31, 200'000},       {200'000, 31, 20, 200'000},
    {1'000'000, 300, 300, 1'000'000}, {1'000'000, 3, 700, 1'000'000},
    {2'400'000, kMany, 1, 2'400'000}, {2'400'000, 1, kMany, 2'400'000},
    {2'400'000, kMany, kMany, 2'400'000}, {2'400'000, kMany, kMany - 1, 2'400'000},
    {2'400'000, kMany - 1, kMany, 2'400'000},
    // cut: both by lists, and where the end lies in the middle of a piece
    {300'000, 40, 50, 123'457},       {300'000, 1, 50, 299'999},
    {300'000, 40, 1, 100'001},        {2'400'000, kMany, kMany, 2'000'001},
};

void pieces(Job& job) {
    Engine e(job, module);
    std::mt19937 dice(seed);  // both sides throw the same
    uint32_t number = 0;
    for (const Shape& shape : kShapes) {
        Buffer out(random_pieces(dice, shape.bytes, shape.out));
        Buffer in(random_pieces(dice, shape.room, shape.in));
        const bool late = dice() % 2 == 0;  // the receive
        ++number;
        const Counts before = counted();
        e.barrier();
        mpip_req_t req;
        if (e.rank() == 0) {
            out.put(number);
            e.isend(req, 1, 4, out.data(), shape.bytes, 0, out.type(), 1);
            CHECK(e.wait(req) == MPIP_SUCCESS);
        } else {
            if (late) e.progress_for(2);
            e.irecv(req, 0, 4, in.data(), shape.room, in.type(), 1);
            CHECK(e.wait(req) == (shape.room < shape.bytes ? MPIP_ERR_TRUNCATE : MPIP_SUCCESS));
            CHECK(req.r_length == static_cast<int64_t>(shape.room));
            CHECK(in.has(number, shape.room));
        }
        const Counts now = of_both(e, before);
        if (e.rank() != 0) continue;
        CHECK(now.scattered == (by_packets() ? 0 : 1));
        if (!on_via()) continue;
        CHECK(now.packets == (by_packets() ? 1 : 0));
        // Between two long lists one is fetched, whichever side moves; no list is where the mover's is the only one.
        const char* way = std::getenv("CMPI_RENDEZVOUS");
        const bool long_here = shape.out >= kMany - 1, long_there = shape.in >= kMany - 1;
        const bool fetched = way == nullptr                  ? long_here && long_there
                             : std::strcmp(way, "rput") == 0 ? long_there
                             : std::strcmp(way, "rget") == 0 ? long_here
                                                             : false;
        CHECK(now.lists == (fetched ? 1 : 0));
    }
    e.barrier();
}

// Many such messages under way at once, in both directions, with few credits and places in queues.
void many_pieces(Job& job) {
    Engine e(job, module);
    constexpr size_t kMessages = 24;
    const int other = 1 - e.rank();
    std::mt19937 dice(seed);
    std::vector<Buffer> out, in;
    std::vector<mpip_req_t> sends(kMessages), receives(kMessages);
    for (size_t i = 0; i < kMessages; ++i) {
        const size_t bytes = 30'000 + dice() % 300'000;
        out.emplace_back(random_pieces(dice, bytes, 1 + dice() % 20));
        in.emplace_back(random_pieces(dice, bytes, 1 + dice() % 20));
    }
    for (size_t i = 0; i < kMessages; ++i) {
        out[i].put(static_cast<uint32_t>(i + 100 * static_cast<size_t>(e.rank())));
        e.isend(sends[i], other, 5, out[i].data(), out[i].layout.total, 0, out[i].type(), 1);
        if (i % 3 == 0) e.progress();
        e.irecv(receives[i], other, 5, in[i].data(), in[i].layout.total, in[i].type(), 1);
    }
    for (size_t i = 0; i < kMessages; ++i) {
        CHECK(e.wait(receives[i]) == MPIP_SUCCESS);
        CHECK(e.wait(sends[i]) == MPIP_SUCCESS);
        CHECK(in[i].has(static_cast<uint32_t>(i + 100 * static_cast<size_t>(other)), in[i].layout.total));
    }
    e.barrier();
}

// Memory that is not there between the pieces: no single registration covers them. Few have one each, many go
// in packets.
void holes(Job& job) {
    Engine e(job, module);
    constexpr size_t kPage = 4096;
    for (const size_t count : {size_t{20}, size_t{100}}) {
        Pieces layout;
        for (size_t i = 0; i < count; ++i) layout.add(i == 0 ? 0 : kPage, kPage);
        auto* memory = static_cast<unsigned char*>(
            ::mmap(nullptr, layout.extent, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        CHECK(memory != MAP_FAILED);
        for (size_t i = 1; i < count; ++i) CHECK(::munmap(memory + (2 * i - 1) * kPage, kPage) == 0);
        std::vector<unsigned char> packed(layout.total);
        fill(packed, 17);
        const Counts before = counted();
        mpip_req_t req;
        if (e.rank() == 0) {
            Pieces::unpack(&layout, memory, 1, 0, packed.data(), packed.size());
            e.isend(req, 1, 4, memory, layout.total, 0, &layout, 1);
            CHECK(e.wait(req) == MPIP_SUCCESS);
        } else {
            e.irecv(req, 0, 4, memory, layout.total, &layout, 1);
            CHECK(e.wait(req) == MPIP_SUCCESS);
            std::vector<unsigned char> got(layout.total);
            Pieces::pack(&layout, memory, 1, 0, got.data(), got.size());
            CHECK(got == packed);
        }
        const Counts now = of_both(e, before);
        if (e.rank() == 0 && on_via()) {
            CHECK(now.scattered == (count <= 64 ? 1 : 0));
            CHECK(now.packets == (count <= 64 ? 0 : 1));
        }
        for (size_t i = 0; i < count; ++i) CHECK(::munmap(memory + 2 * i * kPage, kPage) == 0);
        e.barrier();
    }
}

// 320,000 bytes of equal pieces, which are packed.
void pack_pieces(Job& job, size_t bytes) {
    Engine e(job, module);
    Pieces layout;
    for (size_t i = 0; i < 320'000 / bytes; ++i) layout.add(8, bytes);
    Buffer buffer(layout);
    const Counts before = counted();
    mpip_req_t req;
    if (e.rank() == 0) {
        buffer.put(3);
        e.isend(req, 1, 4, buffer.data(), layout.total, 0, buffer.type(), 1);
        CHECK(e.wait(req) == MPIP_SUCCESS);
    } else {
        e.irecv(req, 0, 4, buffer.data(), layout.total, buffer.type(), 1);
        CHECK(e.wait(req) == MPIP_SUCCESS);
        CHECK(buffer.has(3, layout.total));
    }
    const Counts now = of_both(e, before);
    if (e.rank() == 0 && on_via()) CHECK(now.scattered == 0 && now.packets == 1);
    e.barrier();
}

// Small ones everywhere; longer ones too where processors do the NIC's copying, by default.
void small_pieces(Job& job) { pack_pieces(job, 16); }
void default_pieces(Job& job) { pack_pieces(job, 16'000); }

// A send whose list is out is taken back; the next one of the same data is delivered.
void cancel_pieces(Job& job) {
    Engine e(job, module);
    std::mt19937 dice(seed);
    for (const size_t count : {size_t{30}, kMany}) {
        Buffer buffer(random_pieces(dice, 2'400'000, count));
        mpip_req_t lost, kept;
        if (e.rank() == 0) {
            buffer.put(8);
            e.isend(lost, 1, 6, buffer.data(), buffer.layout.total, 0, buffer.type(), 1);
            e.progress_for(5);
            CHECK(e.process(1)->p_proto->pt_cancelsend(&lost) == MPIP_SUCCESS);
            e.wait(lost);
            CHECK((lost.r_state & MPIP_REQ_CANCELLED) != 0);
            e.isend(kept, 1, 7, buffer.data(), buffer.layout.total, 0, buffer.type(), 1);
            CHECK(e.wait(kept) == MPIP_SUCCESS);
        } else {
            e.irecv(kept, 0, 7, buffer.data(), buffer.layout.total, buffer.type(), 1);
            CHECK(e.wait(kept) == MPIP_SUCCESS);
            CHECK(buffer.has(8, buffer.layout.total));
        }
        e.barrier();
    }
}

}  // namespace

std::vector<Case> piece_cases() {
    const std::pair<const char*, const char*> kLists = {"CMPI_GAP_PIECE", "1024"};
    return {
        {"pieces", pieces, 2, 30, nullptr, {kLists}},
        {"pieces-r3", pieces, 2, 30, "via", {kLists, {"CMPI_RENDEZVOUS", "r3"}}},
        {"pieces-rput", pieces, 2, 30, "via", {kLists, {"CMPI_RENDEZVOUS", "rput"}}},
        {"pieces-rget", pieces, 2, 30, "via", {kLists, {"CMPI_RENDEZVOUS", "rget"}}},
        {"pieces-rput", pieces, 2, 30, "rails", {kLists, {"CMPI_RENDEZVOUS", "rput"}}},
        {"pieces-rget", pieces, 2, 30, "rails", {kLists, {"CMPI_RENDEZVOUS", "rget"}}},
        {"pieces-many", many_pieces, 2, 30, nullptr, {kLists}},
        {"pieces-many-depth-4", many_pieces, 2, 30, "via", {kLists, {"CMPI_PREPOST_DEPTH", "4"}}},
        {"pieces-holes", holes, 2, 20, nullptr, {kLists}},
        {"pieces-small", small_pieces, 2, 20, nullptr, {kLists}},
        {"pieces-default", default_pieces, 2, 20},
        {"pieces-cancel", cancel_pieces, 2, 20, nullptr, {kLists}},
    };
}

}  // namespace viaduct::adi_test
