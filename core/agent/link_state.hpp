// SPDX-License-Identifier: BSD-2-Clause
// The inside of AgentLink, for its two files: link.cpp (tickets and waiting) and link_connect.cpp (finding,
// greeting, reattaching). Everything here is guarded by `mutex`, unless it says otherwise.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/agent/find_agent.hpp"
#include "core/agent/link.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/shm/wake_event.hpp"

namespace viaduct {

namespace link_detail {

inline constexpr int64_t kMillisecond = 1'000'000;
inline constexpr int64_t kLongestPause = 100 * kMillisecond;  // between two attempts

// When the connecting that a caller asks for ends: finding, starting, greeting and re-opening, all together. Calls
// without a timeout of their own end within TimeLimit::agent_call, and have something left to do then.
inline Deadline connect_deadline(Deadline callers) {
    const int64_t now = now_ns();
    return std::clamp(callers, now + limit_ns(TimeLimit::agent_connect_least),
                      now + limit_ns(TimeLimit::agent_connect));
}

inline void sleep_on(pollfd* fds, nfds_t count, Deadline deadline) {
    const int64_t left = remaining_ns(deadline);
    const timespec t = timespec_of(left);
    ::ppoll(fds, count, left < 0 ? nullptr : &t, nullptr);
}

}  // namespace link_detail

struct AgentLink::Impl {
    enum class State { open, answered, broken };
    struct Pending {
        State state = State::open;
        bool leading = false;
        uint64_t epoch = 0;        // of the connection that the request went over
        std::deque<Mail> answers;  // lists come in several messages
        std::condition_variable changed;
        Late late;  // set: abandoned, and the answer, should it come, is undone
    };
    using Lock = std::unique_lock<std::mutex>;

    LinkOptions options;
    std::mutex mutex;
    std::condition_variable connect_done;
    KeptFd socket;
    WakeEvent wake;  // makes the leader look again
    bool connecting = false;
    int reattach_socket = -1;  // valid on the connecting thread while it runs `reattach`
    bool leader = false;
    uint32_t next_ticket = 1;
    uint64_t epoch = 0;
    kagent::Welcome welcome{};
    std::string error;
    // The results of the connecting thread, which publishes them under the mutex at its end.
    std::string attempt_error;
    Deadline attempt_deadline = 0;
    bool replaced = false;    // an agent has answered the request to end
    int requests_to_end = 0;  // sent to agents by this process
    kagent::Welcome attempt_welcome{};
    std::map<uint32_t, std::shared_ptr<Pending>> pending;
    // Mail for which no thread waits: messages with ticket 0, and answers to abandoned requests, with the calls that
    // undo them.
    struct Unasked {
        Mail mail;
        Late late;
        uint64_t epoch;  // of the connection that it has come over
    };
    std::deque<Unasked> events;
    Reattach reattach;
    Connected connected;
    Event event;
    Impl* ancestor = nullptr;  // the parent process' state, kept reachable and never touched
    // What a forked child uses instead. Made beforehand: at the fork another thread may have held a lock of
    // the allocator, which is never released in the child.
    std::unique_ptr<Impl> standby;

    uint32_t new_ticket() {
        uint32_t t = next_ticket++;
        if (t == 0) t = next_ticket++;
        return t;
    }

    void wake_leader();

    void note_error(const char* why) noexcept;
    // The agent has ended. Wakes every thread that waits for its answer.
    void lose(const char* why);
    // The socket is there and the program has not closed it; else this wakes all waiters.
    bool has_socket();

    void deliver(Mail mail);
    bool deliver_strays();

    // Takes every message that is there. Called with the mutex.
    Status take_mail();
    void drain();

    void pass_leadership();

    // Sleeps on the socket for all; returns with the mutex held again.
    void lead(Lock& lock, Pending& mine, Deadline deadline);

    void run_events(Lock& lock);

    bool replace_agent(int fd, uint32_t flaws, bool refused, Deadline deadline);
    Status hello(int fd, Deadline deadline, std::deque<Mail>* strays);
    Status connect_once(AgentLink& link, Deadline deadline, const Reattach& restore, Fd* out);
    Status connect(AgentLink& link, Lock& lock, Deadline deadline);
    Status try_until(AgentLink& link, Deadline deadline, const Reattach& restore, Fd* out);
    Status send(const Mail& mail, Lock& lock, Deadline deadline);
    Status start(AgentLink& link, Mail& request, uint32_t* ticket, Deadline deadline);
    Status await(uint32_t ticket, Deadline deadline, Mail* answer);
    std::deque<Mail> strays;  // of the connecting thread
    AgentSearch search;       // of the connecting thread; goes on where an attempt's time was over
};

}  // namespace viaduct
