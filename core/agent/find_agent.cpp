// SPDX-License-Identifier: BSD-2-Clause
// Where the agent listens, and how many processes that start at once get one
// agent together. Called by AgentLink on the thread that connects.
#include "core/agent/find_agent.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/agent/link.hpp"
#include "core/agent/meeting_point.hpp"
#include "core/agent/name_holder.hpp"
#include "core/agent/private_folder.hpp"
#include "core/agent/socket_address.hpp"
#include "core/agent/start_agent.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/shm/fd.hpp"
#include "viaduct/kagent.hpp"

namespace viaduct {

namespace {

constexpr int64_t kMs = 1'000'000;
// Pause before an agent that has died while it started is replaced.
constexpr int64_t kRestartPause = 20 * kMs;

// Takes a name that vanishes when its holder ends. Where another user has the name, or the kernel does not say whose it
// is, a lock file in this user's folder is used: two processes that may start an agent do no harm.
Fd take_name(const std::string& name) {
    sockaddr_un address;
    socklen_t length = 0;
    if (!fill_socket_address(name, &address, &length)) return {};
    for (bool again = false;; again = true) {
        Fd fd(above_stdio(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
        if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
        if (errno != EADDRINUSE) return {};
        const auto holder = holder_of(name, SOCK_DGRAM);
        if (holder && !is_untrusted_user(*holder)) return {};
        if (holder || again) break;  // unknown: it may have been freed meanwhile
    }
    std::string why;
    const std::string folder = make_private_folder(&why);
    if (folder.empty()) {
        VIADUCT_LOG(warn, "agent", "%s", why.c_str());
        return {};
    }
    int error = 0;
    Fd lock = private_lock(folder, private_path(folder, name), &error);
    if (error != 0 && error != EAGAIN)
        VIADUCT_LOG(warn, "agent", "no lock in %s: %s", folder.c_str(), std::strerror(error));
    return lock;
}

void nap(int64_t ns) {
    const timespec t = timespec_of(ns);
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr);
}

}  // namespace

AgentSearch::AgentSearch() = default;

void AgentSearch::begin(const std::string& address) {
    const int64_t now = now_ns();
    if (begun_ != 0 && address == address_ && now - seen_ < limit_ns(TimeLimit::agent_search)) {
        seen_ = now;
        return;
    }
    let_go();
    address_ = address;
    begun_ = seen_ = now;
    turn_ = rights_ = 0;
    // The process that starts an agent may be stopped, or the agent itself; then another one is started. The time is
    // doubled after each try, because on a slow machine each starting agent makes the others slower. Two agents do no
    // harm: only one of them can bind the address.
    due_ = limit_ns(TimeLimit::agent_start);
    interval_ = 2 * due_;
    next_birth_ = 0;
    restart_pause_ = kRestartPause;
    started_.clear();
}

void AgentSearch::let_go() {
    for (Fd& right : held_) right.reset();
    child_.reset();
    child_ended_ = false;
    begun_ = 0;
}

bool AgentSearch::take_right() {
    const int64_t waited = now_ns() - begun_;
    bool next = false;
    while (waited >= due_ && turn_ + 1 < kMostTurns) {
        due_ += interval_;
        interval_ *= 2;
        ++turn_;
        next = true;
    }
    if (rights_ == kMostTurns || (rights_ != 0 && !next)) return false;  // used already
    const std::string name = address_ + ".starting" + (turn_ == 0 ? "" : std::to_string(turn_));
    Fd right = take_name(name);
    if (!right.valid()) return false;
    held_[rights_++] = std::move(right);
    return true;
}

bool AgentSearch::now_is_due() const { return now_ns() >= next_birth_; }

bool AgentSearch::others_are_first() const { return now_ns() - begun_ < others_first_; }

bool AgentSearch::child_has_died() const {
    pollfd ended{child_.get(), POLLIN, 0};
    return child_ended_ || (child_.valid() && ::poll(&ended, 1, 0) > 0);
}

Status AgentSearch::start_one(std::string* why) {
    std::string tried;
    const std::string path = find_vipkad(&tried);
    if (path.empty()) {
        *why = "no agent listens at " + address_ + " and vipkad was not found (tried " + tried +
               "); install it or name it in VIADUCT_VIPKAD";
        return Status::broken;
    }
    pid_t started = 0;
    if (const int error = spawn_agent(path, address_, &started); error != 0) {
        *why = "cannot start " + path + ": " + std::strerror(error);
        return Status::broken;
    }
    const int process = static_cast<int>(::syscall(SYS_pidfd_open, started, 0));
    child_ended_ = process < 0 && errno == ESRCH;  // it was quicker than this thread
    child_ = Fd(above_stdio(process));
    next_birth_ = now_ns() + restart_pause_;
    restart_pause_ *= 2;
    started_ = path + " was started for " + address_ +
               " but does not answer; run it by hand with --foreground --log-level debug to see why";
    return Status::ok;
}

AgentPlace agent_place() {
    if (const char* named = ::secure_getenv(kagent::kAgentVariable); named != nullptr && *named != '\0') {
        return {named, std::string("environment ") + kagent::kAgentVariable, named[0] == '@'};
    }
    // One whose queue is full is the same place: any user can fill it, and would part a user's programs that way.
    Fd probe;
    const int error = try_connect(kagent::kSystemSocket, &probe);
    if (error == 0 || error == EAGAIN)
        return {kagent::kSystemSocket, "system service", false};
    return {kagent::kUserSocketPrefix + std::to_string(::geteuid()), "automatic, one agent per user", true};
}

Status connect_agent(const AgentPlace& place, bool start, Deadline deadline, AgentSearch* search, Fd* out,
                     std::string* why) {
    search->begin(place.address);
    std::string in_the_way;
    bool told = false;
    for (int64_t pause = kMs / 2;; pause = pause < 16 * kMs ? pause * 2 : pause) {
        Fd fd;
        in_the_way.clear();
        const int error = meet(place.address, ::geteuid(), &fd, &in_the_way, deadline);
        if (!in_the_way.empty() && !std::exchange(told, true))
            VIADUCT_LOG(warn, "agent", "%s; a socket in a folder of your own serves instead", in_the_way.c_str());
        if (error == 0) {
            search->let_go();
            *out = std::move(fd);
            return Status::ok;
        }
        if (error == EPERM && !in_the_way.empty()) {
            *why = in_the_way + "; end that process, or set VIADUCT_AGENT to another name (\"@name\")";
            return Status::denied;
        }
        const bool none = error == ECONNREFUSED || error == ENOENT;
        // An agent that is started decides whether another one serves there.
        const bool unknown = error == EBUSY;
        if (!none && !unknown && error != EAGAIN && error != EINTR) {
            *why = "cannot connect to the agent at " + place.address + ": " + std::strerror(error);
            return error == EACCES || error == EPERM     ? Status::denied
                   : error == EMFILE || error == ENFILE ? Status::out_of_resources
                                                         : Status::broken;
        }
        const std::string besides = in_the_way.empty() ? "" : "; " + in_the_way;
        if (none && !(start && place.automatic)) {
            *why = "no agent listens at " + place.address + " (" + place.origin + "): " + std::strerror(error) +
                   besides;
            return Status::broken;
        }
        if ((none || (unknown && start && place.automatic)) && search->may_start()) {
            // Another process may have finished starting between our connect and our taking the right.
            if (meet(place.address, ::geteuid(), &fd, &in_the_way, 0) != 0) {
                if (const Status s = search->start_one(why); s != Status::ok) return s;
            }
            pause = kMs / 4;
        }
        if (now_ns() + pause >= deadline) {
            *why = (search->started().empty()
                        ? "the agent at " + place.address + " does not take connections: " + std::strerror(error)
                        : search->started()) +
                   besides;
            return Status::timeout;
        }
        nap(pause);
    }
}

std::string agent_address(std::string* origin) {
    AgentPlace place = agent_place();
    if (origin != nullptr) *origin = place.origin;
    return place.address;
}

}  // namespace viaduct
