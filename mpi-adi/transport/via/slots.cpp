// SPDX-License-Identifier: BSD-2-Clause
// Slots: who gets them, taking packets out of them, and telling of it. The order of packets is that of their
// sequence numbers, whichever way they come: one in the queue that is ahead of its turn follows packets which
// were written before it and are there, because a VI keeps its order. What a peer may write at any time is
// read once, and checked before it is used.
#include <algorithm>
#include <utility>

#include "core/sync/pause.hpp"
#include "mpi-adi/transport/via/receive.hpp"

namespace viaduct::via {

namespace {

// A word of news, of 8 bytes, into the peer's area.
bool write_word(Lane* c, size_t offset, const void* word) {
    const VIPX_WRITE write = {c->slots.theirs + offset, c->slots.theirs_handle, nullptr, 0, word, 8};
    if (VipxWriteNow(c->vi, &write) == VIP_SUCCESS) [[likely]]
        return true;
    vbuf* v = c->nic.buffers.get();
    if (v == nullptr) return false;
    std::memcpy(v->buffer, word, 8);
    vbuf_init_rdma(v, VIP_CONTROL_OP_RDMAWRITE, c->slots.theirs + offset, c->slots.theirs_handle, v->buffer,
                   v->handle, 8);
    if (viadev_post_rdma(c, v, &v->desc) == MPIP_SUCCESS) return true;
    release_vbuf(v);
    return false;
}

bool say_whether_asleep(Lane* c, bool asleep) {
    Le64 word;
    word = asleep ? 1 : 0;
    if (!write_word(c, offsetof(SlotNews, asleep), &word)) return false;
    c->slots.said_asleep = asleep;
    return true;
}

void open_slots(Lane* c) {
    if (!c->slots.told || c->slots.theirs == 0 || c->slots.open) return;
    c->slots.open = true;
    void* mapped = nullptr;
    if (VipxQueryMapped(c->vi, c->slots.theirs, c->slots.theirs_handle, kSlotAreaBytes, &mapped) == VIP_SUCCESS) {
        c->slots.mapped = static_cast<const std::byte*>(mapped);
        note_next_line(c);
    }
    c->nic.ring.lenders.push_back(c);
    c->slots.counted = false;
    --c->nic.ring.by_queue;
}

void set_awaited(Lane* c, SlotKind kind) {
    const uint32_t position = c->slots.counts[kind].awaited();
    c->slots.awaited[kind] =
        reinterpret_cast<const SlotEnd*>(c->slots.lent + slot_end(kind, position) - sizeof(SlotEnd));
}

// What lies there may change at any time: each word is read once.
uint64_t read_word(const void* at) {
    Le64 word;
    const uint64_t bits = __atomic_load_n(static_cast<const uint64_t*>(at), __ATOMIC_ACQUIRE);
    std::memcpy(static_cast<void*>(&word), &bits, sizeof bits);
    return word;
}

// The last word of the awaited slot: length, head and position. Whether it tells of a packet.
inline bool is_there(const Lane* c, SlotKind kind, uint64_t* word) {
    static_assert(offsetof(SlotEnd, length) == 8 && offsetof(SlotEnd, head) == 10 && offsetof(SlotEnd, position) == 12);
    *word = read_word(&c->slots.awaited[kind]->length);
    return *word >> 32 == c->slots.counts[kind].awaited() + uint32_t{1};
}

// False: it cannot have taken so many.
inline bool hear_taken(Lane* c, const SlotEnd* end) {
    const uint64_t taken = read_word(end->taken);
    if (taken == c->slots.heard) [[likely]]
        return true;
    c->slots.heard = taken;
    SlotCounts* counts = c->slots.counts;
    return counts[kShort].heard(static_cast<uint32_t>(taken)) &&
           counts[kLong].heard(static_cast<uint32_t>(taken >> 32));
}

inline void took(Lane* c, SlotKind kind) {
    c->slots.counts[kind].took();
    set_awaited(c, kind);
    if (!c->peer.lost()) tell_slot_news(c);
}

// The packet that nearly all are, and that comes next: a whole message, its data in front. False: another one, or not
// what it should be; nothing has happened.
inline bool take_whole_message(Lane* c, SlotKind kind, const SlotEnd* end, uint64_t last_word) {
    const size_t length = static_cast<uint16_t>(last_word);
    const auto* words = reinterpret_cast<const uint64_t*>(end);
    const auto first = static_cast<uint32_t>(read_word(words - 4) >> 32);
    const uint64_t source = read_word(words - 3);
    constexpr uint32_t kFlags = 0xff00;
    const uint32_t expected = static_cast<uint32_t>(PacketType::eager) | uint32_t{c->next_packet_expected} << 16;
    static_assert(offsetof(Header, flags) == 1 && offsetof(Header, sequence) == 2 && offsetof(Header, source) == 8);
    if (static_cast<uint16_t>(last_word >> 16) != sizeof(EagerInSlot) || (first & ~kFlags) != expected ||
        source >> 32 != c->peer.rank || length < sizeof(EagerInSlot) ||
        length + sizeof(SlotEnd) > kSlotBytes[kind] || c->peer.series != nullptr) [[unlikely]]
        return false;
    const uint64_t context = read_word(words - 2), who = read_word(words - 1);
    if (!hear_taken(c, end)) [[unlikely]] {
        fail_connection(c, "it has taken packets that never were");
        return true;
    }
    ++c->next_packet_expected;
    const uint32_t flags = first >> 8;
    const char* data = reinterpret_cast<const char*>(end + 1) - slot_bytes_for(length);
    c->peer.protocol->incoming_whole(c->peer, context, static_cast<int>(static_cast<uint32_t>(who)),
                                     static_cast<int>(who >> 32), static_cast<int>(flags & MPIP_MODE_READY),
                                     data, length - sizeof(EagerInSlot));
    took(c, kind);
    return true;
}

// Any other one. False: it is behind a packet in the queue.
bool take_any(Lane* c, SlotKind kind, const SlotEnd* end, uint64_t last_word) {
    const size_t length = static_cast<uint16_t>(last_word), head = static_cast<uint16_t>(last_word >> 16);
    const char* first = reinterpret_cast<const char*>(end + 1) - slot_bytes_for(length);
    // One of 28 bytes, say, takes four words, the last of which it fills.
    const size_t unused = head == sizeof(EagerInSlot) ? sizeof(EagerInSlot) - sizeof(Eager) : 0;
    const SlotPacket packet = {
        first, head == 0 ? first : reinterpret_cast<const char*>(end) - head + unused, length, head};
    if (length + sizeof(SlotEnd) > kSlotBytes[kind] || length < sizeof(Header) || head > length ||
        (head != 0 && head < sizeof(Header))) {
        fail_connection(c, "it wrote a packet that cannot be");
        return true;
    }
    const Header* h = reinterpret_cast<const Header*>(packet.header);
    if (h->sequence != c->next_packet_expected) return false;
    if (!hear_taken(c, end)) {
        fail_connection(c, "it has taken packets that never were");
        return true;
    }
    take_slot_packet(c, packet);
    took(c, kind);
    return true;
}

// A process that receives a packet of one line mostly sends one soon, and the cache of the peer, which waits for it,
// holds the line. Fetching it takes as long as a packet does; it overlaps with the work on this packet. Beside the
// lines of a longer packet it would delay those.
inline void fetch_next_line(const Lane* c) {
    if (c->slots.next_line != nullptr) [[likely]]
        prefetch_for_writing(c->slots.next_line);
}

void push_when_free(Lane* c) {
    hear_slot_news(c);
    const SlotCounts* counts = c->slots.counts;
    if (!counts[kShort].room() || !counts[kLong].room()) return;
    c->slots.wanted = false;
    want_flow(c);
}

}  // namespace

void lend_slots(Lane* c) {
    if (c->slots.tried || c->nic.ring.slots_after == 0 || c->peer.lost() || c->peer.closing_sent) return;
    c->slots.tried = true;
    c->slots.turned_away = c->nic.ring.lent >= c->nic.ring.most_lenders;
    if (c->slots.turned_away) return;
    vbuf* v = c->nic.buffers.get();
    if (v == nullptr) return;
    VIP_MEM_ATTRIBUTES attributes = {c->nic.ptag, VIP_TRUE, VIP_FALSE};
    void* memory = nullptr;
    if (VipxAllocMemory(c->nic.handle, kSlotAreaBytes, 0, &attributes, &memory, &c->slots.lent_handle) !=
        VIP_SUCCESS)
        return release_vbuf(v);
    c->slots.lent = static_cast<std::byte*>(memory);
    for (const SlotKind kind : {kShort, kLong}) set_awaited(c, kind);
    ++c->nic.ring.lent;
    Slots* p = packet_of<Slots>(v);
    p->header.type = PacketType::slots;
    p->header.flags = 0;
    p->address = reinterpret_cast<uintptr_t>(memory);
    p->memhandle = c->slots.lent_handle;
    vbuf_init_sendrecv(v, sizeof(Slots));
    // Tried again with the chores where there is no room.
    if (!has_place(c) || !c->credits.can_send()) {
        c->slots.loan = v;
        return want_chores(c);
    }
    post_with_credit(c, v);
    slots_are_told(c);
}

// The packet that tells of them, which found no room.
void push_loan(Lane* c) {
    if (c->slots.loan == nullptr || !has_place(c) || !c->credits.can_send()) return;
    post_with_credit(c, std::exchange(c->slots.loan, nullptr));
    slots_are_told(c);
}

void slots_are_told(Lane* c) {
    c->slots.told = true;
    open_slots(c);
}

bool incoming_slots(Lane* c, const Slots& packet) {
    const uint64_t address = packet.address;
    if (c->slots.theirs != 0 || packet.memhandle == 0 || address == 0 || address % kSlotLine != 0 ||
        address > UINT64_MAX - kSlotAreaBytes)
        return false;
    c->slots.theirs = address;
    c->slots.theirs_handle = packet.memhandle;
    lend_slots(c);
    open_slots(c);
    return true;
}

void close_slots(Lane* c) {
    if (!c->slots.open) {
        if (c->slots.counted) --c->nic.ring.by_queue;
        c->slots.counted = false;
        return;
    }
    c->slots.open = false;
    c->slots.mapped = c->slots.next_line = nullptr;
    c->nic.ring.lenders.erase(std::find(c->nic.ring.lenders.begin(), c->nic.ring.lenders.end(), c));
}

void free_slots(Lane* c) {
    if (c->slots.loan != nullptr) release_vbuf(std::exchange(c->slots.loan, nullptr));
    if (c->slots.lent == nullptr) return;
    adi::let_go(VipxFreeMemory(c->nic.handle, c->slots.lent, c->slots.lent_handle));
    c->slots.lent = nullptr;
    --c->nic.ring.lent;
}

void pass_on_place(Lane* lost) {
    if (lost->slots.lent == nullptr) return;
    free_slots(lost);
    for (Lane* c : lost->nic.lanes) {
        if (c == nullptr || !c->slots.turned_away || !c->peer.ready() || c->peer.lost()) continue;
        c->slots.tried = c->slots.turned_away = false;
        lend_slots(c);
        if (c->slots.lent != nullptr) return;
    }
}

void hear_slot_news(Lane* c) {
    const uint64_t word =
        __atomic_load_n(reinterpret_cast<const uint64_t*>(&slot_news(c)->taken), __ATOMIC_ACQUIRE);
    Le32 taken[kSlotKinds];
    std::memcpy(static_cast<void*>(taken), &word, sizeof word);
    for (unsigned kind = 0; kind < kSlotKinds; ++kind) {
        if (!c->slots.counts[kind].heard(taken[kind]))
            return doom_connection(c, "it has taken packets that never were");
    }
}

void write_slot_news(Lane* c) {
    if (c->peer.closing_had) return;  // a peer that has closed wants no slots, and may be gone
    SlotCounts* counts = c->slots.counts;
    Le32 taken[kSlotKinds];
    for (unsigned kind = 0; kind < kSlotKinds; ++kind) taken[kind] = counts[kind].awaited();
    if (!write_word(c, offsetof(SlotNews, taken), taken)) return want_chores(c);
    for (unsigned kind = 0; kind < kSlotKinds; ++kind) counts[kind].tell();
    wake(c);
}

int take_from_slots(Lane* c) {
    bool behind = false;
    for (const SlotKind kind : {kShort, kLong}) {
        uint64_t word;
        if (!is_there(c, kind, &word)) continue;
        if (slot_bytes_for(static_cast<uint16_t>(word)) == kSlotLine) fetch_next_line(c);
        const SlotEnd* end = c->slots.awaited[kind];
        if (take_whole_message(c, kind, end, word) || take_any(c, kind, end, word)) return 1;
        behind = true;
    }
    return behind ? -1 : 0;
}

// Where packets come one at a time the sender has the next slot ready for writing, and a look fetches it from
// there: no store of ours, the answer among them, becomes visible before that look has its result. In a row
// there is mostly another one.
constexpr uint32_t kRowBegins = 16;
constexpr int kMostAtOnce = 16;

int look_at_slots(Nic& nic) {
    const size_t count = nic.ring.lenders.size();
    size_t at = nic.ring.next_lender;
    bool behind = false;
    for (size_t i = 0; i < count; ++i, ++at) {
        if (at >= count) at = 0;
        Lane* c = nic.ring.lenders[at];
        if (c->slots.wanted) [[unlikely]]
            push_when_free(c);
        int answer = take_from_slots(c);
        if (answer > 0) {  // others may be gone now, and this one has had its turn
            nic.ring.next_lender = at + 1;
            if (++nic.ring.packets_in_row >= kRowBegins) {
                int more = kMostAtOnce;
                uint64_t word;
                while (--more != 0 && answer > 0 && c->slots.open && is_there(c, kShort, &word))
                    answer = take_from_slots(c);
                if (answer <= 0) nic.ring.packets_in_row = 0;
            }
            return 1;
        }
        behind = behind || answer < 0;
    }
    nic.ring.packets_in_row = 0;
    return behind ? -1 : 0;
}

bool leave_slots(Nic& nic) {
    if (nic.ring.lenders.empty()) return true;
    bool told = true;
    for (Lane* c : nic.ring.lenders) told = say_whether_asleep(c, true) && told;
    heavy_barrier();  // partner: wake(). What was written before is seen now, who writes later sees us asleep
    uint64_t news;
    for (Lane* c : nic.ring.lenders) {
        if (c->slots.wanted) push_when_free(c);
        told = told && !c->inflow && !is_there(c, kShort, &news) && !is_there(c, kLong, &news);
    }
    if (!told) return_to_slots(nic);
    return told;
}

void return_to_slots(Nic& nic) {
    for (Lane* c : nic.ring.lenders) {
        if (c->slots.said_asleep && !say_whether_asleep(c, false)) want_chores(c);
    }
}

}  // namespace viaduct::via
