// SPDX-License-Identifier: BSD-2-Clause
// The agent without sockets: greetings, NICs, leases, limits and its status as messages in and out.
#include "kagent/agent.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/agent/asked_name.hpp"
#include "kagent_testing.hpp"

namespace viaduct::kagent {
namespace {

using namespace testing;

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

TEST(AgentNicTest, ProgramsSendTheirOwnDefaultProvider) {
    Bench b;
    const uint64_t s = b.join();
    for (const char* same : {"fake", ""}) {
        const auto found = body_of<NicEntry>(b.ask(s, Type::kResolveName, asked_name("VINIC1", same)));
        EXPECT_STREQ(found.nic.name, "fake1") << same;
        EXPECT_EQ(found.is_default, 0u) << same;
    }
    const Mail refused = b.ask(s, Type::kResolveName, asked_name("VINIC1", "elsewhere"));
    EXPECT_EQ(status_of(refused), Status::unknown_name);
    EXPECT_STREQ(body_of<Error>(refused).text, "the default provider, elsewhere, is not installed");
    EXPECT_EQ(body_of<NicEntry>(b.ask(s, Type::kResolveName, asked_name("fake1", "elsewhere"))).is_default, 0u);

    OpenNic open;
    open.context_id = 7;
    std::memcpy(open.device, asked_name("VINIC0", "elsewhere").name, sizeof open.device);
    EXPECT_EQ(status_of(b.ask(s, Type::kOpenNic, open)), Status::unknown_name);
    std::memcpy(open.device, asked_name("VINIC0", "fake").name, sizeof open.device);
    EXPECT_EQ(b.ask(s, Type::kOpenNic, open).type(), Type::kOpened);
}

TEST(AgentNicTest, AMissingDefaultNicHasTheReasonOfItsProvider) {
    Bench b;
    const uint64_t s = b.join();
    const auto why = [&](const char* name) {
        return std::string(body_of<Error>(b.ask(s, Type::kResolveName, asked_name(name, "empty"))).text);
    };
    static const Provider empty = fake::provider("empty", fake::discover<0>);
    static const NoSettings none;
    b.providers.add(empty, none);
    for (const char* name : {"nic0", "/dev/via_eth3", "", "unknown"})
        EXPECT_EQ(why(name), "the default provider, empty, offers no NIC: made to be rejected") << name;
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
