// SPDX-License-Identifier: BSD-2-Clause
// Completion queues: what a poll without a result does besides, and a change of size.

#include <gtest/gtest.h>
#include <unistd.h>
#include <viaduct/ext.h>

#include "core/stats/reader.hpp"
#include "core/wait/crowd_score.hpp"
#include "vipl_nic_testing.hpp"

namespace viaduct::vipl {
namespace {

// How often empty polls have looked at everything else of the process' NICs.
uint64_t rounds() {
    stats::Picture picture;
    EXPECT_EQ(stats::look_at(::getpid(), &picture), stats::Look::ok);
    return stats::number_of(picture.process, "rounds");
}

// A poll beside others that want the processor gives way and looks twice; what is due every so many looks is
// due whichever of the two it falls on.
TEST(CqPollTest, LooksAroundAlsoWhereOthersWantTheProcessor) {
    const End end;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(end.nic, 4, &cq), VIP_SUCCESS);
    const auto polls_without_result = [&](int count, bool crowd) {
        for (int i = 0; i < count; ++i) {
            crowd_hint.store(crowd);
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN is_receive = VIP_FALSE;
            EXPECT_EQ(VipCQDone(cq, &vi, &is_receive), VIP_NOT_DONE);
        }
    };
    for (const int looks_before : {0, 1}) {
        polls_without_result(looks_before, false);
        const uint64_t before = rounds();
        polls_without_result(640, true);
        EXPECT_GE(rounds(), before + 10) << "after " << looks_before;
    }
    EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
}

// Each eighth poll that gives way asks whether that is still needed, and this process has met no others.
TEST(CqPollTest, GivesNoProcessorAwayWhereTheProgramDoesSoItself) {
    const End end;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(end.nic, 4, &cq), VIP_SUCCESS);
    ASSERT_EQ(VipxSetGiveWay(end.nic, VIP_FALSE), VIP_SUCCESS);
    crowd_hint.store(true);
    for (int i = 0; i < 640; ++i) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN is_receive = VIP_FALSE;
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_EQ(VipCQDone(cq, &vi, &is_receive), VIP_NOT_DONE);
        (void)VipRecvDone(end.vi, &done);
        (void)VipSendDone(end.vi, &done);
    }
    EXPECT_TRUE(crowd_hint.exchange(false));
    EXPECT_EQ(VipxSetGiveWay(end.nic, VIP_TRUE), VIP_SUCCESS);
    EXPECT_EQ(VipxSetGiveWay(nullptr, VIP_TRUE), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
}

TEST(CqResizeTest, SeesCompletionsThatWereNotPolled) {
    constexpr int kMessages = 4;
    End here, there;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(there.nic, 2 * kMessages, &cq), VIP_SUCCESS);
    there.vi = there.create_vi(cq);
    connect(here, there);
    for (int i = 0; i < kMessages; ++i)
        ASSERT_EQ(VipPostRecv(there.vi, there.descriptor(i), there.region), VIP_SUCCESS);
    for (int i = 0; i < kMessages; ++i) ASSERT_EQ(VipPostSend(here.vi, here.descriptor(i), here.region), VIP_SUCCESS);

    EXPECT_EQ(VipResizeCQ(cq, kMessages - 1), VIP_ERROR_RESOURCE);
    EXPECT_EQ(VipResizeCQ(cq, kMessages), VIP_SUCCESS);

    for (int i = 0; i < kMessages; ++i) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN is_receive = VIP_FALSE;
        ASSERT_EQ(VipCQDone(cq, &vi, &is_receive), VIP_SUCCESS) << "entry " << i;
        VIP_DESCRIPTOR* got = nullptr;
        EXPECT_EQ(VipRecvDone(there.vi, &got), VIP_SUCCESS);
        EXPECT_EQ(got, there.descriptor(i));
    }
    EXPECT_EQ(there.state(), VIP_STATE_CONNECTED);
}

}  // namespace
}  // namespace viaduct::vipl
