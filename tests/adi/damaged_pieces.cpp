// SPDX-License-Identifier: BSD-2-Clause
// Lists of pieces that are not what they should be: whoever gets one takes the sender for lost, and nothing
// worse.
#include <unistd.h>

#include <cstring>
#include <type_traits>

#include "cases.hpp"
#include "mpi-adi/transport/via/device.hpp"
#include "pieces.hpp"

namespace viaduct::adi_test {
namespace {

constexpr size_t kPieceBytes = 25'000, kListed = 4;
constexpr int kListDamages = 15, kGoodRequest = 1, kGoodReply = 11;

void set(via::WirePiece& piece, uint64_t address, uint64_t bytes, VIP_MEM_HANDLE handle) {
    piece.address = address;
    piece.bytes = bytes;
    piece.memhandle = handle;
}

// What rank 1 sends in this round: a request, or a reply to a request of rank 0.
struct Damage {
    std::vector<via::WirePiece> list;
    uint32_t pieces = kListed;
    bool fetched = false;
    via::Rendezvous protocol;
};

Damage damage(unsigned char* memory, VIP_MEM_HANDLE handle) {
    Damage d;
    const auto base = reinterpret_cast<uint64_t>(memory);
    d.protocol = seed >= kGoodReply ? via::Rendezvous::rput : via::Rendezvous::rget;
    d.list.resize(kListed);
    for (size_t i = 0; i < kListed; ++i) set(d.list[i], base + i * 2 * kPieceBytes, kPieceBytes, handle);
    switch (seed) {
        case 2:
            d.pieces = via::kMostPieces + 1;
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
            d.list[3].memhandle = 0;
            break;
        case 10:
        case 15:
            d.list[0].bytes = kPieceBytes + 1;
            d.fetched = true;
            break;
        case 12:
            d.protocol = via::Rendezvous::r3;
            break;
        case 14:
            d.protocol = via::Rendezvous::both;
            break;
        default:
            break;
    }
    return d;
}

template <class Packet>
void send_damaged(Engine& e, const Damage& d, via::PacketType type) {
    via::vbuf* v = via::get_vbuf();
    auto* p = via::packet_of<Packet>(v);
    std::memset(static_cast<void*>(p), 0, sizeof *p);
    p->header.type = type;
    p->protocol = static_cast<uint32_t>(d.protocol);
    p->pieces = d.pieces;
    size_t bytes = sizeof *p;
    if constexpr (std::is_same_v<Packet, via::LongRequest>) {
        p->envelope.context = e.comm()->c_sndctxt;
        p->envelope.tag = 2;
        p->envelope.src_lrank = 1;
        p->envelope.mode = MPIP_MODE_RTS;
        p->envelope.data_length = kListed * kPieceBytes;
        p->envelope.sreq = 77;
    } else {
        p->sreq = uint64_t{1} << 32 | 1;  // the first name that rank 0 gave
        p->length = kListed * kPieceBytes;
    }
    if (d.fetched) {
        auto* kept = new std::vector<via::WirePiece>(d.list);  // until the process ends
        const via::Registration* r = via::hold_buffer(kept->data(), kept->size() * sizeof(via::WirePiece));
        CHECK(r != nullptr);
        p->buffer_address = reinterpret_cast<uint64_t>(kept->data());
        p->memhandle = r->handle;
    } else {
        std::memcpy(static_cast<void*>(p + 1), d.list.data(), d.list.size() * sizeof(via::WirePiece));
        bytes += d.list.size() * sizeof(via::WirePiece);
    }
    via::vbuf_init_sendrecv(v, bytes);
    via::viadev_post_send(via::connection_of(e.process(0)), v);
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
        const via::Registration* r = via::hold_buffer(buffer.memory.data(), buffer.memory.size());
        CHECK(r != nullptr);
        const Damage d = damage(buffer.memory.data(), r->handle);
        if (reply) {
            while (e.unexpected() == 0) e.progress();
            send_damaged<via::LongReply>(e, d, via::PacketType::long_reply);
        } else {
            buffer.put(5);
            send_damaged<via::LongRequest>(e, d, via::PacketType::long_request);
        }
        while (__atomic_load_n(job.word(), __ATOMIC_SEQ_CST) == 0) ::usleep(100);
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
    __atomic_store_n(job.word(), 1, __ATOMIC_SEQ_CST);
    ::_exit(0);  // nothing orderly is left to be done
}

}  // namespace

std::vector<Case> damaged_piece_cases() {
    const std::vector<std::pair<const char*, const char*>> kByLists = {{"CMPI_GAP_PIECE", "1024"}};
    return {{"pieces-damaged", damaged_lists, 2, 20, "via", kByLists, {}, kListDamages}};
}

}  // namespace viaduct::adi_test
