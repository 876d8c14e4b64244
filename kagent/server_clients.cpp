// SPDX-License-Identifier: BSD-2-Clause
// The event loop of vipkad reads from clients, sends to them, keeps their accounts and closes them; see server.hpp.
#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>

#include "core/clock/clock.hpp"
#include "kagent/server.hpp"

namespace viaduct::kagent {

namespace {

constexpr int kMessagesPerTurn = 32;                       // of one client, then the others have theirs
constexpr int64_t kTurn = kMillisecond / 4;                // of one client

}  // namespace

void Server::adjust(Client& c) {
    const uint32_t wanted = (listens_to(c) ? EPOLLIN : 0u) | (c.wants_to_write() ? EPOLLOUT : 0u);
    if (wanted == c.interest) return;
    c.interest = wanted;
    epoll_event e{};
    e.events = wanted;
    e.data.u64 = c.key;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, c.socket(), &e);
}

// A client that does not take its answers is not listened to: at once when its user has many such answers.
bool Server::listens_to(const Client& c) const {
    return c.wants_to_read() && !c.held_back && !c.waits &&
           (!c.wants_to_write() || agent_.limits().left(c.credentials().uid, Quota::unread) != 0);
}

uint64_t Server::count_in_flight(uid_t user) {
    uint64_t in_flight = 0;
    for (const auto& [key, c] : clients_) {
        if (c->credentials().uid != user || c->charged_files == 0) continue;
        agent_.limits().correct(user, Quota::descriptors, &c->charged_files, c->in_flight());
        in_flight += c->charged_files;
    }
    return in_flight;
}

void Server::settle_account(Client& c) {
    Limits& limits = agent_.limits();
    limits.correct(c.credentials().uid, Quota::unread, &c.charged_bytes, c.unread_bytes());
    limits.correct(c.credentials().uid, Quota::descriptors, &c.charged_files, c.in_flight());
    if (c.wants_to_write()) {
        writers_.insert(c.key);
    } else {
        writers_.erase(c.key);
    }
}

void Server::serve(uint64_t key, uint32_t events) {
    const auto it = clients_.find(key & ~kProcessBit);
    if (it == clients_.end()) return;
    Client& c = *it->second;
    if ((key & kProcessBit) != 0) return serve_ended(c);
    if ((events & EPOLLOUT) != 0) {
        const Status s = c.flush();
        if (s != Status::ok && s != Status::not_done) {
            lose(c, "it has closed the connection");
            return;
        }
        if (s == Status::ok && c.closing()) {
            lose(c, "done");
            return;
        }
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_from(c, kMessagesPerTurn);
    if ((events & (EPOLLHUP | EPOLLERR)) != 0 && !listens_to(c)) lose(c, "it has closed the connection");
    settle_account(c);
    adjust(c);
}

// The process has ended, even if a child of it still holds the socket. The agent serves the messages that the process
// sent before; epoll reports the end again until the client is lost.
void Server::serve_ended(Client& c) {
    if (read_from(c, kMessagesPerTurn) == ReadResult::more && --c.last_turns > 0) return;
    lose(c, "its process has ended");
}

Server::ReadResult Server::read_from(Client& c, int most) {
    const int64_t until = now_ns() + kTurn;
    for (int i = 0; i < most; ++i) {
        if (!listens_to(c)) return ReadResult::all;
        if (closers_.must_stay(c.credentials().uid, c.socket())) {
            c.held_back = holds_back_ = true;
            return ReadResult::all;
        }
        if (throttle_.must_wait(c.credentials().uid, now_ns())) {
            c.waits = true;
            waiting_.insert(c.key);
            return ReadResult::all;
        }
        Mail mail;
        const Status received = receive_mail(c.socket(), &mail);
        if (!std::all_of(mail.descriptors.begin(), mail.descriptors.end(), is_memory_or_event)) {
            discard(c.credentials().uid, std::move(mail.descriptors));
            lose(c, "it sent a file that is no memory");
            return ReadResult::closed;
        }
        switch (received) {
            case Status::ok: {
                const auto& sessions = agent_.sessions();
                const auto before = sessions.find(c.session);
                const bool silent = before != sessions.end() && !before->second.greeted;
                const int64_t now = now_ns();
                agent_.handle(c.session, std::move(mail), now);
                const auto after = sessions.find(c.session);
                if (silent && after != sessions.end() && after->second.greeted) {
                    admission_.settle(c.credentials().uid, number_of(c.key));
                    note_keepers(now);
                    spdlog::info("process {} of user {}: {} has come", c.credentials().pid, c.credentials().uid,
                                 after->second.program);
                }
                if (now_ns() >= until) return ReadResult::more;
                continue;
            }
            case Status::not_done:
                return ReadResult::all;
            case Status::invalid:
                discard(c.credentials().uid, std::move(mail.descriptors));
                lose(c, "it sent something that is no message");
                return ReadResult::closed;
            default:
                discard(c.credentials().uid, std::move(mail.descriptors));
                lose(c, "it has closed the connection");
                return ReadResult::closed;
        }
    }
    return ReadResult::more;
}

void Server::send(uint64_t session, Mail mail) {
    const auto it = by_session_.find(session);
    if (it == by_session_.end()) return;
    Client& c = *it->second;
    switch (c.send(std::move(mail))) {
        case Status::ok:
            settle_account(c);
            return;
        case Status::not_done:
            settle_account(c);
            adjust(c);
            return;
        case Status::out_of_resources:
            lose(c, "it does not take its messages");
            return;
        default:
            lose(c, "it has closed the connection");
            return;
    }
}

bool Server::all_out(uint64_t session) {
    const auto it = by_session_.find(session);
    return it != by_session_.end() && !it->second->wants_to_write();
}

void Server::drop(uint64_t session, const char* why) {
    const auto it = by_session_.find(session);
    if (it == by_session_.end()) return;
    if (it->second->wants_to_write()) {
        it->second->close_when_flushed();
        adjust(*it->second);
    } else {
        lose(*it->second, why);
    }
}

// ---- clients go

// May be called from within Agent (through send), so the session ends later, in reap().
void Server::lose(Client& c, const char* why) {
    if (by_session_.erase(c.session) == 0) return;  // lost already
    dead_.push_back(c.key);
    c.close_when_flushed();
    spdlog::info("process {} of user {} has left: {}", c.credentials().pid, c.credentials().uid, why);
}

void Server::reap() {
    while (!dead_.empty()) {
        std::vector<uint64_t> keys;
        keys.swap(dead_);
        for (const uint64_t key : keys) {
            const auto it = clients_.find(key);
            if (it == clients_.end()) continue;
            const uint64_t session = it->second->session;
            it->second->session = 0;
            Client& c = *it->second;
            const uid_t user = c.credentials().uid;
            writers_.erase(key);
            waiting_.erase(key);
            agent_.limits().correct(user, Quota::unread, &c.charged_bytes, 0);
            agent_.limits().correct(user, Quota::descriptors, &c.charged_files, 0);
            discard(user, c.give_up_files());
            daemon::Program leaving{c.give_up_socket(), c.give_up_pidfd(), number_of(key), user};
            admission_.release(leaving);
            clients_.erase(it);
            agent_.leave(session, now_ns());
        }
    }
}

// Ends clients that send no hello in time, and clients that do not take their messages.
void Server::look_at_clients(int64_t now) {
    if (now < next_look_) return;
    next_look_ = now + kLook;
    holds_back_ = false;
    closers_.look(now);
    for (auto& [key, c] : clients_) {
        c->held_back = false;
        settle_account(*c);
        adjust(*c);
        const auto s = agent_.sessions().find(c->session);
        if (s != agent_.sessions().end() && !s->second.greeted && admission_.is_late(c->since, now))
            lose(*c, "it said nothing");
        if (!c->wants_to_write() || c->taken() != c->taken_seen) {
            c->stalled_since = 0;
            c->taken_seen = c->taken();
        } else if (c->stalled_since == 0) {
            c->stalled_since = now;
        } else if (now - c->stalled_since > client_stall_ns_) {
            lose(*c, "it does not take its messages");
        }
    }
}

void Server::look_at_waiting(int64_t now) {
    if (waiting_.empty() || now < next_taking_) return;
    next_taking_ = now + kTaking;
    std::erase_if(waiting_, [&](uint64_t key) {
        Client& c = *clients_.at(key);
        c.waits = throttle_.must_wait(c.credentials().uid, now);
        if (!c.waits) adjust(c);
        return !c.waits;
    });
}

}  // namespace viaduct::kagent
