// SPDX-License-Identifier: BSD-2-Clause
// The agent without sockets: greetings, NICs, leases, limits, connections and names as messages in and out.
#include "kagent/agent.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "kagent/users.hpp"
#include "kagent_testing.hpp"

namespace viaduct::kagent {
namespace {

using namespace testing;

ConnWait wait_at(uint64_t context, const std::string& d) {
    ConnWait w;
    w.context_id = context;
    w.local = at({}, d);
    std::memset(w.local.host.bytes, 0xEE, sizeof w.local.host.bytes);  // programs leave it uninitialised
    return w;
}

ConnRequest request_to(uint64_t context, const std::string& local, const NicAddress& host,
                       const std::string& remote, uint32_t timeout_ms = 0xFFFFFFFF) {
    ConnRequest r;
    r.context_id = context;
    r.local = at({}, local);
    r.remote = at(host, remote);
    r.traits.reliability = 2;
    r.traits.max_transfer = 65600;
    r.timeout_ms = timeout_ms;
    r.endpoint_words[0] = 40 + static_cast<uint32_t>(context);
    return r;
}

TEST(AgentHelloTest, HighestCommonVersionIsAgreed) {
    Bench b;
    const uint64_t s = b.agent.arrive({1, 1000}, Bench::some_fd(), b.now);
    Hello h;
    h.version_min = 1;
    h.version_max = 9;
    std::strcpy(h.program, "te\033[2Jst\ner");
    const Mail m = b.ask(s, Type::kHello, h, 5);
    ASSERT_EQ(m.type(), Type::kWelcome);
    EXPECT_EQ(m.header.ticket, 5u);
    EXPECT_EQ(body_of<Welcome>(m).version, kVersionMax);
    EXPECT_EQ(b.agent.sessions().at(s).program, "te?[2Jst?er") << "logs and terminals show it";
    EXPECT_EQ(b.agent.keepers(), 1u);
}

TEST(AgentHelloTest, NoCommonVersionIsRefusedWithTheAgentsRange) {
    for (const auto& [low, high] : std::vector<std::pair<uint16_t, uint16_t>>{{7, 9}, {0, 0}, {3, 1}}) {
        Bench b;
        const uint64_t s = b.agent.arrive({1, 1000}, Bench::some_fd(), b.now);
        Hello h;
        h.version_min = low;
        h.version_max = high;
        const Mail m = b.ask(s, Type::kHello, h);
        EXPECT_EQ(status_of(m), Status::version);
        EXPECT_EQ(body_of<Error>(m).version_max, kVersionMax);
        EXPECT_EQ(b.out.dropped.count(s), 1u);
        EXPECT_EQ(b.agent.keepers(), 0u);
    }
}

TEST(AgentHelloTest, FirstMessageMustBeAHello) {
    Bench b;
    const uint64_t s = b.agent.arrive({1, 1000}, Bench::some_fd(), b.now);
    EXPECT_EQ(status_of(b.ask(s, Type::kListNics, Empty{})), Status::invalid);
    EXPECT_EQ(b.out.dropped.count(s), 1u);
    b.post(s, Type::kHello, Hello{}, 1);
    EXPECT_TRUE(b.quiet(s)) << "it had its chance";
}

TEST(AgentHelloTest, ToolsDoNotKeepTheAgent) {
    Bench b;
    b.join(1000, 0, kHelloTool);
    EXPECT_EQ(b.agent.keepers(), 0u);
}

TEST(AgentMessageTest, MalformedRequestsAreAnsweredAndTheClientStays) {
    Bench b;
    const uint64_t s = b.join();
    const uint64_t c = b.open(s);
    for (uint16_t type = 0; type < 130; ++type) {
        if (type == static_cast<uint16_t>(Type::kShutdown) ||
            type == static_cast<uint16_t>(Type::kConnConfirm))
            continue;
        for (const size_t size : {size_t{1}, size_t{7}, size_t{kMaxMessage}}) {
            Mail m(static_cast<Type>(type), 50);
            m.payload.resize(size);
            b.agent.handle(s, std::move(m), b.now);
            const Mail answer = b.take(s);
            const bool bare =
                static_cast<Type>(type) == Type::kListNics || static_cast<Type>(type) == Type::kStatus;
            EXPECT_EQ(answer.type() == Type::kError, !bare || size > sizeof(Empty)) << type;
            b.out.boxes[s].clear();
        }
    }
    EXPECT_TRUE(b.out.dropped.empty());
    EXPECT_EQ(b.ask(s, Type::kCloseNic, ContextRef{c}).type(), Type::kDone);
}

TEST(AgentMessageTest, DescriptorsWhereNoneBelongAreRefusedAndClosed) {
    Bench b;
    const uint64_t s = b.join();
    Mail m = Mail::of(Type::kListNics, Empty{}, 9);
    m.payload.clear();
    m.descriptors.push_back(Bench::some_fd());
    const int fd = m.descriptors[0].get();
    b.agent.handle(s, std::move(m), b.now);
    EXPECT_EQ(status_of(b.take(s)), Status::invalid);
    struct stat st;
    EXPECT_NE(::fstat(fd, &st), 0);
}

TEST(AgentMessageTest, RequestWithoutATicketEndsTheSession) {
    Bench b;
    const uint64_t s = b.join();
    b.post(s, Type::kListNics, Empty{}, 0);
    EXPECT_EQ(b.out.dropped.count(s), 1u);
    EXPECT_TRUE(b.quiet(s));
}

TEST(AgentNicTest, ListTellsNicsAndRejections) {
    Bench b;
    const uint64_t s = b.join();
    b.post(s, Type::kListNics, Empty{}, 3);
    const auto first = body_of<NicEntry>(b.take(s));
    EXPECT_STREQ(first.nic.name, "fake0");
    EXPECT_STREQ(first.nic.provider, "fake");
    EXPECT_EQ(first.is_default, 1u);
    EXPECT_EQ(first.more, 1u);
    EXPECT_STREQ(body_of<NicEntry>(b.take(s)).nic.name, "fake1");
    const auto rejection = body_of<RejectionEntry>(b.take(s));
    EXPECT_STREQ(rejection.cure, "none is needed");
    EXPECT_EQ(rejection.more, 0u);
    EXPECT_TRUE(b.quiet(s));
}

TEST(AgentNicTest, ProviderThatThrowsOrLiesIsARejection) {
    static const Provider thrower =
        fake::provider("thrower", [](const Settings&, const Hints&, NicSink&) -> Status { throw 42; });
    static const Provider twin = fake::provider("twin", fake::discover<1>);
    static const NoSettings none;
    Providers p;
    add_fake(p);
    p.add(thrower, none);
    p.add(twin, none);  // offers fake0 again
    EXPECT_EQ(p.nics().size(), 2u);
    size_t named = 0;
    for (const RejectedNic& r : p.rejected()) {
        named += r.provider == "thrower" || (r.provider == "twin" && r.name == "fake0");
        EXPECT_FALSE(r.cure.empty());
    }
    EXPECT_EQ(named, 2u);
}

// All that join later, and however often.
TEST(AgentNicTest, AProviderIsAskedWhatItHasOnceAndBeforeAnythingIsOpened) {
    static int asked = 0;
    static const Provider counted =
        fake::provider("counted", [](const Settings&, const Hints& hints, NicSink& sink) -> Status {
            ++asked;
            EXPECT_EQ(hints.expected_peers, 0u) << "the agent serves many jobs";
            sink.offer(fake::nic("counted", 0));
            return Status::ok;
        });
    static const NoSettings none;
    Providers p;
    p.add(counted, none);
    EXPECT_EQ(asked, 1);
    Letterbox out;
    Agent agent({}, p, out);
    for (const uint64_t id : {1, 2}) {
        const uint64_t s = agent.arrive({static_cast<pid_t>(5000 + id), 1000}, Bench::some_fd(), 1);
        agent.handle(s, Mail::of(Type::kHello, Hello{}, 1), 1);
        agent.handle(s, Mail::of(Type::kListNics, Empty{}, 2), 1);
        OpenNic o;
        std::strcpy(o.device, "counted0");
        o.context_id = id;
        Mail m = Mail::of(Type::kOpenNic, o, 3);
        m.descriptors.push_back(Bench::some_fd());
        agent.handle(s, std::move(m), 1);
        EXPECT_EQ(out.boxes[s].back().type(), Type::kOpened);
    }
    EXPECT_EQ(asked, 1);
}

TEST(AgentNicTest, OpenGivesTheNicAndAFirstLease) {
    Bench b;
    const uint64_t s = b.join();
    b.open(s, "/dev/via_eth1");
    const auto o = body_of<Opened>(b.last);
    EXPECT_STREQ(o.nic.name, "fake1");
    for (const uint64_t n : o.lease) EXPECT_GT(n, 0u);
    b.open(s, "/dev/via_eth2");
    EXPECT_EQ(status_of(b.last), Status::unknown_name);
}

TEST(AgentNicTest, TooManyDescriptorsAreRefused) {
    Bench b;
    const uint64_t s = b.join();
    b.open(s, "fake0", 0, 5);
    EXPECT_EQ(b.last.type(), Type::kOpened);
    b.open(s, "fake0", 0, 6);
    EXPECT_EQ(status_of(b.last), Status::invalid);
}

TEST(AgentNicTest, ContextIdIsTakenOnceButTheSameProcessMayReattach) {
    Bench b;
    const uint64_t a = b.join(1000, 70), other = b.join(1000, 71);
    b.open(a, "fake0", 5);
    b.open(other, "fake0", 5);
    EXPECT_EQ(status_of(b.last), Status::denied);
    OpenNic o;
    std::strcpy(o.device, "fake0");
    o.context_id = 5;
    o.reattach = 1;
    EXPECT_EQ(status_of(b.ask(other, Type::kOpenNic, o)), Status::denied) << "another process";
    const uint64_t again = b.join(1000, 70);
    o.held[kLeaseVis] = 17;
    const Mail m = b.ask(again, Type::kOpenNic, o);
    ASSERT_EQ(m.type(), Type::kOpened);
    EXPECT_EQ(body_of<Opened>(m).lease[kLeaseVis], 17u);
    EXPECT_EQ(status_of(b.ask(a, Type::kCloseNic, ContextRef{5})), Status::invalid)
        << "it belongs to the new session";
    b.agent.leave(a, b.now);
    EXPECT_EQ(b.ask(again, Type::kCloseNic, ContextRef{5}).type(), Type::kDone);
}

TEST(AgentNicTest, NoSessionCanUseAnothersContext) {
    Bench b;
    const uint64_t a = b.join(), other = b.join();
    const uint64_t c = b.open(a);
    EXPECT_EQ(status_of(b.ask(other, Type::kCloseNic, ContextRef{c})), Status::invalid);
    EXPECT_EQ(status_of(b.ask(other, Type::kLease, Lease{c, 0, 0, 1})), Status::invalid);
    EXPECT_EQ(status_of(b.ask(other, Type::kConnWait, wait_at(c, "d"))), Status::invalid);
    EXPECT_EQ(status_of(b.ask(other, Type::kConnRequest, request_to(c, "x", nic_address(0), "d"))),
              Status::invalid);
}

TEST(AgentLimitTest, LeasesAreAllOrNothingAndComeBack) {
    AgentSettings settings;
    settings.limits.vis = 100;
    Bench b(settings);
    const uint64_t s = b.join();
    const uint64_t c = b.open(s);
    const uint64_t had = body_of<Opened>(b.last).lease[kLeaseVis];
    EXPECT_EQ(b.ask(s, Type::kLease, Lease{c, kLeaseVis, 0, static_cast<int64_t>(100 - had)}).type(),
              Type::kLeaseGrant);
    EXPECT_EQ(status_of(b.ask(s, Type::kLease, Lease{c, kLeaseVis, 0, 1})), Status::out_of_resources);
    EXPECT_EQ(b.ask(s, Type::kLease, Lease{c, kLeaseVis, 0, -60}).type(), Type::kLeaseGrant);
    EXPECT_EQ(status_of(b.ask(s, Type::kLease, Lease{c, kLeaseVis, 0, -41})), Status::invalid);
    EXPECT_EQ(status_of(b.ask(s, Type::kLease, Lease{c, kLeaseVis, 0, INT64_MIN})), Status::invalid);
    EXPECT_EQ(status_of(b.ask(s, Type::kLease, Lease{c, kLeaseVis, 0, INT64_MAX})), Status::out_of_resources);
    EXPECT_EQ(status_of(b.ask(s, Type::kLease, Lease{c, 4, 0, 1})), Status::invalid);
    const uint64_t second = b.join();
    b.open(second);
    EXPECT_EQ(body_of<Opened>(b.last).lease[kLeaseVis], 32u) << "what is left, at most a first lease";
    b.agent.leave(s, b.now);
    b.agent.leave(second, b.now);
    for (uint32_t q = 0; q < static_cast<uint32_t>(Quota::count); ++q) {
        EXPECT_EQ(b.agent.limits().used(1000, static_cast<Quota>(q)), 0u)
            << quota_name(static_cast<Quota>(q));
    }
}

TEST(AgentLimitTest, LimitsAreEachUsersOwn) {
    AgentSettings settings;
    settings.limits.sessions = 2;
    settings.limits.contexts = 1;
    Bench b(settings);
    const uint64_t a = b.join(1000);
    b.join(1000);
    EXPECT_EQ(b.last.type(), Type::kWelcome);
    b.join(1000);
    EXPECT_EQ(status_of(b.last), Status::out_of_resources);
    const uint64_t other = b.join(1001);
    EXPECT_EQ(b.last.type(), Type::kWelcome);
    b.open(a);
    b.open(a);
    EXPECT_EQ(status_of(b.last), Status::out_of_resources);
    b.open(other);
    EXPECT_EQ(b.last.type(), Type::kOpened);
}

TEST(AgentLimitTest, OutstandingRequestsAreCountedExactly) {
    AgentSettings settings;
    settings.limits.outstanding = 3;
    Bench b(settings);
    const uint64_t s = b.join();
    const uint64_t c = b.open(s);
    for (uint32_t t = 10; t < 13; ++t) b.post(s, Type::kConnWait, wait_at(c, "w"), t);
    EXPECT_TRUE(b.quiet(s));
    EXPECT_EQ(status_of(b.ask(s, Type::kConnWait, wait_at(c, "w"), 13)), Status::out_of_resources);
    EXPECT_EQ(b.ask(s, Type::kCancel, Cancel{10, 0}, 14).type(), Type::kDone);
    EXPECT_EQ(status_of(b.ask(s, Type::kConnWait, wait_at(c, "w"), 11)), Status::invalid)
        << "that ticket is open";
    b.post(s, Type::kConnWait, wait_at(c, "w"), 15);
    EXPECT_TRUE(b.quiet(s));
    EXPECT_EQ(b.ask(s, Type::kCloseNic, ContextRef{c}).type(), Type::kDone);
    EXPECT_EQ(b.agent.limits().used(1000, Quota::outstanding), 0u);
}

// Two sessions, each with an open NIC.
struct TwoEnds : Bench {
    explicit TwoEnds(AgentSettings settings = {}, uid_t second_user = 1000) : Bench(std::move(settings)) {
        server = join(1000);
        client = join(second_user);
        here = open(server, "fake0", 0, 2);
        there = open(client, "fake1", 0, 3);
    }
    uint64_t server, client, here, there;
};

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
        EXPECT_TRUE(b.quiet(s) && b.quiet(t));
        joined += first.type() == Type::kJoined ? 1 : 0;
    }
    EXPECT_GT(joined, 0);
    EXPECT_LT(joined, 24);
}

// Each connection to one context bears the same name of it, and no two contexts have the same.
TEST(AgentConnectTest, PeersKnowAContextByANameOfTheAgents) {
    Bench b;
    const uint64_t s = b.join(), t = b.join();
    const uint64_t c = b.open(s), d = b.open(t), e = b.open(t);
    const auto name_seen = [&](uint64_t context, const std::string& port) {
        b.post(t, Type::kConnPeer, request_to(context, port, nic_address(0), port + "'"), 20);
        b.post(s, Type::kConnPeer, request_to(c, port + "'", nic_address(0), port), 21);
        b.take(t);
        return body_of<Joined>(b.take(s)).peer_context_id;
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
        EXPECT_EQ(status_of(b.ask(s, Type::kShutdown, Empty{})), Status::denied);
    }
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

TEST(AgentStatusTest, JsonShowsTheViewerWhatIsHis) {
    TwoEnds b({}, 1001);
    const auto json_for = [&](uint64_t s) {
        const Mail m = b.ask(s, Type::kStatus, Empty{});
        EXPECT_EQ(m.type(), Type::kStatusText);
        return nlohmann::json::parse(reinterpret_cast<const char*>(m.payload.data()));
    };
    auto j = json_for(b.server);
    EXPECT_EQ(j["session_count"], 1);
    EXPECT_EQ(j["sessions"][0]["contexts"][0]["nic"], "fake0");
    EXPECT_EQ(j["nics"].size(), 2u);
    EXPECT_FALSE(j["links"].empty());
    j = json_for(b.join(0));
    EXPECT_EQ(j["session_count"], 3) << "root sees all";
}

TEST(AgentStatusTest, LongStatusComesAsAFile) {
    Bench b;
    for (int i = 0; i < 100; ++i) b.open(b.join());
    const uint64_t s = b.join();
    Mail m = b.ask(s, Type::kStatus, Empty{});
    auto j = nlohmann::json::parse(reinterpret_cast<const char*>(m.payload.data()));
    EXPECT_EQ(j["complete"], false);
    ASSERT_EQ(m.descriptors.size(), 1u);
    struct stat st;
    ASSERT_EQ(::fstat(m.descriptors[0].get(), &st), 0);
    std::string text(static_cast<size_t>(st.st_size), '\0');
    ASSERT_EQ(::pread(m.descriptors[0].get(), text.data(), text.size(), 0), st.st_size);
    EXPECT_EQ(nlohmann::json::parse(text)["sessions"].size(), 101u);
}

TEST(AgentShutdownTest, OnlyTheAgentsUserOrRootMayEndIt) {
    Bench b;
    EXPECT_EQ(status_of(b.ask(b.join(::geteuid() + 1), Type::kShutdown, Empty{})), Status::denied);
    EXPECT_FALSE(b.agent.shutdown_asked());
    EXPECT_EQ(b.ask(b.join(::geteuid()), Type::kShutdown, Empty{}).type(), Type::kDone);
    EXPECT_TRUE(b.agent.shutdown_asked());
}

}  // namespace
}  // namespace viaduct::kagent
