// SPDX-License-Identifier: BSD-2-Clause
// Two processes that answer each other by blocking calls beside others that compute. The kernel lets a sleeper run when
// it is woken, as it does a process that waits at a pipe; one that keeps a processor by looking, or gives it away by
// yielding, waits for a time slice of each of the others.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

using Clock = std::chrono::steady_clock;

/// Processes that compute, two for each processor, while this lives.
class Busy {
public:
    Busy() {
        for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
            const pid_t pid = ::fork();
            if (pid == 0) {
                for (volatile unsigned n = 0;;) n = n + 1;
            }
            if (pid > 0) processes_.push_back(pid);
        }
    }
    ~Busy() {
        for (const pid_t pid : processes_) ::kill(pid, SIGKILL);
        for (const pid_t pid : processes_) ::waitpid(pid, nullptr, 0);
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

private:
    std::vector<pid_t> processes_;
};

/// The same number of exchanges through two pipes.
Millis time_of_pipes(int times) {
    int there[2], back[2];
    require(::pipe(there) == 0 && ::pipe(back) == 0, "pipe");
    const pid_t other = ::fork();
    char byte = 0;
    if (other == 0) {
        for (int i = 0; i < times; ++i)
            if (::read(there[0], &byte, 1) != 1 || ::write(back[1], &byte, 1) != 1) ::_exit(1);
        ::_exit(0);
    }
    const auto began = Clock::now();
    for (int i = 0; i < times; ++i)
        require(::write(there[1], &byte, 1) == 1 && ::read(back[0], &byte, 1) == 1, "read and write");
    const auto took = std::chrono::duration_cast<Millis>(Clock::now() - began);
    ::waitpid(other, nullptr, 0);
    for (const int fd : {there[0], there[1], back[0], back[1]}) ::close(fd);
    return took;
}

TEST(BusyMachine, BlockingCallsAnswerLikePipes) {
    constexpr int kTimes = 1000;
    End for_the_address;
    const std::string discriminator = conformance::unique_discriminator();
    const auto arguments = [&](const char* side) {
        return arguments_for(for_the_address, discriminator, {side, "block", std::to_string(kTimes)});
    };
    Child server("pingpong", arguments("serve"));
    Child client("pingpong", arguments("ask"));
    EXPECT_EQ("ready", server.line());
    EXPECT_EQ("ready", client.line());
    const Busy busy;
    const Millis pipes = time_of_pipes(kTimes);
    server.go();
    client.go();
    const std::string took = client.line();
    ASSERT_TRUE(!took.empty() && took.find_first_not_of("0123456789") == std::string::npos)
        << "the client said " << took;
    server.go();
    client.go();
    EXPECT_NE("", server.line());
    std::printf("%d exchanges: %s ms, through pipes %lld ms\n", kTimes, took.c_str(),
                static_cast<long long>(pipes.count()));
    EXPECT_LE(Millis(std::stoi(took)), 20 * pipes + Millis(3000));
}

}  // namespace
}  // namespace viaduct::integration
