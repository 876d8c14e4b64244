// SPDX-License-Identifier: BSD-2-Clause
// Lines over a descriptor: split, glued, endless, cut off.
#include "mpi-adi/rte/line_channel.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace viaduct::rte {
namespace {

struct Pair {
    Pair() {
        int both[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
        ours = both[0];
        theirs = both[1];
    }
    ~Pair() {
        if (theirs >= 0) ::close(theirs);
    }
    void say(const std::string& text) {
        EXPECT_EQ(::write(theirs, text.data(), text.size()), ssize_t(text.size()));
    }
    void hang_up() {
        ::close(theirs);
        theirs = -1;
    }
    int ours, theirs;
};

TEST(LineChannel, puts_pieces_together_and_takes_lines_apart) {
    Pair pair;
    LineChannel channel(pair.ours);
    std::thread server([&] {
        pair.say("cmd=a x=1\ncmd=");
        pair.say("b");
        pair.say("\n\ncmd=c\n");
    });
    EXPECT_EQ(channel.receive(), "cmd=a x=1");
    EXPECT_EQ(channel.receive(), "cmd=b");
    EXPECT_EQ(channel.receive(), "");
    EXPECT_EQ(channel.receive(), "cmd=c");
    server.join();
}

TEST(LineChannel, ends_when_the_other_side_does_even_inside_a_line) {
    Pair pair;
    LineChannel channel(pair.ours);
    pair.say("cmd=half");
    pair.hang_up();
    EXPECT_EQ(channel.receive(), std::nullopt);
    EXPECT_FALSE(channel.send("cmd=late") && channel.send("cmd=later"));
}

TEST(LineChannel, gives_up_on_a_line_without_end) {
    Pair pair;
    LineChannel channel(pair.ours);
    std::thread server([&] {
        const std::string rubbish(4096, 'x');
        while (::send(pair.theirs, rubbish.data(), rubbish.size(), MSG_NOSIGNAL) > 0) {
        }
    });
    EXPECT_EQ(channel.receive(), std::nullopt);
    channel.close();
    server.join();
}

TEST(LineChannel, waits_on_a_descriptor_that_does_not_block) {
    Pair pair;
    ::fcntl(pair.ours, F_SETFL, O_NONBLOCK);
    LineChannel channel(pair.ours);
    std::thread server([&] {
        char question[32];
        EXPECT_GT(::read(pair.theirs, question, sizeof question), 0);
        pair.say("cmd=answer\n");
    });
    EXPECT_TRUE(channel.send("cmd=question"));
    EXPECT_EQ(channel.receive(), "cmd=answer");
    server.join();
}

TEST(LineChannel, works_over_pipes_and_is_closed_in_programs_started_later) {
    int both[2];
    ASSERT_EQ(::pipe(both), 0);
    LineChannel writer(both[1]);
    LineChannel reader(both[0]);
    EXPECT_EQ(::fcntl(both[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    EXPECT_TRUE(writer.send("cmd=x"));
    EXPECT_EQ(reader.receive(), "cmd=x");
}

TEST(LineChannel, waits_for_the_end_of_the_other_side_and_not_for_ever) {
    using Clock = std::chrono::steady_clock;
    Pair pair;
    LineChannel channel(pair.ours);
    const auto began = Clock::now();
    pair.say("cmd=late\n");
    channel.wait_for_end(std::chrono::milliseconds(30));
    EXPECT_GE(Clock::now() - began, std::chrono::milliseconds(30));
    pair.say("cmd=later\n");
    pair.hang_up();
    channel.wait_for_end(std::chrono::hours(1));  // the deadline of the test is shorter
}

TEST(LineChannel, leaves_a_file_of_the_program_alone_that_has_its_number) {
    Pair pair, other;
    {
        LineChannel channel(pair.ours);
        ASSERT_EQ(::dup2(other.ours, pair.ours), pair.ours);
        other.say("x=1\n");
        EXPECT_FALSE(channel.send("cmd=x"));
        EXPECT_TRUE(channel.wait_for_line(std::chrono::hours(1)));
        EXPECT_EQ(channel.receive(), std::nullopt);
        channel.wait_for_end(std::chrono::hours(1));
    }
    EXPECT_EQ(::write(pair.ours, "y", 1), 1);  // it is open
    char got[8];
    EXPECT_EQ(::read(other.theirs, got, sizeof got), 1);  // and nothing else has come
    ::close(pair.ours);
    ::close(other.ours);
}

TEST(Fields, are_found_by_their_whole_name) {
    const std::string line = "cmd=get_result rc=0 msg=success value=(vector,(0,2,2)) xrc=7 empty=";
    EXPECT_EQ(field_of(line, "cmd"), "get_result");
    EXPECT_EQ(field_of(line, "value"), "(vector,(0,2,2))");
    EXPECT_EQ(field_of(line, "c"), std::nullopt);
    EXPECT_EQ(field_of(line, "vector"), std::nullopt);
    EXPECT_EQ(field_of(line, "empty"), "");
    EXPECT_EQ(number_of(line, "rc"), 0);
    EXPECT_EQ(number_of(line, "xrc"), 7);
    EXPECT_EQ(number_of(line, "msg"), std::nullopt);
    EXPECT_EQ(number_of("size=99999999999", "size"), std::nullopt);
    EXPECT_EQ(number_of("size=7x", "size"), std::nullopt);
}

}  // namespace
}  // namespace viaduct::rte
