// SPDX-License-Identifier: BSD-2-Clause
// Recording by order of a tool: who may have which process recorded, and how it ends on either side.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "kagent_testing.hpp"

namespace viaduct::kagent {
namespace {

using namespace testing;

Fd memory() { return Fd(::memfd_create("test", MFD_CLOEXEC)); }
Fd copy_of(const Fd& fd) { return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)); }

struct TraceBench : Bench {
    // A process that shows that segment.
    uint64_t process(const Fd& segment, uid_t uid = 1000) {
        const uint64_t s = join(uid);
        Mail m(Type::kShowStats, 5);
        m.descriptors.push_back(copy_of(segment));
        agent.handle(s, std::move(m), now);
        EXPECT_EQ(take(s).type(), Type::kDone);
        return s;
    }
    uint64_t tool(uid_t uid = 1000) { return join(uid, 0, kHelloTool); }
    Status trace(uint64_t session, const Fd& segment, size_t files = 2) {
        Mail m(Type::kTrace, 7);
        if (files > 0) m.descriptors.push_back(copy_of(segment));
        while (m.descriptors.size() < files) m.descriptors.push_back(memory());
        agent.handle(session, std::move(m), now);
        return status_of(take(session));
    }
    void expect_order(uint64_t session) {
        const Mail m = take(session);
        EXPECT_EQ(m.type(), Type::kTraceWanted);
        EXPECT_EQ(m.header.ticket, 0u);
        EXPECT_EQ(m.descriptors.size(), 1u);
    }
    void expect_over(uint64_t session) {
        const Mail m = take(session);
        EXPECT_EQ(m.type(), Type::kTraceOver);
        EXPECT_EQ(m.header.ticket, 0u);
    }
};

TEST(AgentTraceTest, TheProcessGetsTheMemoryAndIsToldWhenTheToolHasLeft) {
    TraceBench b;
    const Fd one = memory(), other = memory();
    const uint64_t wanted = b.process(one), bystander = b.process(other), tool = b.tool();
    EXPECT_EQ(b.trace(tool, one), Status::ok);
    b.expect_order(wanted);
    b.agent.leave(tool, b.now);
    b.expect_over(wanted);
    EXPECT_TRUE(b.quiet(wanted));
    EXPECT_TRUE(b.quiet(bystander));
    EXPECT_EQ(b.trace(b.tool(), one), Status::ok) << "it is free again";
    b.expect_order(wanted);
}

TEST(AgentTraceTest, TheToolIsToldWhenTheProcessHasEnded) {
    TraceBench b;
    const Fd one = memory(), other = memory();
    const uint64_t first = b.process(one), second = b.process(other), tool = b.tool();
    EXPECT_EQ(b.trace(tool, one), Status::ok);
    b.agent.leave(first, b.now);
    b.expect_over(tool);
    EXPECT_EQ(b.trace(tool, one), Status::no_match);
    EXPECT_EQ(b.trace(tool, other), Status::ok);
    b.expect_order(second);
}

TEST(AgentTraceTest, OneToolForAProcessAndOneProcessForATool) {
    TraceBench b;
    const Fd one = memory(), other = memory();
    b.process(one);
    const uint64_t second = b.process(other), tool = b.tool();
    EXPECT_EQ(b.trace(tool, one), Status::ok);
    EXPECT_EQ(b.trace(b.tool(), one), Status::not_done);
    EXPECT_EQ(b.trace(tool, other), Status::not_done);
    EXPECT_TRUE(b.quiet(second));
}

TEST(AgentTraceTest, BothFilesOfTheToolAreDiscardedBehindTheOrder) {
    TraceBench b;
    const Fd one = memory();
    const uint64_t process = b.process(one), tool = b.tool();
    const size_t before = b.out.discarded;
    EXPECT_EQ(b.trace(tool, one), Status::ok);
    b.expect_order(process);
    EXPECT_EQ(b.out.discarded, before + 2) << "what is closed on the agent's own thread may hold it up";
}

TEST(AgentTraceTest, OfAnotherUserOnlyRootMay) {
    TraceBench b;
    const Fd one = memory();
    const uint64_t process = b.process(one, 1001);
    EXPECT_EQ(b.trace(b.tool(1000), one), Status::denied);
    EXPECT_TRUE(b.quiet(process));
    EXPECT_EQ(b.trace(b.tool(0), one), Status::ok);
}

TEST(AgentTraceTest, WhatIsNoSegmentOfAProcessAndWhatIsNoRequest) {
    TraceBench b;
    const Fd one = memory();
    b.process(one);
    b.join();
    const uint64_t tool = b.tool();
    EXPECT_EQ(b.trace(tool, memory()), Status::no_match);
    EXPECT_EQ(b.trace(tool, Bench::some_fd()), Status::no_match);
    for (const size_t files : {0, 1, 3}) EXPECT_EQ(b.trace(tool, one, files), Status::invalid) << files;
    EXPECT_EQ(status_of(b.ask(tool, Type::kTrace, EndedQuery{})), Status::invalid);
    EXPECT_EQ(b.trace(tool, one), Status::ok) << "nothing of it is left behind";
}

TEST(AgentTraceTest, AProcessMayAskForItself) {
    TraceBench b;
    const Fd one = memory();
    const uint64_t process = b.process(one);
    EXPECT_EQ(b.trace(process, one), Status::ok);
    b.expect_order(process);
    b.agent.leave(process, b.now);
    EXPECT_TRUE(b.quiet(process));
}

}  // namespace
}  // namespace viaduct::kagent
