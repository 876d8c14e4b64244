// SPDX-License-Identifier: BSD-2-Clause
// Which of the hosts that share a port a frame is for. The hosts have one Ethernet address and a range of link ids
// each, so most frames name their host. Requests do not: they go to the host with a filter for them, and their copies
// to the same one. Pure state: no port, no host memory, time is an argument.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "providers/packet/requests.hpp"
#include "providers/wire/format.hpp"
#include "viaduct/types.hpp"

namespace viaduct::acenic {

// Link indices come in places: 1..63, since indices below kLinksPerPlace belong to no host. A host is named by its
// first place.
inline constexpr uint32_t kPlaces = 63;
inline constexpr uint32_t kLinksPerPlace = 1024;
inline constexpr uint32_t kPlacesAtEase = 4;  // what a host gets while there are many
// So many hosts there are always places for, however many have come at ease.
inline constexpr uint32_t kHosts = (kPlaces + 1) / 2 / kPlacesAtEase + kPlaces / 2;
using packet::Held;
using packet::kNoSlot;
using packet::RequestFilter;
using packet::Target;

// One connection of a host that is to be ended for it.
struct EndedLink {
    NicAddress peer;
    uint32_t peer_link = 0, own_link = 0;
    uint32_t sequence = 0;  // the peer expects next
    uint64_t pass = 0;      // of the own link
};

class Steering {
public:
    // ---- hosts
    // The place of a new host and how many links it may have; kNoSlot: all places are taken.
    uint32_t admit(uint32_t* links);
    void join(uint32_t slot) { alive_[slot] = true; }  // it takes frames from now on
    // The host has left: its filters and matches are removed; `out` gets its connections.
    void drop(uint32_t slot, std::vector<EndedLink>* out);
    // Whose link that is; kNoSlot: no host's.
    uint32_t slot_of(uint32_t link) const { return owner_[(link & 0xFFFF) / kLinksPerPlace]; }
    static constexpr uint32_t first_link(uint32_t slot) { return slot * kLinksPerPlace; }

    // ---- what hosts say
    // A request that has come within the last moments and found no waiter is in `held` afterwards.
    void add(uint32_t slot, const RequestFilter& filter, int64_t now, Held* held) {
        requests_.add(slot, filter, now, held);
    }
    // release_matches: a request that has matched it goes to another program.
    void remove(uint32_t slot, uint32_t index, bool release_matches) { requests_.remove(slot, index, release_matches); }

    // ---- frames. `frame` begins with the header of the wire format.
    // From the wire, or from a host to our own address.
    Target incoming(std::span<const std::byte> frame, const NicAddress& from, int64_t now);
    // Whether the host of that slot may send this. Notes its connections by it.
    bool outgoing(uint32_t slot, std::span<const std::byte> frame, const NicAddress& to);

    size_t count_filters() const { return requests_.count_filters(); }
    size_t matches() const { return requests_.matches(); }

private:
    struct Known {
        uint32_t own = 0, peer = 0;  // link ids; own 0: none; peer 0: not yet
        uint32_t sequence = 0;
        uint64_t pass = 0;
        NicAddress to;
    };

    packet::Requests requests_{false};
    std::array<std::vector<Known>, kPlaces + 1> known_;
    std::array<uint32_t, kPlaces + 1> owner_{};  // of each place
    std::array<uint32_t, kPlaces + 1> links_{};  // of each host
    std::array<bool, kPlaces + 1> alive_{};
};

}  // namespace viaduct::acenic
