// SPDX-License-Identifier: BSD-2-Clause
// Where the agent listens, who may be trusted to be it, and how many processes that start at once get one
// agent together. Called by AgentLink on the thread that connects.
#include "core/agent/find_agent.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/agent/link.hpp"
#include "core/agent/socket_address.hpp"
#include "core/agent/start_agent.hpp"
#include "core/clock/clock.hpp"
#include "viaduct/kagent.hpp"

namespace viaduct {

namespace {

constexpr int64_t kMs = 1'000'000;
// Whoever holds the starting right and does nothing with it for so long is ignored.
constexpr int64_t kStarterPatience = 1000 * kMs;
// An agent that was started and still does not listen after so long has been killed on its way: start
// another. Two that come up after all are no harm, binding the address decides.
constexpr int64_t kNewbornPatience = 1000 * kMs;

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

// The right to start the agent: an abstract name that vanishes with its holder. Without it every one of many
// processes that begin at once would start an agent, and all but one in vain.
class StartingRight {
public:
    explicit StartingRight(const std::string& agent) : name_(agent + ".starting") {}
    bool held() const { return fd_.valid(); }
    bool take() {
        sockaddr_un address;
        socklen_t length = 0;
        if (!fill_socket_address(name_, &address, &length)) return false;
        Fd fd(above_stdio(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
        if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
            return false;
        fd_ = std::move(fd);
        return true;
    }

private:
    std::string name_;
    Fd fd_;
};

void nap(int64_t ns) {
    timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr);
}

Status start_it(const std::string& address, std::string* why) {
    std::string tried;
    const std::string path = find_vipkad(&tried);
    if (path.empty()) {
        *why = "no agent listens at " + address + " and vipkad was not found (tried " + tried +
               "); install it or name it in VIADUCT_VIPKAD";
        return Status::broken;
    }
    if (const int error = spawn_agent(path, address); error != 0) {
        *why = "cannot start " + path + ": " + std::strerror(error);
        return Status::broken;
    }
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
    int64_t started = 0;  // when
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
        const bool none_started = started == 0 || now_ns() - started > kNewbornPatience;
        if (nobody && none_started && (right.held() || right.take() || now_ns() - begun > kStarterPatience)) {
            // Somebody else may have finished starting between our connect and our taking the right.
            if (try_connect(place.address, &fd) != 0) {
                if (const Status s = start_it(place.address, why); s != Status::ok) return s;
                started = now_ns();
            }
            pause = kMs / 4;
        }
        if (now_ns() + pause >= deadline) {
            if (started == 0)
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
