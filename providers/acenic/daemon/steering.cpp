// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/daemon/steering.hpp"

#include <algorithm>

#include "providers/wire/bytes.hpp"

namespace viaduct::acenic {

using wire::Kind;

namespace {

// A requester repeats itself every 100 ms; who has been silent for so long has given up or is connected.
constexpr int64_t kForget = 5'000'000'000;
constexpr size_t kMostMatches = 8192;
// A request that found nobody is kept for a host that comes to wait for it; not so long that its sender may
// have believed the answer that nobody does (wire::Tuning::no_match_grace).
constexpr int64_t kHold = 80'000'000;
constexpr size_t kMostHeld = 64;

struct Glance {  // what every frame says, without its check
    Kind kind{};
    uint32_t destination = 0, source = 0, sequence = 0;
};

bool glance(std::span<const std::byte> frame, Glance* out) {
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

std::string Steering::key_of(bool peer, const EndAddress& local) {
    std::string key(1, peer ? 'p' : 'c');
    return key.append(reinterpret_cast<const char*>(local.discriminator), local.discriminator_len);
}

uint32_t Steering::admit(uint32_t* links) {
    uint32_t free = 0;
    for (uint32_t place = 1; place <= kPlaces; ++place) free += owner_[place] == kNobody;
    for (const uint32_t wanted : {free > kPlaces / 2 ? kPlacesAtEase : 1, 1u}) {
        for (uint32_t first = 1; first + wanted <= kPlaces + 1; ++first) {
            const auto begin = owner_.begin() + first;
            if (!std::all_of(begin, begin + wanted, [](uint32_t owner) { return owner == kNobody; }))
                continue;
            std::fill(begin, begin + wanted, first);
            *links = links_[first] = wanted * kLinksPerPlace;
            return first;
        }
    }
    return kNobody;
}

void Steering::drop(uint32_t slot, std::vector<Orphan>* out) {
    alive_[slot] = false;
    while (!filed_[slot].empty()) remove(slot, filed_[slot].begin()->first, false);
    std::erase_if(matches_, [&](const auto& m) { return m.second.slot == slot; });
    for (const Known& k : known_[slot])
        if (k.own != 0 && k.peer != 0) out->push_back({k.to, k.peer, k.own, k.sequence, k.pass});
    known_[slot].clear();
    std::replace(owner_.begin(), owner_.end(), slot, kNobody);
}

void Steering::add(uint32_t slot, const Wish& wish, int64_t now, Held* held) {
    held->frame.clear();
    remove(slot, wish.index, false);
    const std::string key = key_of(wish.peer, wish.local);
    filed_[slot][wish.index] = {key, next_serial_};
    wishes_[key].push_back({slot, wish, next_serial_++, false, 0});
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const Waiting& w) { return w.key == key && now - w.since <= kHold; });
    if (found == waiting_.end()) return;
    *held = std::move(found->request);
    waiting_.erase(found);
}

void Steering::hold(const std::string& key, uint64_t nonce, std::span<const std::byte> frame, const NicAddress& from,
                    int64_t now) {
    for (const Waiting& w : waiting_)
        if (w.nonce == nonce && w.request.from == from) return;  // a copy
    std::erase_if(waiting_, [&](const Waiting& w) { return now - w.since > kForget; });
    if (waiting_.size() == kMostHeld) waiting_.pop_front();
    waiting_.push_back({key, nonce, now, {{frame.begin(), frame.end()}, from}});
}

void Steering::remove(uint32_t slot, uint32_t index, bool forget) {
    const auto filed = filed_[slot].find(index);
    if (filed == filed_[slot].end()) return;
    const uint64_t serial = filed->second.serial;
    take_out(filed->second.key, serial);
    filed_[slot].erase(filed);
    if (forget) std::erase_if(matches_, [&](const auto& m) { return m.second.serial == serial; });
}

void Steering::take_out(const std::string& key, uint64_t serial) {
    const auto listeners = wishes_.find(key);
    if (listeners == wishes_.end()) return;
    std::erase_if(listeners->second, [&](const Listener& l) { return l.serial == serial; });
    if (listeners->second.empty()) wishes_.erase(listeners);
}

size_t Steering::wishes() const {
    size_t n = 0;
    for (const auto& [key, listeners] : wishes_) n += listeners.size();
    return n;
}

// ---- requests

Steering::Listener* Steering::find(const wire::Connect& c, bool peer, uint32_t source) {
    const auto listeners = wishes_.find(key_of(peer, c.remote));
    if (listeners == wishes_.end()) return nullptr;
    if (!peer) return &listeners->second.front();
    Listener* best = nullptr;
    for (Listener& l : listeners->second) {
        if (!(l.wish.remote == c.local) || l.wish.link == source) continue;
        // Who waits alone first; among those that have been found already, the one longest ago.
        const bool better =
            best == nullptr || (best->taken && !l.taken) || (best->taken && l.taken && l.used < best->used);
        if (better) best = &l;
    }
    return best;
}

Steering::Target Steering::request(const wire::Frame& f, std::span<const std::byte> bytes,
                                   const NicAddress& from, int64_t now) {
    wire::Connect c;
    if (wire::read_connect(f, &c) != wire::Flaw::none || c.nonce == 0) return {};
    c.local.host = from;
    const Attempt attempt{from, f.header.source, c.nonce};
    if (const auto known = matches_.find(attempt); known != matches_.end()) {
        known->second.heard = now;
        return {known->second.slot, {}, 0};
    }
    const bool peer = f.header.kind == Kind::peer_request;
    Listener* found = find(c, peer, f.header.source);
    // A peer's request comes again until somebody wants it; a client is told.
    if (found == nullptr && !peer) hold(key_of(peer, c.remote), c.nonce, bytes, from, now);
    if (found == nullptr) return {kNobody, peer ? Kind{} : Kind::no_match, c.nonce};
    const Match match{found->slot, found->serial, now};
    if (peer) {
        found->taken = true;
        found->used = now;
    } else {
        take_out(filed_[found->slot][found->wish.index].key, found->serial);  // used up by one request
    }
    if (matches_.size() >= kMostMatches) expire(now);
    if (matches_.size() < kMostMatches) matches_[attempt] = match;
    return {match.slot, {}, 0};
}

// A requester waits no longer: the host that has its request hears of it.
Steering::Target Steering::withdrawal(const NicAddress& from, uint64_t nonce) {
    std::erase_if(waiting_, [&](const Waiting& w) { return w.nonce == nonce && w.request.from == from; });
    for (const auto& [attempt, match] : matches_)
        if (attempt.nonce == nonce && attempt.from == from) return {match.slot, {}, 0};
    return {};
}

void Steering::expire(int64_t now) {
    std::erase_if(matches_, [&](const auto& m) { return now - m.second.heard > kForget; });
    expired_at_ = now;
}

// ---- frames

Steering::Target Steering::incoming(std::span<const std::byte> frame, const NicAddress& from, int64_t now) {
    Glance g;
    if (!glance(frame, &g)) return {};
    if (is_request(g.kind)) {
        if (now - expired_at_ > kForget) expire(now);
        wire::Frame f;  // only what has a good check decides anything
        if (wire::read_frame(frame, &f) != wire::Flaw::none) return {};
        return request(f, frame, from, now);
    }
    if (g.kind == Kind::withdraw) {
        wire::Frame f;
        if (wire::read_frame(frame, &f) != wire::Flaw::none) return {};
        return withdrawal(from, wire::read_answer(f).nonce);
    }
    const uint32_t slot = slot_of(g.destination);
    if (slot != kNobody && alive_[slot]) return {slot, {}, 0};
    wire::Frame f;
    if (wire::read_frame(frame, &f) != wire::Flaw::none) return {};
    switch (g.kind) {  // as a node answers for a link it does not have
        case Kind::disconnect:
            return {kNobody, Kind::disconnected, 0};
        case Kind::reset:
        case Kind::disconnected:
        case Kind::reject:
        case Kind::no_match:
        case Kind::pending:
            return {};
        default:
            return {kNobody, Kind::reset, 0};
    }
}

bool Steering::outgoing(uint32_t slot, std::span<const std::byte> frame, const NicAddress& to) {
    Glance g;
    if (!glance(frame, &g) || (to.bytes[0] & 1) != 0) return false;
    switch (g.kind) {
        case Kind::reject:
        case Kind::pending:
            return g.source == 0 || slot_of(g.source) == slot;  // the nonce says whose they are
        case Kind::no_match: {
            // It had a filter for this request and has thought better of it: the next copy finds another
            // host, or nobody.
            wire::Frame f;
            if (wire::read_frame(frame, &f) != wire::Flaw::none) return false;
            const auto match = matches_.find({to, g.destination, wire::read_answer(f).nonce});
            if (match != matches_.end() && match->second.slot == slot) matches_.erase(match);
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
