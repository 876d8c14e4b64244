// SPDX-License-Identifier: BSD-2-Clause
// Requests about connections: checked here, decided by ConnectionTable, whose effects become messages. Part
// of Agent.
#include <fcntl.h>

#include <algorithm>
#include <iterator>

#include "core/clock/clock.hpp"
#include "core/text/end_address.hpp"
#include "kagent/agent.hpp"

namespace viaduct::kagent {

namespace {

constexpr uint64_t kUserShift = 16;                  // of a domain: provider number below, user above
constexpr uint64_t kUnknownUser = uint64_t{1} << 40;  // beyond all users: a session that is alone

Fd copy_of(const Fd& fd) { return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)); }

Deadline deadline_after(uint32_t timeout_ms, int64_t now) {
    return timeout_ms == 0xFFFFFFFFu ? kNever : now + int64_t{timeout_ms} * 1'000'000;
}

std::string reason_of(Status why) {
    switch (why) {
        case Status::rejected:
            return "the other side rejected the connection";
        case Status::timeout:
            return "the other side did not answer in time";
        case Status::mismatch_level:
            return "the ends have different reliability levels";
        case Status::mismatch_mtu:
            return "the ends have different maximum transfer sizes";
        case Status::mismatch_qos:
            return "the ends have different qualities of service";
        case Status::not_supported:
            return "these two NICs cannot be joined by the agent";
        case Status::out_of_resources:
            return "the agent has no memory, descriptors or quota left for a connection (its limits: ulimit -f, -n, "
                   "-v)";
        case Status::invalid:
            return "no such incoming request";
        default:
            return "the connection failed";
    }
}

}  // namespace

bool Agent::address_fits(const Context& c, const EndAddress& a) const {
    const uint32_t limit = std::min(providers_.nic(c.nic).max_discriminator, kMaxDiscriminator);
    return a.discriminator_len <= limit;
}

End Agent::end_of(const Session& s, const Context& c, uint32_t ticket) const {
    // Ends meet when their NICs belong to one provider, and to one user unless the configuration allows connections
    // between users.
    const uint64_t provider = providers_.provider_of(c.nic);
    End e;
    e.party = {s.id, ticket, c.id};
    const uint64_t user = s.credentials.known ? uint64_t{s.credentials.uid} + 1 : kUnknownUser | s.id;
    e.domain = provider | (settings_.cross_user ? 0 : user << kUserShift);
    return e;
}

// Checks what every request that stays open has in common; answers when it may not.
bool Agent::may_wait(Session& s, uint32_t ticket) {
    if (table_.open(s.id, ticket)) {
        refuse(s, ticket, Status::invalid, "this ticket has an open request already");
        return false;
    }
    if (limits_.left(s.credentials.uid, Quota::outstanding) == 0) {
        refuse(s, ticket, Status::out_of_resources,
               "too many open connection requests of this user (limit " +
                   std::to_string(limits_.limit(Quota::outstanding)) + ", agent.max_outstanding)");
        return false;
    }
    return true;
}

void Agent::on_ticket_opened(uint64_t session) {
    if (const auto s = sessions_.find(session); s != sessions_.end())
        limits_.take_anyway(s->second.credentials.uid, Quota::outstanding, 1);
}

void Agent::on_ticket_closed(uint64_t session) {
    if (const auto s = sessions_.find(session); s != sessions_.end())
        limits_.give(s->second.credentials.uid, Quota::outstanding, 1);
}

void Agent::conn_wait(Session& s, const Mail& mail, int64_t now) {
    const uint32_t ticket = mail.header.ticket;
    ConnWait body;
    const Context* c = mail.get(&body) ? registry_.find(body.context_id, s.id) : nullptr;
    if (c == nullptr || !address_fits(*c, body.local)) {
        refuse(s, ticket, Status::invalid, "malformed wait, or no such context");
        return;
    }
    if (!may_wait(s, ticket)) return;
    End e = end_of(s, *c, ticket);
    e.local = body.local;
    e.local.host = providers_.nic(c->nic).address;
    e.since = now;
    table_.wait(e);
}

void Agent::conn_request(Session& s, const Mail& mail, int64_t now) {
    const uint32_t ticket = mail.header.ticket;
    ConnRequest body;
    const Context* c = mail.get(&body) ? registry_.find(body.context_id, s.id) : nullptr;
    if (c == nullptr || !address_fits(*c, body.local) || body.remote.discriminator_len > kMaxDiscriminator) {
        refuse(s, ticket, Status::invalid, "malformed request, or no such context");
        return;
    }
    if (!may_wait(s, ticket)) return;
    End e = end_of(s, *c, ticket);
    e.local = body.local;
    e.local.host = providers_.nic(c->nic).address;
    e.since = now;
    e.traits = body.traits;
    std::copy(std::begin(body.endpoint_words), std::end(body.endpoint_words), e.words.begin());
    const Deadline deadline = deadline_after(body.timeout_ms, now);
    if (mail.type() == Type::kConnPeer) {
        table_.peer(e, body.remote, deadline, now);
    } else {
        table_.request(e, body.remote, deadline, now);
    }
}

void Agent::conn_accept(Session& s, const Mail& mail, int64_t now) {
    const uint32_t ticket = mail.header.ticket;
    ConnAccept body;
    const Context* c = mail.get(&body) ? registry_.find(body.context_id, s.id) : nullptr;
    if (c == nullptr) {
        refuse(s, ticket, Status::invalid, "malformed accept, or no such context");
        return;
    }
    if (!may_wait(s, ticket)) return;
    std::array<uint32_t, 6> words;
    std::copy(std::begin(body.endpoint_words), std::end(body.endpoint_words), words.begin());
    table_.accept({s.id, ticket, c->id}, body.incoming, body.traits, words, now);
}

void Agent::conn_confirm(Session& s, const Mail& mail) {
    ConnConfirm body;
    if (!mail.get(&body)) {
        if (mail.header.ticket != 0) refuse(s, mail.header.ticket, Status::invalid, "malformed confirmation");
        return;
    }
    const uint64_t acceptor = table_.confirm(s.id, body.connection_id);
    if (mail.header.ticket == 0) return;
    if (acceptor != 0) {
        telling_.push_back({{s.id, mail.header.ticket, 0}, acceptor, Status::timeout});
        tell_connected();
    } else if (!table_.has_made(body.connection_id)) {
        refuse(s, mail.header.ticket, Status::invalid, "no connection of this agent");
    } else {
        refuse(s, mail.header.ticket, Status::timeout, "the acceptor has given up");
    }
}

void Agent::conn_reject(Session& s, const Mail& mail) {
    IncomingRef body;
    const Context* c = mail.get(&body) ? registry_.find(body.context_id, s.id) : nullptr;
    const Status st =
        c == nullptr ? Status::invalid : table_.reject({s.id, mail.header.ticket, c->id}, body.incoming);
    if (st != Status::ok) {
        refuse(s, mail.header.ticket, st, reason_of(st));
        return;
    }
    answer(s, mail.header.ticket, Type::kDone);
}

void Agent::cancel(Session& s, const Mail& mail) {
    const uint32_t ticket = mail.header.ticket;
    Cancel body;
    if (!mail.get(&body)) {
        refuse(s, ticket, Status::invalid, "malformed cancel");
        return;
    }
    switch (table_.cancel({s.id, ticket, 0}, body.ticket)) {
        case ConnectionTable::Cancelled::done:
            answer(s, ticket, Type::kDone);
            return;
        case ConnectionTable::Cancelled::too_late:
            refuse(s, ticket, Status::closed, "nothing is open under that ticket any more");
            return;
        case ConnectionTable::Cancelled::later:
            return;
    }
}

// ---- effects

void Agent::on_incoming(const Party& waiter, const Incoming& what) {
    if (const auto s = sessions_.find(waiter.session); s != sessions_.end()) {
        answer(s->second, waiter.ticket, Type::kIncoming, what);
    }
}

void Agent::on_failed(const Party& party, Status why) {
    if (const auto s = sessions_.find(party.session); s != sessions_.end())
        refuse(s->second, party.ticket, why, reason_of(why));
}

void Agent::on_no_match(const Party& party, const EndAddress& remote, const EndAddress* nearest) {
    const auto s = sessions_.find(party.session);
    if (s == sessions_.end()) return;
    std::string text = "no program waits at " + text_of(remote);
    // With cross_user the nearest address may be another user's, and a user sees no waiting calls of others.
    if (nearest != nullptr && !settings_.cross_user) text += "; the nearest that waits is at " + text_of(*nearest);
    refuse(s->second, party.ticket, Status::no_match, text);
}

void Agent::on_cancel_too_late(const Party& party) {
    if (const auto s = sessions_.find(party.session); s != sessions_.end()) {
        refuse(s->second, party.ticket, Status::closed, "it was decided already");
    }
}

Status Agent::make(uint64_t connection, const End& requester, const End& acceptor) {
    const Context* a = registry_.find(requester.party.context);
    const Context* b = registry_.find(acceptor.party.context);
    if (a == nullptr || b == nullptr) return Status::out_of_resources;
    if (!limits_.take(a->user, Quota::descriptors, 1)) return Status::out_of_resources;
    Shared shared;
    shared.user = a->user;
    const Status s = providers_.join(a->nic, b->nic, &shared.segment, &shared.bytes);
    if (s == Status::ok) {
        shared_[connection] = std::move(shared);
    } else {
        limits_.give(a->user, Quota::descriptors, 1);
    }
    return s;
}

void Agent::on_settled(uint64_t connection) {
    const auto it = shared_.find(connection);
    if (it == shared_.end()) return;
    limits_.give(it->second.user, Quota::descriptors, 1);
    shared_.erase(it);
}

bool Agent::on_joined(uint64_t connection, const End& own, const End& peer, uint32_t side) {
    Mail mail;
    if (!joined_mail(connection, own, peer, side, false, &mail)) return false;
    deliver(sessions_.at(own.party.session), std::move(mail));
    return true;
}

// Neither end is told of a connection of which the other one cannot be told.
bool Agent::on_joined_both(uint64_t connection, const End& first, const End& second) {
    Mail mails[2];
    if (!joined_mail(connection, first, second, 0, true, &mails[0])) {
        on_failed(second.party, Status::out_of_resources);
        return false;
    }
    if (!joined_mail(connection, second, first, 1, true, &mails[1])) {
        on_failed(first.party, Status::out_of_resources);
        return false;
    }
    deliver(sessions_.at(first.party.session), std::move(mails[0]));
    // A client that reads nothing is dropped.
    if (const auto s = sessions_.find(second.party.session); s != sessions_.end())
        deliver(s->second, std::move(mails[1]));
    telling_.push_back({first.party, second.party.session, Status::rejected});
    telling_.push_back({second.party, first.party.session, Status::rejected});
    tell_connected();
    return true;
}

// Tells each end that waits for it that the other one will read its kJoined, or that its session has ended.
void Agent::tell_connected() {
    std::erase_if(telling_, [this](const Telling& t) {
        const auto end = sessions_.find(t.end.session);
        if (end == sessions_.end()) return true;
        const auto other = sessions_.find(t.other);
        const bool gone = other == sessions_.end() || other->second.dropped;
        if (!gone && !outbox_.all_out(t.other)) return false;
        if (gone) {
            refuse(end->second, t.end.ticket, t.when_gone, "the other side has left");
        } else {
            answer(end->second, t.end.ticket, Type::kDone);
        }
        return true;
    });
}

// What an end is told of its connection. False: it is answered with an error.
bool Agent::joined_mail(uint64_t connection, const End& own, const End& peer, uint32_t side, bool told_later,
                        Mail* out) {
    const auto me = sessions_.find(own.party.session);
    const auto other = sessions_.find(peer.party.session);
    const Context* context = registry_.find(peer.party.context);
    const auto shared = shared_.find(connection);
    if (me == sessions_.end()) return false;
    if (other == sessions_.end() || context == nullptr || shared == shared_.end()) {
        refuse(me->second, own.party.ticket, Status::timeout, "the other side has left");
        return false;
    }
    Joined j;
    j.connection_id = connection;
    j.segment_bytes = shared->second.bytes;
    j.peer_context_id = context->public_id;
    std::copy(context->words.begin(), context->words.end(), std::begin(j.peer_words));
    std::copy(peer.words.begin(), peer.words.end(), std::begin(j.peer_endpoint_words));
    j.side = side;
    j.same_process = own.party.session == peer.party.session ? 1 : 0;
    j.told_later = told_later ? 1 : 0;
    j.peer_pid = other->second.credentials.pid;
    j.peer_uid = other->second.credentials.uid;
    j.remote = peer.local;
    j.traits = peer.traits;
    j.same_user = same_user(me->second, other->second) ? 1 : 0;
    const auto shown = context->descriptors.begin();
    const auto shown_end = context->descriptors.end() -
                           (j.same_user != 0 ? 0 : static_cast<std::ptrdiff_t>(context->private_descriptors));
    j.descriptor_count = static_cast<uint32_t>(shown_end - shown);

    Mail mail = Mail::of(Type::kJoined, j, own.party.ticket);
    mail.descriptors.push_back(copy_of(shared->second.segment));
    std::transform(shown, shown_end, std::back_inserter(mail.descriptors), copy_of);
    if (other->second.pidfd.valid()) mail.descriptors.push_back(copy_of(other->second.pidfd));
    if (std::any_of(mail.descriptors.begin(), mail.descriptors.end(),
                    [](const Fd& fd) { return !fd.valid(); })) {
        refuse(me->second, own.party.ticket, Status::out_of_resources,
               "the agent has no descriptors left; raise its limit (ulimit -n)");
        return false;
    }
    *out = std::move(mail);
    return true;
}

}  // namespace viaduct::kagent
