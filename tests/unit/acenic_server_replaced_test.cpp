// SPDX-License-Identifier: BSD-2-Clause
// viaduct-acenicd that has inherited limits reports them to the applications of its user that it refuses, and ends when
// an application asks for it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "core/agent/own_limits.hpp"
#include "providers/acenic/daemon/server.hpp"
#include "tests/eventually.hpp"
#include "unix_listener.hpp"

namespace viaduct::acenic {
namespace {

using tests::eventually;

// An engine process without a port, and two applications. It ends as soon as both have left, so that each test ends.
class ReplacedEngineTest : public testing::Test {
protected:
    ~ReplacedEngineTest() override {
        for (Fd& application : applications_) application.reset();
        if (thread_.joinable()) thread_.join();
    }

    void serve() {
        server_ = std::make_unique<Server>(Server::Options{"net_null0", false, 0, kFewFiles}, listener_.listening(4));
        server_->refuse("no such port", "name another one");
        Hello hello;
        put_text(hello.port, "net_null0");
        for (Fd& application : applications_) {
            application = listener_.client();
            ASSERT_EQ(::send(application.get(), &hello, sizeof hello, 0), static_cast<ssize_t>(sizeof hello));
        }
        thread_ = std::thread([this] {
            server_->run();
            has_ended_ = true;
        });
        for (const Fd& application : applications_) {
            Welcome w;
            ASSERT_TRUE(eventually("the application is refused", [&] {
                return ::recv(application.get(), &w, sizeof w, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof w);
            }));
            EXPECT_EQ(w.status, static_cast<int32_t>(Status::out_of_resources));
            EXPECT_EQ(get_text(w.why), "no such port");
            EXPECT_EQ(w.flaws, kFewFiles);
        }
    }
    // Without an answer before.
    static void expect_closed(const Fd& application) {
        char any = 0;
        ssize_t got = -1;
        EXPECT_TRUE(eventually("the connection is closed", [&] {
            got = ::recv(application.get(), &any, 1, MSG_DONTWAIT);
            return got >= 0;
        }));
        EXPECT_EQ(got, 0);
    }

    tests::UnixListener listener_;
    std::unique_ptr<Server> server_;
    std::array<Fd, 2> applications_;
    std::thread thread_;
    std::atomic<bool> has_ended_ = false;
};

TEST_F(ReplacedEngineTest, ItEndsForAnApplicationThatItHasRefused) {
    ASSERT_NO_FATAL_FAILURE(serve());
    Attach request;
    request.end = 1;
    ASSERT_TRUE(send_message(applications_[0].get(), &request, sizeof request));
    EXPECT_TRUE(eventually("the engine process ends", [&] { return has_ended_.load(); }));
    char any = 0;
    EXPECT_LT(::recv(applications_[1].get(), &any, 1, MSG_DONTWAIT), 0) << "it has waited for the other application";
}

TEST_F(ReplacedEngineTest, AnApplicationThatItHasRefusedCannotAttach) {
    ASSERT_NO_FATAL_FAILURE(serve());
    const Fd memory(::memfd_create("segment", MFD_CLOEXEC));
    const Attach request;
    ASSERT_TRUE(send_message(applications_[0].get(), &request, sizeof request, memory.get()));
    expect_closed(applications_[0]);
    EXPECT_FALSE(has_ended_.load());
}

}  // namespace
}  // namespace viaduct::acenic
