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
constexpr int64_t kExpireAgain = 100'000'000;  // each time costs a look at all matches
constexpr size_t kMostWaiting = 64;
constexpr int kMostOwn = 64;  // of a requester's own filters, which never match it, are passed over

bool may_meet(Requester requester, uid_t waiter) { return !requester || *requester == waiter || waiter == 0; }

}  // namespace

Requests::Requests(bool ports, uid_t own_user) : ports_(ports), match_places_(kMostMatches, own_user) {}

// Of a client-server filter only the local end counts, of a peer's both: many peers may wait at one discriminator.
std::string Requests::key_of(bool peer, const EndAddress& local, const EndAddress& remote) {
    std::string key(1, peer ? 'p' : 'c');
    const auto append_discriminator = [&key](const EndAddress& end) {
        key.append(reinterpret_cast<const char*>(end.discriminator), end.discriminator_len);
    };
    // With the length in front of it, no other pair of ends has the same key.
    if (peer) key.append(reinterpret_cast<const char*>(&local.discriminator_len), sizeof local.discriminator_len);
    append_discriminator(local);
    if (!peer) return key;
    key.append(reinterpret_cast<const char*>(remote.host.bytes), sizeof remote.host.bytes);
    append_discriminator(remote);
    return key;
}

void Requests::add(uint32_t slot, const RequestFilter& filter, int64_t now, Held* held) {
    held->frame.clear();
    remove(slot, filter.index, false);
    const std::string key = key_of(filter.peer, filter.local, filter.remote);
    const Rank rank{-1, next_serial_++};
    filter_places_[slot][filter.index] = {key, filter.user, rank};
    ++place_count_;
    filters_[key][filter.user].emplace(rank, Listener{slot, filter});
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
    if (waiting_.size() == kMostWaiting) erase_one_waiting();
    waiting_.push_back({key, requester, nonce, now, {{frame.begin(), frame.end()}, from}});
}

// The oldest one of the user that has the most makes room. Requesters without a known user count as one user.
void Requests::erase_one_waiting() {
    std::map<Requester, size_t> counts;
    for (const Waiting& w : waiting_) ++counts[w.requester];
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    waiting_.erase(
        std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& w) { return w.requester == most->first; }));
}

void Requests::remove(uint32_t slot, uint32_t index, bool release_matches) {
    const auto of_slot = filter_places_.find(slot);
    if (of_slot == filter_places_.end()) return;
    const auto place = of_slot->second.find(index);
    if (place == of_slot->second.end()) return;
    const uint64_t serial = place->second.rank.serial;
    take_out(place->second);
    of_slot->second.erase(place);
    --place_count_;
    if (release_matches) erase_matches([&](const Match& m) { return m.serial == serial; });
}

void Requests::take_out(const FilterPlace& place) {
    const auto users = filters_.find(place.key);
    if (users == filters_.end()) return;
    const auto listeners = users->second.find(place.user);
    if (listeners == users->second.end()) return;
    listeners->second.erase(place.rank);
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

// The first one of a user's that is not the requester's own.
const Requests::Ranked* Requests::first(const Listeners& listeners, const NicAddress& from, uint32_t source) {
    int looks = 0;
    for (const Ranked& ranked : listeners) {
        const RequestFilter& f = ranked.second.filter;
        const bool own = f.peer && f.link == source && (f.source == NicAddress{} || f.source == from);
        if (!own) return &ranked;
        if (++looks == kMostOwn) break;
    }
    return nullptr;
}

// The first one of the requester's user, else of all that may meet the requester.
const Requests::Ranked* Requests::find(const wire::Connect& c, bool peer, const NicAddress& from, uint32_t source,
                                       Requester requester) const {
    const auto users = filters_.find(key_of(peer, c.remote, c.local));
    if (users == filters_.end()) return nullptr;
    const Ranked* best = nullptr;
    for (const auto& [user, listeners] : users->second) {
        const Ranked* const found = may_meet(requester, user) ? first(listeners, from, source) : nullptr;
        if (found == nullptr) continue;
        if (requester && user == *requester) return found;
        if (best == nullptr || found->first < best->first) best = found;
    }
    return best;
}

// The match does not use up the filter. The other filters for the same ends have their turn before it.
void Requests::note_match(FilterPlace& place, int64_t now) {
    Listeners& listeners = filters_.at(place.key).at(place.user);
    auto node = listeners.extract(place.rank);
    place.rank.matched_at = now;
    node.key() = place.rank;
    listeners.insert(std::move(node));
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
    const Ranked* const found = find(c, peer, from, f.header.source, requester);
    // A peer's request comes again until a program takes it; a client is told.
    if (found == nullptr && !peer) hold(key_of(peer, c.remote, c.local), requester, c.nonce, bytes, from, now);
    if (found == nullptr) return {kNoSlot, peer ? Kind{} : Kind::no_match, c.nonce};
    const Listener& listener = found->second;
    const Match match{listener.slot, listener.filter.user, found->first.serial, now};
    FilterPlace& place = filter_places_.at(listener.slot).at(listener.filter.index);
    peer || listener.filter.every ? note_match(place, now) : take_out(place);
    if (!match_places_.has_room(match.user) && now - expired_at_ > kExpireAgain) expire(now);
    if (match_places_.has_room(match.user) && matches_.emplace(attempt, match).second)
        match_places_.change(match.user, 1);
    return {match.slot, {}, 0};
}

// A requester waits no longer: the program that has its request is told.
Target Requests::withdrawal(const NicAddress& from, uint64_t nonce) {
    std::erase_if(waiting_, [&](const Waiting& w) { return w.nonce == nonce && w.request.from == from; });
    for (const auto& [attempt, match] : matches_)
        if (attempt.nonce == nonce && attempt.from == from) return {match.slot, {}, 0};
    return {};
}

template <class Which>
void Requests::erase_matches(Which which) {
    std::erase_if(matches_, [&](const auto& m) {
        const bool erases = which(m.second);
        if (erases) match_places_.change(m.second.user, -1);
        return erases;
    });
}

void Requests::expire(int64_t now) {
    erase_matches([&](const Match& m) { return now - m.received_at > limit_ns(TimeLimit::packet_request); });
    expired_at_ = now;
}

void Requests::drop(uint32_t slot) {
    if (const auto of_slot = filter_places_.find(slot); of_slot != filter_places_.end()) {
        for (const auto& [index, place] : of_slot->second) take_out(place);
        place_count_ -= of_slot->second.size();
        filter_places_.erase(of_slot);
    }
    erase_matches([&](const Match& m) { return m.slot == slot; });
}

void Requests::pass_on(uint32_t slot, const NicAddress& from, uint32_t source, uint64_t nonce) {
    const auto match = matches_.find({from, source, nonce});
    if (match == matches_.end() || match->second.slot != slot) return;
    match_places_.change(match->second.user, -1);
    matches_.erase(match);
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
