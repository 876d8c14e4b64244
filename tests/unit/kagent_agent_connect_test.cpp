// SPDX-License-Identifier: BSD-2-Clause
// Connections through the agent without sockets: what both ends get, whom users are kept apart from, and names.
#include "kagent/agent.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "kagent/users.hpp"
#include "kagent_testing.hpp"

namespace viaduct::kagent {
namespace {

using namespace testing;

TEST(AgentConnectTest, BothEndsGetSegmentDescriptorsAndProcess) {
    TwoEnds b;
    b.post(b.server, Type::kConnWait, wait_at(b.here, "port"), 10);
    b.post(b.client, Type::kConnRequest, request_to(b.there, "caller", nic_address(0), "port"), 20);
    const auto in = body_of<Incoming>(b.take(b.server));
    EXPECT_EQ(in.remote, at(nic_address(1), "caller")) << "host part true, whatever the client wrote";
    ConnAccept a;
    a.context_id = b.here;
    a.incoming = in.incoming;
    a.traits = in.traits;
    a.endpoint_words[0] = 77;
    b.post(b.server, Type::kConnAccept, a, 11);
    EXPECT_TRUE(b.quiet(b.server));
    Mail m = b.take(b.client);
    ASSERT_EQ(m.type(), Type::kJoined);
    EXPECT_EQ(m.header.ticket, 20u);
    auto j = body_of<Joined>(m);
    EXPECT_EQ(j.side, 0u);
    EXPECT_NE(j.peer_context_id, b.here) << "a process with that number could claim it at the next agent";
    EXPECT_EQ(j.peer_words[0], b.here * 10);
    EXPECT_EQ(j.peer_endpoint_words[0], 77u);
    EXPECT_EQ(j.descriptor_count, 2u);
    EXPECT_EQ(m.descriptors.size(), 4u) << "segment, two of the peer's, its process";
    EXPECT_EQ(j.segment_bytes, fake::kSegmentBytes);
    EXPECT_EQ(j.same_process, 0u);
    EXPECT_EQ(j.remote, at(nic_address(0), "port"));
    struct stat s1, s2;
    ASSERT_EQ(::fstat(m.descriptors[0].get(), &s1), 0);
    b.post(b.client, Type::kConnConfirm, ConnConfirm{j.connection_id}, 0);
    EXPECT_TRUE(b.quiet(b.client)) << "a confirmation has no answer";
    m = b.take(b.server);
    ASSERT_EQ(m.type(), Type::kJoined);
    EXPECT_EQ(m.header.ticket, 11u);
    j = body_of<Joined>(m);
    EXPECT_EQ(j.side, 1u);
    EXPECT_EQ(m.descriptors.size(), 5u);
    EXPECT_EQ(j.peer_endpoint_words[0], 40 + b.there);
    ASSERT_EQ(::fstat(m.descriptors[0].get(), &s2), 0);
    EXPECT_EQ(s1.st_ino, s2.st_ino) << "one segment";
}

TEST(AgentConnectTest, UsersAreApartUnlessTheConfigurationSaysOtherwise) {
    for (const bool cross : {false, true}) {
        AgentSettings settings;
        settings.cross_user = cross;
        TwoEnds b(settings, 1001);
        b.post(b.server, Type::kConnWait, wait_at(b.here, "port"), 10);
        b.post(b.client, Type::kConnRequest, request_to(b.there, "c", nic_address(0), "port"), 20);
        b.pass(100);
        if (cross) {
            EXPECT_EQ(b.take(b.server).type(), Type::kIncoming);
        } else {
            EXPECT_TRUE(b.quiet(b.server));
            EXPECT_EQ(status_of(b.take(b.client)), Status::no_match);
        }
    }
}

// The arena of a NIC is for processes of its user.
TEST(AgentConnectTest, PrivateDescriptorsStayWithTheirUser) {
    for (const uid_t other : {1000, 1001}) {
        AgentSettings settings;
        settings.cross_user = true;
        Bench b(settings);
        const uint64_t sessions[] = {b.join(1000), b.join(other)};
        uint64_t contexts[2];
        for (int i = 0; i < 2; ++i) {
            OpenNic open;
            std::strcpy(open.device, "fake0");
            open.context_id = contexts[i] = 500 + static_cast<uint64_t>(i);
            open.private_descriptors = 1;
            Mail mail = Mail::of(Type::kOpenNic, open, 2);
            for (int k = 0; k < 3; ++k) mail.descriptors.push_back(Bench::some_fd());
            b.agent.handle(sessions[i], std::move(mail), b.now);
            EXPECT_EQ(b.take(sessions[i]).type(), Type::kOpened);
        }
        b.post(sessions[0], Type::kConnPeer, request_to(contexts[0], "a", nic_address(0), "b"), 20);
        b.post(sessions[1], Type::kConnPeer, request_to(contexts[1], "b", nic_address(0), "a"), 20);
        for (const uint64_t session : sessions) {
            const Mail joined = b.take(session);
            ASSERT_EQ(joined.type(), Type::kJoined);
            const uint32_t shown = other == 1000 ? 3 : 2;
            EXPECT_EQ(body_of<Joined>(joined).descriptor_count, shown);
            EXPECT_EQ(joined.descriptors.size(), shown + 2) << "segment and process are always there";
        }
    }
    Bench b;
    OpenNic more_than_it_has;
    std::strcpy(more_than_it_has.device, "fake0");
    more_than_it_has.context_id = 7;
    more_than_it_has.private_descriptors = 1;
    EXPECT_EQ(status_of(b.ask(b.join(), Type::kOpenNic, more_than_it_has)), Status::invalid);
}

// An agent short of descriptors joins both ends or neither.
TEST(AgentConnectTest, OfTwoPeersNoneIsJoinedAlone) {
    Bench b;
    const uint64_t s = b.join(), t = b.join();
    const uint64_t c = b.open(s, "fake0", 0, 3), d = b.open(t, "fake0", 0, 3);
    rlimit before;
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const auto in_use = static_cast<rlim_t>(Bench::some_fd().get());
    int joined = 0;
    // The first round has room: a check of types that a sanitizer makes for the first time needs descriptors of its
    // own.
    for (rlim_t room = 24; room-- > 0;) {
        const rlimit tight = {in_use + room, before.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
        b.post(s, Type::kConnPeer, request_to(c, "a", nic_address(0), "b"), 20);
        b.post(t, Type::kConnPeer, request_to(d, "b", nic_address(0), "a"), 21);
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
        const Mail first = b.take(s), second = b.take(t);
        EXPECT_EQ(first.type() == Type::kJoined, second.type() == Type::kJoined) << "room for " << room;
        EXPECT_EQ(status_of(first), status_of(second)) << room;
        if (first.type() == Type::kJoined) {
            EXPECT_EQ(b.take(s).type(), Type::kDone);
            EXPECT_EQ(b.take(t).type(), Type::kDone);
        }
        EXPECT_TRUE(b.quiet(s) && b.quiet(t));
        joined += first.type() == Type::kJoined ? 1 : 0;
    }
    EXPECT_GT(joined, 0);
    EXPECT_LT(joined, 24);
}

// An agent that ends takes with it what has not left it yet. So an end counts as connected once the other one's kJoined
// is out.
TEST(AgentConnectTest, APeerIsToldOnceTheOtherOnesJoinedIsOut) {
    for (const bool leaves : {false, true}) {
        Bench b;
        const uint64_t s = b.join(), t = b.join();
        const uint64_t c = b.open(s), d = b.open(t);
        b.out.full = {t};
        b.post(s, Type::kConnPeer, request_to(c, "a", nic_address(0), "b"), 20);
        b.post(t, Type::kConnPeer, request_to(d, "b", nic_address(0), "a"), 21);
        EXPECT_EQ(body_of<Joined>(b.take(s)).told_later, 1u);
        b.pass(100);
        EXPECT_TRUE(b.quiet(s));
        EXPECT_EQ(b.take(t).type(), Type::kJoined);
        EXPECT_EQ(b.take(t).type(), Type::kDone) << "that of the first is out";
        if (leaves) {
            b.agent.leave(t, b.now);
        } else {
            b.out.full.clear();
        }
        b.pass(1);
        const Mail told = b.take(s);
        EXPECT_EQ(told.header.ticket, 20u);
        EXPECT_EQ(told.type(), leaves ? Type::kError : Type::kDone);
        EXPECT_EQ(status_of(told), leaves ? Status::rejected : Status::ok);
        b.pass(1);
        EXPECT_TRUE(b.quiet(s));
    }
}

TEST(AgentConnectTest, ARequesterIsToldOnceTheAcceptorsJoinedIsOut) {
    for (const bool leaves : {false, true}) {
        TwoEnds b;
        b.post(b.server, Type::kConnWait, wait_at(b.here, "port"), 10);
        b.post(b.client, Type::kConnRequest, request_to(b.there, "c", nic_address(0), "port"), 20);
        const auto in = body_of<Incoming>(b.take(b.server));
        ConnAccept a;
        a.context_id = b.here;
        a.incoming = in.incoming;
        a.traits = in.traits;
        b.post(b.server, Type::kConnAccept, a, 11);
        const auto j = body_of<Joined>(b.take(b.client));
        EXPECT_EQ(j.told_later, 0u);
        b.out.full = {b.server};
        b.post(b.client, Type::kConnConfirm, ConnConfirm{j.connection_id}, 21);
        EXPECT_TRUE(b.quiet(b.client));
        if (leaves) {
            b.agent.leave(b.server, b.now);
        } else {
            b.out.full.clear();
        }
        b.pass(1);
        const Mail told = b.take(b.client);
        EXPECT_EQ(told.header.ticket, 21u);
        EXPECT_EQ(told.type(), leaves ? Type::kError : Type::kDone);
        EXPECT_EQ(status_of(told), leaves ? Status::timeout : Status::ok);
    }
}

// A client that has not heard yet that the agent has changed names connections of the old one.
TEST(AgentConnectTest, NumbersMeanNothingToAnotherAgent) {
    TwoEnds old, next;
    const auto meet = [](TwoEnds& b) {
        b.post(b.server, Type::kConnWait, wait_at(b.here, "port"), 10);
        b.post(b.client, Type::kConnRequest, request_to(b.there, "c", nic_address(0), "port"), 20);
        return body_of<Incoming>(b.take(b.server));
    };
    const auto accept = [](TwoEnds& b, uint64_t number) {
        ConnAccept a;
        a.context_id = b.here;
        a.incoming = number;
        a.traits = request_to(b.there, "c", nic_address(0), "port").traits;
        return b.ask(b.server, Type::kConnAccept, a);
    };
    const auto stale = meet(old), fresh = meet(next);
    EXPECT_EQ(status_of(accept(next, stale.incoming)), Status::invalid);
    EXPECT_EQ(status_of(next.ask(next.server, Type::kConnReject, IncomingRef{next.here, stale.incoming})),
              Status::invalid);
    EXPECT_TRUE(next.quiet(next.client)) << "the request of the next agent is not touched";
    EXPECT_EQ(accept(next, fresh.incoming).type(), Type{}) << "answered after the confirmation";
    EXPECT_EQ(next.take(next.client).type(), Type::kJoined);
    EXPECT_EQ(status_of(next.ask(next.client, Type::kConnConfirm, ConnConfirm{stale.incoming})), Status::invalid)
        << "asked anew; timeout would say that the acceptor has given up";
}

// Each connection to one context bears the same name of it, and no two contexts have the same.
TEST(AgentConnectTest, PeersKnowAContextByANameOfTheAgents) {
    Bench b;
    const uint64_t s = b.join(), t = b.join();
    const uint64_t c = b.open(s), d = b.open(t), e = b.open(t);
    const auto name_seen = [&](uint64_t context, const std::string& port) {
        b.post(t, Type::kConnPeer, request_to(context, port, nic_address(0), port + "'"), 20);
        b.post(s, Type::kConnPeer, request_to(c, port + "'", nic_address(0), port), 21);
        const auto name = body_of<Joined>(b.take(s)).peer_context_id;
        for (const uint64_t session : {s, t}) b.out.boxes[session].clear();
        return name;
    };
    const uint64_t name = name_seen(d, "1");
    EXPECT_NE(name, d);
    EXPECT_EQ(name_seen(d, "2"), name);
    EXPECT_NE(name_seen(e, "3"), name);
}

TEST(AgentConnectTest, PeersOfOneProcessAreJoined) {
    Bench b;
    const uint64_t s = b.join();
    const uint64_t c = b.open(s);
    b.post(s, Type::kConnPeer, request_to(c, "a", nic_address(0), "b"), 20);
    b.post(s, Type::kConnPeer, request_to(c, "b", nic_address(0), "a"), 21);
    const auto j = body_of<Joined>(b.take(s));
    EXPECT_EQ(j.same_process, 1u);
    EXPECT_EQ(j.side, 0u);
    EXPECT_EQ(body_of<Joined>(b.take(s)).side, 1u);
}

// The number of a process is 0 for all outside of the agent's PID namespace, and may be given anew.
TEST(AgentConnectTest, ProcessesAreToldApartBySessionsNotByNumbers) {
    for (const pid_t number : {0, 4711}) {
        Bench b;
        const uint64_t s = b.agent.arrive({number, 1000}, Bench::some_fd(), b.now);
        const uint64_t t = b.agent.arrive({number, 1000}, Bench::some_fd(), b.now);
        for (const uint64_t session : {s, t})
            EXPECT_EQ(b.ask(session, Type::kHello, Hello{}).type(), Type::kWelcome);
        const uint64_t c = b.open(s), d = b.open(t);
        b.post(s, Type::kConnPeer, request_to(c, "a", nic_address(0), "b"), 20);
        b.post(t, Type::kConnPeer, request_to(d, "b", nic_address(0), "a"), 21);
        for (const uint64_t session : {s, t}) {
            const auto j = body_of<Joined>(b.take(session));
            EXPECT_EQ(j.same_process, 0u);
            EXPECT_EQ(j.same_user, 1u);
        }
    }
}

// Where the kernel gives no descriptor of a process (kernels of before 6.5, another PID namespace).
TEST(AgentConnectTest, APeerWithoutAProcessDescriptorIsJoined) {
    Bench b;
    const uint64_t s = b.join(), t = b.agent.arrive({0, 1000}, Fd(), b.now);
    EXPECT_EQ(b.ask(t, Type::kHello, Hello{}).type(), Type::kWelcome);
    const uint64_t c = b.open(s), d = b.open(t);
    b.post(s, Type::kConnPeer, request_to(c, "a", nic_address(0), "b"), 20);
    b.post(t, Type::kConnPeer, request_to(d, "b", nic_address(0), "a"), 21);
    EXPECT_EQ(b.take(s).descriptors.size(), 2u) << "segment and one of the peer's";
    EXPECT_EQ(b.take(t).descriptors.size(), 3u) << "and its process";
}

// All users without a number in the agent's user namespace have the same one.
TEST(AgentConnectTest, UsersWithoutANumberAreNotOneUser) {
    constexpr uid_t kOverflow = 65534;
    for (const bool cross : {false, true}) {
        AgentSettings settings;
        settings.cross_user = cross;
        Bench b(settings);
        const uint64_t s = b.agent.arrive({0, kOverflow, false}, Bench::some_fd(), b.now);
        const uint64_t t = b.agent.arrive({0, kOverflow, false}, Bench::some_fd(), b.now);
        for (const uint64_t session : {s, t})
            EXPECT_EQ(b.ask(session, Type::kHello, Hello{}).type(), Type::kWelcome);
        const uint64_t c = b.open(s), d = b.open(t);
        b.post(s, Type::kConnPeer, request_to(c, "a", nic_address(0), "b"), 20);
        b.post(t, Type::kConnPeer, request_to(d, "b", nic_address(0), "a"), 21);
        const Mail joined = b.take(s);
        if (cross) {
            EXPECT_EQ(body_of<Joined>(joined).same_user, 0u);
        } else {
            EXPECT_NE(joined.type(), Type::kJoined);
        }
        b.out.boxes[s].clear();
        EXPECT_EQ(status_of(b.ask(s, Type::kShutdown, Empty{})), Status::denied);
    }
}

TEST(AgentConnectTest, OverlongDiscriminatorsAreRefused) {
    TwoEnds b;
    ConnWait w = wait_at(b.here, "x");
    w.local.discriminator_len = kMaxDiscriminator + 1;
    EXPECT_EQ(status_of(b.ask(b.server, Type::kConnWait, w)), Status::invalid);
    ConnRequest r = request_to(b.there, "x", nic_address(0), "y");
    r.remote.discriminator_len = 0xFFFF;
    EXPECT_EQ(status_of(b.ask(b.client, Type::kConnRequest, r)), Status::invalid);
    EXPECT_EQ(status_of(b.ask(b.client, Type::kConnPeer, r)), Status::invalid);
}

TEST(AgentConnectTest, DeadRequesterTimesTheAcceptOutAndNothingIsLeft) {
    TwoEnds b;
    b.post(b.server, Type::kConnWait, wait_at(b.here, "port"), 10);
    b.post(b.client, Type::kConnRequest, request_to(b.there, "c", nic_address(0), "port"), 20);
    const auto in = body_of<Incoming>(b.take(b.server));
    ConnAccept a;
    a.context_id = b.here;
    a.incoming = in.incoming;
    a.traits = in.traits;
    b.post(b.server, Type::kConnAccept, a, 11);
    b.agent.leave(b.client, b.now);
    EXPECT_EQ(status_of(b.take(b.server)), Status::timeout);
    EXPECT_EQ(b.agent.table().counts(), ConnectionTable::Counts{});
    EXPECT_EQ(b.agent.limits().used(1000, Quota::outstanding), 0u);
}

TEST(AgentUsersTest, ANumberNamesOneUserUnlessOthersShareIt) {
    const Users all_users("         0          0 4294967295\n", "65534\n");
    EXPECT_TRUE(all_users.knows(65534));
    const Users container("0 100000 65536\n", "65534\n");
    EXPECT_TRUE(container.knows(0));
    EXPECT_FALSE(container.knows(65534));
    const Users overflow_mapped("", "65000\n");
    EXPECT_FALSE(overflow_mapped.knows(65000));
    EXPECT_TRUE(overflow_mapped.knows(65534));
}

TEST(AgentNameTest, HostNamesGiveTheOwnNicFirst) {
    TwoEnds b;
    NameLookup l;
    l.context_id = b.there;  // on fake1
    for (const std::string& name : {std::string("localhost"), own_hostname(), std::string("127.0.0.1")}) {
        std::memset(l.name, 0, sizeof l.name);
        std::strncpy(l.name, name.c_str(), sizeof(l.name) - 1);
        l.index = 0;
        EXPECT_EQ(body_of<NameEntry>(b.ask(b.client, Type::kNameLookup, l)).address, nic_address(1)) << name;
        l.index = 1;
        EXPECT_EQ(body_of<NameEntry>(b.ask(b.client, Type::kNameLookup, l)).address, nic_address(0)) << name;
        l.index = 2;
        EXPECT_EQ(status_of(b.ask(b.client, Type::kNameLookup, l)), Status::unknown_name) << name;
    }
}

TEST(AgentNameTest, NicNamesAndSessionNamesAreFoundWhileTheyLast) {
    TwoEnds b;
    NameLookup l;
    l.context_id = b.there;
    std::strcpy(l.name, "fake0");
    EXPECT_EQ(body_of<NameEntry>(b.ask(b.client, Type::kNameLookup, l)).address, nic_address(0));
    std::strcpy(l.name, "node3");
    EXPECT_EQ(status_of(b.ask(b.client, Type::kNameLookup, l)), Status::unknown_name);
    NameText t;
    std::strcpy(t.name, "node3");
    EXPECT_EQ(b.ask(b.server, Type::kNameAdd, t).type(), Type::kDone);
    EXPECT_EQ(body_of<NameEntry>(b.ask(b.client, Type::kNameLookup, l)).address, nic_address(0))
        << "where that session is";
    const uint64_t other = b.join(2000);
    l.context_id = b.open(other);
    EXPECT_EQ(status_of(b.ask(other, Type::kNameLookup, l)), Status::unknown_name)
        << "another user's name";
    l.context_id = b.there;
    b.agent.leave(b.server, b.now);
    EXPECT_EQ(status_of(b.ask(b.client, Type::kNameLookup, l)), Status::unknown_name);
}

TEST(AgentNameTest, AddressesOfOwnNicsHaveTheHostsName) {
    TwoEnds b;
    AddressLookup l;
    l.context_id = b.here;
    l.address = nic_address(1);
    EXPECT_EQ(own_hostname(), body_of<NameEntry>(b.ask(b.server, Type::kAddressLookup, l)).name);
    l.address.bytes[0] = 99;
    EXPECT_EQ(status_of(b.ask(b.server, Type::kAddressLookup, l)), Status::unknown_name);
}

}  // namespace
}  // namespace viaduct::kagent
