// SPDX-License-Identifier: BSD-2-Clause
// How entries of ConnectionTable end without an answer: cancelled, process ended, context closed, out of
// time.
#include <vector>

#include "kagent/connection_table.hpp"

namespace viaduct::kagent {

// ---- giving up

ConnectionTable::Cancelled ConnectionTable::cancel(const Party& canceller, uint32_t ticket) {
    const auto t = tickets_.find({canceller.session, ticket});
    if (t == tickets_.end()) return Cancelled::too_late;
    const auto it = entries_.find(t->second);
    Entry& e = it->second;
    switch (e.state) {
        case State::met:
            requester_left(it);
            return Cancelled::done;
        case State::accepted:
            // The requester has been told that it is connected: the acceptor must see the handshake through.
            if (e.canceller.ticket != 0) return Cancelled::too_late;
            e.canceller = canceller;
            return Cancelled::later;
        default:
            erase(it);
            return Cancelled::done;
    }
}

// The incoming stays valid for its owner, which is told by accept or reject.
void ConnectionTable::requester_left(Entries::iterator it) {
    unindex(it->second.end.party);
    it->second.state = State::abandoned;
    set_due(it, kNever);
}

void ConnectionTable::fail_acceptor(Entries::iterator it, Status why) {
    const Entry e = it->second;
    erase(it);
    effects_.on_failed(e.acceptor.party, why);
    effects_.on_settled(e.connection);
    if (e.canceller.ticket != 0) effects_.on_cancel_too_late(e.canceller);
}

void ConnectionTable::owner_left(Entries::iterator it, int64_t now) {
    switch (it->second.state) {
        case State::met:
            hold_again(it, now);
            break;
        case State::abandoned:
            erase(it);
            break;
        default:
            break;
    }
}

template <class Match>
void ConnectionTable::end_all(Match match, int64_t now) {
    std::vector<Id> mine;
    for (const auto& [id, e] : entries_) {
        if (match(e.end.party) || match(e.owner) || (e.state == State::accepted && match(e.acceptor.party))) {
            mine.push_back(id);
        }
    }
    // First everything this party itself waits for, so that nothing below is matched with it again.
    for (const Id id : mine) {
        const auto it = entries_.find(id);
        if (it == entries_.end() || !match(it->second.end.party)) continue;
        switch (it->second.state) {
            case State::waiting:
            case State::held:
            case State::peer:
                erase(it);
                break;
            case State::met:
                requester_left(it);
                break;
            case State::accepted:
                // Its own other end, if it is that, has ended as well and is told nothing (below).
                if (!match(it->second.acceptor.party)) fail_acceptor(it, Status::timeout);
                break;
            case State::abandoned:
                break;
        }
    }
    for (const Id id : mine) {
        const auto it = entries_.find(id);
        if (it == entries_.end()) continue;
        if (it->second.state == State::accepted && match(it->second.acceptor.party)) {
            // The requester is connected already, and sees by the pidfd that its peer has died.
            const uint64_t connection = it->second.connection;
            erase(it);
            effects_.on_settled(connection);
        } else if (match(it->second.owner)) {
            owner_left(it, now);
        }
    }
}

void ConnectionTable::session_ended(uint64_t session, int64_t now) {
    end_all([session](const Party& p) { return p.session == session; }, now);
}

void ConnectionTable::context_closed(uint64_t context, int64_t now) {
    end_all([context](const Party& p) { return p.context == context; }, now);
}

// ---- time

void ConnectionTable::expire(int64_t now) {
    while (!due_.empty() && due_.begin()->first <= now) due_now(entries_.find(due_.begin()->second), now);
}

void ConnectionTable::due_now(Entries::iterator it, int64_t now) {
    Entry& e = it->second;
    const Party party = e.end.party;
    switch (e.state) {
        case State::held: {
            const bool lost = e.lost_its_server;
            const EndAddress remote = e.remote;
            const EndAddress* nearest = lost ? nullptr : nearest_wait(e.end.domain, remote);
            erase(it);
            if (lost)
                effects_.on_failed(party, Status::timeout);
            else
                effects_.on_no_match(party, remote, nearest);
            return;
        }
        case State::met:
            requester_left(it);
            effects_.on_failed(party, Status::timeout);
            return;
        case State::accepted:
            fail_acceptor(it, Status::timeout);
            return;
        case State::peer: {
            // No other process came for two requests of one process: then they are meant for each other.
            if (const auto q = peers_.find(e.counterpart);
                q != peers_.end() && q->second.size() > 1 && e.key == e.counterpart) {
                const Id first = q->second[0] == it->first ? q->second[1] : q->second[0];
                const auto other = entries_.find(first);
                if (first < it->first) {
                    join_peers(other, it);
                } else {
                    join_peers(it, other);
                }
                return;
            }
            if (e.deadline > now) {  // the partner it could have had was taken by another request
                set_due(it, e.deadline);
                return;
            }
            erase(it);
            effects_.on_failed(party, Status::timeout);
            return;
        }
        case State::waiting:
        case State::abandoned:
            set_due(it, kNever);
            return;
    }
}

Deadline ConnectionTable::next_deadline() const { return due_.empty() ? kNever : due_.begin()->first; }

ConnectionTable::Counts ConnectionTable::counts() const {
    Counts c;
    for (const auto& [id, e] : entries_) {
        switch (e.state) {
            case State::waiting:
                ++c.waits;
                break;
            case State::held:
                ++c.held;
                break;
            case State::met:
                ++c.met;
                break;
            case State::accepted:
                ++c.accepted;
                break;
            case State::abandoned:
                ++c.abandoned;
                break;
            case State::peer:
                ++c.peers;
                break;
        }
    }
    return c;
}

}  // namespace viaduct::kagent
