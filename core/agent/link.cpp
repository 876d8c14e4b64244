// SPDX-License-Identifier: BSD-2-Clause
// AgentLink: tickets, waiting, reconnecting. Any thread of the application may be inside; one of those that
// wait (the leader) sleeps on the socket, the others (followers) on their own condition variable. Whoever
// reads a message hands it to its owner; a leader that leaves wakes a follower to take its place.
//
// Two ways a wake-up could be lost, and what prevents them: somebody else (pump, a sender) reads the leader's
// answer while it sleeps on the socket: the reader writes the leader's eventfd; the leader leaves while
// others wait: it signals one of them before it returns.
#include "core/agent/link.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>

#include "core/agent/find_agent.hpp"
#include "core/clock/clock.hpp"
#include "core/log/log.hpp"

namespace viaduct {

namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kConnectPatience = 5000 * kMillisecond;
constexpr int kResends = 8;  // of one request, each to a new agent

void sleep_on(pollfd* fds, nfds_t count, Deadline deadline) {
    const int64_t left = remaining_ns(deadline);
    timespec t{left / 1'000'000'000, left % 1'000'000'000};
    ::ppoll(fds, count, left < 0 ? nullptr : &t, nullptr);
}

Status wait_writable(int fd, Deadline deadline) {
    pollfd p{fd, POLLOUT, 0};
    sleep_on(&p, 1, deadline);
    return p.revents != 0 ? Status::ok : Status::not_done;
}

// True for all but the last message of a list.
bool more_follow(const Mail& mail) {
    kagent::NicEntry nic;
    kagent::RejectionEntry rejection;
    switch (mail.type()) {
        case kagent::Type::kNicEntry:
            return mail.get(&nic) && nic.more != 0;
        case kagent::Type::kRejection:
            return mail.get(&rejection) && rejection.more != 0;
        default:
            return false;
    }
}

// Blocking exchange on a socket that nobody else uses yet. Messages with another ticket go to `strays`.
Status exchange_on(int fd, const Mail& request, Mail* answer, Deadline deadline, std::deque<Mail>* strays) {
    for (Status s = Status::not_done; s == Status::not_done;) {
        s = send_mail(fd, request);
        if (s == Status::not_done && wait_writable(fd, deadline) != Status::ok) return Status::timeout;
        if (s != Status::ok && s != Status::not_done) return s;
    }
    while (true) {
        Mail mail;
        const Status s = receive_mail(fd, &mail);
        if (s == Status::ok) {
            if (mail.header.ticket == request.header.ticket) {
                *answer = std::move(mail);
                return Status::ok;
            }
            strays->push_back(std::move(mail));
            continue;
        }
        if (s != Status::not_done) return s;
        if (remaining_ns(deadline) == 0) return Status::timeout;
        pollfd p{fd, POLLIN, 0};
        sleep_on(&p, 1, deadline);
    }
}

}  // namespace

struct AgentLink::Impl {
    enum class State { open, answered, broken };
    struct Pending {
        State state = State::open;
        bool leading = false;
        uint64_t epoch = 0;        // of the connection that the request went over
        std::deque<Mail> answers;  // lists come in several messages
        std::condition_variable changed;
    };
    using Lock = std::unique_lock<std::mutex>;

    LinkOptions options;
    std::mutex mutex;
    std::condition_variable connect_done;
    Fd socket;
    Fd wake;  // eventfd: makes the leader look again
    bool connecting = false;
    int reattach_socket = -1;  // valid on the connecting thread while it runs `reattach`
    bool leader = false;
    uint32_t next_ticket = 1;
    uint64_t epoch = 0;
    uint64_t breaks = 0;  // counts connections lost
    kagent::Welcome welcome{};
    std::string error;
    // What the connecting thread has learnt; published under the mutex when it is through.
    std::string attempt_error;
    kagent::Welcome attempt_welcome{};
    std::map<uint32_t, std::shared_ptr<Pending>> pending;
    std::deque<Mail> events;
    Reattach reattach;
    Event event;
    Impl* ancestor = nullptr;  // the parent process' state, kept reachable and never touched

    uint32_t new_ticket() {
        uint32_t t = next_ticket++;
        if (t == 0) t = next_ticket++;
        return t;
    }

    void wake_leader() {
        if (!leader) return;
        const uint64_t one = 1;
        if (::write(wake.get(), &one, sizeof one) < 0)
            VIADUCT_LOG(error, "agent", "waking a waiting thread failed: errno %d", errno);
    }

    // The agent is gone: everybody who waits for an answer of it hears so.
    void lose(const char* why) {
        if (!socket.valid()) return;
        socket.reset();
        ++breaks;
        error = why;
        VIADUCT_LOG(info, "agent", "connection lost: %s", why);
        for (auto& [ticket, p] : pending) {
            if (p->state == State::open) p->state = State::broken;
            p->changed.notify_all();
        }
        wake_leader();
    }

    void deliver(Mail mail) {
        const uint32_t ticket = mail.header.ticket;
        if (ticket == 0) {
            events.push_back(std::move(mail));
            return;
        }
        auto it = pending.find(ticket);
        if (it == pending.end() || it->second->state == State::broken) return;  // abandoned meanwhile
        Pending& p = *it->second;
        p.answers.push_back(std::move(mail));
        p.state = State::answered;
        if (p.leading) wake_leader();
        p.changed.notify_all();
    }

    // Takes every message that is there. Called with the mutex.
    void drain() {
        while (socket.valid()) {
            Mail mail;
            switch (receive_mail(socket.get(), &mail)) {
                case Status::ok:
                    deliver(std::move(mail));
                    continue;
                case Status::not_done:
                    return;
                case Status::invalid:
                    lose("the agent sent something that is no message");
                    return;
                default:
                    lose("the agent closed the connection");
                    return;
            }
        }
    }

    void pass_leadership() {
        leader = false;
        for (auto& [ticket, p] : pending) {
            if (p->state == State::open) {
                p->changed.notify_all();  // those not waiting do not hear it: so every open one is told
            }
        }
    }

    // Sleeps on the socket for all; returns with the mutex held again.
    void lead(Lock& lock, Pending& mine, Deadline deadline) {
        leader = true;
        mine.leading = true;
        pollfd fds[2] = {{socket.get(), POLLIN, 0}, {wake.get(), POLLIN, 0}};
        lock.unlock();
        sleep_on(fds, 2, deadline);
        lock.lock();
        mine.leading = false;
        uint64_t count = 0;
        if (fds[1].revents != 0 && ::read(wake.get(), &count, sizeof count) < 0 && errno != EAGAIN)
            error = "eventfd";
        leader = false;  // before drain: nobody has to wake us now
        drain();
        pass_leadership();
    }

    void run_events(Lock& lock) {
        while (!events.empty()) {
            Mail mail = std::move(events.front());
            events.pop_front();
            Event handler = event;
            lock.unlock();
            if (handler) handler(mail);
            lock.lock();
        }
    }

    Status hello(int fd, Deadline deadline, std::deque<Mail>* strays);
    Status connect_once(AgentLink& link, Deadline deadline, const Reattach& restore, Fd* out);
    Status connect(AgentLink& link, Lock& lock);
    Status send(const Mail& mail, Lock& lock);
    Status start(AgentLink& link, Mail& request, uint32_t* ticket);
    Status await(uint32_t ticket, Deadline deadline, Mail* answer);
    std::deque<Mail> strays;  // of the connecting thread
};

Status AgentLink::Impl::hello(int fd, Deadline deadline, std::deque<Mail>* early) {
    kagent::Hello body;
    body.flags = options.hello_flags;
    std::strncpy(body.program, program_invocation_short_name, sizeof(body.program) - 1);
    Mail answer;
    const Status s = exchange_on(fd, Mail::of(kagent::Type::kHello, body, 1), &answer, deadline, early);
    if (s != Status::ok) return s == Status::timeout ? Status::timeout : Status::closed;
    kagent::Welcome w;
    if (answer.type() == kagent::Type::kWelcome && answer.get(&w)) {
        if (w.version < kagent::kVersionMin || w.version > kagent::kVersionMax) return Status::version;
        attempt_welcome = w;
        return Status::ok;
    }
    kagent::Error e;
    if (answer.type() == kagent::Type::kError && answer.get(&e)) {
        attempt_error = std::string(text_of(e.text));
        const auto status = static_cast<Status>(e.status);
        if (status == Status::version) {
            attempt_error += " (the agent speaks versions " + std::to_string(e.version_min) + " to " +
                             std::to_string(e.version_max) + ", this program " +
                             std::to_string(kagent::kVersionMin) + " to " +
                             std::to_string(kagent::kVersionMax) + "; update the older one)";
            return Status::version;
        }
        return Status::denied;
    }
    return Status::version;
}

// One attempt: connect, hello, reattach. Runs without the mutex; `connecting` keeps others away. closed: the
// agent was just leaving, try again.
Status AgentLink::Impl::connect_once(AgentLink& link, Deadline deadline, const Reattach& restore, Fd* out) {
    Fd fd;
    std::string why;
    if (const Status s = connect_agent(agent_place(), options.start_agent, deadline, &fd, &why);
        s != Status::ok) {
        attempt_error = why;
        return s;
    }
    strays.clear();
    if (const Status s = hello(fd.get(), deadline, &strays); s != Status::ok) {
        if (s == Status::timeout) attempt_error = "the agent took the connection but does not answer";
        return s == Status::timeout ? Status::broken : s;
    }
    if (restore) {
        reattach_socket = fd.get();
        const Status s = restore(link);
        reattach_socket = -1;
        if (s == Status::broken || s == Status::closed) return Status::closed;
        if (s != Status::ok) {
            attempt_error = "the new agent did not take over what this process owns";
            return s == Status::denied || s == Status::version ? s : Status::broken;
        }
    }
    *out = std::move(fd);
    return Status::ok;
}

Status AgentLink::Impl::connect(AgentLink& link, Lock& lock) {
    while (connecting) connect_done.wait(lock);
    if (socket.valid()) return Status::ok;
    if (!wake.valid()) wake = Fd(above_stdio(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
    if (!wake.valid()) {
        error = "no descriptor is left to talk to the agent (see ulimit -n)";
        return Status::out_of_resources;
    }
    connecting = true;
    const Deadline deadline = now_ns() + kConnectPatience;
    const Reattach restore = reattach;
    Fd fd;
    lock.unlock();
    Status s = Status::closed;
    while (s == Status::closed && now_ns() < deadline) s = connect_once(link, deadline, restore, &fd);
    lock.lock();
    connecting = false;
    error = std::move(attempt_error);
    attempt_error.clear();
    if (s == Status::ok) {
        ++epoch;
        welcome = attempt_welcome;
        socket = std::move(fd);
        for (Mail& m : strays) deliver(std::move(m));
        strays.clear();
        VIADUCT_LOG(info, "agent", "connected to agent process %u", welcome.agent_pid);
    } else if (s == Status::closed) {
        error = "the agent closes every connection at once";
        s = Status::broken;
    }
    connect_done.notify_all();
    return s;
}

// ok | closed (connection lost, everybody told)
Status AgentLink::Impl::send(const Mail& mail, Lock& lock) {
    const uint64_t mine = epoch;
    const Deadline deadline = now_ns() + kConnectPatience;
    while (socket.valid() && epoch == mine) {
        const Status s = send_mail(socket.get(), mail);
        if (s == Status::ok || s == Status::invalid || s == Status::out_of_resources) return s;
        if (s == Status::closed || now_ns() >= deadline) {
            lose(s == Status::closed ? "the agent closed the connection"
                                     : "the agent does not read its messages");
            break;
        }
        pollfd p{socket.get(), POLLOUT, 0};
        lock.unlock();
        sleep_on(&p, 1, now_ns() + 20 * kMillisecond);
        lock.lock();
        drain();  // an agent whose answers nobody takes would not read us either
    }
    return Status::closed;
}

Status AgentLink::Impl::start(AgentLink& link, Mail& request, uint32_t* ticket) {
    Lock lock(mutex);
    for (int attempt = 0; attempt < kResends; ++attempt) {
        drain();  // a goodbye that is waiting to be read spares us sending into the void
        if (const Status s = connect(link, lock); s != Status::ok) return s;
        const uint32_t t = new_ticket();
        request.header.ticket = t;
        const auto fresh = std::make_shared<Pending>();
        fresh->epoch = epoch;
        pending.emplace(t, fresh);
        const Status s = send(request, lock);
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
    if (it == pending.end()) return Status::invalid;
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
        if (!pending.contains(ticket)) {  // abandoned by another thread
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

AgentLink::AgentLink(LinkOptions options) : impl_(new Impl) { impl_->options = options; }

AgentLink::~AgentLink() { delete impl_; }

Status AgentLink::connect() {
    Impl::Lock lock(impl_->mutex);
    impl_->drain();
    const Status s = impl_->connect(*this, lock);
    impl_->run_events(lock);
    return s;
}

Status AgentLink::start(Mail request, uint32_t* ticket) { return impl_->start(*this, request, ticket); }

Status AgentLink::await(uint32_t ticket, Deadline deadline, Mail* answer) {
    return impl_->await(ticket, deadline, answer);
}

void AgentLink::abandon(uint32_t ticket) {
    Impl::Lock lock(impl_->mutex);
    const auto it = impl_->pending.find(ticket);
    if (it == impl_->pending.end()) return;
    it->second->changed.notify_all();
    if (it->second->leading) impl_->wake_leader();
    impl_->pending.erase(it);
}

Status AgentLink::call(Mail request, Mail* answer, Deadline deadline) {
    // The state of an agent dies with it, so a request may always be sent again to the next one.
    Status s = Status::broken;
    for (int attempt = 0; attempt < kResends && s == Status::broken; ++attempt) {
        uint32_t ticket = 0;
        s = impl_->start(*this, request, &ticket);
        if (s != Status::ok) return s;
        s = await(ticket, deadline, answer);
        if (s == Status::not_done) {
            abandon(ticket);
            return Status::timeout;
        }
        if (s == Status::ok && more_follow(*answer)) abandon(ticket);  // the caller wants one
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

Status AgentLink::exchange_now(Mail request, Mail* answer) {
    if (impl_->reattach_socket < 0) return Status::invalid_state;
    {
        Impl::Lock lock(impl_->mutex);
        request.header.ticket = impl_->new_ticket();
    }
    const Status s =
        exchange_on(impl_->reattach_socket, request, answer, now_ns() + kConnectPatience, &impl_->strays);
    if (s != Status::ok) return Status::broken;
    if (answer->type() != kagent::Type::kError) return Status::ok;
    kagent::Error e;
    return answer->get(&e) && e.status != 0 ? static_cast<Status>(e.status) : Status::broken;
}

void AgentLink::on_event(Event f) {
    Impl::Lock lock(impl_->mutex);
    impl_->event = std::move(f);
}

int AgentLink::socket() const {
    Impl::Lock lock(impl_->mutex);
    return impl_->socket.get();
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
    impl_ = new Impl;
    impl_->options = old->options;
    impl_->ancestor = old;
    old->socket.reset();
    old->wake.reset();
    impl_->reattach = old->reattach;
    impl_->event = old->event;
}

}  // namespace viaduct
