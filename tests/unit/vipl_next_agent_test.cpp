// SPDX-License-Identifier: BSD-2-Clause
// An agent that ends, and the next one: which NICs it is told of, and that it is watched from its beginning.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/agent/mail.hpp"
#include "core/clock/clock.hpp"
#include "tests/eventually.hpp"
#include "viaduct/ext.h"
#include "viaduct/kagent.hpp"
#include "vipl_nic_testing.hpp"

namespace viaduct::vipl {
namespace {

// An agent that ends between the opening of a NIC there and the entry into the list from which a new one
// learns: the NIC of this End is taken off the list while that happens.
TEST(NicOpenTest, ANewAgentLearnsOfANicThatItsPredecessorHasJustOpened) {
    End end;
    Nic& nic = inside(end.nic);
    AgentLink& link = nic.library->link;
    const uint64_t epoch = link.epoch();
    const auto known = [&] {
        kagent::Lease none;
        none.context_id = nic.context_id;
        Mail answer;
        return link.call(Mail::of(kagent::Type::kLease, none), &answer, now_ns() + 10'000'000'000) == Status::ok;
    };
    ASSERT_TRUE(known());
    nic.library->remove_open(&nic);
    ASSERT_EQ(::kill(static_cast<pid_t>(link.welcome().agent_pid), SIGKILL), 0);
    while (link.epoch() == epoch) ASSERT_EQ(link.connect(), Status::ok) << link.last_error();
    nic.library->add_open(&nic);
    ASSERT_FALSE(known());

    EXPECT_EQ(assure_known(nic, epoch, kNever), Status::ok);
    EXPECT_TRUE(known());
    EXPECT_EQ(assure_known(nic, epoch, kNever), Status::ok) << "a second time does no harm";
    EXPECT_TRUE(known());
}

// While it lasts, the threads of this process share one processor.
class OneProcessor {
public:
    OneProcessor() {
        ::sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(::sched_getcpu(), &one);
        apply(one);
    }
    ~OneProcessor() { apply(before_); }

private:
    static void apply(const cpu_set_t& set) {
        for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
            ::sched_setaffinity(std::atoi(thread.path().filename().c_str()), sizeof set, &set);
    }
    cpu_set_t before_;
};

// Operations of a NIC among which the one that is asked for while the process tells a new agent what it owns makes its
// thread give way to all others from then on: what it wakes runs before it goes on.
struct GivesWayFromThen {
    static inline const DataOps* real;
    static inline DataOps ops;
    static inline std::unique_ptr<OneProcessor> shared;

    static void put_under(Nic& nic) {
        real = nic.ops;
        ops = *real;
        ops.describe = [](NicContext* context, Mail* mail) {
            shared = std::make_unique<OneProcessor>();
            const sched_param none{};
            ::sched_setscheduler(0, SCHED_IDLE, &none);
            return real->describe(context, mail);
        };
        nic.ops = &ops;
    }
};

// The event thread sees the end of an agent that no other thread looks at: at once, not when it looks by itself, a
// second later. The shortest of several times is no matter of how busy the machine is.
TEST(NextAgentTest, IsWatchedFromItsBeginning) {
    const End end;
    Nic& nic = inside(end.nic);
    AgentLink& link = nic.library->link;
    GivesWayFromThen::put_under(nic);
    const auto kill_agent = [&link] { ::kill(static_cast<pid_t>(link.welcome().agent_pid), SIGKILL); };
    const auto lost = [&link] { return link.socket() < 0; };
    int64_t shortest = INT64_MAX;
    kill_agent();
    for (int round = 0; round < 4; ++round) {
        ASSERT_TRUE(tests::eventually("the link sees the end of its agent", lost));
        std::thread([&link] { EXPECT_EQ(link.connect(), Status::ok) << link.last_error(); }).join();
        GivesWayFromThen::shared.reset();
        tests::RunningTime time;
        kill_agent();
        ASSERT_TRUE(tests::eventually("the link sees the end of its agent", lost));
        shortest = std::min(shortest, time.running_ns());
    }
    EXPECT_LT(shortest, 700'000'000);
}

// The NIC of an End, as an agent sees it that does not list the NIC until appear().
class Unlisted {
public:
    explicit Unlisted(End& end) : nic_(inside(end.nic)), address_(nic_.info.address) {
        nic_.info.address.bytes[5] ^= 0x55;
        AgentLink& link = nic_.library->link;
        const uint64_t epoch = link.epoch();
        ::kill(static_cast<pid_t>(link.welcome().agent_pid), SIGKILL);
        while (link.epoch() == epoch && link.connect() == Status::ok) {
        }
        EXPECT_GT(link.epoch(), epoch) << link.last_error();
    }
    ~Unlisted() { appear(); }
    void appear() { nic_.info.address = address_; }

private:
    Nic& nic_;
    const NicAddress address_;
};

std::string why(VIP_NIC_HANDLE nic) {
    char text[400] = {};
    VipxLastError(nic, text, sizeof text);
    return text;
}

// The agent finds a NIC by this name; no other name service does.
VIP_RETURN find_by_agent(const End& end) {
    std::vector<char> room(sizeof(VIP_NET_ADDRESS) + 64);
    char name[] = "paramnet0";
    VipNSInit(end.nic, nullptr);
    return VipNSGetHostByName(end.nic, name, reinterpret_cast<VIP_NET_ADDRESS*>(room.data()), 0);
}

VIP_RETURN wait_for_no_request(const End& end) {
    std::vector<char> local(sizeof(VIP_NET_ADDRESS) + 64), remote(sizeof(VIP_NET_ADDRESS) + 64);
    auto* address = reinterpret_cast<VIP_NET_ADDRESS*>(local.data());
    address->HostAddressLen = end.limits.NicAddressLen;
    address->DiscriminatorLen = 4;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection = nullptr;
    return VipConnectWait(end.nic, address, 0, reinterpret_cast<VIP_NET_ADDRESS*>(remote.data()), &attributes,
                          &connection);
}

TEST(NextAgentTest, ServesTheOtherNicsOfAProcessAndANicThatItListsLater) {
    End lost, other, third;
    Unlisted unlisted(lost);
    EXPECT_EQ(find_by_agent(other), VIP_SUCCESS);
    connect(other, third);
    EXPECT_NE(find_by_agent(lost), VIP_SUCCESS);
    EXPECT_THAT(why(lost.nic), ::testing::HasSubstr("'paramnet0' has vanished: no NIC of this host has its address"));
    EXPECT_EQ(wait_for_no_request(lost), VIP_ERROR_RESOURCE);
    EXPECT_THAT(why(lost.nic), ::testing::HasSubstr("has vanished"));
    EXPECT_FALSE(inside(lost.nic).leases.use(kagent::kLeaseCqs, 100));
    unlisted.appear();
    EXPECT_TRUE(inside(lost.nic).leases.use(kagent::kLeaseCqs, 100));
    EXPECT_EQ(find_by_agent(lost), VIP_SUCCESS);
}

TEST(NextAgentTest, MakesConnectionsOfANicThatItListsLater) {
    End lost, other;
    Unlisted unlisted(lost);
    unlisted.appear();
    EXPECT_EQ(wait_for_no_request(lost), VIP_TIMEOUT);
    connect(lost, other);
}

// While it lasts, agents that are started have a provider that does not answer.
class WithBlockedProvider {
public:
    WithBlockedProvider() {
        use_this_build();
        before_ = std::getenv("VIADUCT_PROVIDER_PATH");
        ::setenv("VIADUCT_PROVIDER_PATH", (before_ + ":" + VIADUCT_TEST_BLOCKED_PROVIDER).c_str(), 1);
    }
    ~WithBlockedProvider() { ::setenv("VIADUCT_PROVIDER_PATH", before_.c_str(), 1); }

private:
    std::string before_;
};

TEST(NextAgentTest, ServesTheOtherNicsOfAProcessWhileAProviderDoesNotAnswer) {
    const WithBlockedProvider blocked;
    pid_t agent = 0;
    {
        End lost, other, third;
        const Unlisted unlisted(lost);
        connect(other, third);
        EXPECT_NE(find_by_agent(lost), VIP_SUCCESS);
        agent = static_cast<pid_t>(inside(other.nic).library->link.welcome().agent_pid);
    }
    ::kill(agent, SIGKILL);  // other tests meet an agent without that provider
}

}  // namespace
}  // namespace viaduct::vipl
