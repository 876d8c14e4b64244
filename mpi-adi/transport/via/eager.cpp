// SPDX-License-Identifier: BSD-2-Clause
// Short messages, and pieces of long ones, out of the user's buffer: written straight into a slot of the peer's eager
// ring (ring_layout.hpp) where its memory is mapped, else through a buffer and the NIC's queue.
#include <bit>
#include <iterator>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/via/post.hpp"

namespace viaduct::via {

namespace {

// Header and end of a whole message: the last six words of its slot.
struct EagerWords {
    uint64_t word[6];
};
static_assert(sizeof(EagerWords) == sizeof(EagerInSlot) + sizeof(SlotEnd));

// Type, flags and sequence; no credits.
inline uint64_t first_word(const Lane* c, PacketType type, uint32_t flags) {
    return static_cast<uint32_t>(type) | flags << 8 | static_cast<uint32_t>(c->next_packet_tosend) << 16;
}
inline uint64_t taken_word(const Lane* c) {
    const SlotCounts* counts = c->ring.counts;
    return uint64_t{counts[kLong].taken()} << 32 | counts[kShort].taken();
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
    SlotCounts* counts = c->ring.counts;
    counts[kind].sent();
    set_next_line(c);
    for (unsigned each = 0; each < kSlotKinds; ++each) counts[each].report();
    ++c->next_packet_tosend;
    ++adi::counters[MPIP_PROTO_VIA].mc_packets;
}

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
    const VIPX_WRITE write = {
        c->ring.remote + slot_end(kind, position) - bytes - before, c->ring.remote_handle, data, before, last, bytes};
    if (VipxWriteNow(c->vi, &write) != VIP_SUCCESS) [[unlikely]]
        return false;
    count_written(c, kind);
    wake_receiver(c);
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

// Writes a whole message into a slot that is free, without a buffer. False: not now; nothing is changed.
bool write_eager_now(Lane* c, const void* data, size_t bytes, int src_lrank, int tag,
                     uint64_t context, int mode) {
    constexpr size_t kInOneLine = kSlotLine - sizeof(EagerWords);
    const size_t length = bytes + sizeof(EagerInSlot);
    const auto* from = static_cast<const char*>(data);
    if (bytes <= kInOneLine) [[likely]] {
        static_assert(kInOneLine == 2 * sizeof(uint64_t));
        alignas(kSlotLine) uint64_t line[kLineWords];
        const uint32_t position = c->ring.counts[kShort].next();
        load_two_words(from, bytes, line);
        return write_with_end(c, data, 0, line, kLineWords, kShort, position,
                              eager_words(c, position, length, src_lrank, tag, context, mode).word);
    }
    const SlotKind kind = slot_kind_for(length);
    const uint32_t position = c->ring.counts[kind].next();
    return write_data_and_end(c, from, bytes, length, kind, position,
                              eager_words(c, position, length, src_lrank, tag, context, mode).word);
}

// The same by a descriptor, the data at the beginning of the vbuf. Header and end are made of whole words, as the NIC
// reads them (see set_form).
void post_eager_to_ring(Lane* c, vbuf* v, size_t bytes, int src_lrank, int tag, uint64_t context, int mode) {
    const size_t length = bytes + sizeof(EagerInSlot);
    const size_t whole = slot_bytes_for(length);
    const SlotKind kind = slot_kind_for(length);
    const uint32_t position = c->ring.counts[kind].next();
    const EagerWords all = eager_words(c, position, length, src_lrank, tag, context, mode);
    Le64* const end = reinterpret_cast<Le64*>(v->buffer + whole);
    for (size_t i = 0; i < std::size(all.word); ++i) (end - std::size(all.word))[i] = all.word[i];
    count_written(c, kind);
    vbuf_init_rdma(v, VIP_CONTROL_OP_RDMAWRITE, c->ring.remote + slot_end(kind, position) - whole,
                   c->ring.remote_handle, v->buffer, v->handle, static_cast<uint32_t>(whole));
    hand_to_nic(c, v, &v->desc);
    wake_receiver(c);
}

}  // namespace

bool write_r3_now(Lane* c, const void* data, size_t bytes, reqaddr_t receive, uint32_t at) {
    const size_t length = bytes + sizeof(Data);
    const SlotKind kind = slot_kind_for(length);
    const uint32_t position = c->ring.counts[kind].next();
    // Header, name of the receive and place in the message; then what ends a packet.
    const uint64_t tail[] = {first_word(c, PacketType::data, 0), receive << 32 | c->nic.me,
                             uint64_t{at} << 32 | receive >> 32, taken_word(c),
                             end_word(position, length, sizeof(Data))};
    static_assert(sizeof tail == sizeof(Data) + sizeof(SlotEnd) && offsetof(Data, rreq) == 12 &&
                  offsetof(Data, at) == 20);
    return write_data_and_end(c, static_cast<const char*>(data), bytes, length, kind, position, tail);
}

bool Lane::put_eager(const void* data, size_t bytes, int tag, int rank, uint64_t context, int mode) {
    if (bytes <= nic.rings.most_written && uses_ring(this)) [[likely]] {
        if (!has_free_slot(this, bytes + sizeof(EagerInSlot))) return false;
        if (write_eager_now(this, data, bytes, rank, tag, context, mode)) [[likely]]
            return true;
    }
    return send_eager_packet({data}, bytes, tag, rank, context, mode, true);
}

// Sends through a buffer, unless the data can be written into a slot directly. `tried`: that has failed already.
bool Lane::send_eager_packet(const protocol::Payload& payload, size_t bytes, int tag, int rank, uint64_t context,
                             int mode, bool tried) {
    const bool slot = uses_ring(this);
    if (slot) {
        const char* data = payload.contiguous();
        if (!has_free_slot(this, bytes + sizeof(EagerInSlot))) return false;
        if (!tried && (data != nullptr || bytes == 0) && bytes <= nic.rings.most_written &&
            write_eager_now(this, data, bytes, rank, tag, context, mode)) {
            in_parts = false;
            return true;
        }
        if (bytes > kMostInSlot - sizeof(EagerInSlot)) {
            in_parts = true;
            enter_flow_list(this);
            return false;
        }
    } else if (bytes > MAX_DATA_SIZE || bytes > nic.eager_limit || !credits.eager_ok(1)) {
        return false;
    }
    if (!has_place(this)) return false;
    vbuf* v = get_vbuf_or_defer(this);
    if (v == nullptr) return false;
    if (slot) {
        payload.copy(v->buffer, bytes);
        post_eager_to_ring(this, v, bytes, rank, tag, context, mode);
        return true;
    }
    Eager* p = packet_of<Eager>(v);
    p->header.type = PacketType::eager;
    p->header.flags = static_cast<uint8_t>(mode & MPIP_MODE_READY);
    p->context = context;
    p->tag = static_cast<uint32_t>(tag);
    p->rank = static_cast<uint32_t>(rank);
    payload.copy(v->buffer + sizeof(Eager), bytes);
    vbuf_init_sendrecv(v, sizeof(Eager) + bytes);
    post_with_credit(this, v);
    return true;
}

}  // namespace viaduct::via
