// SPDX-License-Identifier: BSD-2-Clause
// Lists of pieces that are not what they should be: the receiver takes the sender for lost, and nothing
// worse.
#include <unistd.h>

#include <cstring>

#include "cases.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"
#include "mpi-adi/transport/via/registration.hpp"
#include "pieces.hpp"

namespace viaduct::adi_test {
namespace {

constexpr size_t kPieceBytes = 25'000, kListed = 4;
constexpr int kListDamages = 15, kGoodRequest = 1, kGoodReply = 11;

void set(protocol::WirePiece& piece, uint64_t address, uint64_t bytes, uint32_t row) {
    piece.address = address;
    piece.bytes = bytes;
    piece.row = row;
}

// What rank 1 sends in this round: a request, or a reply to a request of rank 0.
struct Damage {
    std::vector<protocol::WirePiece> list;
    uint32_t pieces = kListed;
    bool fetched = false;
    protocol::Method way;
};

Damage damage(unsigned char* memory) {
    Damage d;
    const auto base = reinterpret_cast<uintptr_t>(memory);
    d.way = seed >= kGoodReply ? protocol::Method::put : protocol::Method::get;
    d.list.resize(kListed);
    for (size_t i = 0; i < kListed; ++i) set(d.list[i], base + i * 2 * kPieceBytes, kPieceBytes, 0);
    switch (seed) {
        case 2:
            d.pieces = protocol::kMostPieces + 1;
            d.fetched = true;
            break;
        case 3:
            d.list.resize(kListed - 1);  // fewer than are announced
            break;
        case 4:
            d.list.push_back(d.list.back());
            break;
        case 5:
            d.list[2].bytes = 0;
            d.list[3].bytes = 2 * kPieceBytes;
            break;
        case 6:
        case 13:
            d.list[0].bytes = kPieceBytes - 1;
            break;
        case 7:
            d.list[0].address = d.list[1].address = 0;
            d.list[0].bytes = d.list[1].bytes = uint64_t{1} << 63;
            d.list[2].bytes = 3 * kPieceBytes;
            break;
        case 8:
            d.list[1].address = UINT64_MAX - kPieceBytes / 2;
            break;
        case 9:
            d.list[3].row = 1;  // which is not there
            break;
        case 10:
        case 15:
            d.list[0].bytes = kPieceBytes + 1;
            d.fetched = true;
            break;
        case 12:
            d.way = protocol::Method::frames;
            break;
        case 14:
            d.way = protocol::Method::both;
            break;
        default:
            break;
    }
    return d;
}

void send_damaged(Engine& e, const Damage& d, bool reply, VIP_MEM_HANDLE handle) {
    via::vbuf* v = via::via_module->nic.buffers.get();
    auto* p = via::packet_of<via::Control>(v);
    std::memset(static_cast<void*>(p), 0, sizeof *p);
    p->header.type = reply ? via::PacketType::reply : via::PacketType::request;
    p->header.flags = static_cast<uint8_t>(static_cast<int>(d.way) << (reply ? 0 : 4));
    p->context = e.comm()->c_sndctxt;
    p->tag = 2;
    p->rank = 1;
    p->length = kListed * kPieceBytes;
    p->sreq = reply ? uint64_t{1} << 32 | 1 : 77;  // the first name that rank 0 gave
    auto* memory = reinterpret_cast<protocol::WireMemory*>(p + 1);
    memory->first = 0;
    memory->pieces = d.pieces;
    memory->rows = d.fetched ? 2 : 1;
    memory->handles = 1;
    auto* rows = reinterpret_cast<protocol::Le32*>(memory + 1);
    rows[0] = handle;
    size_t bytes = sizeof *p + sizeof *memory + sizeof *rows;
    if (d.fetched) {
        auto* kept = new std::vector<protocol::WirePiece>(d.list);  // until the process ends
        const via::Registration* r =
            via::via_module->nic.registrations.acquire(kept->data(), kept->size() * sizeof(protocol::WirePiece));
        CHECK(r != nullptr);
        memory->address = reinterpret_cast<uintptr_t>(kept->data());
        rows[1] = r->handle[0];
        bytes += sizeof *rows;
    } else {
        memory->address = 0;
        std::memcpy(static_cast<void*>(rows + 1), d.list.data(), d.list.size() * sizeof(protocol::WirePiece));
        bytes += d.list.size() * sizeof(protocol::WirePiece);
    }
    via::vbuf_init_sendrecv(v, bytes);
    CHECK(via::post_packet(via::connection_of(e.process(0)), v));
}

// Rank 1 says one thing each round and makes no progress: its peer loses it, unless what it said was right.
void damaged_lists(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    *job.word() = 0;
    job.barrier();
    const bool reply = seed >= kGoodReply;
    const bool good = seed == kGoodRequest || seed == kGoodReply;
    constexpr size_t kBytes = kListed * kPieceBytes;
    Pieces layout;
    for (size_t i = 0; i < kListed; ++i) layout.add(i == 0 ? 0 : kPieceBytes, kPieceBytes);
    Buffer buffer(layout);
    if (e.rank() == 1) {
        const via::Registration* r =
            via::via_module->nic.registrations.acquire(buffer.memory.data(), buffer.memory.size());
        CHECK(r != nullptr);
        const Damage d = damage(buffer.memory.data());
        if (reply) {
            while (e.unexpected() == 0) e.progress();
            send_damaged(e, d, true, r->handle[0]);
        } else {
            buffer.put(5);
            send_damaged(e, d, false, r->handle[0]);
        }
        job.await(1);
        if (seed == kGoodReply) CHECK(buffer.has(6, kBytes));
        ::_exit(0);
    }
    std::vector<unsigned char> in(kBytes);
    mpip_req_t req;
    if (reply) {
        buffer.put(6);
        e.isend(req, 1, 2, buffer.data(), kBytes, 0, buffer.type(), 1);
    } else {
        e.irecv(req, 1, 2, in.data(), kBytes);
    }
    CHECK(e.wait(req) == (good ? MPIP_SUCCESS : MPIP_ERR_PROC_FAILED));
    CHECK(e.failed().empty() == good);
    if (seed == kGoodRequest) CHECK(holds(in.data(), kBytes, 5));
    job.say(1);
    ::_exit(0);  // nothing orderly is left to be done
}

}  // namespace

std::vector<Case> damaged_piece_cases() {
    const std::vector<std::pair<const char*, const char*>> kByLists = {{"CMPI_GAP_PIECE", "1024"}};
    return {{"pieces-damaged", damaged_lists, 2, 20, "via", kByLists, {}, kListDamages}};
}

}  // namespace viaduct::adi_test
