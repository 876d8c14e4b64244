// SPDX-License-Identifier: BSD-2-Clause
// Where the agent listens, who may be trusted to be it, and how many processes that start at once get one
// agent together. Called by AgentLink on the thread that connects.
#include "core/agent/find_agent.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/agent/link.hpp"
#include "core/agent/socket_address.hpp"
#include "core/agent/start_agent.hpp"
#include "core/clock/clock.hpp"
#include "viaduct/kagent.hpp"

namespace viaduct {

namespace {

constexpr int64_t kMs = 1'000'000;
// How long an agent that was started may take until one more is: its starter may stand still, the agent too. The next one
// is given twice as long, for on a slow machine each that starts makes the others slower. Two that come up after all are
// no harm, binding the address decides.
constexpr int64_t kNewbornPatience = 1000 * kMs;
// Before one that died on its way is replaced.
constexpr int64_t kDeathPause = 20 * kMs;

// The errno of connecting, 0 when connected.
int try_connect(const std::string& text, Fd* out) {
    sockaddr_un address;
    socklen_t length = 0;
    if (!fill_socket_address(text, &address, &length)) return ENAMETOOLONG;
    Fd fd(above_stdio(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (!fd.valid()) return errno;
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) return errno;
    *out = std::move(fd);
    return 0;
}

// An abstract name can be bound by anybody, so whom we talk to is asked of the kernel: the credentials of
// whoever called listen(). Under socket activation that is root.
bool trusted(int socket, std::string* why) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
        *why = std::string("cannot learn who serves the agent socket: ") + std::strerror(errno);
        return false;
    }
    if (peer.uid == 0 || peer.uid == ::geteuid()) return true;
    *why =
        "the agent socket is served by user " + std::to_string(peer.uid) + " (process " +
        std::to_string(peer.pid) +
        "), who is neither you nor root; end that process, or set VIADUCT_AGENT to another name (\"@name\")";
    return false;
}

// The rights to start an agent, one for each turn: abstract names that vanish with their holder, who keeps them until there
// is an agent. Without them every one of many processes that begin at once would start one, and all but one in vain.
class StartingRight {
public:
    explicit StartingRight(const std::string& agent) : name_(agent + ".starting") {}
    // The right of the newest turn that has come since the caller began to look, if nobody has it.
    bool take(int64_t waited) {
        bool next = false;
        while (waited >= due_) {
            due_ += patience_;
            patience_ *= 2;
            ++turn_;
            next = true;
        }
        if (!held_.empty() && !next) return false;  // used already
        sockaddr_un address;
        socklen_t length = 0;
        const std::string name = turn_ == 0 ? name_ : name_ + std::to_string(turn_);
        if (!fill_socket_address(name, &address, &length)) return false;
        Fd fd(above_stdio(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
        if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
            return false;
        held_.push_back(std::move(fd));
        return true;
    }

private:
    std::string name_;
    std::vector<Fd> held_;
    int turn_ = 0;
    int64_t due_ = kNewbornPatience, patience_ = 2 * kNewbornPatience;  // of the next turn
};

// The agent that this process has started last.
class Newborn {
public:
    void is(pid_t pid) {
        const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
        gone_ = process < 0 && errno == ESRCH;  // it was quicker than this thread
        process_ = Fd(above_stdio(process));
    }
    bool has_died() const {
        pollfd ended{process_.get(), POLLIN, 0};
        return gone_ || (process_.valid() && ::poll(&ended, 1, 0) > 0);
    }

private:
    Fd process_;
    bool gone_ = false;
};

void nap(int64_t ns) {
    timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr);
}

Status start_it(const std::string& address, Newborn* agent, std::string* why) {
    std::string tried;
    const std::string path = find_vipkad(&tried);
    if (path.empty()) {
        *why = "no agent listens at " + address + " and vipkad was not found (tried " + tried +
               "); install it or name it in VIADUCT_VIPKAD";
        return Status::broken;
    }
    pid_t started = 0;
    if (const int error = spawn_agent(path, address, &started); error != 0) {
        *why = "cannot start " + path + ": " + std::strerror(error);
        return Status::broken;
    }
    agent->is(started);
    *why = path + " was started for " + address +
           " but does not answer; run it by hand with --foreground --log-level debug to see why";
    return Status::ok;
}

}  // namespace

AgentPlace agent_place() {
    if (const char* named = ::secure_getenv(kagent::kAgentVariable); named != nullptr && *named != '\0') {
        return {named, std::string("environment ") + kagent::kAgentVariable, named[0] == '@'};
    }
    Fd probe;
    if (try_connect(kagent::kSystemSocket, &probe) == 0)
        return {kagent::kSystemSocket, "system service", false};
    return {kagent::kUserSocketPrefix + std::to_string(::geteuid()), "automatic, one agent per user", true};
}

Status connect_agent(const AgentPlace& place, bool start, Deadline deadline, Fd* out, std::string* why) {
    StartingRight right(place.address);
    const int64_t begun = now_ns();
    bool started = false;
    Newborn newborn;
    int64_t next_birth = 0, death_pause = kDeathPause;
    for (int64_t pause = kMs / 2;; pause = pause < 16 * kMs ? pause * 2 : pause) {
        Fd fd;
        const int error = try_connect(place.address, &fd);
        if (error == 0) {
            if (!trusted(fd.get(), why)) return Status::denied;
            *out = std::move(fd);
            return Status::ok;
        }
        const bool nobody = error == ECONNREFUSED || error == ENOENT;
        if (!nobody && error != EAGAIN && error != EINTR) {
            *why = "cannot connect to the agent at " + place.address + ": " + std::strerror(error);
            return error == EACCES || error == EPERM ? Status::denied : Status::broken;
        }
        if (nobody && !(start && place.automatic)) {
            *why =
                "no agent listens at " + place.address + " (" + place.origin + "): " + std::strerror(error);
            return Status::broken;
        }
        const int64_t now = now_ns();
        if (nobody && ((now >= next_birth && newborn.has_died()) || right.take(now - begun))) {
            // Somebody else may have finished starting between our connect and our taking the right.
            if (try_connect(place.address, &fd) != 0) {
                if (const Status s = start_it(place.address, &newborn, why); s != Status::ok) return s;
                started = true;
                next_birth = now + death_pause;
                death_pause *= 2;
            }
            pause = kMs / 4;
        }
        if (now_ns() + pause >= deadline) {
            if (!started)
                *why =
                    "the agent at " + place.address + " does not take connections: " + std::strerror(error);
            return Status::broken;
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
