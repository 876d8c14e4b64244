// SPDX-License-Identifier: BSD-2-Clause
// viaduct-udpd that has inherited limits reports them to the programs of its user, and ends when a program asks for it.
// A daemon without such limits does not.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "providers/udp/daemon/server.hpp"
#include "providers/wire/encapsulation.hpp"
#include "tests/eventually.hpp"
#include "unix_listener.hpp"

namespace viaduct::udp {
namespace {

using tests::eventually;

// An address of this process alone.
const NicAddress kOwnPort = wire::udp_address(0x7F600000u | (static_cast<uint32_t>(::getpid()) & 0x0FFFFF), 4794);

// A daemon with two programs. It ends as soon as both have left, so that each test ends.
class ReplacedDaemonTest : public testing::Test {
protected:
    ~ReplacedDaemonTest() override {
        for (Fd& program : programs_) program.reset();
        if (thread_.joinable()) thread_.join();
    }

    void serve(uint32_t flaws) {
        server_ =
            std::make_unique<RequestServer>(RequestServer::Options{kOwnPort, 0, false, flaws}, listener_.listening(4));
        std::string why, cure;
        ASSERT_TRUE(server_->open_port(&why, &cure)) << why;
        const Hello hello{};
        for (Fd& program : programs_) {
            program = listener_.client();
            ASSERT_EQ(::send(program.get(), &hello, sizeof hello, 0), static_cast<ssize_t>(sizeof hello));
        }
        thread_ = std::thread([this] {
            server_->run();
            has_ended_ = true;
        });
        for (const Fd& program : programs_) {
            Welcome w;
            ASSERT_TRUE(eventually("the program is welcome", [&] {
                return ::recv(program.get(), &w, sizeof w, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof w);
            }));
            EXPECT_EQ(w.status, 0) << w.why;
            EXPECT_EQ(w.flaws, flaws);
        }
    }
    void ask_to_end() const {
        FilterMessage message;
        message.what = FilterMessage::end;
        ASSERT_EQ(::send(programs_[0].get(), &message, sizeof message, 0), static_cast<ssize_t>(sizeof message));
    }

    tests::UnixListener listener_;
    std::unique_ptr<RequestServer> server_;
    std::array<Fd, 2> programs_;
    std::thread thread_;
    std::atomic<bool> has_ended_ = false;
};

TEST_F(ReplacedDaemonTest, ItEndsForAProgramThoughAnotherOneIsThere) {
    ASSERT_NO_FATAL_FAILURE(serve(1));
    ask_to_end();
    EXPECT_TRUE(eventually("the daemon ends", [&] { return has_ended_.load(); }));
}

TEST_F(ReplacedDaemonTest, WithoutInheritedLimitsItStays) {
    ASSERT_NO_FATAL_FAILURE(serve(0));
    ask_to_end();
    char any = 0;
    EXPECT_TRUE(eventually("the program's session is closed",
                           [&] { return ::recv(programs_[0].get(), &any, 1, MSG_DONTWAIT) == 0; }));
    EXPECT_FALSE(has_ended_.load());
}

}  // namespace
}  // namespace viaduct::udp
