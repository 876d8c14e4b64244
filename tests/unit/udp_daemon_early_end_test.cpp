// SPDX-License-Identifier: BSD-2-Clause
// A program that ended before viaduct-udpd read its first message: the daemon takes its port all the same.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "providers/udp/address.hpp"
#include "providers/udp/daemon/server.hpp"
#include "providers/wire/encapsulation.hpp"
#include "tests/eventually.hpp"
#include "udp_bound_socket.hpp"
#include "udp_frame_to_port.hpp"
#include "unix_listener.hpp"

namespace viaduct::udp {
namespace {

// An address of this process alone.
const in_addr_t kHost = 0x7F400000 | (static_cast<in_addr_t>(::getpid()) & 0x0FFFFF);

class EarlyEndTest : public testing::Test {
protected:
    EarlyEndTest()
        : server_({wire::udp_address(kHost, 4795), 0, false}, listener_.listening(4)),
          peer_(tests::bound_socket(kHost, &peer_at_)) {
        std::string why, cure;
        EXPECT_TRUE(server_.open_port(&why, &cure)) << why;
    }
    ~EarlyEndTest() override {
        other_program_.reset();
        if (thread_.joinable()) thread_.join();
    }

    // A process that sends its first message and ends. Its number.
    pid_t run_program() {
        sockaddr_in at{};
        (void)tests::bound_socket(kHost, &at);
        port_ = at;
        const pid_t program = ::fork();
        if (program == 0) ::_exit(send_hello(listener_.client(), from_socket_address(at)) ? 0 : 1);
        return program;
    }
    static void await_end(pid_t program, int options) {
        siginfo_t info{};
        ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(program), &info, WEXITED | options), 0);
        EXPECT_EQ(info.si_status, 0);
    }
    static bool send_hello(const Fd& socket, const NicAddress& data) {
        Hello hello;
        hello.data = data;
        return ::send(socket.get(), &hello, sizeof hello, 0) == static_cast<ssize_t>(sizeof hello);
    }
    void expect_answers() {
        other_program_ = listener_.client();
        ASSERT_TRUE(send_hello(other_program_, {}));
        thread_ = std::thread([this] { server_.run(); });
        EXPECT_TRUE(tests::eventually("the daemon answers at the port of the program", [&] {
            tests::send_frame(peer_, port_, wire::Kind::keep_alive);
            std::byte bytes[wire::kMinFrame];
            const ssize_t n = ::recv(peer_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
            wire::Frame f;
            return n > 0 && wire::read_frame({bytes, static_cast<size_t>(n)}, &f) == wire::Flaw::none &&
                   f.header.kind == wire::Kind::reset;
        }));
    }

    tests::UnixListener listener_;
    RequestServer server_;
    sockaddr_in peer_at_{}, port_{};
    Fd peer_, other_program_;  // without a program the daemon ends
    std::thread thread_;
};

TEST_F(EarlyEndTest, OfAProgramThatNoParentHasWaitedFor) {
    const pid_t program = run_program();
    await_end(program, WNOWAIT);
    expect_answers();
    await_end(program, 0);
}

TEST_F(EarlyEndTest, OfAProgramThatHasNoProcessAnyMore) {
    await_end(run_program(), 0);
    expect_answers();
}

}  // namespace
}  // namespace viaduct::udp
