// SPDX-License-Identifier: BSD-2-Clause
// Slots: who gets them, taking packets out of them, and telling of it. The order of packets is that of their
// sequence numbers, whichever way they come: one in the queue that is ahead of its turn follows packets which
// were written before it and are there, because a VI keeps its order. What a peer may write at any time is
// read once, and checked before it is used.
#include "mpi-adi/protocol/via/slots.hpp"

#include <viaduct/ext.h>

#include <algorithm>

#include "mpi-adi/protocol/via/device.hpp"

namespace viaduct::via {

namespace {

// Each costs a look in every pass, and up to 300 KiB.
constexpr size_t kMostLenders = 32;

// A word of news, of 8 bytes, into the peer's area.
bool write_word(viadev_connection_t* c, size_t offset, const void* word) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return false;
    std::memcpy(v->buffer, word, 8);
    vbuf_init_rdma(v, VIP_CONTROL_OP_RDMAWRITE, c->slots.theirs + offset, c->slots.theirs_handle, v->buffer,
                   v->handle, 8);
    if (viadev_post_rdma(c, v, &v->desc) == MPIP_SUCCESS) return true;
    release_vbuf(v);
    return false;
}

bool say_whether_asleep(viadev_connection_t* c, bool asleep) {
    Le64 word;
    word = asleep ? 1 : 0;
    if (!write_word(c, offsetof(SlotNews, asleep), &word)) return false;
    c->slots.said_asleep = asleep;
    return true;
}

void open_slots(viadev_connection_t* c) {
    if (!c->slots.told || c->slots.theirs == 0 || c->slots.open) return;
    c->slots.open = true;
    viadev.lenders.push_back(c);
    --viadev.by_queue;
}

SlotEnd* awaited_end(const viadev_connection_t* c, SlotKind kind) {
    const uint32_t position = c->slots.counts[kind].awaited();
    return reinterpret_cast<SlotEnd*>(c->slots.lent + slot_end(kind, position) - sizeof(SlotEnd));
}

// The last word of the awaited slot; whether it tells of a packet.
bool is_there(const viadev_connection_t* c, SlotKind kind, SlotEnd* news) {
    const SlotEnd* end = awaited_end(c, kind);
    constexpr size_t kWord = offsetof(SlotEnd, length);
    const uint64_t word = __atomic_load_n(
        reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(end) + kWord), __ATOMIC_ACQUIRE);
    std::memcpy(reinterpret_cast<char*>(news) + kWord, &word, sizeof word);
    return news->position == c->slots.counts[kind].awaited() + 1;
}

void push_when_free(viadev_connection_t* c) {
    hear_slot_news(c);
    const SlotCounts* counts = c->slots.counts;
    if (!counts[kShort].room() || !counts[kLong].room()) return;
    c->slots.wanted = false;
    want_flow(c);
}

}  // namespace

void lend_slots(viadev_connection_t* c) {
    if (c->slots.tried || viadev.slots_after == 0 || c->lost || c->goodbye_sent) return;
    c->slots.tried = true;
    if (viadev.lent >= kMostLenders) return;
    vbuf* v = get_vbuf();
    if (v == nullptr) return;
    VIP_MEM_ATTRIBUTES attributes = {viadev.ptag, VIP_TRUE, VIP_FALSE};
    void* memory = nullptr;
    if (VipxAllocMemory(viadev.nic, kSlotAreaBytes, 0, &attributes, &memory, &c->slots.lent_handle) !=
        VIP_SUCCESS)
        return release_vbuf(v);
    c->slots.lent = static_cast<std::byte*>(memory);
    ++viadev.lent;
    Slots* p = packet_of<Slots>(v);
    p->header.type = PacketType::slots;
    p->header.flags = 0;
    p->address = reinterpret_cast<uint64_t>(memory);
    p->memhandle = c->slots.lent_handle;
    vbuf_init_sendrecv(v, sizeof(Slots));
    viadev_post_send(c, v);
}

void slots_are_told(viadev_connection_t* c) {
    c->slots.told = true;
    open_slots(c);
}

bool incoming_slots(viadev_connection_t* c, const Slots& packet) {
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

void close_slots(viadev_connection_t* c) {
    if (!c->slots.open) {
        if (c->initialized) --viadev.by_queue;
        return;
    }
    c->slots.open = false;
    viadev.lenders.erase(std::find(viadev.lenders.begin(), viadev.lenders.end(), c));
}

void free_slots(viadev_connection_t* c) {
    if (c->slots.lent == nullptr) return;
    VipxFreeMemory(viadev.nic, c->slots.lent, c->slots.lent_handle);
    c->slots.lent = nullptr;
    --viadev.lent;
}

void hear_slot_news(viadev_connection_t* c) {
    const uint64_t word =
        __atomic_load_n(reinterpret_cast<const uint64_t*>(&slot_news(c)->taken), __ATOMIC_ACQUIRE);
    Le32 taken[kSlotKinds];
    std::memcpy(static_cast<void*>(taken), &word, sizeof word);
    for (unsigned kind = 0; kind < kSlotKinds; ++kind) {
        if (!c->slots.counts[kind].heard(taken[kind]))
            return doom_connection(c, "it has taken packets that never were");
    }
}

void tell_slot_news(viadev_connection_t* c) {
    SlotCounts* counts = c->slots.counts;
    if ((!counts[kShort].much_untold() && !counts[kLong].much_untold()) || c->goodbye_had) [[likely]]
        return;  // who has said goodbye wants no slots, and may be gone
    Le32 taken[kSlotKinds];
    for (unsigned kind = 0; kind < kSlotKinds; ++kind) taken[kind] = counts[kind].awaited();
    if (!write_word(c, offsetof(SlotNews, taken), taken)) return want_chores(c);
    for (unsigned kind = 0; kind < kSlotKinds; ++kind) counts[kind].tell();
    wake(c);
}

int take_from_slots(viadev_connection_t* c) {
    bool behind = false;
    for (const SlotKind kind : {kShort, kLong}) {
        SlotEnd news;
        if (!is_there(c, kind, &news)) continue;
        SlotEnd* end = awaited_end(c, kind);
        const size_t length = news.length, head = news.head;
        const char* first = reinterpret_cast<const char*>(end + 1) - slot_bytes_for(length);
        // One of 28 bytes, say, takes four words, the last of which it fills.
        const size_t unused = head == sizeof(EagerInSlot) ? sizeof(EagerInSlot) - sizeof(EagerStart) : 0;
        const SlotPacket packet = {
            first, head == 0 ? first : reinterpret_cast<const char*>(end) - head + unused, length, head};
        if (length + sizeof(SlotEnd) > kSlotBytes[kind] || length < sizeof(Header) || head > length ||
            (head != 0 && head < sizeof(Header))) {
            fail_connection(c, "it wrote a packet that cannot be");
            return 1;
        }
        const Header* h = reinterpret_cast<const Header*>(packet.header);
        if (h->sequence != c->next_packet_expected) {
            behind = true;
            continue;
        }
        SlotCounts* counts = c->slots.counts;
        for (unsigned each = 0; each < kSlotKinds; ++each) {
            if (counts[each].heard(end->taken[each])) continue;
            fail_connection(c, "it has taken packets that never were");
            return 1;
        }
        take_slot_packet(c, packet);
        counts[kind].took();
        if (!c->lost) tell_slot_news(c);
        return 1;
    }
    return behind ? -1 : 0;
}

int look_at_slots() {
    const size_t count = viadev.lenders.size();
    bool behind = false;
    for (size_t i = 0; i < count; ++i) {
        viadev_connection_t* c = viadev.lenders[(viadev.next_lender + i) % count];
        if (c->slots.wanted) [[unlikely]]
            push_when_free(c);
        const int answer = take_from_slots(c);
        if (answer > 0) {  // others may be gone now, and this one has had its turn
            ++viadev.next_lender;
            return 1;
        }
        behind = behind || answer < 0;
    }
    return behind ? -1 : 0;
}

bool leave_slots() {
    if (viadev.lenders.empty()) return true;
    bool told = true;
    for (viadev_connection_t* c : viadev.lenders) told = say_whether_asleep(c, true) && told;
    heavy_barrier();  // partner: wake(). What was written before is seen now, who writes later sees us asleep
    SlotEnd news;
    for (viadev_connection_t* c : viadev.lenders) {
        if (c->slots.wanted) push_when_free(c);
        told = told && !c->inflow && !is_there(c, kShort, &news) && !is_there(c, kLong, &news);
    }
    if (!told) return_to_slots();
    return told;
}

void return_to_slots() {
    for (viadev_connection_t* c : viadev.lenders) {
        if (c->slots.said_asleep && !say_whether_asleep(c, false)) want_chores(c);
    }
}

}  // namespace viaduct::via
