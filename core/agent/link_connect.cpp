// SPDX-License-Identifier: BSD-2-Clause
// The connecting half of AgentLink: one thread at a time finds the agent, greets it and lets the process
// re-open what it owns; the others wait for the outcome.
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/agent/find_agent.hpp"
#include "core/agent/link_state.hpp"

namespace viaduct {

using namespace link_detail;

namespace {

Status wait_writable(int fd, Deadline deadline) {
    pollfd p{fd, POLLOUT, 0};
    sleep_on(&p, 1, deadline);
    return p.revents != 0 ? Status::ok : Status::not_done;
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
    if (!heir) heir = std::make_unique<Impl>();
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
    for (int64_t pause = kMillisecond / 4; s == Status::closed && now_ns() < deadline; pause *= 2) {
        s = connect_once(link, deadline, restore, &fd);
        if (s == Status::closed) sleep_on(nullptr, 0, now_ns() + std::min(pause, 20 * kMillisecond));
    }
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

}  // namespace viaduct
