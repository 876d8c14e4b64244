// SPDX-License-Identifier: BSD-2-Clause
// Descriptors on their way to the NIC and back: headers are stamped when a packet is really posted (spec/adi
// F2), packets without credit or a slot wait in order (spec/adi F4), finished sends are collected in batches.
#include <algorithm>
#include <bit>
#include <iterator>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/via/post.hpp"

namespace viaduct::via {

namespace {

void fill_header(Lane* c, Header* h, uint16_t sequence) {
    h->sequence = sequence;
    h->source = c->nic.me;
    h->credit = c->credits.take_local();
    h->view = c->credits.view();
    h->noops = c->credits.free_had();
}

// In a slot it says nothing of credits: packets without a sequence, which do, could overtake it.
inline void fill_slot_header(Lane* c, Header* h) {
    h->sequence = c->next_packet_tosend++;
    h->source = c->nic.me;
    h->credit = 0;
    h->view = h->noops = 0;
}

inline void hand_to_nic(Lane* c, vbuf* v, VIP_DESCRIPTOR* desc) {
    v->connection = c;
    v->owner = Owner::send_queue;
    ++c->sends_outstanding;
    ++c->nic.sends_outstanding;
    if (c->nic.scq == nullptr) want_sends(c);
    if (VipPostSend(c->vi, desc, v->handle) == VIP_SUCCESS) [[likely]]
        return;
    // Nobody will complete it before the connection ends, which is found in the next pass.
    v->next = c->refused_head;
    c->refused_head = v;
    c->nic.note_event();
}

// What ends a packet in its slot. Returns the address of the slot's end on the other side.
uint64_t end_packet(Lane* c, SlotEnd* end, size_t length) {
    const SlotKind kind = slot_kind_for(length);
    SlotCounts* counts = c->slots.counts;
    const uint32_t position = counts[kind].next();
    counts[kind].sent();
    note_next_line(c);
    for (unsigned each = 0; each < kSlotKinds; ++each) end->taken[each] = counts[each].tell();
    end->length = static_cast<uint16_t>(length);
    end->head = 0;
    end->position = position + 1;
    ++adi::counters[MPIP_PROTO_VIA].mc_packets;
    return c->slots.theirs + slot_end(kind, position);
}

// The packet in a vbuf, as it is.
void post_in_slot(Lane* c, vbuf* v) {
    const size_t length = v->desc.CS.Length;
    const size_t whole = slot_bytes_for(length);
    fill_slot_header(c, packet_of<Header>(v));
    const uint64_t end =
        end_packet(c, reinterpret_cast<SlotEnd*>(v->buffer + whole - sizeof(SlotEnd)), length);
    const size_t before = whole - kSlotLine;
    const VIPX_WRITE write = {end - whole, c->slots.theirs_handle, v->buffer, before, v->buffer + before, kSlotLine};
    if (VipxWriteNow(c->vi, &write) == VIP_SUCCESS) [[likely]] {
        release_vbuf(v);
    } else {
        vbuf_init_rdma(v, VIP_CONTROL_OP_RDMAWRITE, end - whole, c->slots.theirs_handle, v->buffer, v->handle,
                       static_cast<uint32_t>(whole));
        hand_to_nic(c, v, &v->desc);
    }
    wake(c);
}

bool send_free(Lane* c, PacketType type) {
    vbuf* v = has_place(c) ? c->nic.buffers.get() : nullptr;
    if (v == nullptr) {
        want_chores(c);
        return false;
    }
    Header* h = packet_of<Header>(v);
    h->type = type;
    h->flags = 0;
    vbuf_init_sendrecv(v, sizeof(Header));
    c->credits.sent_free();
    fill_header(c, h, 0);
    hand_to_nic(c, v, &v->desc);
    return true;
}

}  // namespace

void post_with_credit(Lane* c, vbuf* v) {
    c->credits.spend();
    fill_header(c, packet_of<Header>(v), c->next_packet_tosend++);
    ++adi::counters[MPIP_PROTO_VIA].mc_packets;
    hand_to_nic(c, v, &v->desc);
}

bool viadev_post_send(Lane* c, vbuf* v) {
    if (c->peer.lost() || !has_place(c)) return false;
    if (by_slots(c) && v->desc.CS.Length <= kMostInSlot && slot_is_free(c, v->desc.CS.Length)) {
        post_in_slot(c, v);
        return true;
    }
    if (!c->credits.can_send()) return false;
    post_with_credit(c, v);
    return true;
}

// Nothing is collected here: a transfer may be in the middle of its last piece.
void send_wake(Lane* c) {
    const bool place = c->sends_outstanding < c->nic.send_depth && !c->nic.buffers.empty();
    vbuf* v = place && c->credits.can_send() ? c->nic.buffers.get() : nullptr;
    if (v == nullptr) return;
    packet_of<Header>(v)->type = PacketType::wake;
    packet_of<Header>(v)->flags = 0;
    vbuf_init_sendrecv(v, sizeof(Header));
    post_with_credit(c, v);
}

bool has_place(Lane* c) {
    if (c->sends_outstanding < c->nic.collect_from) [[likely]]
        return true;
    viadev_process_send(c->nic);  // some have finished, it may be
    if (c->sends_outstanding < c->nic.send_depth) return true;
    c->place_wanted = true;
    return false;
}

namespace {

// What header and end of a whole message say in six words: the last of its slot.
struct EagerWords {
    uint64_t word[6];
};
static_assert(sizeof(EagerWords) == sizeof(EagerInSlot) + sizeof(SlotEnd));

// Type, flags and sequence, and nothing of credits.
inline uint64_t first_word(const Lane* c, PacketType type, uint32_t flags) {
    return static_cast<uint32_t>(type) | flags << 8 | static_cast<uint32_t>(c->next_packet_tosend) << 16;
}
inline uint64_t taken_word(const Lane* c) {
    const SlotCounts* counts = c->slots.counts;
    return uint64_t{counts[kLong].awaited()} << 32 | counts[kShort].awaited();
}
inline uint64_t end_word(uint32_t position, size_t length, size_t head) {
    return uint64_t{position + 1} << 32 | head << 16 | length;
}

inline EagerWords eager_words(const Lane* c, uint32_t position, size_t length, int src_lrank,
                              int tag, uint64_t context, int mode) {
    const auto ready = static_cast<uint32_t>(mode & MPIP_MODE_READY);
    return {{first_word(c, PacketType::eager, ready) << 32, uint64_t{c->nic.me} << 32, context,
             uint64_t{static_cast<uint32_t>(src_lrank)} << 32 | static_cast<uint32_t>(tag), taken_word(c),
             end_word(position, length, sizeof(EagerInSlot))}};
}

inline void count_written(Lane* c, SlotKind kind) {
    SlotCounts* counts = c->slots.counts;
    counts[kind].sent();
    note_next_line(c);
    for (unsigned each = 0; each < kSlotKinds; ++each) counts[each].tell();
    ++c->next_packet_tosend;
    ++adi::counters[MPIP_PROTO_VIA].mc_packets;
}

}  // namespace

namespace {

inline uint64_t load(const char* at, size_t bytes) {
    uint64_t word = 0;
    std::memcpy(&word, at, bytes);
    return word;
}

// At most 16 bytes as two words, padded with zeros.
inline void load_two_words(const char* data, size_t bytes, uint64_t* two) {
    two[0] = two[1] = 0;
    if constexpr (std::endian::native != std::endian::little) {
        if (bytes != 0) std::memcpy(two, data, bytes);
    } else if (bytes >= 8) [[likely]] {
        two[0] = load(data, 8);
        if (bytes > 8) two[1] = load(data + bytes - 8, 8) >> (8 * (16 - bytes));
    } else if (bytes >= 4) {
        two[0] = load(data, 4) | load(data + bytes - 4, 4) << (8 * (bytes - 4));
    } else {
        for (size_t i = 0; i < bytes; ++i) two[0] |= load(data + i, 1) << (8 * i);
    }
}

// Words of a line that is made here, and then only copied.
inline void put_word(uint64_t* at, uint64_t value) {
    Le64 word;
    word = value;
    std::memcpy(at, &word, sizeof word);
}

// The last line or two, which end with `tail`, and the slot's address.
template <size_t tail_words>
bool write_with_end(Lane* c, const void* data, size_t before, uint64_t* last, size_t words, SlotKind kind,
                    uint32_t position, const uint64_t (&tail)[tail_words]) {
    for (size_t i = 0; i < tail_words; ++i) put_word(last + words - tail_words + i, tail[i]);
    const size_t bytes = words * sizeof(uint64_t);
    const VIPX_WRITE write = {c->slots.theirs + slot_end(kind, position) - bytes - before,
                              c->slots.theirs_handle,
                              data,
                              before,
                              last,
                              bytes};
    if (VipxWriteNow(c->vi, &write) != VIP_SUCCESS) [[unlikely]]
        return false;
    count_written(c, kind);
    wake(c);
    return true;
}

constexpr size_t kLineWords = kSlotLine / sizeof(uint64_t);

// A packet of `length` bytes whose data lies in front: the last line or two are put together here, what is
// before them goes from the user's buffer.
template <size_t tail_words>
bool write_data_and_end(Lane* c, const char* data, size_t bytes, size_t length, SlotKind kind,
                        uint32_t position, const uint64_t (&tail)[tail_words]) {
    alignas(kSlotLine) uint64_t last[2 * kLineWords];
    const size_t before = bytes & ~(kSlotLine - 1);
    const size_t words = (slot_bytes_for(length) - before) / sizeof(uint64_t);
    std::memset(last, 0, sizeof last - sizeof tail);
    std::memcpy(last, data + before, bytes - before);
    return write_with_end(c, data, before, last, words, kind, position, tail);
}

}  // namespace

bool write_eager_now(Lane* c, const void* data, size_t bytes, int src_lrank, int tag,
                     uint64_t context, int mode) {
    constexpr size_t kInOneLine = kSlotLine - sizeof(EagerWords);
    const size_t length = bytes + sizeof(EagerInSlot);
    const auto* from = static_cast<const char*>(data);
    if (bytes <= kInOneLine) [[likely]] {
        static_assert(kInOneLine == 2 * sizeof(uint64_t));
        alignas(kSlotLine) uint64_t line[kLineWords];
        const uint32_t position = c->slots.counts[kShort].next();
        load_two_words(from, bytes, line);
        return write_with_end(c, data, 0, line, kLineWords, kShort, position,
                              eager_words(c, position, length, src_lrank, tag, context, mode).word);
    }
    const SlotKind kind = slot_kind_for(length);
    const uint32_t position = c->slots.counts[kind].next();
    return write_data_and_end(c, from, bytes, length, kind, position,
                              eager_words(c, position, length, src_lrank, tag, context, mode).word);
}

bool write_r3_now(Lane* c, const void* data, size_t bytes, reqaddr_t receive, uint32_t at) {
    const size_t length = bytes + sizeof(Data);
    const SlotKind kind = slot_kind_for(length);
    const uint32_t position = c->slots.counts[kind].next();
    // Header, name of the receive and place in the message; then what ends a packet.
    const uint64_t tail[] = {first_word(c, PacketType::data, 0), receive << 32 | c->nic.me,
                             uint64_t{at} << 32 | receive >> 32, taken_word(c),
                             end_word(position, length, sizeof(Data))};
    static_assert(sizeof tail == sizeof(Data) + sizeof(SlotEnd) && offsetof(Data, rreq) == 12 &&
                  offsetof(Data, at) == 20);
    return write_data_and_end(c, static_cast<const char*>(data), bytes, length, kind, position, tail);
}

// Header and end are made of whole words, as the NIC reads them (see set_form).
void post_eager_in_slot(Lane* c, vbuf* v, size_t bytes, int src_lrank, int tag,
                        uint64_t context, int mode) {
    const size_t length = bytes + sizeof(EagerInSlot);
    const size_t whole = slot_bytes_for(length);
    const SlotKind kind = slot_kind_for(length);
    const uint32_t position = c->slots.counts[kind].next();
    const EagerWords all = eager_words(c, position, length, src_lrank, tag, context, mode);
    Le64* const end = reinterpret_cast<Le64*>(v->buffer + whole);
    for (size_t i = 0; i < std::size(all.word); ++i) (end - std::size(all.word))[i] = all.word[i];
    count_written(c, kind);
    vbuf_init_rdma(v, VIP_CONTROL_OP_RDMAWRITE, c->slots.theirs + slot_end(kind, position) - whole,
                   c->slots.theirs_handle, v->buffer, v->handle, static_cast<uint32_t>(whole));
    hand_to_nic(c, v, &v->desc);
    wake(c);
}

int viadev_post_rdma(Lane* c, vbuf* v, VIP_DESCRIPTOR* desc) {
    if (!has_place(c)) return MPIP_AGAIN;
    hand_to_nic(c, v, desc);
    return MPIP_SUCCESS;
}

bool post_receive(Lane* c, bool reserve) {
    vbuf* v = c->nic.buffers.get();
    if (v == nullptr) return false;
    vbuf_init_sendrecv(v, VBUF_BUFFER_SIZE);
    v->connection = c;
    v->owner = Owner::receive_queue;
    if (VipPostRecv(c->vi, &v->desc, v->handle) != VIP_SUCCESS) {
        release_vbuf(v);
        c->refuses_receives = true;
        c->nic.note_event();
        return false;
    }
    c->credits.reposted(reserve);
    return true;
}

void post_missing_receives(Lane* c) {
    while (c->credits.missing_reserve() > 0) {
        if (!post_receive(c, true)) return want_chores(c);
    }
    while (c->credits.missing() > 0) {
        if (!post_receive(c, false)) return want_chores(c);
    }
}

void send_noop(Lane* c) {
    if (c->peer.lost() || c->peer.closing_sent || !c->credits.may_send_noop()) return;
    ++adi::counters[MPIP_PROTO_VIA].mc_noops;
    send_free(c, PacketType::noop);
}

bool send_closing(Lane* c) { return !c->peer.lost() && send_free(c, PacketType::closing); }

void complete_send(vbuf* v, bool good) {
    Lane* c = v->connection;
    --c->sends_outstanding;
    --c->nic.sends_outstanding;
    protocol::Transfer* transfer = v->transfer;
    release_vbuf(v);
    if (transfer != nullptr) --c->nic.local_waits;
    if (c->place_wanted) {
        c->place_wanted = false;
        want_flow(c);
    }
    if (transfer != nullptr && good) c->peer.protocol->landed(*transfer);
}

static void take_back(vbuf* v, VIP_RETURN rc) {
    Lane* c = v->connection;
    complete_send(v, rc == VIP_SUCCESS);
    if (rc != VIP_SUCCESS && !c->peer.lost()) c->nic.note_event();
}

void viadev_process_send(Nic& nic) {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    VIP_DESCRIPTOR* desc = nullptr;
    if (nic.scq != nullptr) {
        while (VipCQDone(nic.scq, &vi, &receive) == VIP_SUCCESS) {
            const VIP_RETURN rc = VipSendDone(vi, &desc);
            if (desc != nullptr)
                take_back(vbuf_of_sent(desc), rc);  // else of a queue that was collected directly
        }
        return;
    }
    Lane* list = nic.sending_head;
    nic.sending_head = nullptr;
    while (list != nullptr) {
        Lane* c = list;
        list = c->next_sending;
        c->in_sending = false;
        while (c->sends_outstanding != 0) {
            const VIP_RETURN rc = VipSendDone(c->vi, &desc);
            if (desc == nullptr) break;
            take_back(vbuf_of_sent(desc), rc);
        }
        if (c->sends_outstanding != 0) want_sends(c);
    }
}

}  // namespace viaduct::via
