// SPDX-License-Identifier: BSD-2-Clause
// Which of the hosts that share a port a frame is for. The hosts have one Ethernet address and a range of
// link ids each, so most frames say it themselves. Requests do not: they go to the host with a filter for
// them, and their copies to the same one. Pure state: no port, no host memory, time is an argument.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "providers/wire/format.hpp"
#include "viaduct/types.hpp"

namespace viaduct::acenic {

// Link indices come in places: 1..63, since indices below kLinksPerPlace are nobody's. A host is known by its
// first place.
inline constexpr uint32_t kPlaces = 63;
inline constexpr uint32_t kLinksPerPlace = 1024;
inline constexpr uint32_t kPlacesAtEase = 4;  // what a host gets while there are many
// So many hosts there are always places for, however many have come at ease.
inline constexpr uint32_t kHosts = (kPlaces + 1) / 2 / kPlacesAtEase + kPlaces / 2;
inline constexpr uint32_t kNobody = 0;

// What a host wants to hear of.
struct Wish {
    uint32_t index = 0;  // the host's name for it
    bool peer = false;
    uint32_t link = 0;  // peer to peer: its own
    EndAddress local, remote;
};

// One connection of a host that is to be ended for it.
struct Orphan {
    NicAddress peer;
    uint32_t peer_link = 0, own_link = 0;
    uint32_t sequence = 0;  // the peer expects next
    uint64_t pass = 0;      // of the own link
};

// A request as it came.
struct Held {
    std::vector<std::byte> frame;
    NicAddress from;
};

class Steering {
public:
    struct Target {
        uint32_t slot = kNobody;
        // Nobody wants it: what to answer, if anything, to whom it came from.
        wire::Kind answer{};
        uint64_t nonce = 0;
    };

    // ---- hosts
    // The place of a new host and how many links it may have; kNobody: all places are taken.
    uint32_t admit(uint32_t* links);
    void join(uint32_t slot) { alive_[slot] = true; }  // it takes frames from now on
    // The host is gone: its filters and matches with it; `out` gets its connections.
    void drop(uint32_t slot, std::vector<Orphan>* out);
    // Whose link that is; kNobody: no host's.
    uint32_t slot_of(uint32_t link) const { return owner_[(link & 0xFFFF) / kLinksPerPlace]; }
    static constexpr uint32_t first_link(uint32_t slot) { return slot * kLinksPerPlace; }

    // ---- what hosts say
    // A request that has come within the last moments and found nobody is in `held` afterwards.
    void add(uint32_t slot, const Wish&, int64_t now, Held* held);
    // forget: what has matched it is for another.
    void remove(uint32_t slot, uint32_t index, bool forget);

    // ---- frames. `frame` begins with the header of the wire format.
    // From the wire, or from a host to our own address.
    Target incoming(std::span<const std::byte> frame, const NicAddress& from, int64_t now);
    // May the host of that slot send this? Learns its connections by it.
    bool outgoing(uint32_t slot, std::span<const std::byte> frame, const NicAddress& to);

    size_t wishes() const;
    size_t matches() const { return matches_.size(); }

private:
    struct Attempt {  // names a request
        NicAddress from;
        uint32_t source = 0;
        uint64_t nonce = 0;
        bool operator==(const Attempt&) const = default;
    };
    struct AttemptHash {
        size_t operator()(const Attempt& a) const { return a.nonce ^ (uint64_t{a.source} << 32); }
    };
    struct Match {
        uint32_t slot = 0;
        uint64_t serial = 0;  // of the filter
        int64_t heard = 0;
    };
    struct Listener {
        uint32_t slot = 0;
        Wish wish;
        uint64_t serial = 0;
        bool taken = false;  // peer to peer: somebody has matched it
        int64_t used = 0;
    };
    struct Filed {  // where a host's wish is, or was until a request has used it up
        std::string key;
        uint64_t serial = 0;
    };
    using Listeners = std::vector<Listener>;  // oldest first
    struct Known {
        uint32_t own = 0, peer = 0;  // link ids; own 0: none; peer 0: not yet
        uint32_t sequence = 0;
        uint64_t pass = 0;
        NicAddress to;
    };

    Target request(const wire::Frame&, std::span<const std::byte> bytes, const NicAddress& from, int64_t now);
    Target withdrawal(const NicAddress& from, uint64_t nonce);
    Listener* find(const wire::Connect&, bool peer, uint32_t source);
    struct Waiting {  // a request that found nobody
        std::string key;
        uint64_t nonce = 0;
        int64_t since = 0;
        Held request;
    };
    void hold(const std::string& key, uint64_t nonce, std::span<const std::byte> frame, const NicAddress& from,
              int64_t now);
    void take_out(const std::string& key, uint64_t serial);
    static std::string key_of(bool peer, const EndAddress& local);
    void expire(int64_t now);

    // By what they listen at, so that those of one host do not slow down the requests to others.
    std::unordered_map<std::string, Listeners> wishes_;
    std::array<std::unordered_map<uint32_t, Filed>, kPlaces + 1> filed_;  // by the host's own index
    uint64_t next_serial_ = 1;
    std::unordered_map<Attempt, Match, AttemptHash> matches_;
    std::deque<Waiting> waiting_;  // oldest first
    std::array<std::vector<Known>, kPlaces + 1> known_;
    std::array<uint32_t, kPlaces + 1> owner_{};  // of each place
    std::array<uint32_t, kPlaces + 1> links_{};  // of each host
    std::array<bool, kPlaces + 1> alive_{};
    int64_t expired_at_ = 0;
};

}  // namespace viaduct::acenic
