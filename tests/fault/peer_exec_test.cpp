// SPDX-License-Identifier: BSD-2-Clause
// The peer's process becomes another program (execve): alive to the kernel and to every pidfd, but all of its
// memory is another's. To its peers that is a death like any other. And a program that closes all descriptors
// behind the library's back, as daemons do: its own new files are its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

class PeerExecs : public conformance::AtEachLevel {
protected:
    void become_another(Meeting& meeting) {
        meeting.killed = Stopwatch();
        meeting.child->go();
    }
};

INSTANTIATE_TEST_SUITE_P(Levels, PeerExecs, VIADUCT_ALL_LEVELS, conformance::level_test_name);

TEST_P(PeerExecs, IsADeathLikeAnyOther) {
    NEEDS_LEVEL(GetParam());
    Meeting meeting("become-another", at_level());
    become_another(meeting);
    EXPECT_TRUE(meeting.end->reaches(VIP_STATE_ERROR, kOneSecond));
    expect_flushed(*meeting.end, meeting.posted);
    expect_survivor_is_told(meeting);
    expect_new_connections_work();
}

TEST_P(PeerExecs, NothingSentAfterwardsIsReportedAsDone) {
    NEEDS_LEVEL(GetParam());
    Meeting meeting("become-another", at_level());
    become_another(meeting);
    ASSERT_TRUE(meeting.end->reaches(VIP_STATE_ERROR, kOneSecond));
    meeting.end->send(meeting.end->buffer(64, 's'), 64);
    EXPECT_NE(VIP_SUCCESS, conformance::reap_send(meeting.end->vi).code);
}

TEST_P(PeerExecs, ASleeperWakes) {
    NEEDS_LEVEL(GetParam());
    Meeting meeting("become-another", at_level());
    auto sleeper = asleep_apart([vi = meeting.end->vi] {
        VIP_DESCRIPTOR* done = nullptr;
        return VipRecvWait(vi, VIP_INFINITE, &done);
    });
    become_another(meeting);
    ASSERT_TRUE(ready(sleeper, kOneSecond));
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, sleeper.get());
}

void expect_untouched(Meeting& meeting) {
    meeting.child->go();
    EXPECT_EQ("untouched", meeting.child->line(Millis(40000)));
    EXPECT_EQ(0, meeting.child->wait());
    const Outcome got = conformance::reap_recv(meeting.end->vi);
    EXPECT_EQ(VIP_SUCCESS, got.code) << "the connection went on";
}

TEST(ClosedDescriptors, NumbersOfTheLibrarysBelongToTheProgramAfterwards) {
    Meeting meeting("close-everything");
    expect_untouched(meeting);
}

// A variable that children have, while it lasts.
class ForChildren {
public:
    ForChildren(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
    ~ForChildren() { ::unsetenv(name_); }
    ForChildren(const ForChildren&) = delete;
    ForChildren& operator=(const ForChildren&) = delete;

private:
    const char* const name_;
};

// Of one process: this one may log to the file, too.
size_t lines_of(pid_t process, const std::string& path) {
    std::ifstream file(path);
    const std::string start = "viaduct[" + std::to_string(process) + "] ";
    size_t count = 0;
    for (std::string line; std::getline(file, line);) count += line.compare(0, start.size(), start) == 0 ? 1 : 0;
    return count;
}

TEST(ClosedDescriptors, TheLogGoesOnInItsOwnFile) {
    std::string path = ::testing::TempDir() + "viaduct-log-XXXXXX";
    const int made = ::mkstemp(path.data());
    ASSERT_GE(made, 0);
    ::close(made);
    const ForChildren level("VIADUCT_LOG", "debug"), file("VIADUCT_LOG_FILE", path);
    Meeting meeting("close-everything");
    const pid_t child = meeting.child->pid();
    const size_t before = lines_of(child, path);
    EXPECT_GT(before, 0U);
    expect_untouched(meeting);
    EXPECT_GT(lines_of(child, path), before);
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace viaduct::fault
