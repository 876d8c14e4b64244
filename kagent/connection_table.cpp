// SPDX-License-Identifier: BSD-2-Clause
// The rendezvous state machine; see the header for its picture. Runs on the agent's one thread.
#include "kagent/connection_table.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace viaduct::kagent {

namespace {

template <class T>
void put(std::string& out, const T& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_address(std::string& out, const EndAddress& a) {
    put(out, a.host.bytes);
    put(out, a.discriminator_len);
    out.append(reinterpret_cast<const char*>(a.discriminator), a.discriminator_len);
}

Deadline after(int64_t now, int64_t ns) { return now > kNever - ns ? kNever : now + ns; }

}  // namespace

Status compare_traits(const ViTraits& a, const ViTraits& b) {
    if (a.reliability != b.reliability) return Status::mismatch_level;
    if (a.max_transfer != b.max_transfer) return Status::mismatch_mtu;
    if (a.qos != b.qos) return Status::mismatch_qos;
    return Status::ok;
}

ConnectionTable::Key ConnectionTable::wait_key(uint64_t domain, const EndAddress& at) {
    Key key;
    put(key, domain);
    put_address(key, at);
    return key;
}

ConnectionTable::Key ConnectionTable::peer_key(uint64_t domain, const EndAddress& local,
                                               const EndAddress& remote) {
    Key key = wait_key(domain, local);
    put_address(key, remote);
    return key;
}

// ---- waiting calls

namespace {

// How many bytes two discriminators have in common at their beginnings and ends; one host counts before all of them.
size_t likeness(const EndAddress& a, const EndAddress& b) {
    const size_t least = std::min(a.discriminator_len, b.discriminator_len);
    const auto at_begin = [&](size_t i) { return a.discriminator[i] == b.discriminator[i]; };
    const auto at_end = [&](size_t i) {
        return a.discriminator[a.discriminator_len - 1 - i] == b.discriminator[b.discriminator_len - 1 - i];
    };
    size_t same = 0, behind = 0;
    while (same < least && at_begin(same)) ++same;
    while (same + behind < least && at_end(behind)) ++behind;
    return same + behind + (a.host == b.host ? kMaxDiscriminator + 1 : 0);
}

}  // namespace

// A request that finds no waiter costs no more for many of them.
const EndAddress* ConnectionTable::nearest_wait(uint64_t domain, const EndAddress& to) const {
    constexpr int kMostLooked = 256;
    Key of_domain;
    put(of_domain, domain);
    const EndAddress* nearest = nullptr;
    size_t best = 0;
    auto at = waits_.lower_bound(of_domain);
    for (int i = 0; i < kMostLooked && at != waits_.end() && at->first.starts_with(of_domain); ++i, ++at) {
        const EndAddress& here = entries_.find(at->second.front())->second.end.local;
        const size_t like = likeness(here, to);
        if (nearest != nullptr && like <= best) continue;
        nearest = &here;
        best = like;
    }
    return nearest;
}

std::vector<WaitingEnd> ConnectionTable::waiting() const {
    std::vector<WaitingEnd> all;
    for (const auto& [id, e] : entries_) {
        if (e.state == State::waiting) all.push_back({&e.end, nullptr});
        if (e.state == State::peer) all.push_back({&e.end, &e.remote});
    }
    return all;
}

// ---- bookkeeping

void ConnectionTable::index(const Party& party, Id id) {
    if (tickets_.insert_or_assign({party.session, party.ticket}, id).second) effects_.on_ticket_opened(party.session);
}

void ConnectionTable::unindex(const Party& party) {
    if (tickets_.erase({party.session, party.ticket}) != 0) effects_.on_ticket_closed(party.session);
}

ConnectionTable::Entries::iterator ConnectionTable::add(Entry entry) {
    const Id id = next_id_++;
    const Deadline due = entry.due;
    entry.due = kNever;
    const auto it = entries_.emplace(id, std::move(entry)).first;
    set_due(it, due);
    index(it->second.end.party, id);
    return it;
}

void ConnectionTable::set_due(Entries::iterator it, Deadline due) {
    if (it->second.due != kNever) due_.erase({it->second.due, it->first});
    it->second.due = due;
    if (due != kNever) due_.emplace(due, it->first);
}

void ConnectionTable::unqueue(Queues& queues, const Key& key, Id id) {
    const auto q = queues.find(key);
    if (q == queues.end()) return;
    std::erase(q->second, id);
    if (q->second.empty()) queues.erase(q);
}

// Removes an entry from all queues and indexes. No process is told.
void ConnectionTable::erase(Entries::iterator it) {
    Entry& e = it->second;
    set_due(it, kNever);
    const auto drop_incoming = [&] {
        const auto c = incoming_count_.find(e.owner.context);
        if (c != incoming_count_.end() && --c->second == 0) incoming_count_.erase(c);
    };
    switch (e.state) {
        case State::waiting:
            unqueue(waits_, e.key, it->first);
            unindex(e.end.party);
            break;
        case State::held:
            unqueue(held_, e.key, it->first);
            unindex(e.end.party);
            break;
        case State::peer:
            unqueue(peers_, e.key, it->first);
            unindex(e.end.party);
            break;
        case State::met:
            drop_incoming();
            unindex(e.end.party);
            break;
        case State::abandoned:
            drop_incoming();
            break;
        case State::accepted:
            unindex(e.acceptor.party);
            connections_.erase(e.connection);
            break;
    }
    entries_.erase(it);
}

// ---- client and server

void ConnectionTable::wait(const End& waiter) {
    const auto count = incoming_count_.find(waiter.party.context);
    if (count != incoming_count_.end() && count->second >= rules_.max_incoming) {
        effects_.on_failed(waiter.party, Status::out_of_resources);
        return;
    }
    const Key key = wait_key(waiter.domain, waiter.local);
    if (const auto q = held_.find(key); q != held_.end()) {
        meet(entries_.find(q->second.front()), waiter.party);
        return;
    }
    Entry e;
    e.state = State::waiting;
    e.key = key;
    e.end = waiter;
    waits_[key].push_back(add(std::move(e))->first);
}

void ConnectionTable::request(const End& requester, const EndAddress& remote, Deadline deadline,
                              int64_t now) {
    Entry e;
    e.state = State::held;
    e.key = wait_key(requester.domain, remote);
    e.end = requester;
    e.remote = remote;
    e.deadline = deadline;
    e.due = std::min(deadline, after(now, rules_.grace_ns));
    const auto it = add(std::move(e));
    held_[it->second.key].push_back(it->first);
    if (const auto q = waits_.find(it->second.key); q != waits_.end()) {
        const auto waiter = entries_.find(q->second.front());
        const Party party = waiter->second.end.party;
        erase(waiter);
        meet(it, party);
    }
}

// A held request and a waiter have found each other. The waiter's entry, if it had one, is removed already.
void ConnectionTable::meet(Entries::iterator request, const Party& waiter) {
    Entry& e = request->second;
    unqueue(held_, e.key, request->first);
    e.state = State::met;
    e.owner = waiter;
    ++incoming_count_[waiter.context];
    set_due(request, e.deadline);
    Incoming in;
    in.incoming = request->first;
    in.remote = e.end.local;
    in.traits = e.end.traits;
    effects_.on_incoming(waiter, in);
}

// Its server has left before accepting: perhaps another one comes, in the usual grace.
void ConnectionTable::hold_again(Entries::iterator request, int64_t now) {
    Entry& e = request->second;
    if (const auto c = incoming_count_.find(e.owner.context);
        c != incoming_count_.end() && --c->second == 0) {
        incoming_count_.erase(c);
    }
    e.state = State::held;
    e.lost_its_server = true;
    e.owner = {};
    set_due(request, std::min(e.deadline, after(now, rules_.grace_ns)));
    held_[e.key].push_front(request->first);
    if (const auto q = waits_.find(e.key); q != waits_.end()) {
        const auto waiter = entries_.find(q->second.front());
        const Party party = waiter->second.end.party;
        erase(waiter);
        meet(request, party);
    }
}

void ConnectionTable::accept(const Party& party, uint64_t incoming, const ViTraits& traits,
                             const std::array<uint32_t, 6>& words, int64_t now) {
    const auto it = entries_.find(incoming);
    const bool known = it != entries_.end() &&
                       (it->second.state == State::met || it->second.state == State::abandoned) &&
                       it->second.owner.session == party.session && it->second.owner.context == party.context;
    if (!known) {
        effects_.on_failed(party, Status::invalid);
        return;
    }
    Entry& e = it->second;
    if (e.state == State::abandoned) {  // the requester gave up: the incoming is used up by this answer
        erase(it);
        effects_.on_failed(party, Status::timeout);
        return;
    }
    if (const Status s = compare_traits(e.end.traits, traits); s != Status::ok) {
        effects_.on_failed(party, s);  // the requester is not told, the incoming stays
        return;
    }
    End acceptor;
    acceptor.party = party;
    acceptor.domain = e.end.domain;
    acceptor.local = e.remote;
    acceptor.traits = traits;
    acceptor.words = words;
    const uint64_t connection = incoming;
    if (const Status s = effects_.make(connection, e.end, acceptor); s != Status::ok) {
        effects_.on_failed(e.end.party, s);
        erase(it);
        effects_.on_failed(party, s);
        return;
    }
    if (const auto c = incoming_count_.find(e.owner.context);
        c != incoming_count_.end() && --c->second == 0) {
        incoming_count_.erase(c);
    }
    unindex(e.end.party);
    e.state = State::accepted;
    e.acceptor = acceptor;
    e.connection = connection;
    connections_[connection] = it->first;
    index(party, it->first);
    set_due(it, after(now, rules_.confirm_ns));
    if (!effects_.on_joined(connection, e.end, acceptor, 0)) fail_acceptor(it, Status::out_of_resources);
}

Status ConnectionTable::reject(const Party& party, uint64_t incoming) {
    const auto it = entries_.find(incoming);
    if (it == entries_.end()) return Status::invalid;
    const Entry& e = it->second;
    if (e.state == State::accepted && e.end.party.session == party.session && e.end.party.context == party.context) {
        fail_acceptor(it, Status::rejected);
        return Status::ok;
    }
    if (e.state != State::met && e.state != State::abandoned) return Status::invalid;
    if (e.owner.session != party.session || e.owner.context != party.context) return Status::invalid;
    const bool open = e.state == State::met;
    const Party requester = e.end.party;
    erase(it);
    if (open) effects_.on_failed(requester, Status::rejected);
    return Status::ok;
}

uint64_t ConnectionTable::confirm(uint64_t session, uint64_t connection) {
    const auto c = connections_.find(connection);
    if (c == connections_.end()) return 0;
    const auto it = entries_.find(c->second);
    if (it->second.end.party.session != session) return 0;
    const Entry e = it->second;
    erase(it);
    const bool joined = effects_.on_joined(connection, e.acceptor, e.end, 1);
    if (joined) ++made_;
    effects_.on_settled(connection);
    if (e.canceller.ticket != 0) effects_.on_cancel_too_late(e.canceller);
    return joined ? e.acceptor.party.session : 0;
}

// ---- peer to peer

void ConnectionTable::peer(const End& end, const EndAddress& remote, Deadline deadline, int64_t now) {
    expire(now);  // a request that was given up is joined with none: both ends are told at once
    Entry e;
    e.state = State::peer;
    e.key = peer_key(end.domain, end.local, remote);
    e.counterpart = peer_key(end.domain, remote, end.local);
    e.end = end;
    e.remote = remote;
    e.deadline = deadline;
    const bool symmetric = e.key == e.counterpart;

    auto partner = entries_.end();
    bool own_partner = false;
    if (const auto q = peers_.find(e.counterpart); q != peers_.end()) {
        for (const Id id : q->second) {
            const auto candidate = entries_.find(id);
            // When both ends bear one address, two requests of one process may well be meant for two peers in
            // another: that other process comes first, for the grace time.
            if (symmetric && candidate->second.end.party.session == end.party.session) {
                own_partner = true;
                continue;
            }
            partner = candidate;
            break;
        }
    }
    e.due = own_partner ? std::min(deadline, after(now, rules_.grace_ns)) : deadline;
    const auto it = add(std::move(e));
    peers_[it->second.key].push_back(it->first);
    if (partner != entries_.end()) join_peers(partner, it);
}

void ConnectionTable::join_peers(Entries::iterator older, Entries::iterator newer) {
    const End a = older->second.end, b = newer->second.end;
    const uint64_t connection = next_id_++;
    erase(older);
    erase(newer);
    Status s = compare_traits(a.traits, b.traits);
    if (s == Status::ok) s = effects_.make(connection, a, b);
    if (s != Status::ok) {
        effects_.on_failed(a.party, s);
        effects_.on_failed(b.party, s);
        return;
    }
    if (effects_.on_joined_both(connection, a, b)) ++made_;
    effects_.on_settled(connection);
}

}  // namespace viaduct::kagent
