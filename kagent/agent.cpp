// SPDX-License-Identifier: BSD-2-Clause
// Sessions, greetings and the dispatch of messages; see agent.hpp. Whatever a client sends is checked here or
// in the handler before it is used.
#include "kagent/agent.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/config/paths.hpp"
#include "core/text/printable.hpp"

namespace viaduct::kagent {

namespace {

// Its socket, its process to watch, its process to hand out.
constexpr uint64_t kDescriptorsOfSession = 3;

bool may_end(const Credentials& c) { return c.known && (c.uid == 0 || c.uid == ::geteuid()); }

ConnectionRules rules_of(const AgentSettings& s) {
    ConnectionRules r;
    r.grace_ns = s.grace_ms * 1'000'000;
    r.confirm_ns = s.confirm_ms * 1'000'000;
    r.max_incoming = static_cast<size_t>(s.max_incoming);
    return r;
}

// Numbers that an agent has given mean nothing to the next agent: a client that accepts or confirms by a number of an
// agent that has ended must not meet another connection. So numbers begin at a random one, and half of all numbers are
// left above it.
uint64_t random_id() {
    uint64_t id = 0;
    return ::getrandom(&id, sizeof id, 0) == sizeof id ? id >> 1 : static_cast<uint64_t>(now_ns());
}

}  // namespace

Agent::Agent(AgentSettings settings, Providers& providers, Outbox& outbox)
    : settings_(std::move(settings)),
      providers_(providers),
      outbox_(outbox),
      limits_(settings_.limits),
      registry_(limits_),
      table_(rules_of(settings_), *this, random_id()),
      ended_(settings_.ended_ms * 1'000'000) {}

bool Agent::has_room(uid_t user) {
    return limits_.left(user, Quota::sockets) != 0 && limits_.allows(user, Quota::descriptors, kDescriptorsOfSession);
}

uint64_t Agent::arrive(Credentials credentials, Fd pidfd, int64_t now) {
    return has_room(credentials.uid) ? add_session(credentials, std::move(pidfd), now) : 0;
}

uint64_t Agent::arrive_without_room(Credentials credentials, Fd pidfd, int64_t now, std::string refusal) {
    const uint64_t id = add_session(credentials, std::move(pidfd), now);
    sessions_.at(id).refusal = std::move(refusal);
    return id;
}

bool Agent::may_be_replaced_by(const Credentials& c) const { return settings_.flaws != 0 && may_end(c); }

uint64_t Agent::add_session(Credentials credentials, Fd pidfd, int64_t now) {
    limits_.take_anyway(credentials.uid, Quota::sockets, 1);
    limits_.take_anyway(credentials.uid, Quota::descriptors, kDescriptorsOfSession);
    Session s;
    s.id = next_session_++;
    s.credentials = credentials;
    s.pidfd = std::move(pidfd);
    s.since = now;
    const uint64_t id = s.id;
    sessions_.emplace(id, std::move(s));
    return id;
}

void Agent::leave(uint64_t session, int64_t now) {
    const auto it = sessions_.find(session);
    if (it == sessions_.end()) return;
    Session& s = it->second;
    s.dropped = true;  // nothing is sent to it any more
    stop_keeping(s);
    end_trace(s);
    keep_failures(s, now);
    if (s.greeted) table_.session_ended(session, now);
    for (const uint64_t id : registry_.of_session(session)) outbox_.discard(s.credentials.uid, registry_.close(id));
    if (s.greeted) limits_.give(s.credentials.uid, Quota::sessions, 1);
    limits_.give(s.credentials.uid, Quota::sockets, 1);
    limits_.give(s.credentials.uid, Quota::descriptors, kDescriptorsOfSession);
    sessions_.erase(it);
}

void Agent::stop_keeping(Session& s) {
    if (s.keeps) --keepers_;
    s.keeps = false;
}

void Agent::drop(Session& s, const char* why) {
    s.dropped = true;
    stop_keeping(s);
    outbox_.drop(s.id, why);
}

void Agent::announce_leaving() {
    for (auto& [id, s] : sessions_) {
        if (s.greeted) answer(s, 0, Type::kLeaving);
    }
}

void Agent::deliver(Session& s, Mail mail) {
    if (s.dropped) return;
    mail.header.version = s.version;
    outbox_.send(s.id, std::move(mail));
}

void Agent::refuse(Session& s, uint32_t ticket, Status why, const std::string& text, uint32_t flaws) {
    Error e;
    e.status = static_cast<int32_t>(why);
    e.version_min = kVersionMin;
    e.version_max = kVersionMax;
    e.flaws = flaws;
    std::strncpy(e.text, text.c_str(), sizeof(e.text) - 1);
    answer(s, ticket, Type::kError, e);
}

// A client that is refused for want of room alone stays for one message more: it may ask the agent to end.
void Agent::refuse_session(Session& s, uint32_t ticket, Status why, const std::string& text) {
    s.refused = why == Status::out_of_resources && may_be_replaced_by(s.credentials);
    refuse(s, ticket, why, text, s.refused ? settings_.flaws : 0);
    if (!s.refused) drop(s, "hello refused");
}

void Agent::end_if_asked(Session& s, const Mail& mail) {
    if (mail.type() == Type::kShutdown && mail.header.ticket != 0) return shut_down(s, mail.header.ticket);
    drop(s, "hello refused");
}

void Agent::greet(Session& s, const Mail& mail) {
    const uint32_t ticket = mail.header.ticket;
    Hello hello;
    if (mail.type() != Type::kHello || !mail.get(&hello)) {
        refuse_session(s, ticket, Status::invalid, "the first message must be a hello");
        return;
    }
    const uint16_t highest = std::min(hello.version_max, kVersionMax);
    if (highest < hello.version_min || highest < kVersionMin) {
        refuse_session(s, ticket, Status::version, "client and agent speak no common version of the protocol");
        return;
    }
    if (tools_only_ && (hello.flags & kHelloTool) == 0) {
        shutdown_asked_ = true;
        drop(s, "this agent is there for tools only");
        return;
    }
    if (!s.refusal.empty()) {
        refuse_session(s, ticket, Status::out_of_resources, s.refusal);
        return;
    }
    if (!limits_.take(s.credentials.uid, Quota::sessions, 1)) {
        refuse_session(s, ticket, Status::out_of_resources,
                       "too many processes of this user have a session (limit " +
                           std::to_string(limits_.limit(Quota::sessions)) + ", agent.max_sessions)");
        return;
    }
    s.greeted = true;
    s.version = highest;
    s.tool = (hello.flags & kHelloTool) != 0;
    s.keeps = !s.tool;
    if (s.keeps) ++keepers_;
    s.program = printable(text_of(hello.program));
    Welcome w;
    w.version = highest;
    w.version_min = kVersionMin;
    w.version_max = kVersionMax;
    w.agent_pid = static_cast<uint32_t>(::getpid());
    w.flaws = static_cast<uint16_t>(settings_.flaws);
    w.linger_ms = static_cast<uint32_t>(std::max<int64_t>(settings_.linger_ms, 0));
    std::strncpy(w.agent_version, kVersion, sizeof(w.agent_version) - 1);
    answer(s, mail.header.ticket, Type::kWelcome, w);
}

void Agent::shut_down(Session& s, uint32_t ticket) {
    if (!may_end(s.credentials)) {
        refuse(s, ticket, Status::denied, "only the agent's own user or root may end it");
        return;
    }
    shutdown_asked_ = true;
    answer(s, ticket, Type::kDone);
}

void Agent::handle(uint64_t session, Mail mail, int64_t now) {
    const auto it = sessions_.find(session);
    if (it == sessions_.end()) return;
    if (!it->second.dropped) check_and_dispatch(it->second, mail, now);
    outbox_.discard(it->second.credentials.uid, std::move(mail.descriptors));
}

// What is left in the mail afterwards is not needed.
void Agent::check_and_dispatch(Session& s, Mail& mail, int64_t now) {
    if (!s.greeted) {
        s.refused ? end_if_asked(s, mail) : greet(s, mail);
        return;
    }
    // An answer with ticket 0 would be taken for an event, so such a request cannot even be refused.
    if (mail.header.ticket == 0 && mail.type() != Type::kConnConfirm) {
        drop(s, "a request without a ticket");
        return;
    }
    if (mail.descriptors_lost) {
        refuse(s, mail.header.ticket, Status::out_of_resources,
               "the agent has no descriptors left for what was sent; raise its limit (ulimit -n)");
        return;
    }
    if (!mail.descriptors.empty() && mail.type() != Type::kOpenNic && mail.type() != Type::kShowStats &&
        mail.type() != Type::kTrace) {
        ++refused_;
        refuse(s, mail.header.ticket, Status::invalid, "descriptors where none belong");
        return;
    }
    const bool bare =
        mail.type() == Type::kListNics || mail.type() == Type::kStatus || mail.type() == Type::kShutdown;
    if (bare && mail.payload.size() > sizeof(Empty)) {
        ++refused_;
        refuse(s, mail.header.ticket, Status::invalid, "a payload where none belongs");
        return;
    }
    dispatch(s, mail, now);
}

void Agent::dispatch(Session& s, Mail& mail, int64_t now) {
    switch (mail.type()) {
        case Type::kListNics:
            list_nics(s, mail);
            return;
        case Type::kResolveName:
            resolve_name(s, mail);
            return;
        case Type::kOpenNic:
            open_nic(s, mail, now);
            return;
        case Type::kCloseNic:
            close_nic(s, mail, now);
            return;
        case Type::kLease:
            lease(s, mail);
            return;
        case Type::kConnWait:
            conn_wait(s, mail, now);
            return;
        case Type::kConnRequest:
        case Type::kConnPeer:
            conn_request(s, mail, now);
            return;
        case Type::kConnAccept:
            conn_accept(s, mail, now);
            return;
        case Type::kConnConfirm:
            conn_confirm(s, mail);
            return;
        case Type::kConnReject:
            conn_reject(s, mail);
            return;
        case Type::kCancel:
            cancel(s, mail);
            return;
        case Type::kNameLookup:
            name_lookup(s, mail, now);
            return;
        case Type::kAddressLookup:
            address_lookup(s, mail);
            return;
        case Type::kNameAdd:
            name_add(s, mail);
            return;
        case Type::kStatus:
            status(s, mail, now);
            return;
        case Type::kShowStats:
            show_stats(s, mail);
            return;
        case Type::kListEnded:
            list_ended(s, mail, now);
            return;
        case Type::kTrace:
            trace(s, mail);
            return;
        case Type::kShutdown:
            shut_down(s, mail.header.ticket);
            return;
        default:
            ++refused_;
            refuse(s, mail.header.ticket, Status::invalid,
                   "no request of this protocol has the number " + std::to_string(mail.header.type));
            return;
    }
}

}  // namespace viaduct::kagent
