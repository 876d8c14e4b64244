// SPDX-License-Identifier: BSD-2-Clause
// Which of the programs that share an address a request is for. Requests name no link yet: they go to the program that
// waits for them, and their copies to the same one. If the requester's user is known, they go to programs of that user
// and of root only. Pure state: no port, no memory of others, time is an argument. Used by viaduct-udpd and by the
// engine process of acenic, which names no users.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/fair/places.hpp"
#include "providers/wire/format.hpp"
#include "viaduct/types.hpp"

namespace viaduct::packet {

inline constexpr uint32_t kNoSlot = 0;

// The requests that a program waits for.
struct RequestFilter {
    uint32_t index = 0;  // the program's name for it
    bool peer = false;
    uint32_t link = 0;  // peer to peer: its own
    EndAddress local, remote;
    NicAddress source{};  // where the program's own frames come from; zero: all have the address of the port
    uid_t user = 0;       // of the program; programs of root get requests of all users
    bool every = false;   // client/server: each request matches until the filter is removed; else the first one only
};

// A request as it came.
struct Held {
    std::vector<std::byte> frame;
    NicAddress from;
};

// The user of the requester. Nothing: the request comes from another host, or its user is not known.
using Requester = std::optional<uid_t>;

struct Target {
    uint32_t slot = kNoSlot;
    // No program takes it: what to answer to its sender, if anything.
    wire::Kind answer{};
    uint64_t nonce = 0;
};

class Requests {
public:
    // ports: addresses are IPv4 and port, and a requester names its host's port (wire::named_host). own_user: each
    // other user's programs have a fair share of the matches that are kept.
    explicit Requests(bool ports, uid_t own_user = 0);

    // ---- what programs say; a program is a number that is not kNoSlot
    // A request that has come within the last moments and found no waiter is in `held` afterwards.
    void add(uint32_t slot, const RequestFilter&, int64_t now, Held* held);
    // release_matches: a request that has matched it goes to another program.
    void remove(uint32_t slot, uint32_t index, bool release_matches);
    void drop(uint32_t slot);
    // The program was given this request and gives it back: the next copy finds another program, or none.
    void pass_on(uint32_t slot, const NicAddress& from, uint32_t source, uint64_t nonce);

    // ---- request, peer_request and withdraw, as they came. Only what has a good check decides anything.
    Target incoming(std::span<const std::byte> frame, const NicAddress& from, int64_t now, Requester = {});

    size_t count_filters() const;
    // Filters that programs have added and not removed, those that a request has used up too: in all, and of one
    // program.
    size_t count_places() const { return place_count_; }
    size_t count_places_of(uint32_t slot) const;
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
        uid_t user = 0;       // of the program
        uint64_t serial = 0;  // of the filter
        int64_t received_at = 0;
    };
    // Filters without a match come first, in the order in which they were added. Filters that a match does not use up
    // follow after it, in the order of their matches.
    struct Rank {
        int64_t matched_at = -1;
        uint64_t serial = 0;
        auto operator<=>(const Rank&) const = default;
    };
    struct Listener {
        uint32_t slot = 0;
        RequestFilter filter;
    };
    struct FilterPlace {  // where a filter is, or was until a request has used it up
        std::string key;
        uid_t user = 0;
        Rank rank;
    };
    // A program may have many at one discriminator; each is found and taken out without a look at the others.
    using Listeners = std::map<Rank, Listener>;
    using Ranked = Listeners::value_type;
    using ListenersOfUsers = std::map<uid_t, Listeners>;  // users without any are not kept

    struct Waiting {  // a request that found no waiter
        std::string key;
        Requester requester;
        uint64_t nonce = 0;
        int64_t since = 0;
        Held request;
    };

    Target request(const wire::Frame&, std::span<const std::byte> bytes, const NicAddress& from, int64_t now,
                   Requester);
    Target withdrawal(const NicAddress& from, uint64_t nonce);
    const Ranked* find(const wire::Connect&, bool peer, const NicAddress& from, uint32_t source, Requester) const;
    static const Ranked* first(const Listeners&, const NicAddress& from, uint32_t source);
    void note_match(FilterPlace&, int64_t now);
    void hold(const std::string& key, Requester, uint64_t nonce, std::span<const std::byte> frame,
              const NicAddress& from, int64_t now);
    void erase_one_waiting();
    void take_out(const FilterPlace&);
    static std::string key_of(bool peer, const EndAddress& local, const EndAddress& remote);
    void expire(int64_t now);
    template <class Which>
    void erase_matches(Which);

    const bool ports_;
    // By what they listen at, so that those of one program do not slow down the requests to others.
    std::unordered_map<std::string, ListenersOfUsers> filters_;
    // By program and its own index.
    std::unordered_map<uint32_t, std::unordered_map<uint32_t, FilterPlace>> filter_places_;
    size_t place_count_ = 0;
    uint64_t next_serial_ = 1;
    std::unordered_map<Attempt, Match, AttemptHash> matches_;
    fair::Places match_places_;
    std::deque<Waiting> waiting_;  // oldest first
    int64_t expired_at_ = 0;
};

inline constexpr uint32_t kNoMatchBytes = wire::kHeaderBytes + wire::kAnswerBytes;
// The answer to a request that no program waits for. False: none, since programs that share an address have no key
// to tag it with.
bool make_no_match(std::span<const std::byte> request, uint64_t nonce, std::byte* to);

}  // namespace viaduct::packet
