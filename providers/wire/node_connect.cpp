// SPDX-License-Identifier: BSD-2-Clause
// How links come about: what the host asks for, and requests that come from other nodes (docs/wire-format.md).
#include <algorithm>

#include "providers/wire/encapsulation.hpp"
#include "providers/wire/link.hpp"
#include "providers/wire/node.hpp"

namespace viaduct::wire {

namespace {

constexpr uint32_t kMaxListeners = 4096;
constexpr uint32_t kMaxIncomings = 1024;

}  // namespace

// ---- of the host

uint32_t Node::listen(const EndAddress& local, Cookie cookie, Time now) {
    if (listeners_.size() >= kMaxListeners) return 0;
    incomings_.reserve(incomings_.size() + listeners_.size() + 1);  // no frame that comes needs memory
    const auto id = static_cast<uint32_t>(next_listener_);
    Request request;
    if (has_room_for_incoming(now) && pending_.take(local, now, &request)) {
        ++next_listener_;  // used up at once
        tell_host(cookie, request, now);
    } else {
        listeners_.push_back({id, next_listener_++, local, cookie});
    }
    return id;
}

void Node::unlisten(uint32_t listener) {
    std::erase_if(listeners_, [&](const Listener& l) { return l.id == listener; });
}

LinkId Node::request(Cookie cookie, const EndAddress& local, const EndAddress& remote, const ViTraits& traits,
                     Time deadline, Time now) {
    Link* link = take_link(cookie);
    if (link == nullptr) return 0;
    link->request(LinkState::requesting, local, remote, traits, deadline, now);
    return link->id();
}

LinkId Node::peer_request(Cookie cookie, const EndAddress& local, const EndAddress& remote,
                          const ViTraits& traits, Time deadline, Time now) {
    Link* link = take_link(cookie);
    if (link == nullptr) return 0;
    link->request(LinkState::peering, local, remote, traits, deadline, now);
    return link->id();
}

Node::Incoming* Node::find_incoming(IncomingId id) {
    const auto found =
        std::find_if(incomings_.begin(), incomings_.end(), [&](const Incoming& i) { return i.id == id; });
    return found != incomings_.end() ? &*found : nullptr;
}

LinkId Node::accept(IncomingId id, Cookie cookie, const ViTraits& traits, Time now, Status* why) {
    Incoming* found = find_incoming(id);
    *why = Status::timeout;
    if (found == nullptr) return 0;
    const Incoming incoming = *found;
    const Request& request = incoming.request;
    const Time limit = request.fields.attended ? std::max(tuning_.stale_incoming, tuning_.attended_silence)
                                                  : tuning_.stale_incoming;
    const bool stale = incoming.withdrawn || now - std::max(incoming.received_at, awake_since_) > limit;
    Link* link = stale ? nullptr : take_link(cookie);
    if (!stale && link == nullptr) {
        *why = Status::out_of_resources;  // the request goes on waiting
        return 0;
    }
    std::erase_if(incomings_, [&](const Incoming& i) { return i.id == id; });
    remember(request.fields.nonce, request.from, link == nullptr);
    if (link == nullptr) {
        if (!request.proved && !incoming.withdrawn) note_unconfirmed(now);
        return 0;
    }
    *why = Status::ok;
    link->accept(request, traits, now);
    return link->id();
}

void Node::reject(IncomingId id, Time) {
    const Incoming* incoming = find_incoming(id);
    if (incoming == nullptr) return;
    const Request& request = incoming->request;
    answer(Kind::reject, request.from, request.source,
           request.fields.pass,
           {request.fields.nonce, static_cast<uint16_t>(Status::rejected),
            static_cast<uint16_t>(request.arrived)});
    remember(request.fields.nonce, request.from, true);
    std::erase_if(incomings_, [&](const Incoming& i) { return i.id == id; });
}

bool Node::still_waits(IncomingId id, Time now) {
    const Incoming* incoming = find_incoming(id);
    if (incoming == nullptr) return false;
    if (!incoming->withdrawn && now - std::max(incoming->received_at, awake_since_) <= tuning_.request_silence)
        return true;
    std::erase_if(incomings_, [&](const Incoming& i) { return i.id == id; });
    return false;
}

void Node::remember(uint64_t nonce, const NicAddress& from, bool rejected) {
    decided_[next_decided_++ % decided_.size()] = {nonce, from, rejected};
}

// ---- of other nodes

void Node::on_request(const Frame& f, const NicAddress& from, Time now) {
    Connect c;
    if (read_connect(f, &c) != Flaw::none || c.nonce == 0) {
        ++counters_.protocol_errors;
        return;
    }
    c.local.host = tuning_.ports ? named_host(from, c.local.host) : from;
    const Answer back{c.nonce, 0, static_cast<uint16_t>(f.bytes)};
    const Request request{from, f.header.source, c, f.bytes, cookies_.is_shown(from, f.header.source, c, now)};
    for (Incoming& i : incomings_) {
        if (i.request.fields.nonce != c.nonce || !(i.request.from == from)) continue;
        i.received_at = now;
        i.request.arrived = std::max(i.request.arrived, f.bytes);
        i.request.proved |= request.proved;
        return answer(Kind::pending, from, f.header.source, c.pass, back);
    }
    for (const Slot& slot : slots_)
        if (slot.in_use && slot.link->repeat_answer(request, now)) return;
    for (const Decided& d : decided_) {
        if (d.nonce != c.nonce || !(d.from == from)) continue;
        ++counters_.requests_ignored;
        if (d.rejected)
            answer(Kind::reject, from, f.header.source, c.pass,
                   {c.nonce, static_cast<uint16_t>(Status::rejected), static_cast<uint16_t>(f.bytes)});
        return;
    }
    const auto listener = std::find_if(listeners_.begin(), listeners_.end(), [&](const Listener& l) {
        return l.local.same_discriminator(c.remote);
    });
    if (!request.proved && proof_demand_.is_demanded(now)) {
        ask_for_proof(request, now);
        return tell_of_refused(c);
    }
    if (listener == listeners_.end()) {
        pending_.keep(request, now);
        return answer(Kind::no_match, from, f.header.source, c.pass, back);
    }
    if (!has_room_for_incoming(now)) {
        ++counters_.requests_ignored;
        return tell_of_refused(c);
    }
    pending_.drop(from, c.nonce);
    const Cookie cookie = listener->cookie;
    listeners_.erase(listener);
    tell_host(cookie, request, now);
}

// The port's filter of any of these listeners may be used up.
void Node::tell_of_refused(const Connect& c) {
    for (const Listener& l : listeners_)
        if (l.local.same_discriminator(c.remote)) host_.on_request_refused(l.cookie);
}

bool Node::has_room_for_incoming(Time now) {
    if (incomings_.size() < kMaxIncomings) return true;
    std::erase_if(incomings_, [&](const Incoming& i) {  // requesters that gave up make room
        return now - i.received_at > 10 * tuning_.stale_incoming;
    });
    return incomings_.size() < kMaxIncomings;
}

void Node::tell_host(Cookie listener, const Request& request, Time now) {
    const IncomingId id = random();
    incomings_.push_back({id, request, now, false});
    answer(Kind::pending, request.from, request.source, request.fields.pass,
           {request.fields.nonce, 0, static_cast<uint16_t>(request.arrived)});
    host_.on_incoming(listener, id, request.fields.local, request.fields.traits);
}

// Nothing is kept of the request: the cookie follows from its fields and the secret.
void Node::ask_for_proof(const Request& request, Time now) {
    ++counters_.proofs_asked;
    if (cookies_.wants_secret(now)) {
        const uint64_t low = draw(), high = draw();
        cookies_.renew({low, high}, now);
    }
    std::byte* frame = outlet_.begin_frame(kHeaderBytes + kProveBytes);
    if (frame == nullptr) return;
    write_prove(frame + kHeaderBytes, {request.fields.nonce, static_cast<uint16_t>(request.arrived),
                                       cookies_.make(request.from, request.source, request.fields)});
    Header h;
    h.kind = Kind::prove;
    h.destination = request.source;
    h.pass = request.fields.pass;
    h.length = kProveBytes;
    seal_own(frame, h);
    outlet_.end_frame(frame, kHeaderBytes + kProveBytes, request.from);
    ++counters_.frames_out;
    counters_.bytes_out += kHeaderBytes + kProveBytes;
}

// An accept of a requester without a proof has come to nothing.
void Node::note_unconfirmed(Time now) {
    if (proof_demand_.note_unconfirmed(now)) pending_.drop_unproved();
}

// The requester waits no longer. A program that has been told of it is told so when it accepts.
void Node::on_withdraw(const Frame& f, const NicAddress& from) {
    const uint64_t nonce = read_answer(f).nonce;
    pending_.drop(from, nonce);
    for (Incoming& i : incomings_)
        if (i.request.fields.nonce == nonce && i.request.from == from) i.withdrawn = true;
}

void Node::on_peer_request(const Frame& f, const NicAddress& from, Time now) {
    Connect c;
    if (read_connect(f, &c) != Flaw::none || c.nonce == 0) {
        ++counters_.protocol_errors;
        return;
    }
    // Those that are connected already first: this may be a late copy, and others may wait under the same
    // address.
    for (const Slot& slot : slots_)
        if (slot.in_use && slot.link->is_connected() &&
            slot.link->repeat_answer({from, f.header.source, c, f.bytes, false}, now))
            return;
    for (const Slot& slot : slots_)
        if (slot.in_use && slot.link->is_same_attempt(c, from, f.header.source) &&
            slot.link->matches_peer(c, from, f.header.source))
            return slot.link->on_peer_request(f, c, from, now);
    for (const Slot& slot : slots_)
        if (slot.in_use && slot.link->is_free_for_peer() && slot.link->matches_peer(c, from, f.header.source))
            return slot.link->on_peer_request(f, c, from, now);
    ++counters_.requests_ignored;  // it will come again, and so will ours
}

}  // namespace viaduct::wire
