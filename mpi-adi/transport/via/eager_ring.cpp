// SPDX-License-Identifier: BSD-2-Clause
// Eager rings: offering them, taking packets out, and reporting free slots. Packets are ordered by their sequence
// numbers, through ring and queue. A packet of the queue whose number is too high follows packets in the ring: these
// were written before it and are visible, because a VI keeps its order. The peer may write to a ring at any time: each
// word is read once, and checked before it is used.
#include <algorithm>
#include <utility>

#include "core/sync/pause.hpp"
#include "mpi-adi/transport/via/receive.hpp"

namespace viaduct::via {

namespace {

// Writes 8 bytes of RingStatus into the peer's area.
bool write_word(Lane* c, size_t offset, const void* word) {
    const VIPX_WRITE write = {c->ring.remote + offset, c->ring.remote_handle, nullptr, 0, word, 8};
    if (VipxWriteNow(c->vi, &write) == VIP_SUCCESS) [[likely]]
        return true;
    vbuf* v = c->nic.buffers.get();
    if (v == nullptr) return false;
    std::memcpy(v->buffer, word, 8);
    vbuf_init_rdma(v, VIP_CONTROL_OP_RDMAWRITE, c->ring.remote + offset, c->ring.remote_handle, v->buffer, v->handle,
                   8);
    if (post_rdma(c, v, &v->desc) == MPIP_SUCCESS) return true;
    release_vbuf(v);
    return false;
}

bool write_asleep(Lane* c, bool asleep) {
    Le64 word;
    word = asleep ? 1 : 0;
    if (!write_word(c, offsetof(RingStatus, asleep), &word)) return false;
    c->ring.marked_asleep = asleep;
    return true;
}

void open_ring(Lane* c) {
    if (!c->ring.offered || c->ring.remote == 0 || c->ring.open) return;
    c->ring.open = true;
    void* mapped = nullptr;
    if (VipxQueryMapped(c->vi, c->ring.remote, c->ring.remote_handle, kSlotAreaBytes, &mapped) == VIP_SUCCESS) {
        c->ring.mapped = static_cast<const std::byte*>(mapped);
        set_next_line(c);
    }
    c->nic.rings.open_lanes.push_back(c);
    c->ring.counted = false;
    --c->nic.rings.queue_only;
}

void set_next_end(Lane* c, SlotKind kind) {
    const uint32_t position = c->ring.counts[kind].taken();
    c->ring.next_end[kind] =
        reinterpret_cast<const SlotEnd*>(c->ring.local + slot_end(kind, position) - sizeof(SlotEnd));
}

// The peer may change it at any time: each word is read once.
uint64_t read_word(const void* at) {
    Le64 word;
    const uint64_t bits = __atomic_load_n(static_cast<const uint64_t*>(at), __ATOMIC_ACQUIRE);
    std::memcpy(static_cast<void*>(&word), &bits, sizeof bits);
    return word;
}

// The last word of the next slot: length, head and position. Whether it is that of a new packet.
inline bool is_there(const Lane* c, SlotKind kind, uint64_t* word) {
    static_assert(offsetof(SlotEnd, length) == 8 && offsetof(SlotEnd, head) == 10 && offsetof(SlotEnd, position) == 12);
    *word = read_word(&c->ring.next_end[kind]->length);
    return *word >> 32 == c->ring.counts[kind].taken() + uint32_t{1};
}

// Slots that the peer has taken, as its packet reports. False: an impossible number.
inline bool read_taken(Lane* c, const SlotEnd* end) {
    const uint64_t taken = read_word(end->taken);
    if (taken == c->ring.last_taken) [[likely]]
        return true;
    c->ring.last_taken = taken;
    SlotCounts* counts = c->ring.counts;
    return counts[kShort].update(static_cast<uint32_t>(taken)) &&
           counts[kLong].update(static_cast<uint32_t>(taken >> 32));
}

inline void finish_packet(Lane* c, SlotKind kind) {
    c->ring.counts[kind].take();
    set_next_end(c, kind);
    if (!c->peer.lost()) report_ring_status(c);
}

// Fast path: the next packet is a whole message with its data in front. False: it is another packet, or an invalid one;
// nothing is changed.
inline bool take_whole_message(Lane* c, SlotKind kind, const SlotEnd* end, uint64_t last_word) {
    const size_t length = static_cast<uint16_t>(last_word);
    const auto* words = reinterpret_cast<const uint64_t*>(end);
    const auto first = static_cast<uint32_t>(read_word(words - 4) >> 32);
    const uint64_t source = read_word(words - 3);
    constexpr uint32_t kFlags = 0xff00;
    const uint32_t expected = static_cast<uint32_t>(PacketType::eager) | uint32_t{c->next_packet_expected} << 16;
    static_assert(offsetof(Header, flags) == 1 && offsetof(Header, sequence) == 2 && offsetof(Header, source) == 8);
    if (static_cast<uint16_t>(last_word >> 16) != sizeof(EagerInSlot) || (first & ~kFlags) != expected ||
        source >> 32 != c->peer.rank || length < sizeof(EagerInSlot) || length + sizeof(SlotEnd) > kSlotBytes[kind] ||
        c->peer.series != nullptr) [[unlikely]]
        return false;
    const uint64_t context = read_word(words - 2), ranks = read_word(words - 1);
    if (!read_taken(c, end)) [[unlikely]] {
        fail_connection(c, "it reports packets taken that were not sent");
        return true;
    }
    ++c->next_packet_expected;
    const uint32_t flags = first >> 8;
    const char* data = reinterpret_cast<const char*>(end + 1) - slot_bytes_for(length);
    c->peer.protocol->incoming_whole(c->peer, context, static_cast<int>(static_cast<uint32_t>(ranks)),
                                     static_cast<int>(ranks >> 32), static_cast<int>(flags & MPIP_MODE_READY), data,
                                     length - sizeof(EagerInSlot));
    finish_packet(c, kind);
    return true;
}

// Slow path: any other packet. False: it comes after a packet in the queue.
bool take_any(Lane* c, SlotKind kind, const SlotEnd* end, uint64_t last_word) {
    const size_t length = static_cast<uint16_t>(last_word), head = static_cast<uint16_t>(last_word >> 16);
    const char* first = reinterpret_cast<const char*>(end + 1) - slot_bytes_for(length);
    // One of 28 bytes, say, takes four words, the last of which it fills.
    const size_t unused = head == sizeof(EagerInSlot) ? sizeof(EagerInSlot) - sizeof(Eager) : 0;
    const RingPacket packet = {first, head == 0 ? first : reinterpret_cast<const char*>(end) - head + unused, length,
                               head};
    if (length + sizeof(SlotEnd) > kSlotBytes[kind] || length < sizeof(Header) || head > length ||
        (head != 0 && head < sizeof(Header))) {
        fail_connection(c, "it wrote an invalid packet");
        return true;
    }
    const Header* h = reinterpret_cast<const Header*>(packet.header);
    if (h->sequence != c->next_packet_expected) return false;
    if (!read_taken(c, end)) {
        fail_connection(c, "it reports packets taken that were not sent");
        return true;
    }
    take_ring_packet(c, packet);
    finish_packet(c, kind);
    return true;
}

// A process that receives a packet of one line mostly sends one soon, and the line it will write is in the cache of the
// peer, which polls it. Fetching it takes as long as a packet does and overlaps with the work on this packet. With a
// longer packet it would delay the lines of that.
inline void fetch_next_line(const Lane* c) {
    if (c->ring.next_line != nullptr) [[likely]]
        prefetch_for_writing(c->ring.next_line);
}

void push_when_free(Lane* c) {
    read_ring_status(c);
    const SlotCounts* counts = c->ring.counts;
    if (!counts[kShort].room() || !counts[kLong].room()) return;
    c->ring.slot_wanted = false;
    enter_flow_list(c);
}

}  // namespace

void offer_ring(Lane* c) {
    if (c->ring.offer_tried || c->nic.rings.offer_after == 0 || c->peer.lost() || c->peer.closing_sent) return;
    c->ring.offer_tried = true;
    c->ring.no_place = c->nic.rings.offered >= c->nic.rings.most_offered;
    if (c->ring.no_place) return;
    vbuf* v = c->nic.buffers.get();
    if (v == nullptr) return;
    VIP_MEM_ATTRIBUTES attributes = {c->nic.ptag, VIP_TRUE, VIP_FALSE};
    void* memory = nullptr;
    if (VipxAllocMemory(c->nic.handle, kSlotAreaBytes, 0, &attributes, &memory, &c->ring.local_handle) != VIP_SUCCESS)
        return release_vbuf(v);
    c->ring.local = static_cast<std::byte*>(memory);
    for (const SlotKind kind : {kShort, kLong}) set_next_end(c, kind);
    ++c->nic.rings.offered;
    RingOffer* p = packet_of<RingOffer>(v);
    p->header.type = PacketType::ring_offer;
    p->header.flags = 0;
    p->address = reinterpret_cast<uintptr_t>(memory);
    p->memhandle = c->ring.local_handle;
    vbuf_init_sendrecv(v, sizeof(RingOffer));
    // Without room it is sent with the deferred work.
    if (!has_place(c) || !c->credits.can_send()) {
        c->ring.offer = v;
        return defer_work(c);
    }
    post_with_credit(c, v);
    note_ring_offered(c);
}

void push_ring_offer(Lane* c) {
    if (c->ring.offer == nullptr || !has_place(c) || !c->credits.can_send()) return;
    post_with_credit(c, std::exchange(c->ring.offer, nullptr));
    note_ring_offered(c);
}

void note_ring_offered(Lane* c) {
    c->ring.offered = true;
    open_ring(c);
}

bool take_ring_offer(Lane* c, const RingOffer& packet) {
    const uint64_t address = packet.address;
    if (c->ring.remote != 0 || packet.memhandle == 0 || address == 0 || address % kSlotLine != 0 ||
        address > UINT64_MAX - kSlotAreaBytes)
        return false;
    c->ring.remote = address;
    c->ring.remote_handle = packet.memhandle;
    offer_ring(c);
    open_ring(c);
    return true;
}

void close_ring(Lane* c) {
    if (!c->ring.open) {
        if (c->ring.counted) --c->nic.rings.queue_only;
        c->ring.counted = false;
        return;
    }
    c->ring.open = false;
    c->ring.mapped = c->ring.next_line = nullptr;
    c->nic.rings.open_lanes.erase(std::find(c->nic.rings.open_lanes.begin(), c->nic.rings.open_lanes.end(), c));
}

void free_ring(Lane* c) {
    if (c->ring.offer != nullptr) release_vbuf(std::exchange(c->ring.offer, nullptr));
    if (c->ring.local == nullptr) return;
    adi::ignore_result(VipxFreeMemory(c->nic.handle, c->ring.local, c->ring.local_handle));
    c->ring.local = nullptr;
    --c->nic.rings.offered;
}

void offer_freed_ring(Lane* lost) {
    if (lost->ring.local == nullptr) return;
    free_ring(lost);
    for (Lane* c : lost->nic.lanes) {
        if (c == nullptr || !c->ring.no_place || !c->peer.ready() || c->peer.lost()) continue;
        c->ring.offer_tried = c->ring.no_place = false;
        offer_ring(c);
        if (c->ring.local != nullptr) return;
    }
}

void read_ring_status(Lane* c) {
    const uint64_t word = __atomic_load_n(reinterpret_cast<const uint64_t*>(&ring_status(c)->taken), __ATOMIC_ACQUIRE);
    Le32 taken[kSlotKinds];
    std::memcpy(static_cast<void*>(taken), &word, sizeof word);
    for (unsigned kind = 0; kind < kSlotKinds; ++kind) {
        if (!c->ring.counts[kind].update(taken[kind]))
            return fail_later(c, "it reports packets taken that were not sent");
    }
}

void write_ring_status(Lane* c) {
    if (c->peer.closing_received) return;  // a peer that has closed sends nothing more, and may have ended
    SlotCounts* counts = c->ring.counts;
    Le32 taken[kSlotKinds];
    for (unsigned kind = 0; kind < kSlotKinds; ++kind) taken[kind] = counts[kind].taken();
    if (!write_word(c, offsetof(RingStatus, taken), taken)) return defer_work(c);
    for (unsigned kind = 0; kind < kSlotKinds; ++kind) counts[kind].report();
    wake_receiver(c);
}

int receive_from_ring(Lane* c) {
    bool behind = false;
    for (const SlotKind kind : {kShort, kLong}) {
        uint64_t word;
        if (!is_there(c, kind, &word)) continue;
        if (slot_bytes_for(static_cast<uint16_t>(word)) == kSlotLine) fetch_next_line(c);
        const SlotEnd* end = c->ring.next_end[kind];
        if (take_whole_message(c, kind, end, word) || take_any(c, kind, end, word)) return 1;
        behind = true;
    }
    return behind ? -1 : 0;
}

// Where packets come one at a time, the sender's cache holds the next slot for writing, and a poll fetches the line
// from there: no store of this process, the answer among them, becomes visible before that poll has its result. After
// kRowBegins packets without an empty poll the next packet is probably there, and up to kMostAtOnce are taken.
constexpr uint32_t kRowBegins = 16;
constexpr int kMostAtOnce = 16;

int poll_rings(Nic& nic) {
    const size_t count = nic.rings.open_lanes.size();
    size_t at = nic.rings.next_polled;
    bool behind = false;
    for (size_t i = 0; i < count; ++i, ++at) {
        if (at >= count) at = 0;
        Lane* c = nic.rings.open_lanes[at];
        if (c->ring.slot_wanted) [[unlikely]]
            push_when_free(c);
        int answer = receive_from_ring(c);
        if (answer > 0) {  // the list may have changed; the next poll begins behind this ring
            nic.rings.next_polled = at + 1;
            if (++nic.rings.packets_in_row >= kRowBegins) {
                int more = kMostAtOnce;
                uint64_t word;
                while (--more != 0 && answer > 0 && c->ring.open && is_there(c, kShort, &word))
                    answer = receive_from_ring(c);
                if (answer <= 0) nic.rings.packets_in_row = 0;
            }
            return 1;
        }
        behind = behind || answer < 0;
    }
    nic.rings.packets_in_row = 0;
    return behind ? -1 : 0;
}

bool suspend_rings(Nic& nic) {
    if (nic.rings.open_lanes.empty()) return true;
    bool quiet = true;
    for (Lane* c : nic.rings.open_lanes) quiet = write_asleep(c, true) && quiet;
    // Partner: wake_receiver(). Packets written before are seen now; a later writer sees RingStatus::asleep.
    heavy_barrier();
    uint64_t word;
    for (Lane* c : nic.rings.open_lanes) {
        if (c->ring.slot_wanted) push_when_free(c);
        quiet = quiet && !c->inflow && !is_there(c, kShort, &word) && !is_there(c, kLong, &word);
    }
    if (!quiet) resume_rings(nic);
    return quiet;
}

void resume_rings(Nic& nic) {
    for (Lane* c : nic.rings.open_lanes) {
        if (c->ring.marked_asleep && !write_asleep(c, false)) defer_work(c);
    }
}

}  // namespace viaduct::via
