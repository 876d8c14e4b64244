// SPDX-License-Identifier: BSD-2-Clause
// Connecting of AgentLink: one thread at a time finds the agent, exchanges hellos and lets the process open again what
// it owns there; other threads wait for the result (AgentLink::connect).
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "core/agent/find_agent.hpp"
#include "core/agent/link_state.hpp"
#include "core/agent/own_limits.hpp"

// What argv[0] ends in. Its other name, program_invocation_short_name, is one that a program may own.
extern "C" char* __progname;

namespace viaduct {

using namespace link_detail;

namespace {

Status wait_writable(int fd, Deadline deadline) {
    pollfd p{fd, POLLOUT, 0};
    sleep_on(&p, 1, deadline);
    return p.revents != 0 ? Status::ok : Status::not_done;
}

// Sends a request and waits for its answer, on a socket that no other thread uses yet. Messages with another ticket go
// to `strays`. An agent that refuses a client sends the reason and closes, perhaps before it reads the request. So when
// sending fails, the socket is still read.
Status exchange_on(int fd, const Mail& request, Mail* answer, Deadline deadline, std::deque<Mail>* strays) {
    bool closed = false;
    for (Status s = Status::not_done; s == Status::not_done;) {
        s = send_mail(fd, request);
        if (s == Status::not_done && wait_writable(fd, deadline) != Status::ok) return Status::timeout;
        closed = s == Status::closed;
        if (s != Status::ok && s != Status::not_done && !closed) return s;
    }
    for (;;) {
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
        if (s != Status::not_done || closed) return s == Status::not_done ? Status::closed : s;
        if (remaining_ns(deadline) == 0) return Status::timeout;
        pollfd p{fd, POLLIN, 0};
        sleep_on(&p, 1, deadline);
    }
}

}  // namespace

// Asks an agent to end that has inherited worse limits than this process has (own_limits.hpp); the next attempt starts
// an agent with the limits of this process. Other clients attach to the new agent as after an agent's death. A process
// does so once, in case the new agent is no better. A process that the agent refuses asks a few times: a client with
// the limits of the old agent may start the next one first, and an agent may close the connection for the next client
// before it reads the request. True: this connection is of no use, and the next attempt may find another agent.
bool AgentLink::Impl::replace_agent(int fd, uint32_t flaws, bool refused, Deadline deadline) {
    constexpr int kMostRequests = 5;
    const bool may_start = options.start_agent && (options.hello_flags & kagent::kHelloTool) == 0;
    if (flaws == 0 || (replaced && !refused) || requests_to_end == kMostRequests || !may_start ||
        !agent_place().automatic || !could_do_better(flaws))
        return false;
    ++requests_to_end;
    VIADUCT_LOG(warn, "agent", "the agent works under limits of the program that started it (%s): asked to leave",
                names_of_flaws(flaws).c_str());
    Mail answer;
    const Status s =
        exchange_on(fd, Mail(kagent::Type::kShutdown, kagent::kHelloTicket + 1), &answer, deadline, &strays);
    replaced = s != Status::closed;
    return s == Status::closed || (s == Status::ok && answer.type() == kagent::Type::kDone);
}

Status AgentLink::Impl::hello(int fd, Deadline deadline, std::deque<Mail>* early) {
    kagent::Hello body;
    body.flags = options.hello_flags;
    std::strncpy(body.program, __progname, sizeof(body.program) - 1);
    Mail answer;
    const Status s =
        exchange_on(fd, Mail::of(kagent::Type::kHello, body, kagent::kHelloTicket), &answer, deadline, early);
    if (s == Status::timeout) attempt_error = "the agent took the connection but does not answer; is it stopped?";
    if (s == Status::invalid) attempt_error = "what listens at the agent's address speaks another protocol";
    if (s != Status::ok) return s == Status::timeout || s == Status::invalid ? s : Status::closed;
    kagent::Welcome w;
    if (answer.type() == kagent::Type::kWelcome && answer.get(&w)) {
        if (w.version >= kagent::kVersionMin && w.version <= kagent::kVersionMax) {
            attempt_welcome = w;
            return Status::ok;
        }
        attempt_error = "the agent answers in version " + std::to_string(w.version) + ", which was not offered";
        return Status::version;
    }
    kagent::Error e;
    if (answer.type() == kagent::Type::kError && answer.get(&e)) {
        const auto status = static_cast<Status>(e.status);
        if (status == Status::out_of_resources && replace_agent(fd, e.flaws, true, deadline)) return Status::closed;
        attempt_error = "the agent turned this process away: " + std::string(text_of(e.text));
        if (status == Status::version) {
            attempt_error += " (the agent speaks versions " + std::to_string(e.version_min) + " to " +
                             std::to_string(e.version_max) + ", this program " +
                             std::to_string(kagent::kVersionMin) + " to " +
                             std::to_string(kagent::kVersionMax) + "; update the older one)";
            return Status::version;
        }
        return status == Status::out_of_resources ? status : Status::denied;
    }
    attempt_error = "the agent's first answer is none to a hello";
    return Status::version;
}

// One attempt: connect, hello, reattach. Runs without the mutex; `connecting` keeps other threads out.
// closed: the agent was about to end; try again.
Status AgentLink::Impl::connect_once(AgentLink& link, Deadline deadline, const Reattach& restore, Fd* out) {
    Fd fd;
    std::string why;
    search.let_others_first(epoch != 0 ? time_for_a_better_server(welcome.flaws) : 0);
    if (const Status s = connect_agent(agent_place(), options.start_agent, deadline, &search, &fd, &why);
        s != Status::ok) {
        attempt_error = why;
        return s;
    }
    strays.clear();
    if (const Status s = hello(fd.get(), deadline, &strays); s != Status::ok)
        return s == Status::invalid ? Status::broken : s;
    if (replace_agent(fd.get(), attempt_welcome.flaws, false, deadline)) return Status::closed;
    if (restore) {
        reattach_socket = fd.get();
        const Status s = restore(link);
        reattach_socket = -1;
        if (s == Status::broken || s == Status::closed) return Status::closed;
        if (s != Status::ok) {
            attempt_error = "the new agent did not take over what this process owns";
            return s == Status::denied || s == Status::version || s == Status::out_of_resources ? s
                                                                                                 : Status::broken;
        }
    }
    *out = std::move(fd);
    return Status::ok;
}

// Repeats attempts until one succeeds, one fails with another result than `closed`, or the deadline is near.
Status AgentLink::Impl::try_until(AgentLink& link, Deadline deadline, const Reattach& restore, Fd* out) {
    for (int64_t pause = kMillisecond / 4;; pause = std::min(2 * pause, kLongestPause)) {
        attempt_error.clear();
        const Status s = connect_once(link, deadline, restore, out);
        if (s != Status::closed) return s;
        if (now_ns() + pause >= deadline) {
            if (attempt_error.empty()) attempt_error = "the agent closes every connection at once";
            return Status::broken;
        }
        sleep_on(nullptr, 0, now_ns() + pause);
    }
}

// False: one of them is lost, and with it what the connection is good for (take_mail).
bool AgentLink::Impl::deliver_strays() {
    bool all = true;
    try {
        for (Mail& m : strays) deliver(std::move(m));
    } catch (const std::exception&) {
        all = false;
    }
    strays.clear();
    return all;
}

Status AgentLink::Impl::connect(AgentLink& link, Lock& lock, Deadline deadline) {
    const auto end = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline));
    while (connecting) {
        if (connect_done.wait_until(lock, end) == std::cv_status::timeout && connecting) return Status::timeout;
    }
    if (socket.valid()) return Status::ok;
    if (!standby) standby = std::make_unique<Impl>();
    if (!wake.is_ours() && !wake.open()) {
        note_error("no descriptor is left to talk to the agent (see ulimit -n)");
        return Status::out_of_resources;
    }
    const Reattach restore = reattach;
    connecting = true;
    attempt_deadline = deadline;
    Fd fd;
    lock.unlock();
    Status s = Status::out_of_resources;
    try {
        s = try_until(link, deadline, restore, &fd);
    } catch (const std::exception&) {
        reattach_socket = -1;
        attempt_error = "no memory";
    }
    lock.lock();
    connecting = false;
    error = std::move(attempt_error);
    attempt_error.clear();
    if (s == Status::ok) {
        ++epoch;
        welcome = attempt_welcome;
        socket = KeptFd(std::move(fd));
        if (deliver_strays()) {
            VIADUCT_LOG(info, "agent", "connected to agent process %u", welcome.agent_pid);
        } else {
            lose("no memory for a message of the agent");
            s = Status::out_of_resources;
        }
    } else {
        VIADUCT_LOG(error, "agent", "no connection to the agent: %s", error.c_str());
    }
    connect_done.notify_all();
    if (s == Status::ok && connected) {
        const Connected tell = connected;
        const uint32_t agent_pid = welcome.agent_pid;
        lock.unlock();
        tell(agent_pid);
        lock.lock();
    }
    return s;
}

Status AgentLink::exchange_now(Mail request, Mail* answer) {
    if (impl_->reattach_socket < 0) return Status::invalid_state;
    {
        Impl::Lock lock(impl_->mutex);
        request.header.ticket = impl_->new_ticket();
    }
    const Status s =
        exchange_on(impl_->reattach_socket, request, answer, impl_->attempt_deadline, &impl_->strays);
    if (s == Status::timeout)
        impl_->attempt_error = "the agent does not answer while this process tells it what it owns; is it stopped?";
    if (s != Status::ok) return Status::broken;
    if (answer->type() != kagent::Type::kError) return Status::ok;
    kagent::Error e;
    return answer->get(&e) && e.status != 0 ? static_cast<Status>(e.status) : Status::broken;
}

}  // namespace viaduct
