// SPDX-License-Identifier: BSD-2-Clause
// What tests with a real vipkad share: an address of the test's own, starting and ending it, raw clients.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/agent/link.hpp"
#include "core/agent/mail.hpp"
#include "core/clock/clock.hpp"
#include "tests/eventually.hpp"

namespace viaduct::agent_testing {

inline constexpr int64_t kMs = 1'000'000;

// Which processes such a test waits for is unknown: the agent that the library starts is no child of the test. There is
// no process 0, so that the stall of the whole system counts.
inline const std::vector<pid_t> kAnyProcess{0};

template <class F>
tests::Waited eventually(const std::string& what, F condition,
                         std::chrono::nanoseconds limit = tests::kEventuallyLimit) {
    return tests::eventually(what, condition, {kAnyProcess, limit});
}

inline socklen_t fill(const std::string& text, sockaddr_un* a) {
    *a = {};
    a->sun_family = AF_UNIX;
    std::memcpy(a->sun_path, text.data(), text.size());
    if (text[0] == '@') a->sun_path[0] = '\0';
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + (text[0] == '@' ? 0 : 1));
}

inline Fd connect_to(const std::string& address, bool blocking = true) {
    sockaddr_un a;
    const socklen_t n = fill(address, &a);
    Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0));
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&a), n) != 0) return {};
    if (blocking) {
        timeval limit{10, 0};
        ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    return fd;
}

// Says hello on a raw socket; the answer.
inline Mail hello(int fd, uint32_t flags = 0, uint16_t low = kagent::kVersionMin, uint16_t high = kagent::kVersionMax) {
    kagent::Hello h;
    h.flags = flags;
    h.version_min = low;
    h.version_max = high;
    Mail m;
    if (send_mail(fd, Mail::of(kagent::Type::kHello, h, 1)) == Status::ok) (void)receive_mail(fd, &m);
    return m;
}

inline Status status_of(const Mail& m) {
    kagent::Error e;
    if (m.type() != kagent::Type::kError || !m.get(&e)) return Status::ok;
    return static_cast<Status>(e.status);
}

// The environment in which a test meets an agent that no other test uses.
class Place {
public:
    explicit Place(const char* linger_ms = "300") {
        static int count = 0;
        address = "@viaduct-unit-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
        set("VIADUCT_AGENT", address);
        set("VIADUCT_VIPKAD", VIADUCT_TEST_VIPKAD);
        set("VIADUCT_PROVIDER_PATH", VIADUCT_TEST_PROVIDERS);
        set("VIADUCT_AGENT_LINGER_MS", linger_ms);
    }
    ~Place() {
        shut_down();
        for (const auto& [name, old] : before_) {
            if (old.second) {
                ::setenv(name.c_str(), old.first.c_str(), 1);
            } else {
                ::unsetenv(name.c_str());
            }
        }
    }
    void set(const std::string& name, const std::string& value) {
        const char* old = std::getenv(name.c_str());
        before_.emplace_back(name, std::pair<std::string, bool>(old != nullptr ? old : "", old != nullptr));
        ::setenv(name.c_str(), value.c_str(), 1);
    }
    bool listening() const { return connect_to(address).valid(); }
    // Process number of the agent that listens now; 0: none.
    pid_t agent_pid() const {
        const Fd fd = connect_to(address);
        if (!fd.valid()) return 0;
        const Mail m = hello(fd.get(), kagent::kHelloTool);
        kagent::Welcome w;
        return m.get(&w) ? static_cast<pid_t>(w.agent_pid) : 0;
    }
    void shut_down() {
        const Fd fd = connect_to(address);
        if (!fd.valid()) return;
        hello(fd.get(), kagent::kHelloTool);
        Mail m;
        if (send_mail(fd.get(), Mail(kagent::Type::kShutdown, 2)) == Status::ok) {
            while (receive_mail(fd.get(), &m) == Status::ok) {
            }
        }
    }
    std::string address;

private:
    std::vector<std::pair<std::string, std::pair<std::string, bool>>> before_;
};

// vipkad as a child of the test.
class Daemon {
public:
    // `prepare` is called in the process of vipkad before vipkad begins; false: it does not begin.
    Daemon(const std::string& address, const std::vector<std::string>& more = {}, bool (*prepare)() = nullptr) {
        std::vector<std::string> words = {"vipkad", "--socket", address};
        words.insert(words.end(), more.begin(), more.end());
        std::vector<char*> arguments;
        for (std::string& w : words) arguments.push_back(w.data());
        arguments.push_back(nullptr);
        pid = ::fork();
        if (pid == 0) {
            if (prepare == nullptr || prepare()) ::execv(VIADUCT_TEST_VIPKAD, arguments.data());
            ::_exit(126);
        }
        const auto is_up = [&] { return connect_to(address).valid() || (status = wait_now()) != -1; };
        up = eventually("vipkad listens at " + address, is_up).holds;
    }
    ~Daemon() { end(SIGKILL); }
    // Exit status when it has ended by itself, -1 otherwise.
    int wait_now() {
        if (pid <= 0) return status;
        int s = 0;
        if (::waitpid(pid, &s, WNOHANG) != pid) return -1;
        pid = -1;
        return status = s;
    }
    tests::Waited ends() {
        return eventually("vipkad ends", [&] { return pid <= 0 || wait_now() != -1; });
    }
    void end(int signal) {
        if (pid <= 0) return;
        ::kill(pid, signal);
        ::waitpid(pid, &status, 0);
        pid = -1;
    }
    pid_t pid = -1;
    bool up = false;
    int status = -1;
};

// Another agent has come, served a client and left after its linger time: a sign that this time has passed for all.
inline bool another_agent_has_left(const Place& place, const std::string& linger_ms) {
    const std::string address = place.address + "-another";
    Daemon another(address, {"--linger-ms", linger_ms});
    const bool is_served = another.up && hello(connect_to(address).get()).type() == kagent::Type::kWelcome;
    return is_served && another.ends();
}

}  // namespace viaduct::agent_testing
