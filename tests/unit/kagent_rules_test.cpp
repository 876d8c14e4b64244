// SPDX-License-Identifier: BSD-2-Clause
// What the agent refuses: greetings that are none, contexts of others, claims to a context, more than a session or
// a user may have; and that what was counted is counted back.
#include <gtest/gtest.h>
#include <unistd.h>

#include "kagent_testing.hpp"

namespace viaduct::kagent::testing {
namespace {

// A second provider beside the fake one, whose NICs cannot be joined.
Status offer_lonely(const Settings&, const Hints&, NicSink& sink) {
    sink.offer(fake::nic("lonely", 0));
    return Status::ok;
}
Status join_none(const NicInfo&, const NicInfo&, const Settings&, JoinGrant*) { return Status::out_of_resources; }

struct TwoProviders : Bench {
    TwoProviders() {
        static const NoSettings none;
        static const Provider lonely = [] {
            Provider p = fake::provider("lonely", offer_lonely);
            p.control.join = join_none;
            return p;
        }();
        providers.add(lonely, none);
    }
};

ConnWait wait_for(uint64_t context, const char* discriminator) {
    ConnWait w;
    w.context_id = context;
    w.local = at({}, discriminator);
    return w;
}

ConnRequest ask_for(uint64_t context, const NicAddress& host, const char* local, const char* remote) {
    ConnRequest r;
    r.context_id = context;
    r.local = at({}, local);
    r.remote = at(host, remote);
    r.timeout_ms = 1000;
    return r;
}

// ---- greetings

TEST(AgentRulesTest, AHelloByAnotherNameIsNone) {
    Bench b;
    const uint64_t s = b.agent.arrive({1, 1000}, Bench::some_fd(), b.now);
    EXPECT_EQ(status_of(b.ask(s, Type::kStatus, Hello{})), Status::invalid);
    EXPECT_EQ(b.out.dropped.count(s), 1u);
    EXPECT_EQ(b.agent.keepers(), 0u);
}

TEST(AgentRulesTest, ADroppedClientIsNeitherReadNorAnswered) {
    Bench b;
    const uint64_t late = b.agent.arrive({1, 1000}, Bench::some_fd(), b.now);
    b.post(late, Type::kListNics, Empty{}, 1);
    ASSERT_EQ(b.out.dropped.count(late), 1u);
    b.post(late, Type::kHello, Hello{}, 2);
    EXPECT_EQ(b.agent.keepers(), 0u);
    EXPECT_EQ(b.agent.limits().used(1000, Quota::sessions), 0u);

    const uint64_t server = b.join(), client = b.join();
    const uint64_t here = b.open(server), there = b.open(client);
    b.post(server, Type::kConnWait, wait_for(here, "x"), 10);
    b.post(server, Type::kListNics, Empty{}, 0);
    ASSERT_EQ(b.out.dropped.count(server), 1u);
    b.post(client, Type::kConnRequest, ask_for(there, nic_address(0), "y", "x"), 11);
    EXPECT_TRUE(b.quiet(server)) << "its connection may be closed already";
}

TEST(AgentRulesTest, FilesThatWereLostOnTheWayAreSaid) {
    Bench b;
    const uint64_t s = b.join();
    OpenNic o;
    std::strcpy(o.device, "fake0");
    o.context_id = 5;
    Mail m = Mail::of(Type::kOpenNic, o, 3);
    m.descriptors_lost = true;
    b.agent.handle(s, std::move(m), b.now);
    EXPECT_EQ(status_of(b.take(s)), Status::out_of_resources);
    EXPECT_EQ(b.agent.limits().used(1000, Quota::contexts), 0u);
}

TEST(AgentRulesTest, AUserWithoutANumberCannotEndTheAgentThatHasTheSame) {
    Bench b;
    const uint64_t s = b.agent.arrive({1, ::geteuid(), false}, Bench::some_fd(), b.now);
    ASSERT_EQ(b.ask(s, Type::kHello, Hello{}).type(), Type::kWelcome);
    EXPECT_EQ(status_of(b.ask(s, Type::kShutdown, Empty{})), Status::denied);
    EXPECT_FALSE(b.agent.shutdown_asked());
}

// ---- contexts

TEST(AgentRulesTest, AContextHasAnId) {
    Bench b;
    const uint64_t s = b.join();
    OpenNic o;
    std::strcpy(o.device, "fake0");
    EXPECT_EQ(status_of(b.ask(s, Type::kOpenNic, o)), Status::invalid);
    EXPECT_EQ(b.agent.registry().all().size(), 0u);
}

TEST(AgentRulesTest, NoSessionLooksUpNamesThroughAnothersContext) {
    Bench b;
    const uint64_t owner = b.join(), other = b.join();
    NameLookup by_name;
    by_name.context_id = b.open(owner);
    std::strcpy(by_name.name, "fake0");
    AddressLookup by_address;
    by_address.context_id = by_name.context_id;
    by_address.address = nic_address(0);
    EXPECT_EQ(status_of(b.ask(other, Type::kNameLookup, by_name)), Status::invalid);
    EXPECT_EQ(status_of(b.ask(other, Type::kAddressLookup, by_address)), Status::invalid);
    EXPECT_EQ(b.ask(owner, Type::kNameLookup, by_name).type(), Type::kNameEntry);
    EXPECT_EQ(b.ask(owner, Type::kAddressLookup, by_address).type(), Type::kNameEntry);
}

TEST(AgentRulesTest, AContextIsClaimedByItsOwnProcessThatSaysSoAndWithinTheLimits) {
    AgentSettings settings;
    settings.limits.vis = 100;
    Bench b(settings);
    OpenNic o;
    std::strcpy(o.device, "fake0");
    o.address = nic_address(0);
    o.context_id = 5;
    ASSERT_EQ(b.ask(b.join(1000, 70), Type::kOpenNic, o).type(), Type::kOpened);
    EXPECT_EQ(status_of(b.ask(b.join(1000, 70), Type::kOpenNic, o)), Status::denied) << "it does not say so";
    o.reattach = 1;
    EXPECT_EQ(status_of(b.ask(b.join(1001, 70), Type::kOpenNic, o)), Status::denied) << "another user";
    o.held[kLeaseVis] = 101;
    EXPECT_EQ(status_of(b.ask(b.join(1000, 70), Type::kOpenNic, o)), Status::out_of_resources);
    o.held[kLeaseVis] = 100;
    EXPECT_EQ(b.ask(b.join(1000, 70), Type::kOpenNic, o).type(), Type::kOpened);
    EXPECT_EQ(b.agent.limits().used(1000, Quota::vis), 100u);
}

// ---- connections

TEST(AgentRulesTest, NicsOfTwoProvidersNeverMeet) {
    TwoProviders b;
    const uint64_t server = b.join(), client = b.join();
    const uint64_t here = b.open(server, "fake0"), there = b.open(client, "lonely0");
    b.post(server, Type::kConnWait, wait_for(here, "x"), 10);
    b.post(client, Type::kConnRequest, ask_for(there, nic_address(0), "y", "x"), 11);
    EXPECT_TRUE(b.quiet(server));
    b.pass(1000);
    EXPECT_EQ(status_of(b.take(client)), Status::no_match);
}

TEST(AgentRulesTest, AConnectionThatCannotBeMadeCostsNothing) {
    TwoProviders b;
    const NicAddress lonely = fake::nic("lonely", 0).address;
    const uint64_t server = b.join(), client = b.join();
    const uint64_t here = b.open(server, "lonely0"), there = b.open(client, "lonely0");
    const uint64_t before = b.agent.limits().used(1000, Quota::descriptors);
    b.post(server, Type::kConnWait, wait_for(here, "x"), 10);
    b.post(client, Type::kConnRequest, ask_for(there, lonely, "y", "x"), 11);
    ConnAccept a;
    a.context_id = here;
    a.incoming = body_of<Incoming>(b.take(server)).incoming;
    b.post(server, Type::kConnAccept, a, 12);
    EXPECT_EQ(status_of(b.take(server)), Status::out_of_resources);
    EXPECT_EQ(status_of(b.take(client)), Status::out_of_resources);
    EXPECT_EQ(b.agent.limits().used(1000, Quota::descriptors), before);
}

// ---- counts

TEST(AgentRulesTest, ASessionGivesItselfSoManyNames) {
    Bench b;
    const uint64_t s = b.join();
    NameText t;
    const auto add = [&](int number) {
        std::snprintf(t.name, sizeof t.name, "name%d", number);
        return status_of(b.ask(s, Type::kNameAdd, t));
    };
    for (int i = 0; i < 64; ++i) ASSERT_EQ(add(i), Status::ok);
    EXPECT_EQ(add(64), Status::out_of_resources);
    EXPECT_EQ(add(7), Status::ok) << "which it has";
}

TEST(AgentRulesTest, WhatAUserGivesBackIsThereForTheOthers) {
    UserLimits most;
    most.descriptors_of_all = 60;
    Limits limits(most);
    ASSERT_TRUE(limits.take(1000, Quota::descriptors, 30));
    EXPECT_EQ(limits.left(1001, Quota::descriptors), 15u);
    limits.give(1000, Quota::descriptors, 30);
    EXPECT_EQ(limits.left(1001, Quota::descriptors), 30u);
}

TEST(AgentRulesTest, NoUserGivesBackMoreThanItHas) {
    Limits limits(UserLimits{});
    ASSERT_TRUE(limits.take(1000, Quota::vis, 3));
    limits.give(1000, Quota::vis, 5);
    EXPECT_EQ(limits.used(1000, Quota::vis), 0u);
    EXPECT_EQ(limits.left(1000, Quota::vis), limits.limit(Quota::vis));
}

}  // namespace
}  // namespace viaduct::kagent::testing
