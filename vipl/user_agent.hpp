// SPDX-License-Identifier: BSD-2-Clause
// The user agent's services for providers (viaduct::UserAgent): agent calls over the process' one link,
// descriptors to watch, helper threads. The event thread sleeps in epoll on the agent's socket and the
// watched descriptors.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/agent/link.hpp"
#include "core/shm/wake_event.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::vipl {

class EventThread final : public UserAgent {
public:
    explicit EventThread(AgentLink& link) : link_(link) {}

    // Makes the epoll set and the thread.
    Status start() {
        const std::lock_guard lock(mutex_);
        return mend();
    }
    // Has the event thread look for all that it looks for: the link's socket, which may be a new one, and on_turn. Any
    // thread; no memory.
    void wake();
    // Has `task` done on the event thread, where no lock of the user agent is held. Any thread, any locks.
    void defer(std::function<void()> task);
    // Around a fork, so that the child finds the watches whole. In the child `reset_after_fork` instead of the second:
    // closes the descriptors; the thread is not here.
    void hold_for_fork() { mutex_.lock(); }
    void let_go_after_fork() { mutex_.unlock(); }
    void reset_after_fork();

    Status agent_start(const Mail& request, uint32_t* ticket, Deadline deadline) override;
    Status agent_await(uint32_t ticket, Deadline deadline, Mail* answer) override;
    void agent_abandon(uint32_t ticket, LateAnswer late, uint64_t argument) override;
    Status watch(int fd, void (*fired)(void*), void* argument, uint32_t* watch_id) override;
    void unwatch(uint32_t watch_id) override;
    Status spawn(const char* name, void (*body)(void*), void* argument) override;
    bool crowded() override;
    void nic_failed(uint64_t context_id) override;
    void explain(const char* reason, const char* cure) override;
    // What nic_failed does on the event thread; set once, before the first NIC is opened.
    void on_nic_failed(std::function<void(uint64_t)> handler) { nic_failed_ = std::move(handler); }
    // Called before a provider's request to connect, or to wait for one, is sent to the agent, with the context that
    // the request names; if the result is not ok, the request fails with it. Set once, before the first NIC is opened.
    void on_connect_request(std::function<Status(uint64_t, Deadline)> handler) {
        connect_request_ = std::move(handler);
    }
    // Called on the event thread once the agent has ended, and once there is another one; false: to be called again.
    // Set once, before the thread is started. It must not wait for an agent.
    void on_other_agent(std::function<bool()> handler) { other_agent_ = std::move(handler); }
    // Called on the event thread whenever it has looked, with no lock held; set once, before the thread is started.
    void on_turn(std::function<void()> handler) { turn_over_ = std::move(handler); }
    // Whether handlers of the program wait to be called; set once, before the thread is started.
    void on_question_for_calls(std::function<bool()> answer) { expects_calls_ = std::move(answer); }

private:
    struct Watch {
        KeptFd fd;
        void (*fired)(void*);
        void* argument;
    };
    using Watches = std::map<uint32_t, Watch>;

    // What an event thread is started with. The program may close the thread's epoll set, and with it the only way to
    // wake the thread. Then another thread with a new set takes its place, and the old one ends when it next looks.
    struct Turn {
        EventThread* self;
        uint64_t number;
    };
    void run(uint64_t turn);
    // mutex_ held: the set and the wake event are there and have not been closed by the program.
    bool is_whole() const;
    // mutex_ held: makes both anew, and starts a thread, unless they are whole.
    Status mend();
    int set_of(uint64_t turn);
    void follow_agent();
    void fire(uint32_t watch_id);
    void end_watch(Watches::iterator watch);
    void do_deferred();
    void look_for_the_program();

    AgentLink& link_;
    std::function<void(uint64_t)> nic_failed_;
    std::function<Status(uint64_t, Deadline)> connect_request_;
    std::function<bool()> expects_calls_;
    std::function<bool()> other_agent_;
    std::function<void()> turn_over_;
    bool ending_ = false;  // event thread only

    std::mutex mutex_;
    KeptFd epoll_;
    WakeEvent wake_;
    uint64_t turn_ = 0;
    uint64_t followed_epoch_ = 0;
    std::pair<uint64_t, bool> told_of_{0, false};  // what on_other_agent was called for: epoch, and whether it is there
    std::condition_variable fired_;
    Watches watches_;
    std::vector<std::function<void()>> deferred_;
    uint32_t next_watch_ = 1;
    uint32_t firing_ = 0;     // the watch whose function runs at this moment
    uint64_t thread_id_ = 0;  // of the event thread
};

}  // namespace viaduct::vipl
