// SPDX-License-Identifier: BSD-2-Clause
// The filter of a thread that waits for a request, where another process receives the requests of several programs: a
// request that did not end the wait may have used it up.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "providers/packet/nic.hpp"
#include "tests/unit/explained_agent.hpp"

namespace viaduct::packet {
namespace {

constexpr Deadline kAtOnce = 0;

// What a port was asked for, in order: "one 1" and "every 2" with the number that it gave, "cancel 1", "cancel over 1".
using Calls = std::vector<std::string>;

class QuietPort final : public FramePort, public wire::Outlet {
public:
    QuietPort(Calls* calls, const bool* full) : calls_(*calls), full_(*full) {}

    wire::Outlet& outlet() override { return *this; }
    void transmit() override {}
    int wait_fd() const override { return -1; }
    bool set_faults(wire::LinkId, const FaultPlan&) override { return true; }
    uint32_t max_frame() const override { return sizeof frame_; }
    const NicAddress& address() const override { return address_; }
    std::string counters() const override { return ""; }
    std::byte* begin_frame(uint32_t) override { return frame_; }
    void end_frame(std::byte*, uint32_t, const NicAddress&) override {}

    uint32_t expect_request(const EndAddress&, bool every) override {
        if (full_) throw std::bad_alloc();
        calls_.push_back((every ? "every " : "one ") + std::to_string(++last_));
        return last_;
    }
    void cancel_expected(uint32_t number, bool over) override {
        calls_.push_back((over ? "cancel over " : "cancel ") + std::to_string(number));
    }

private:
    uint32_t receive_into(Take, void*) override { return 0; }

    Calls& calls_;
    const bool& full_;
    uint32_t last_ = 0;
    NicAddress address_{{1}};
    std::byte frame_[1500];
};

class QuietSource final : public PortSource {
public:
    explicit QuietSource(Calls* calls, const bool* full)
        : PortSource("udp", "a port of a test"), calls_(calls), full_(full) {}
    std::unique_ptr<FramePort> open(std::string*, std::string*) const override {
        return std::make_unique<QuietPort>(calls_, full_);
    }
    bool resolve(uint32_t, NicAddress*) const override { return false; }

private:
    Calls* calls_;
    const bool* full_;
};

class ThreadingAgent final : public UserAgent {
public:
    ThreadingAgent() = default;
    ~ThreadingAgent() {
        for (std::thread& t : threads_) t.join();
    }
    Status agent_start(const Mail&, uint32_t*, Deadline) override { return Status::not_supported; }
    Status agent_await(uint32_t, Deadline, Mail*) override { return Status::not_supported; }
    void agent_abandon(uint32_t, LateAnswer, uint64_t) override {}
    Status watch(int, void (*)(void*), void*, uint32_t*) override { return Status::not_supported; }
    void unwatch(uint32_t) override {}
    Status spawn(const char*, void (*run)(void*), void* argument) override {
        threads_.emplace_back(run, argument);
        return Status::ok;
    }
    bool crowded() override { return false; }
    void nic_failed(uint64_t) override {}
    void explain(const char*, const char*) override {}

private:
    std::vector<std::thread> threads_;
};

class PacketListen : public testing::Test {
protected:
    void SetUp() override {
        std::string why, cure;
        engine_ = Engine::get(source_, &agent_, &why, &cure);
        ASSERT_NE(engine_, nullptr) << why;
    }
    ConnectOp* begin() {
        EndAddress local;
        local.discriminator_len = 4;
        std::memcpy(local.discriminator, "here", 4);
        ConnectOp* op = nullptr;
        EXPECT_EQ(listen(*engine_, local, kAtOnce, &op), Status::ok);
        return op;
    }
    void refuse(ConnectOp* op) {
        const std::scoped_lock lock(engine_->mutex);
        engine_->on_request_refused(op);
    }
    static Status look(ConnectOp* op) {
        ConnectResult result;
        return connect_await(op, kAtOnce, &result);
    }
    static void finish(ConnectOp* op) {
        ConnectResult result;
        EXPECT_EQ(connect_finish(op, &result), Status::timeout);
    }

    Calls calls_;
    bool full_ = false;
    QuietSource source_{&calls_, &full_};
    ThreadingAgent agent_;
    std::shared_ptr<Engine> engine_;
};

TEST_F(PacketListen, ARefusedRequestChangesTheFilterOnceForAllRequests) {
    ConnectOp* const op = begin();
    EXPECT_EQ(look(op), Status::not_done);
    for (int i = 0; i < 3; ++i) {
        refuse(op);
        EXPECT_EQ(look(op), Status::not_done);
    }
    finish(op);
    EXPECT_EQ(calls_, (Calls{"one 1", "cancel over 1", "every 2", "cancel over 2"}));
}

TEST_F(PacketListen, EachThreadThatWaitsChangesItsOwnFilter) {
    ConnectOp* const first = begin();
    ConnectOp* const second = begin();
    refuse(first);
    refuse(second);
    EXPECT_EQ(look(second), Status::not_done);
    EXPECT_EQ(look(first), Status::not_done);
    finish(first);
    finish(second);
    EXPECT_EQ(calls_, (Calls{"one 1", "one 2", "cancel over 2", "every 3", "cancel over 1", "every 4", "cancel over 4",
                             "cancel over 3"}));
}

TEST_F(PacketListen, WithoutRoomForTheFilterTheWaitEndsAndCancelsNothingTwice) {
    ConnectOp* const op = begin();
    refuse(op);
    full_ = true;
    EXPECT_EQ(look(op), Status::out_of_resources);
    finish(op);
    EXPECT_EQ(calls_, (Calls{"one 1", "cancel over 1"}));
}

}  // namespace
}  // namespace viaduct::packet
