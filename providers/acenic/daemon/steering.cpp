// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/daemon/steering.hpp"

#include <algorithm>

#include "providers/wire/bytes.hpp"

namespace viaduct::acenic {

using wire::Kind;

namespace {

struct UncheckedHeader {  // what every frame says, without its check
    Kind kind{};
    uint32_t destination = 0, source = 0, sequence = 0;
};

bool read_unchecked_header(std::span<const std::byte> frame, UncheckedHeader* out) {
    if (frame.size() < wire::kHeaderBytes || wire::load8(frame.data()) != wire::kVersion) return false;
    out->kind = static_cast<Kind>(wire::load8(frame.data() + 1));
    out->destination = wire::load32(frame.data() + 4);
    out->source = wire::load32(frame.data() + wire::kSourceAt);
    out->sequence = wire::load32(frame.data() + 12);
    return true;
}

bool is_request(Kind kind) { return kind == Kind::request || kind == Kind::peer_request; }

}  // namespace

// ---- hosts

uint32_t Steering::admit(uint32_t* links) {
    uint32_t free = 0;
    for (uint32_t place = 1; place <= kPlaces; ++place) free += owner_[place] == kNoSlot;
    for (const uint32_t wanted : {free > kPlaces / 2 ? kPlacesAtEase : 1, 1u}) {
        for (uint32_t first = 1; first + wanted <= kPlaces + 1; ++first) {
            const auto begin = owner_.begin() + first;
            if (!std::all_of(begin, begin + wanted, [](uint32_t owner) { return owner == kNoSlot; }))
                continue;
            std::fill(begin, begin + wanted, first);
            *links = links_[first] = wanted * kLinksPerPlace;
            return first;
        }
    }
    return kNoSlot;
}

void Steering::drop(uint32_t slot, std::vector<EndedLink>* out) {
    alive_[slot] = false;
    requests_.drop(slot);
    for (const Known& k : known_[slot])
        if (k.own != 0 && k.peer != 0) out->push_back({k.to, k.peer, k.own, k.sequence, k.pass});
    known_[slot].clear();
    std::replace(owner_.begin(), owner_.end(), slot, kNoSlot);
}

// ---- frames

Target Steering::incoming(std::span<const std::byte> frame, const NicAddress& from, int64_t now) {
    UncheckedHeader g;
    if (!read_unchecked_header(frame, &g)) return {};
    if (is_request(g.kind) || g.kind == Kind::withdraw) return requests_.incoming(frame, from, now);
    const uint32_t slot = slot_of(g.destination);
    if (slot != kNoSlot && alive_[slot]) return {slot, {}, 0};
    wire::Frame f;
    if (wire::read_frame(frame, &f) != wire::Flaw::none) return {};
    switch (g.kind) {  // as a node answers for a link it does not have
        case Kind::disconnect:
            return {kNoSlot, Kind::disconnected, 0};
        case Kind::reset:
        case Kind::disconnected:
        case Kind::reject:
        case Kind::no_match:
        case Kind::pending:
        case Kind::prove:
            return {};
        default:
            return {kNoSlot, Kind::reset, 0};
    }
}

bool Steering::outgoing(uint32_t slot, std::span<const std::byte> frame, const NicAddress& to) {
    UncheckedHeader g;
    if (!read_unchecked_header(frame, &g) || (to.bytes[0] & 1) != 0) return false;
    switch (g.kind) {
        case Kind::reject:
        case Kind::pending:
        case Kind::prove:
            return g.source == 0 || slot_of(g.source) == slot;  // the nonce says whose they are
        case Kind::no_match: {
            // It had a filter for this request and has removed it: the next copy finds another
            // host, or none.
            wire::Frame f;
            if (wire::read_frame(frame, &f) != wire::Flaw::none) return false;
            requests_.pass_on(slot, to, g.destination, wire::read_answer(f).nonce);
            return false;
        }
        default:
            break;
    }
    if (g.kind == Kind::withdraw) return g.source == 0 && g.destination == 0;  // the nonce says whose it is
    if (slot_of(g.source) != slot) return false;
    const bool connects = is_request(g.kind) || g.kind == Kind::accept;
    if (g.destination == 0 && !is_request(g.kind)) return false;
    if (connects && frame.size() < wire::kHeaderBytes + wire::kConnectBytes) return false;
    if (known_[slot].empty()) known_[slot].resize(links_[slot]);
    Known& known = known_[slot][(g.source & 0xFFFF) - first_link(slot)];
    if (g.kind == Kind::disconnect || g.kind == Kind::disconnected || g.kind == Kind::reset) {
        if (known.own == g.source) known.own = 0;
        return true;
    }
    if (known.own != g.source) known = {g.source, 0, 0, 0, to};
    if (connects) known.pass = wire::load64(frame.data() + wire::kHeaderBytes + wire::kConnectPassAt);
    if (g.destination == 0) return true;
    // What the peer expects next, to end the connection in its sequence.
    const uint32_t next = g.sequence + (wire::is_sequenced(g.kind) ? 1 : 0);
    if (known.peer != g.destination || wire::before(known.sequence, next)) known.sequence = next;
    known.peer = g.destination;
    known.to = to;
    return true;
}

}  // namespace viaduct::acenic
