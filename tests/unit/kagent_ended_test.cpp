// SPDX-License-Identifier: BSD-2-Clause
// What the agent keeps of processes that have ended: whose, for how long, how many, and who is told.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "core/stats/reader.hpp"
#include "kagent_testing.hpp"
#include "vipkad_testing.hpp"

namespace viaduct::kagent {
namespace {

using namespace testing;
using stats::FailureKind;

// The segment of a process whose calls have failed with that text; empty: no call has.
Fd segment(const char* text, FailureKind kind = FailureKind::call) {
    Fd fd(::memfd_create("test-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const auto header = std::make_unique<stats::StatsHeader>();
    header->magic = stats::kMagic;
    header->version = stats::kVersion;
    header->pid = 1;
    std::strcpy(header->program, "failing");
    header->records_at = stats::kRecordsAt;
    header->record_bytes = 128;
    header->record_count = 1000;
    const auto ring = std::make_unique<stats::FailureRing>();
    if (*text != 0) {
        ring->records[0].number = 1;
        ring->records[0].kind = kind;
        std::strcpy(ring->records[0].call, "VipPostSend");
        std::strcpy(ring->records[0].text, text);
    }
    EXPECT_EQ(::ftruncate(fd.get(), stats::kRecordsAt + 128 * 1000), 0);
    EXPECT_EQ(::pwrite(fd.get(), header.get(), sizeof *header, 0), static_cast<ssize_t>(sizeof *header));
    EXPECT_EQ(::pwrite(fd.get(), ring.get(), sizeof *ring, stats::kFailuresAt), static_cast<ssize_t>(sizeof *ring));
    return fd;
}

Mail showing(Fd fd, uint32_t ticket = 5) {
    Mail m(Type::kShowStats, ticket);
    m.descriptors.push_back(std::move(fd));
    return m;
}

struct EndedBench : Bench {
    using Bench::Bench;
    void show(uint64_t session, Fd fd, Type expected = Type::kDone) {
        agent.handle(session, showing(std::move(fd)), now);
        EXPECT_EQ(take(session).type(), expected);
    }
    // A process comes, shows that, and ends.
    void live(Fd fd, uid_t uid = 1000, pid_t pid = 0) {
        const uint64_t s = join(uid, pid);
        show(s, std::move(fd));
        agent.leave(s, now);
    }
    // What a tool of that user is told: the failures, each with the process number before it.
    std::vector<std::string> told(uid_t uid = 1000, int32_t pid = 0) {
        const uint64_t tool = join(uid, 0, kHelloTool);
        const Mail m = ask(tool, Type::kListEnded, EndedQuery{pid, 0});
        std::vector<std::string> out;
        size_t at = 0;
        for (size_t i = 0; i < m.payload.size() / sizeof(EndedEntry) && m.type() == Type::kEndedList; ++i) {
            EndedEntry entry;
            std::memcpy(&entry, m.payload.data() + i * sizeof entry, sizeof entry);
            stats::Picture picture;
            EXPECT_EQ(stats::look_into(m.descriptors.at(0).get(), at, &picture), stats::Look::ok);
            EXPECT_EQ(picture.program, "failing");
            EXPECT_TRUE(picture.vis.empty());
            at += entry.bytes;
            for (const auto& f : picture.failures)
                out.push_back(std::to_string(entry.pid) + " " + f.text.substr(f.text.rfind(' ') + 1) + " " +
                              std::to_string(entry.ago_ms));
        }
        agent.leave(tool, now);
        return out;
    }
};

using Texts = std::vector<std::string>;

TEST(AgentEndedTest, FailuresAreToldForAWhileAfterTheEnd) {
    AgentSettings settings;
    settings.ended_ms = 1000;
    EndedBench b(settings);
    EXPECT_EQ(b.told(), Texts{});
    EXPECT_EQ(b.agent.tells_until(), 0);
    b.live(segment("first"), 1000, 71);
    b.pass(400);
    b.live(segment("second"), 1000, 72);
    EXPECT_EQ(b.told(), (Texts{"71 first 400", "72 second 0"}));
    EXPECT_EQ(b.told(1000, 72), Texts{"72 second 0"});
    EXPECT_EQ(b.told(1000, 73), Texts{});
    b.pass(600);
    EXPECT_EQ(b.told(), Texts{"72 second 600"});
    b.pass(400);
    EXPECT_EQ(b.told(), Texts{});
    EXPECT_EQ(b.agent.tells_until(), 0);
}

TEST(AgentEndedTest, OfAnotherUserOnlyRootIsTold) {
    EndedBench b;
    b.live(segment("mine"), 1000, 71);
    b.live(segment("yours"), 1001, 72);
    EXPECT_EQ(b.told(1000), Texts{"71 mine 0"});
    EXPECT_EQ(b.told(1001), Texts{"72 yours 0"});
    EXPECT_EQ(b.told(0), (Texts{"71 mine 0", "72 yours 0"}));
    EXPECT_EQ(b.told(1002), Texts{});
}

TEST(AgentEndedTest, NothingIsKeptOfAProcessWithoutAFailure) {
    EndedBench b;
    b.live(segment(""));
    b.live(segment("only told", FailureKind::notice));
    b.live(Bench::some_fd());
    Fd empty(::memfd_create("empty", MFD_CLOEXEC));
    b.live(std::move(empty));
    EXPECT_EQ(b.told(), Texts{});
    AgentSettings settings;
    settings.ended_ms = 0;
    EndedBench off(settings);
    off.live(segment("not wanted"));
    EXPECT_EQ(off.told(), Texts{});
    EXPECT_EQ(off.agent.tells_until(), 0);
}

TEST(AgentEndedTest, TheOldestOfAUserMakesRoom) {
    EndedBench b;
    b.live(segment("other"), 1001);
    for (size_t i = 0; i <= EndedProcesses::kMostOfOneUser; ++i) b.live(segment(std::to_string(i).c_str()), 1000, 70);
    const Texts told = b.told(1000);
    EXPECT_EQ(told.size(), EndedProcesses::kMostOfOneUser);
    EXPECT_EQ(told.front(), "70 1 0");
    EXPECT_EQ(b.told(1001).size(), 1u);
    for (uid_t user = 2000; user < 2000 + EndedProcesses::kMost; ++user) b.live(segment("many"), user);
    EXPECT_EQ(b.told(1001), Texts{}) << "the oldest of all";
    EXPECT_EQ(b.told(0).size(), EndedProcesses::kMost);
}

TEST(AgentEndedTest, FilesAreCountedAndGivenBack) {
    EndedBench b;
    const uint64_t s = b.join(1000);
    const uint64_t before = b.agent.limits().used(1000, Quota::descriptors);
    b.show(s, segment("one"));
    EXPECT_EQ(b.agent.limits().used(1000, Quota::descriptors), before + 1);
    b.show(s, segment("again"));
    EXPECT_EQ(b.agent.limits().used(1000, Quota::descriptors), before + 1) << "the first is kept";
    EXPECT_EQ(status_of(b.ask(s, Type::kShowStats, Empty{})), Status::invalid) << "without a descriptor";
    b.agent.leave(s, b.now);
    EXPECT_EQ(b.agent.limits().used(1000, Quota::descriptors), 0u);
    EXPECT_EQ(b.told().size(), 1u);
    AgentSettings settings;
    settings.limits.descriptors = 66;
    EndedBench full(settings);
    full.show(full.join(1000), segment("no room"), Type::kError);
    settings.limits.descriptors = 67;
    EndedBench enough(settings);
    enough.show(enough.join(1000), segment("room"));
    enough.show(enough.join(1000), segment("connections need the rest"), Type::kError);
}

TEST(AgentEndedTest, AnAgentForToolsOnlyLeavesWhenAProgramComes) {
    EndedBench b;
    b.agent.serve_tools_only();
    b.join(1000, 0, kHelloTool);
    EXPECT_EQ(b.last.type(), Type::kWelcome);
    EXPECT_FALSE(b.agent.shutdown_asked());
    const uint64_t program = b.join(1000);
    EXPECT_NE(b.last.type(), Type::kWelcome);
    EXPECT_TRUE(b.out.dropped.contains(program));
    EXPECT_TRUE(b.agent.shutdown_asked());
    EXPECT_EQ(b.agent.keepers(), 0u);
}

// ---- vipkad as a process

using agent_testing::another_agent_has_left;
using agent_testing::Daemon;
using agent_testing::Place;

void come_and_fail(const Place& place) {
    const Fd fd = agent_testing::connect_to(place.address);
    ASSERT_EQ(agent_testing::hello(fd.get()).type(), Type::kWelcome);
    ASSERT_EQ(send_mail(fd.get(), showing(segment("why"))), Status::ok);
    Mail answer;
    ASSERT_EQ(receive_mail(fd.get(), &answer), Status::ok);
    ASSERT_EQ(answer.type(), Type::kDone);
}

bool tells(const Place& place) {
    const Fd fd = agent_testing::connect_to(place.address);
    if (!fd.valid() || agent_testing::hello(fd.get(), kHelloTool).type() != Type::kWelcome) return false;
    Mail answer;
    return send_mail(fd.get(), Mail::of(Type::kListEnded, EndedQuery{}, 7)) == Status::ok &&
           receive_mail(fd.get(), &answer) == Status::ok && answer.type() == Type::kEndedList;
}

TEST(VipkadEndedTest, ItStaysForToolsAndLeavesAfterwards) {
    Place place("50");
    place.set("VIADUCT_AGENT_ENDED_MS", "1500");
    Daemon daemon(place.address, {});
    ASSERT_TRUE(daemon.up);
    constexpr int64_t kTells = 1500 * agent_testing::kMs;
    const tests::RunningTime time;
    come_and_fail(place);
    EXPECT_TRUE(another_agent_has_left(place, "50"));
    const bool stays = daemon.wait_now() == -1 && tells(place);
    EXPECT_TRUE(stays || time.wall_ns() >= kTells) << "it may have left where the other one took that long";
    EXPECT_TRUE(daemon.ends());
    EXPECT_EQ(daemon.status, 0);
    EXPECT_GE(time.wall_ns(), kTells);
}

TEST(VipkadEndedTest, AProgramThatComesLaterHasAnAgentOfItsOwn) {
    Place place("0");
    place.set("VIADUCT_AGENT_ENDED_MS", "60000");
    Daemon daemon(place.address, {});
    ASSERT_TRUE(daemon.up);
    come_and_fail(place);
    EXPECT_TRUE(another_agent_has_left(place, "0"));
    ASSERT_TRUE(tells(place));
    AgentLink link;
    ASSERT_EQ(link.connect(), Status::ok) << link.last_error();
    EXPECT_TRUE(daemon.ends());
    EXPECT_NE(link.welcome().agent_pid, static_cast<uint32_t>(daemon.pid));
}

TEST(VipkadEndedTest, OneThatIsToldWhenToLeaveDoesNotStayForTools) {
    Place place;
    place.set("VIADUCT_AGENT_ENDED_MS", "60000");
    Daemon daemon(place.address, {"--linger-ms", "50"});
    ASSERT_TRUE(daemon.up);
    come_and_fail(place);
    EXPECT_TRUE(daemon.ends());
    EXPECT_EQ(daemon.status, 0);
}

}  // namespace
}  // namespace viaduct::kagent
