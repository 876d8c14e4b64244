// SPDX-License-Identifier: BSD-2-Clause
// What one user can take from the agent, greeted or silent, and that the others have theirs all the while.
#include <gtest/gtest.h>
#include <unistd.h>

#include "kagent_testing.hpp"

namespace viaduct::kagent::testing {
namespace {

TEST(AgentQuotaTest, SilentConnectionsCountAndEndWithTheirUser) {
    AgentSettings settings;
    settings.limits.sessions = 2;
    Bench b(settings);
    std::vector<uint64_t> silent;
    while (const uint64_t s = b.agent.arrive({100, 1000}, Bench::some_fd(), b.now)) {
        silent.push_back(s);
        ASSERT_LT(silent.size(), 10'000u);
    }
    EXPECT_EQ(silent.size(), b.agent.limits().limit(Quota::sockets));
    b.join(1001);
    EXPECT_EQ(b.last.type(), Type::kWelcome) << "another user has his own";
    for (const uint64_t s : silent) b.agent.leave(s, b.now);
    b.join(1000);
    EXPECT_EQ(b.last.type(), Type::kWelcome);
}

TEST(AgentQuotaTest, AProcessWithoutRoomMayHaveAnAgentOfInheritedLimitsReplaced) {
    AgentSettings settings;
    settings.flaws = 1;
    Bench b(settings);
    const Credentials own{100, ::geteuid()};
    ASSERT_TRUE(b.agent.may_be_replaced_by(own));
    const uint64_t s = b.agent.arrive_without_room(own, {}, b.now, "no room");
    b.post(s, Type::kHello, Hello{}, 1);
    const auto refusal = body_of<Error>(b.take(s));
    EXPECT_EQ(refusal.status, static_cast<int32_t>(Status::out_of_resources));
    EXPECT_EQ(refusal.flaws, 1u);
    EXPECT_STREQ(refusal.text, "no room");
    EXPECT_FALSE(b.agent.shutdown_asked());
    EXPECT_TRUE(b.out.dropped.empty()) << "the process may answer";
    b.agent.handle(s, Mail(Type::kShutdown, 2), b.now);
    EXPECT_EQ(b.take(s).type(), Type::kDone);
    EXPECT_TRUE(b.agent.shutdown_asked());
    b.agent.leave(s, b.now);
    EXPECT_EQ(b.agent.limits().used(own.uid, Quota::descriptors), 0u);
}

TEST(AgentQuotaTest, AProcessWithoutRoomHasNoOtherRequest) {
    AgentSettings settings;
    settings.flaws = 1;
    Bench b(settings);
    const uint64_t s = b.agent.arrive_without_room({100, ::geteuid()}, {}, b.now, "no room");
    b.post(s, Type::kHello, Hello{}, 1);
    b.take(s);
    b.agent.handle(s, Mail(Type::kListNics, 2), b.now);
    EXPECT_TRUE(b.quiet(s));
    EXPECT_EQ(b.out.dropped.count(s), 1u);
    EXPECT_FALSE(b.agent.shutdown_asked());
}

TEST(AgentQuotaTest, AnAgentIsReplacedByItsOwnUserOnlyAndIfItHasFlaws) {
    AgentSettings settings;
    settings.flaws = 1;
    EXPECT_FALSE(Bench(settings).agent.may_be_replaced_by({100, ::geteuid() + 1}));
    EXPECT_FALSE(Bench(settings).agent.may_be_replaced_by({100, ::geteuid(), false}));
    EXPECT_FALSE(Bench().agent.may_be_replaced_by({100, ::geteuid()}));
}

TEST(AgentQuotaTest, DescriptorsAreCountedWhereverTheyAreHeld) {
    AgentSettings settings;
    settings.limits.descriptors = 12;
    Bench b(settings);
    const auto used = [&] { return b.agent.limits().used(1000, Quota::descriptors); };
    const uint64_t s = b.join();
    EXPECT_EQ(used(), 3u) << "socket, process to watch, process to hand out";
    const uint64_t c = b.open(s, "fake0", 0, 2);
    EXPECT_EQ(used(), 5u);
    const uint64_t client = b.join();
    const uint64_t d = b.open(client, "fake0", 0, 2);
    EXPECT_EQ(used(), 10u);
    b.open(client, "fake0", 0, 3);
    EXPECT_EQ(status_of(b.last), Status::out_of_resources);
    EXPECT_EQ(used(), 10u) << "what was refused is not kept";
    EXPECT_EQ(b.agent.arrive({7, 1000}, Bench::some_fd(), b.now), 0u) << "two are left and three needed";

    ConnRequest r;  // a connection in the making holds its segment
    r.context_id = d;
    r.local = r.remote = at(nic_address(0), "x");
    r.timeout_ms = 1000;
    ConnWait w;
    w.context_id = c;
    w.local = r.remote;
    b.post(s, Type::kConnWait, w, 5);
    b.post(client, Type::kConnRequest, r, 5);
    ConnAccept a;
    a.context_id = c;
    a.incoming = body_of<Incoming>(b.take(s)).incoming;
    b.post(s, Type::kConnAccept, a, 6);
    EXPECT_EQ(used(), 11u);
    const uint64_t connection = body_of<Joined>(b.take(client)).connection_id;
    ASSERT_NE(connection, 0u);
    b.post(client, Type::kConnConfirm, ConnConfirm{connection}, 0);
    EXPECT_EQ(used(), 10u);
    b.agent.leave(s, b.now);
    b.agent.leave(client, b.now);
    EXPECT_EQ(used(), 0u);
}

TEST(AgentQuotaTest, AConnectionThatTheQuotaForbidsIsRefusedAndTheNextOneWorks) {
    AgentSettings settings;
    settings.limits.descriptors = 10;
    Bench b(settings);
    const uint64_t s = b.join(), client = b.join();
    const uint64_t c = b.open(s, "fake0", 0, 2), d = b.open(client, "fake0", 0, 2);
    const auto connect = [&](uint32_t ticket) {
        ConnRequest r;
        r.context_id = d;
        r.local = r.remote = at(nic_address(0), "y");
        r.timeout_ms = 1000;
        ConnWait w;
        w.context_id = c;
        w.local = r.remote;
        b.post(s, Type::kConnWait, w, ticket);
        b.post(client, Type::kConnRequest, r, ticket);
        ConnAccept a;
        a.context_id = c;
        a.incoming = body_of<Incoming>(b.take(s)).incoming;
        b.post(s, Type::kConnAccept, a, ticket + 1);
    };
    connect(5);
    EXPECT_EQ(status_of(b.take(client)), Status::out_of_resources);
    b.take(s);
    EXPECT_EQ(b.agent.limits().used(1000, Quota::descriptors), 10u);
    const uint64_t third = b.join(1001);
    EXPECT_EQ(b.last.type(), Type::kWelcome);
    b.agent.leave(third, b.now);
}

TEST(AgentQuotaTest, FilesOfAllUsersAreSharedByThem) {
    AgentSettings settings;
    settings.limits.descriptors_of_all = 60;
    Bench b(settings);
    const auto take_all = [&](uid_t user) {
        while (b.agent.has_room(user)) b.agent.arrive({1, user}, Bench::some_fd(), b.now);
        return b.agent.limits().used(user, Quota::descriptors);
    };
    EXPECT_EQ(take_all(1000), 30u) << "the first one gets half";
    EXPECT_EQ(take_all(1001), 15u);
    EXPECT_GE(b.agent.limits().left(1002, Quota::descriptors), 3u) << "the next user finds some";
    b.join(1002);
    EXPECT_EQ(b.last.type(), Type::kWelcome);
}

TEST(AgentQuotaTest, WhatAUserDoesNotTakeCountsAndIsCorrected) {
    Bench b;
    Limits& limits = b.agent.limits();
    uint64_t charged = 0;
    limits.correct(1000, Quota::unread, &charged, 500);
    EXPECT_EQ(limits.used(1000, Quota::unread), 500u);
    limits.correct(1000, Quota::unread, &charged, 200);
    EXPECT_EQ(limits.used(1000, Quota::unread), 200u);
    limits.correct(1000, Quota::unread, &charged, 0);
    EXPECT_EQ(charged, 0u);
    EXPECT_EQ(limits.used(1000, Quota::unread), 0u);
}

TEST(AgentQuotaTest, DescriptorsThatHaveBeenTakenMeanwhileAreNoReasonToRefuse) {
    UserLimits most;
    most.descriptors = 10;
    Limits limits(most);
    uint64_t charged = 0, in_flight = 8;
    limits.correct(1000, Quota::descriptors, &charged, in_flight);
    int counted = 0;
    limits.recount_by([&](uid_t user) {
        EXPECT_EQ(user, 1000u);
        ++counted;
        limits.correct(user, Quota::descriptors, &charged, in_flight);
    });
    EXPECT_TRUE(limits.take(1000, Quota::descriptors, 2));
    EXPECT_EQ(counted, 0) << "there was room";
    EXPECT_FALSE(limits.take(1000, Quota::descriptors, 1));
    in_flight = 0;
    EXPECT_TRUE(limits.take(1000, Quota::descriptors, 8));
    EXPECT_FALSE(limits.take(1000, Quota::descriptors, 1)) << "what is held stays counted";
    EXPECT_EQ(limits.used(1000, Quota::descriptors), 10u);
}

TEST(AgentQuotaTest, NorAreTheyOneToTurnAProcessAwayOrToOpenNoNic) {
    AgentSettings settings;
    settings.limits.descriptors = 20;
    Bench b(settings);
    Limits& limits = b.agent.limits();
    uint64_t charged = 0;
    limits.recount_by([&](uid_t user) { limits.correct(user, Quota::descriptors, &charged, 0); });
    const auto fill_up = [&] {
        limits.correct(1000, Quota::descriptors, &charged, limits.left(1000, Quota::descriptors));
        EXPECT_EQ(limits.left(1000, Quota::descriptors), 0u);
    };
    fill_up();
    const uint64_t s = b.join();
    EXPECT_EQ(b.last.type(), Type::kWelcome);
    fill_up();
    b.open(s, "fake0", 0, 3);
    EXPECT_EQ(b.last.type(), Type::kOpened);
    EXPECT_EQ(limits.used(1000, Quota::descriptors), 6u);
}

TEST(AgentQuotaTest, AStatusThatNeedsAFileIsRefusedToAUserWithNoneLeft) {
    AgentSettings settings;
    settings.limits.descriptors = 3 * 100;
    Bench b(settings);
    uint64_t s = 0;
    for (int i = 0; i < 100; ++i) s = b.join();  // so many that the text is longer than a message
    b.post(s, Type::kStatus, Empty{}, 7);
    EXPECT_EQ(status_of(b.take(s)), Status::out_of_resources);
    b.agent.leave(s - 1, b.now);
    b.post(s, Type::kStatus, Empty{}, 8);
    const Mail m = b.take(s);
    EXPECT_EQ(m.type(), Type::kStatusText);
    EXPECT_EQ(m.descriptors.size(), 1u);
}

// ---- interfaces that NICs depend on

Devices host_with(const NicAddress& address, bool present, bool up) {
    Devices found;
    LinkInfo other;
    other.name = "other";
    other.address = "02:aa:bb:cc:dd:ee";
    other.up = true;
    found.links.push_back(other);
    if (!present) return found;
    LinkInfo link;
    link.name = "port";
    link.address = text_of_address(address);
    link.up = up;
    found.links.push_back(link);
    return found;
}

TEST(AgentLinksTest, AllWithTheNicOpenAreToldOnceThatItsInterfaceIsOff) {
    Bench b;
    const NicAddress address = nic_address(1);
    const uint64_t one = b.join(), two = b.join(), unrelated = b.join();
    b.agent.note_links(host_with(address, true, true));
    EXPECT_TRUE(b.agent.depends_on_links());
    const uint64_t c = b.open(one, "fake1"), d = b.open(two, "fake1");
    b.open(unrelated, "fake0");
    b.agent.note_links(host_with(address, true, true));
    EXPECT_TRUE(b.quiet(one));
    for (const bool present : {true, false}) {  // switched off; vanished
        b.agent.note_links(host_with(address, present, false));
        const Mail first = b.take(one), second = b.take(two);
        EXPECT_EQ(first.type(), Type::kNicDown);
        EXPECT_EQ(first.header.ticket, 0u);
        EXPECT_EQ(body_of<ContextRef>(first).context_id, c);
        EXPECT_EQ(body_of<ContextRef>(second).context_id, d);
        EXPECT_TRUE(b.quiet(unrelated)) << "its NIC depends on no interface";
        EXPECT_EQ(body_of<NicEntry>(b.ask(one, Type::kResolveName, NameText{"fake1"})).nic.link_up, 0u);
        b.agent.note_links(host_with(address, present, false));
        EXPECT_TRUE(b.quiet(one)) << "told once";
        b.agent.note_links(host_with(address, true, true));
        EXPECT_TRUE(b.quiet(one)) << "that it is on again is seen at the next open";
        EXPECT_EQ(body_of<NicEntry>(b.ask(one, Type::kResolveName, NameText{"fake1"})).nic.link_up, 1u);
    }
}

TEST(AgentLinksTest, NothingKnownIsNoNews) {
    Bench b;
    const NicAddress address = nic_address(0);
    b.agent.note_links(host_with(address, true, true));
    const uint64_t s = b.join();
    b.open(s, "fake0");
    Devices unknown;
    unknown.error = "the kernel did not answer";
    b.agent.note_links(unknown);
    EXPECT_TRUE(b.quiet(s));
    Bench alone;
    alone.agent.note_links(host_with(address, false, false));
    EXPECT_FALSE(alone.agent.depends_on_links());
}

}  // namespace
}  // namespace viaduct::kagent::testing
