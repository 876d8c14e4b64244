// SPDX-License-Identifier: BSD-2-Clause
// AgentLink: tickets, waiting, reconnecting. Any thread of the application may be inside; one of those that
// wait (the leader) sleeps on the socket, the others (followers) on their own condition variable. The thread that
// reads a message hands it to its owner; a leader that leaves wakes a follower to take its place.
//
// No wake-up is lost: a thread (pump, a sender) that reads the leader's answer while the leader sleeps on the socket
// signals the wake event; a leader that leaves while others wait signals one of them before it returns.
#include "core/agent/link_state.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <new>

namespace viaduct {

using namespace link_detail;

namespace {

constexpr int64_t kLongestSleep = 1000 * kMillisecond;  // of the leader
constexpr int kResends = 8;                             // of one request, each to a new agent

// True for all but the last message of an answer in several.
bool more_follow(const Mail& mail) {
    kagent::NicEntry nic;
    kagent::RejectionEntry rejection;
    kagent::Joined joined;
    switch (mail.type()) {
        case kagent::Type::kNicEntry:
            return mail.get(&nic) && nic.more != 0;
        case kagent::Type::kRejection:
            return mail.get(&rejection) && rejection.more != 0;
        case kagent::Type::kJoined:
            return mail.get(&joined) && joined.told_later != 0;
        default:
            return false;
    }
}

}  // namespace

// If the copy cannot be allocated, the text is empty.
void AgentLink::Impl::note_error(const char* why) noexcept {
    try {
        error = why;
    } catch (const std::exception&) {
        error.clear();
    }
}

void AgentLink::Impl::lose(const char* why) {
    if (!socket.valid()) return;
    socket.reset();
    note_error(why);
    VIADUCT_LOG(info, "agent", "connection lost: %s", why);
    for (auto& [ticket, p] : pending) {
        if (p->state == State::open) p->state = State::broken;
        p->changed.notify_all();
    }
    std::erase_if(pending, [](const auto& entry) { return bool(entry.second->late); });
    wake_leader();
}

void AgentLink::Impl::deliver(Mail mail) {
    const uint32_t ticket = mail.header.ticket;
    if (ticket == 0) {
        events.push_back({std::move(mail), {}, epoch});
        return;
    }
    auto it = pending.find(ticket);
    if (it == pending.end()) return;  // abandoned meanwhile
    if (it->second->late) {
        events.push_back({std::move(mail), it->second->late, epoch});
        pending.erase(it);
        return;
    }
    if (it->second->state == State::broken) return;
    Pending& p = *it->second;
    p.answers.push_back(std::move(mail));
    p.state = State::answered;
    if (p.leading) wake_leader();
    p.changed.notify_all();
}

bool AgentLink::Impl::has_socket() {
    if (!socket.valid()) return false;
    if (socket.is_ours()) return true;
    lose("the program has closed our socket");
    return false;
}

// A message that there is no memory for is lost, and its answer with it: the connection has to be made anew.
Status AgentLink::Impl::take_mail() {
    try {
        Mail mail;
        const Status got = receive_mail(socket.get(), &mail);
        if (got == Status::ok) deliver(std::move(mail));
        return got;
    } catch (const std::exception&) {
        return Status::out_of_resources;
    }
}

void AgentLink::Impl::drain() {
    if (!has_socket()) return;
    while (socket.valid()) {
        switch (take_mail()) {
            case Status::ok:
                continue;
            case Status::not_done:
                return;
            case Status::invalid:
                lose("the agent sent something that is no message");
                return;
            case Status::out_of_resources:
                lose("no memory for a message of the agent");
                return;
            default:
                lose("the agent closed the connection");
                return;
        }
    }
}

void AgentLink::Impl::pass_leadership() {
    leader = false;
    for (auto& [ticket, p] : pending) {
        if (p->state == State::open) {
            p->changed.notify_all();  // a call that does not wait yet would miss it: so every open one is marked
        }
    }
}

void AgentLink::Impl::lead(Lock& lock, Pending& mine, Deadline deadline) {
    leader = true;
    mine.leading = true;
    pollfd fds[2] = {{socket.get(), POLLIN, 0}, {wake.fd(), POLLIN, 0}};
    lock.unlock();
    // At most kLongestSleep: should the program close the wake event meanwhile, no thread could wake this one.
    sleep_on(fds, 2, std::min(deadline, now_ns() + kLongestSleep));
    lock.lock();
    mine.leading = false;
    if (fds[1].revents != 0) wake.clear();
    leader = false;  // before drain: no thread has to wake this one now
    drain();
    pass_leadership();
}

void AgentLink::Impl::run_events(Lock& lock) {
    while (!events.empty()) {
        Unasked next = std::move(events.front());
        events.pop_front();
        Event handler = event;
        lock.unlock();
        try {
            if (next.late) {
                next.late(next.mail);
            } else if (handler) {
                handler(next.mail, next.epoch);
            }
        } catch (const std::exception&) {  // the thread may have an answer, which must not be lost
            VIADUCT_LOG(error, "agent", "no memory: a notice of the agent is not dealt with");
        }
        lock.lock();
    }
}

void AgentLink::Impl::wake_leader() {
    if (!leader) return;
    wake.signal();
}

// ok | closed (connection lost, all waiters are awake) | timeout (the agent does not read; the connection stays)
Status AgentLink::Impl::send(const Mail& mail, Lock& lock, Deadline deadline) {
    const uint64_t mine = epoch;
    while (has_socket() && epoch == mine) {
        const Status s = send_mail(socket.get(), mail);
        if (s == Status::ok || s == Status::invalid || s == Status::out_of_resources) return s;
        if (s == Status::closed) {
            drain();  // what it had answered before still counts
            lose("the agent closed the connection");
            break;
        }
        if (now_ns() >= deadline) {
            note_error("the agent does not read its messages");
            return Status::timeout;
        }
        pollfd p{socket.get(), POLLOUT, 0};
        lock.unlock();
        sleep_on(&p, 1, now_ns() + 20 * kMillisecond);
        lock.lock();
        drain();  // an agent whose answers are not read stops reading requests
    }
    return Status::closed;
}

Status AgentLink::Impl::start(AgentLink& link, Mail& request, uint32_t* ticket, Deadline callers) {
    const Deadline deadline = connect_deadline(callers);
    Lock lock(mutex);
    for (int attempt = 0; attempt < kResends; ++attempt) {
        drain();  // a kLeaving that waits to be read: the agent is leaving, so nothing is sent to it
        if (callers == kOnlyConnected && !socket.valid()) return Status::broken;
        if (const Status s = connect(link, lock, deadline); s != Status::ok) return s;
        const uint32_t t = new_ticket();
        request.header.ticket = t;
        const auto fresh = std::make_shared<Pending>();
        fresh->epoch = epoch;
        pending.emplace(t, fresh);
        const Status s = send(request, lock, deadline);
        if (s == Status::ok) {
            *ticket = t;
            return Status::ok;
        }
        pending.erase(t);
        if (s != Status::closed) return s;
    }
    return Status::broken;
}

Status AgentLink::Impl::await(uint32_t ticket, Deadline deadline, Mail* answer) {
    Lock lock(mutex);
    const auto it = pending.find(ticket);
    if (it == pending.end() || it->second->late) return Status::invalid;
    const std::shared_ptr<Pending> mine = it->second;
    Status result = Status::not_done;
    while (true) {
        if (mine->state == State::open && socket.valid()) drain();
        if (mine->state == State::answered) {
            *answer = std::move(mine->answers.front());
            mine->answers.pop_front();
            if (!more_follow(*answer)) {
                pending.erase(ticket);
            } else if (mine->answers.empty()) {
                mine->state = socket.valid() && epoch == mine->epoch ? State::open : State::broken;
            }
            result = Status::ok;
            break;
        }
        if (mine->state == State::broken) {
            pending.erase(ticket);
            result = Status::broken;
            break;
        }
        if (mine->late || !pending.contains(ticket)) {  // abandoned by another thread
            result = Status::invalid;
            break;
        }
        if (remaining_ns(deadline) == 0) break;
        if (!leader && socket.valid()) {
            lead(lock, *mine, deadline);
        } else if (deadline == kNever) {
            mine->changed.wait(lock);
        } else {
            mine->changed.wait_until(
                lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline)));
        }
    }
    if (!leader) pass_leadership();
    run_events(lock);
    return result;
}

AgentLink::AgentLink(LinkOptions options) {
    auto made = std::make_unique<Impl>();
    made->options = options;
    made->standby = std::make_unique<Impl>();
    impl_ = made.release();
}

AgentLink::~AgentLink() { delete impl_; }

Status AgentLink::connect(Deadline deadline) {
    deadline = connect_deadline(deadline);
    Impl::Lock lock(impl_->mutex);
    impl_->drain();
    const Status s = impl_->connect(*this, lock, deadline);
    impl_->run_events(lock);
    return s;
}

Status AgentLink::start(Mail request, uint32_t* ticket, Deadline deadline) {
    return impl_->start(*this, request, ticket, deadline);
}

Status AgentLink::await(uint32_t ticket, Deadline deadline, Mail* answer) {
    return impl_->await(ticket, deadline, answer);
}

void AgentLink::abandon(uint32_t ticket, Late late) {
    Impl::Lock lock(impl_->mutex);
    const auto it = impl_->pending.find(ticket);
    if (it == impl_->pending.end() || it->second->late) return;
    const std::shared_ptr<Impl::Pending> pending = it->second;
    pending->changed.notify_all();
    if (pending->leading) impl_->wake_leader();
    if (late && pending->state == Impl::State::open) {
        pending->late = late;
        return;
    }
    impl_->pending.erase(it);
    if (!late || pending->state != Impl::State::answered) return;
    Mail answer = std::move(pending->answers.front());
    lock.unlock();
    late(answer);
}

Status AgentLink::call(Mail request, Mail* answer, Deadline deadline) {
    // The state of an agent dies with it, so a request may always be sent again to the next one.
    Status s = Status::broken;
    for (int attempt = 0; attempt < kResends && s == Status::broken; ++attempt) {
        uint32_t ticket = 0;
        if (attempt != 0 && remaining_ns(deadline) == 0) return Status::timeout;
        s = impl_->start(*this, request, &ticket, deadline);
        if (s != Status::ok) return s;
        s = await(ticket, deadline, answer);
        if (s == Status::not_done) {
            abandon(ticket);
            return Status::timeout;
        }
        if (s == Status::ok && more_follow(*answer)) abandon(ticket);  // the caller takes one
    }
    if (s != Status::ok || answer->type() != kagent::Type::kError) return s;
    kagent::Error e;
    if (!answer->get(&e)) return Status::broken;
    return e.status == 0 ? Status::broken : static_cast<Status>(e.status);
}

void AgentLink::pump() {
    Impl::Lock lock(impl_->mutex);
    impl_->drain();
    impl_->run_events(lock);
}

void AgentLink::on_reattach(Reattach f) {
    Impl::Lock lock(impl_->mutex);
    impl_->reattach = std::move(f);
}

void AgentLink::on_connected(Connected f) {
    Impl::Lock lock(impl_->mutex);
    impl_->connected = std::move(f);
}

void AgentLink::on_event(Event f) {
    Impl::Lock lock(impl_->mutex);
    impl_->event = std::move(f);
}

int AgentLink::socket() const {
    Impl::Lock lock(impl_->mutex);
    return impl_->socket.ours();
}

uint64_t AgentLink::epoch() const {
    Impl::Lock lock(impl_->mutex);
    return impl_->epoch;
}

const kagent::Welcome& AgentLink::welcome() const { return impl_->welcome; }

std::string AgentLink::last_error() const {
    Impl::Lock lock(impl_->mutex);
    return impl_->error;
}

void AgentLink::reset_after_fork() {
    // The mutex may be held by a thread that does not exist here, and its owner's maps may be half changed:
    // only the descriptors are taken from the old state. Closing them is needed: the agent shall see the
    // parent's end as soon as the parent has ended.
    Impl* old = impl_;
    if (!old->standby) {  // a child's own, which has not connected
        new (&old->mutex) std::mutex;
        return;
    }
    impl_ = old->standby.release();
    impl_->options = old->options;
    impl_->ancestor = old;
    old->socket.reset();
    old->wake.reset();
    old->search.let_go();
    impl_->reattach = std::move(old->reattach);
    impl_->connected = std::move(old->connected);
    impl_->event = std::move(old->event);
}

}  // namespace viaduct
