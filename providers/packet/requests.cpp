// SPDX-License-Identifier: BSD-2-Clause
#include "providers/packet/requests.hpp"

#include <algorithm>

#include "core/clock/limits.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/encapsulation.hpp"

namespace viaduct::packet {

using wire::Kind;

namespace {

// Kept for longer, a request would meet a waiter after its sender has accepted the answer that no program waits.
static_assert(unstretched_ns(TimeLimit::packet_no_waiter) < unstretched_ns(TimeLimit::wire_no_match_grace));
constexpr size_t kMostMatches = 8192;
constexpr size_t kMostWaiting = 64;

bool may_meet(Requester requester, uid_t waiter) { return !requester || *requester == waiter || waiter == 0; }

}  // namespace

// Of a client-server filter only the local end counts, of a peer's both: many peers may wait at one discriminator.
std::string Requests::key_of(bool peer, const EndAddress& local, const EndAddress& remote) {
    std::string key(1, peer ? 'p' : 'c');
    const auto append_discriminator = [&key](const EndAddress& end) {
        key.append(reinterpret_cast<const char*>(end.discriminator), end.discriminator_len);
    };
    append_discriminator(local);
    if (!peer) return key;
    key.append(reinterpret_cast<const char*>(&local.discriminator_len), sizeof local.discriminator_len);
    key.append(reinterpret_cast<const char*>(remote.host.bytes), sizeof remote.host.bytes);
    append_discriminator(remote);
    return key;
}

void Requests::add(uint32_t slot, const RequestFilter& filter, int64_t now, Held* held) {
    held->frame.clear();
    remove(slot, filter.index, false);
    const std::string key = key_of(filter.peer, filter.local, filter.remote);
    filter_places_[slot][filter.index] = {key, filter.user, next_serial_};
    ++place_count_;
    filters_[key][filter.user].emplace(next_serial_, Listener{slot, filter, next_serial_, false, 0});
    ++next_serial_;
    const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& w) {
        return w.key == key && may_meet(w.requester, filter.user) &&
               now - w.since <= limit_ns(TimeLimit::packet_no_waiter);
    });
    if (found == waiting_.end()) return;
    *held = std::move(found->request);
    waiting_.erase(found);
}

void Requests::hold(const std::string& key, Requester requester, uint64_t nonce, std::span<const std::byte> frame,
                    const NicAddress& from, int64_t now) {
    for (const Waiting& w : waiting_)
        if (w.nonce == nonce && w.request.from == from) return;  // a copy
    std::erase_if(waiting_, [&](const Waiting& w) { return now - w.since > limit_ns(TimeLimit::packet_request); });
    if (waiting_.size() == kMostWaiting) waiting_.pop_front();
    waiting_.push_back({key, requester, nonce, now, {{frame.begin(), frame.end()}, from}});
}

void Requests::remove(uint32_t slot, uint32_t index, bool release_matches) {
    const auto of_slot = filter_places_.find(slot);
    if (of_slot == filter_places_.end()) return;
    const auto place = of_slot->second.find(index);
    if (place == of_slot->second.end()) return;
    const uint64_t serial = place->second.serial;
    take_out(place->second);
    of_slot->second.erase(place);
    --place_count_;
    if (release_matches) std::erase_if(matches_, [&](const auto& m) { return m.second.serial == serial; });
}

void Requests::take_out(const FilterPlace& place) {
    const auto users = filters_.find(place.key);
    if (users == filters_.end()) return;
    const auto listeners = users->second.find(place.user);
    if (listeners == users->second.end()) return;
    listeners->second.erase(place.serial);
    if (listeners->second.empty()) users->second.erase(listeners);
    if (users->second.empty()) filters_.erase(users);
}

size_t Requests::count_filters() const {
    size_t n = 0;
    for (const auto& [key, users] : filters_)
        for (const auto& [user, listeners] : users) n += listeners.size();
    return n;
}

size_t Requests::count_places_of(uint32_t slot) const {
    const auto of_slot = filter_places_.find(slot);
    return of_slot == filter_places_.end() ? 0 : of_slot->second.size();
}

// ---- requests

// The oldest one of the requester's user, else of all that may meet the requester.
Requests::Listener* Requests::oldest(ListenersOfUsers& users, Requester requester) {
    if (const auto own = requester ? users.find(*requester) : users.end(); own != users.end())
        return &own->second.begin()->second;
    Listener* found = nullptr;
    for (auto& [user, listeners] : users) {
        Listener& l = listeners.begin()->second;
        if (may_meet(requester, user) && (found == nullptr || l.serial < found->serial)) found = &l;
    }
    return found;
}

Requests::Listener* Requests::find(const wire::Connect& c, bool peer, const NicAddress& from, uint32_t source,
                                   Requester requester) {
    const auto users = filters_.find(key_of(peer, c.remote, c.local));
    if (users == filters_.end()) return nullptr;
    if (!peer) return oldest(users->second, requester);
    // A waiter without a match first, the oldest one; among those that were matched, the one matched longest ago.
    const auto is_better = [](const Listener& l, const Listener& than) {
        if (l.taken != than.taken) return !l.taken;
        return l.taken ? l.used < than.used : l.serial < than.serial;
    };
    Listener* best = nullptr;
    for (auto& [user, listeners] : users->second) {
        if (!may_meet(requester, user)) continue;
        for (auto& [serial, l] : listeners) {
            const bool own = l.filter.link == source && (l.filter.source == NicAddress{} || l.filter.source == from);
            if (!(l.filter.remote == c.local) || own) continue;
            if (best == nullptr || is_better(l, *best)) best = &l;
        }
    }
    return best;
}

Target Requests::request(const wire::Frame& f, std::span<const std::byte> bytes, const NicAddress& from, int64_t now,
                         Requester requester) {
    wire::Connect c;
    if (wire::read_connect(f, &c) != wire::Flaw::none || c.nonce == 0) return {};
    c.local.host = ports_ ? wire::named_host(from, c.local.host) : from;
    const Attempt attempt{from, f.header.source, c.nonce};
    if (const auto known = matches_.find(attempt); known != matches_.end()) {
        known->second.received_at = now;
        return {known->second.slot, {}, 0};
    }
    const bool peer = f.header.kind == Kind::peer_request;
    Listener* found = find(c, peer, from, f.header.source, requester);
    // A peer's request comes again until a program takes it; a client is told.
    if (found == nullptr && !peer) hold(key_of(peer, c.remote, c.local), requester, c.nonce, bytes, from, now);
    if (found == nullptr) return {kNoSlot, peer ? Kind{} : Kind::no_match, c.nonce};
    const Match match{found->slot, found->serial, now};
    if (peer) {
        found->taken = true;
        found->used = now;
    } else {
        take_out(filter_places_[found->slot][found->filter.index]);  // used up by one request
    }
    if (matches_.size() >= kMostMatches) expire(now);
    if (matches_.size() < kMostMatches) matches_[attempt] = match;
    return {match.slot, {}, 0};
}

// A requester waits no longer: the program that has its request is told.
Target Requests::withdrawal(const NicAddress& from, uint64_t nonce) {
    std::erase_if(waiting_, [&](const Waiting& w) { return w.nonce == nonce && w.request.from == from; });
    for (const auto& [attempt, match] : matches_)
        if (attempt.nonce == nonce && attempt.from == from) return {match.slot, {}, 0};
    return {};
}

void Requests::expire(int64_t now) {
    std::erase_if(matches_,
                  [&](const auto& m) { return now - m.second.received_at > limit_ns(TimeLimit::packet_request); });
    expired_at_ = now;
}

void Requests::drop(uint32_t slot) {
    if (const auto of_slot = filter_places_.find(slot); of_slot != filter_places_.end()) {
        for (const auto& [index, place] : of_slot->second) take_out(place);
        place_count_ -= of_slot->second.size();
        filter_places_.erase(of_slot);
    }
    std::erase_if(matches_, [&](const auto& m) { return m.second.slot == slot; });
}

void Requests::pass_on(uint32_t slot, const NicAddress& from, uint32_t source, uint64_t nonce) {
    const auto match = matches_.find({from, source, nonce});
    if (match != matches_.end() && match->second.slot == slot) matches_.erase(match);
}

Target Requests::incoming(std::span<const std::byte> frame, const NicAddress& from, int64_t now, Requester requester) {
    if (now - expired_at_ > limit_ns(TimeLimit::packet_request)) expire(now);
    wire::Frame f;
    if (wire::read_frame(frame, &f) != wire::Flaw::none) return {};
    if (f.header.kind == Kind::withdraw) return withdrawal(from, wire::read_answer(f).nonce);
    const bool asks = f.header.kind == Kind::request || f.header.kind == Kind::peer_request;
    return asks ? request(f, frame, from, now, requester) : Target{};
}

bool make_no_match(std::span<const std::byte> request, uint64_t nonce, std::byte* to) {
    if ((wire::load16(request.data() + 2) & wire::kFlagTagged) != 0) return false;
    wire::Header h;
    h.kind = Kind::no_match;
    h.destination = wire::load32(request.data() + wire::kSourceAt);
    h.pass = wire::load64(request.data() + wire::kHeaderBytes + wire::kConnectPassAt);
    h.length = wire::kAnswerBytes;
    wire::write_answer(to + wire::kHeaderBytes, {nonce, 0, static_cast<uint16_t>(request.size())});
    wire::seal(to, h);
    return true;
}

}  // namespace viaduct::packet
