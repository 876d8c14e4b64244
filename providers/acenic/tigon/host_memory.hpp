// SPDX-License-Identifier: BSD-2-Clause
// The layout of the segment that a program (the host) shares with the engine process (the NIC) in shared mode
// (docs/acenic-shared.md, spec/tigon b.4, b.12). Window and filter table have fixed places. The NIC finds all else by
// the general information block, as the Tigon chip does, so only the host computes these offsets. Constants and pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/fault/fault_plan.hpp"
#include "providers/acenic/tigon/interface.hpp"
#include "viaduct/types.hpp"

namespace viaduct::acenic::tigon {

inline constexpr uint32_t kFilters = 4096;  // as many as the index in a command can address

// Connection requests that the program waits for. Written by the host; the NIC reads it once, at command 0x20.
struct FilterEntry {
    enum Kind : uint32_t { request, peer, every_request };  // one request of a client; peer to peer; each of a client
    uint32_t kind = request;
    uint32_t link = 0;  // peer to peer: the host's own link, which must not match itself
    EndAddress local, remote;
};
static_assert(sizeof(FilterEntry) == 152);

// In an entry of the filter table: the fault plan for the frames of one of the host's links.
struct FaultEntry {
    uint32_t link = 0, reserved = 0;
    FaultPlan plan;
    std::byte none[sizeof(FilterEntry) - 8 - sizeof(FaultPlan)] = {};
};
static_assert(sizeof(FaultEntry) == sizeof(FilterEntry));

struct Layout {
    uint32_t send_room = 0;  // of each send and jumbo buffer
    bool jumbo = false;      // frames above kStandardFrame exist
    size_t info = 0, second_statistics = 0;
    size_t event_producer = 0, return_producer = 0, send_consumer = 0;
    size_t event = 0, send = 0, standard = 0, jumbo_ring = 0, receive_return = 0;
    size_t send_buffers = 0, standard_buffers = 0, jumbo_buffers = 0;
    size_t bytes = 0;
};

inline constexpr size_t kFilterTable = sizeof(Window);

// For frames of at most `largest` bytes, Ethernet header included.
constexpr Layout layout_for(uint32_t largest) {
    Layout l;
    l.jumbo = largest > kStandardFrame;
    l.send_room = l.jumbo ? (largest + 4095) / 4096 * 4096 : kStandardRoom;
    size_t at = kFilterTable + sizeof(FilterEntry) * kFilters;
    const auto take = [&at](size_t bytes, size_t alignment) {
        at = (at + alignment - 1) / alignment * alignment;
        const size_t here = at;
        at += bytes;
        return here;
    };
    l.info = take(sizeof(GeneralInformation), 64);
    l.second_statistics = take(4 * kStatisticsWords, 64);
    l.event_producer = take(4, 128);  // lines of their own: each is polled by the host
    l.return_producer = take(4, 128);
    l.send_consumer = take(4, 128);
    l.event = take(sizeof(Event) * kEventRing, 128);
    l.send = take(sizeof(SendDescriptor) * kSendRing, 64);
    l.standard = take(sizeof(ReceiveDescriptor) * kStandardRing, 64);
    l.jumbo_ring = take(sizeof(ReceiveDescriptor) * kJumboRing, 64);
    l.receive_return = take(sizeof(ReceiveDescriptor) * kReturnRing, 64);
    l.send_buffers = take(size_t{l.send_room} * kSendRing, 4096);
    l.standard_buffers = take(size_t{kStandardRoom} * kStandardRing, 4096);
    l.jumbo_buffers = take(l.jumbo ? size_t{l.send_room} * kJumboRing : 0, 4096);
    l.bytes = (at + 4095) / 4096 * 4096;
    return l;
}

}  // namespace viaduct::acenic::tigon
