// SPDX-License-Identifier: BSD-2-Clause
// The event loop of vipkad: what it waits for, its turns, its end; see server.hpp.
#include "kagent/server.hpp"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "kagent/service.hpp"

namespace viaduct::kagent {

namespace {

constexpr int64_t kRetry = 50 * kMillisecond;
constexpr size_t kSilentInAll = 4096;
constexpr int64_t kServed = kMillisecond;        // then new connections are looked for
constexpr int64_t kAccepted = 2 * kMillisecond;  // then the connected clients are served

epoll_data_t data_of(uint64_t number) {
    epoll_data_t data{};
    data.u64 = number;
    return data;
}

bool is_abstract(int listener) {
    sockaddr_un address{};
    socklen_t length = sizeof address;
    return ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
           address.sun_path[0] == '\0';
}

}  // namespace

sigset_t hold_end_signals() {
    sigset_t mask;
    ::sigemptyset(&mask);
    for (const int s : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&mask, s);
    ::sigprocmask(SIG_BLOCK, &mask, nullptr);
    return mask;
}

Server::Server(Options options, AgentSettings settings, Providers& providers, Fd listener)
    : options_(std::move(options)),
      linger_ns_(settings.linger_ms * kMillisecond),
      client_stall_ns_(settings.client_stall_ms * kMillisecond),
      epoll_(above_stdio(::epoll_create1(EPOLL_CLOEXEC))),
      admission_(std::move(listener), epoll_.get(), data_of(static_cast<uint64_t>(Watch::listener)),
                 {"vipkad", kSilentOfOneUser, kSilentInAll, limit_ns(TimeLimit::agent_hello), settings.flaws, SIZE_MAX,
                  kAccepted},
                 closers_),
      own_users_only_(options_.own_user_only || is_abstract(admission_.fd())),
      providers_(providers),
      agent_(std::move(settings), providers, *this),
      throttle_(agent_.limits(), [this](uid_t user) { return count_in_flight(user); }),
      idle_since_(now_ns()) {
    if (linger_ns_ < 0) options_.forever = true;
    agent_.limits().recount_by([this](uid_t user) { count_in_flight(user); });
    const sigset_t mask = hold_end_signals();
    signals_ = Fd(above_stdio(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK)));
    watch(signals_.get(), EPOLLIN, static_cast<uint64_t>(Watch::signals));
    watch_links();
    list_nics();
}

Server::~Server() = default;

void Server::watch(int fd, uint32_t events, uint64_t data) {
    epoll_event e{};
    e.events = events;
    e.data = data_of(data);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e) != 0)
        spdlog::error("cannot watch a descriptor: {}", std::strerror(errno));
}

// ---- the loop

int Server::timeout_ms(int64_t now) const {
    int64_t next = std::min({agent_.next_deadline(), links_due_, inquiry_times_.next()});
    if (admission_.count_silent() != 0 || holds_back_ || closers_.busy()) {
        next = std::min(next, now + kLook);
    } else if (!options_.forever && agent_.keepers() == 0) {
        next = std::min(next, now < leaving_at() ? leaving_at() : agent_.tells_until());
    }
    // A send refused for too many descriptors in flight has no event that says when it may be tried again.
    if (!writers_.empty()) next = std::min(next, now + kRetry);
    if (!waiting_.empty()) next = std::min(next, now + kTaking);
    if (admission_.rests()) next = std::min(next, admission_.rests_until());
    if (next == kNever) return -1;
    if (next <= now) return 0;
    return static_cast<int>(std::min<int64_t>((next - now + kMillisecond - 1) / kMillisecond, 60'000));
}

void Server::note_keepers(int64_t now) {
    if (agent_.keepers() == 0) return;
    idle_since_ = now;
    had_keepers_ = true;
}

// The process that started the agent needs a moment to connect, even when the linger is short.
int64_t Server::leaving_at() const {
    return idle_since_ + (had_keepers_ ? linger_ns_ : std::max(linger_ns_, limit_ns(TimeLimit::agent_first_client)));
}

bool Server::time_to_leave(int64_t now) {
    if (stop_ || agent_.shutdown_asked()) return true;
    if (agent_.keepers() != 0 || options_.forever || now < leaving_at()) return false;
    // A client that connects at this moment is accepted, and the agent stays.
    const size_t before = clients_.size();
    admission_.accept(*this);
    if (clients_.size() != before) return false;
    // A client that has connected but not yet said hello gets its chance, too.
    if (admission_.count_silent() != 0) return false;
    // What is kept of processes that have ended is for tools. To a program the agent has left: its settings may be old.
    if (now < agent_.tells_until()) agent_.serve_tools_only();
    return now >= agent_.tells_until();
}

// Clients that have sent something or can be sent something.
void Server::gather(int timeout_ms, int64_t* now) {
    epoll_event events[256];
    const int n = ::epoll_wait(epoll_.get(), events, 256, timeout_ms);
    *now = now_ns();
    note_keepers(*now);  // up to this moment, before any client leaves
    bool callers = false;
    for (int i = 0; i < n; ++i) {
        const uint64_t data = events[i].data.u64;
        if (data == static_cast<uint64_t>(Watch::listener)) {
            callers = true;
        } else if (data == static_cast<uint64_t>(Watch::signals)) {
            stop_ = true;
        } else if (data == static_cast<uint64_t>(Watch::links)) {
            note_report(*now);
        } else if (data == static_cast<uint64_t>(Watch::inquiries)) {
            nics_answered_ = true;
        } else if (const auto c = clients_.find(data & ~kProcessBit); c != clients_.end()) {
            turns_.ready(c->second->credentials().uid, data, events[i].events);
        }
    }
    if (callers) admission_.accept(*this);
    if (*now < next_retry_) return;
    next_retry_ = *now + kRetry;
    for (const uint64_t key : writers_) turns_.ready(clients_.at(key)->credentials().uid, key, EPOLLOUT);
}

void Server::serve_in_turns() {
    int64_t now = now_ns();
    const int64_t until = now + kServed;
    while (now < until) {
        const auto turn = turns_.next();
        if (!turn) return;
        serve(turn->item, turn->events);
        reap();
        const int64_t after = now_ns();
        turns_.charge(turn->user, after - now);
        now = after;
    }
}

void Server::run() {
    while (true) {
        int64_t now = now_ns();
        agent_.tick(now);
        reap();
        if (time_to_leave(now)) break;
        gather(turns_.empty() ? timeout_ms(now) : 0, &now);
        serve_in_turns();
        admission_.look(now);
        look_at_links(now);
        look_at_nics(now);
        look_at_waiting(now);
        look_at_clients(now);
        reap();
        note_keepers(now_ns());
    }
    finish();
}

// New clients from now on find no agent and start, or wait for, the next agent.
void Server::finish() {
    spdlog::info("leaving");
    notify_manager("STOPPING=1");
    if (!options_.keep_socket) {
        if (!options_.address.empty() && options_.address[0] != '@') ::unlink(options_.address.c_str());
        admission_.close();
    }
    agent_.announce_leaving();
    const int64_t deadline = now_ns() + limit_ns(TimeLimit::agent_flush);
    for (auto& [key, c] : clients_) {
        while (c->flush() == Status::not_done && now_ns() < deadline) {
            const timespec nap{0, 1'000'000};
            ::nanosleep(&nap, nullptr);
        }
    }
}

}  // namespace viaduct::kagent
