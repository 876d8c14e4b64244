// SPDX-License-Identifier: BSD-2-Clause
// Registered buffers with their descriptors behind them (spec/adi 4, C16, C42): all packets are copied
// through them, so that short messages need no registration, and every descriptor lives in one, also those of
// remote writes and reads. Used under the engine's lock.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "mpi-adi/transport/protocol/transfer.hpp"
#include "mpi-adi/transport/via/wire.hpp"

namespace viaduct::via {

class Lane;
class Nic;
class VbufPool;

constexpr size_t kVbufBytes = 16 * 1024;
constexpr size_t VBUF_BUFFER_SIZE = kVbufBytes - sizeof(VIP_DESCRIPTOR);
// C34: what one packet carries of a message.
constexpr size_t MAX_DATA_SIZE = VBUF_BUFFER_SIZE - sizeof(Eager);
static_assert(MAX_DATA_SIZE == 16 * 1024 - 64 - sizeof(Eager));

// Exactly one owns a vbuf at a time.
enum class Owner : uint8_t { free, receive_queue, send_queue, handler };

// The design's vbuf, 16 KiB, with two lines in front for what this side notes about it: they also keep the
// first lines of neighbouring buffers from falling into the same sets of the cache.
struct vbuf {
    vbuf* next;
    Lane* connection;
    protocol::Transfer* transfer;  // send queue: whose last piece this is
    VIP_MEM_HANDLE handle;
    Owner owner;
    VbufPool* pool;
    alignas(128) char buffer[VBUF_BUFFER_SIZE];
    VIP_DESCRIPTOR desc;
};
static_assert(offsetof(vbuf, buffer) == 128);
static_assert(sizeof(vbuf) == 128 + kVbufBytes);
static_assert(offsetof(vbuf, desc) % VIP_DESCRIPTOR_ALIGNMENT == 0);

inline vbuf* vbuf_of(VIP_DESCRIPTOR* desc) {
    return reinterpret_cast<vbuf*>(reinterpret_cast<char*>(desc) - offsetof(vbuf, desc));
}

// A remote write or read of many pieces has a longer descriptor. It lies where packets have their data, which
// its address tells from others.
inline VIP_DESCRIPTOR* long_descriptor_of(vbuf* v) { return reinterpret_cast<VIP_DESCRIPTOR*>(v->buffer); }
static_assert(offsetof(vbuf, desc) % alignof(vbuf) != 0 && offsetof(vbuf, buffer) % alignof(vbuf) == 0);
constexpr size_t kMostSegments =
    (VBUF_BUFFER_SIZE - sizeof(VIP_CONTROL_SEGMENT)) / sizeof(VIP_DESCRIPTOR_SEGMENT);

// The same for what comes back from a send queue.
inline vbuf* vbuf_of_sent(VIP_DESCRIPTOR* desc) {
    if (reinterpret_cast<uintptr_t>(desc) % alignof(vbuf) != 0) [[likely]]
        return vbuf_of(desc);
    return reinterpret_cast<vbuf*>(reinterpret_cast<char*>(desc) - offsetof(vbuf, buffer));
}

template <class Packet>
Packet* packet_of(vbuf* v) {
    return reinterpret_cast<Packet*>(v->buffer);
}

// The buffers of one NIC.
class VbufPool {
public:
    explicit VbufPool(Nic& nic) : nic_(nic) {}

    // Another `count` of them in one registered region; false when memory, registrations or CMPI_VBUF_MAX are
    // used up.
    [[nodiscard]] bool grow(size_t count);
    // Deregisters and frees all. None may be posted.
    void free_all();
    // nullptr when there is none to be had.
    vbuf* get() {
        vbuf* v = free_head_;
        if (v == nullptr) [[unlikely]]
            return get_slowly();
        free_head_ = v->next;
        v->owner = Owner::handler;
        return v;
    }
    void put(vbuf* v) {
        v->owner = Owner::free;
        v->next = free_head_;
        free_head_ = v;
    }
    bool empty() const { return free_head_ == nullptr; }
    size_t total() const { return total_; }

private:
    vbuf* get_slowly();  // collects finished sends, then lets the pool grow

    struct Region {
        void* memory;
        size_t bytes;
        VIP_MEM_HANDLE handle;
    };
    Nic& nic_;
    vbuf* free_head_ = nullptr;  // a stack: the one used last is still in the cache
    size_t total_ = 0;
    std::vector<Region> regions_;
};

inline void release_vbuf(vbuf* v) { v->pool->put(v); }

// Descriptors: a packet of `len` bytes to send; a whole buffer to receive into; a remote write or read.
// Count and control in one store: the NIC reads them so, and a load that needs two stores waits for both, and
// for all that were made before.
inline void set_form(VIP_DESCRIPTOR* d, unsigned segments, unsigned control) {
    const VIP_UINT16 form[2] = {static_cast<VIP_UINT16>(segments), static_cast<VIP_UINT16>(control)};
    static_assert(offsetof(VIP_CONTROL_SEGMENT, Control) == offsetof(VIP_CONTROL_SEGMENT, SegCount) + 2);
    uint32_t both;
    std::memcpy(&both, form, sizeof both);
    std::memcpy(&d->CS.SegCount, &both, sizeof both);
}

inline void vbuf_init_sendrecv(vbuf* v, unsigned long len) {
    VIP_DESCRIPTOR& d = v->desc;
    set_form(&d, 1, VIP_CONTROL_OP_SENDRECV);
    d.CS.Reserved = 0;
    d.CS.Length = static_cast<VIP_UINT32>(len);
    d.CS.Status = 0;
    d.DS[0].Local.Data.Address = v->buffer;
    d.DS[0].Local.Handle = v->handle;
    d.DS[0].Local.Length = static_cast<VIP_UINT32>(len);
    v->transfer = nullptr;
}

inline void vbuf_init_rdma(vbuf* v, unsigned control, uint64_t remote, VIP_MEM_HANDLE remote_handle,
                           void* local, VIP_MEM_HANDLE local_handle, uint32_t len) {
    VIP_DESCRIPTOR& d = v->desc;
    set_form(&d, 2, control);
    d.CS.Reserved = 0;
    d.CS.Length = len;
    d.CS.Status = 0;
    d.DS[0].Remote.Data.AddressBits = remote;
    d.DS[0].Remote.Handle = remote_handle;
    d.DS[0].Remote.Reserved = 0;
    d.DS[1].Local.Data.Address = local;
    d.DS[1].Local.Handle = local_handle;
    d.DS[1].Local.Length = len;
    v->transfer = nullptr;
}

// An atomic operation: its operands lie in the buffer, where the old word comes back.
inline void vbuf_init_change(vbuf* v, const mpip_change& change, VIP_MEM_HANDLE remote_handle) {
    const auto put = [&](size_t at, uint64_t value) {
        const auto narrow = static_cast<uint32_t>(value);
        change.ch_bytes == 4 ? std::memcpy(v->buffer + at, &narrow, 4) : std::memcpy(v->buffer + at, &value, 8);
    };
    put(0, change.ch_operand);
    if (change.ch_swaps != 0) put(change.ch_bytes, change.ch_expected);
    vbuf_init_rdma(v, change.ch_swaps != 0 ? VIPX_CONTROL_OP_COMPARE_SWAP : VIPX_CONTROL_OP_FETCH_ADD,
                   change.ch_address, remote_handle, v->buffer, v->handle,
                   change.ch_swaps != 0 ? 2 * change.ch_bytes : change.ch_bytes);
}

// Fills the long descriptor of a vbuf for one remote write or read between both positions, of at most `most` bytes and
// `segments` segments, the one of the address included. How many bytes it moves.
uint32_t vbuf_init_pieces(vbuf* v, unsigned control, const protocol::PieceList& near, const protocol::PieceList& far,
                          size_t most, size_t segments, size_t nic);

}  // namespace viaduct::via
