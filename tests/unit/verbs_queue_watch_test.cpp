// SPDX-License-Identifier: BSD-2-Clause
// What programs are told that post and never ask, and that those that ask are left alone.
#include "providers/verbs/queue_watch.hpp"

#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs {
namespace {

constexpr uint32_t kSent = VIP_STATUS_DONE | VIP_STATUS_OP_SEND;

class VerbsQueueWatch : public test::VerbsFixture {
protected:
    // The progress thread comes by when it wanted to.
    void next_look_at_sends() { next_ = watch_sends(nic_, now_ = next_); }
    void next_look_at_groups() { next_ = watch_groups(nic_, now_ = next_); }
    void begin() {
        next_ = watch_sends(nic_, now_);
        ASSERT_EQ(next_, now_ + kSendTimeout);
    }
    void complete_send(size_t i, ibv_wc_status status) { complete(fake_.sends.at(i).wr.wr_id, status); }

    Deadline next_ = 0;
};

TEST_F(VerbsQueueWatch, ASendThatFailsIsToldToAProgramThatNeverAsks) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_DESCRIPTOR* d = descriptor(8);
    post_send(d);
    begin();
    complete_send(0, IBV_WC_RNR_RETRY_EXC_ERR);
    watch_sends(nic_, next_ - 1);
    EXPECT_EQ(d->CS.Status, 0u) << "it has its time";
    next_look_at_sends();
    EXPECT_EQ(d->CS.Status, kSent | VIP_STATUS_REMOTE_DESC_ERROR);
    EXPECT_TRUE(core_.is_marked_broken());
    EXPECT_EQ(told_.settled, 1) << "the VI goes to Error";
    ASSERT_EQ(fake_.messages.size(), 1u);
    EXPECT_EQ(message(0).kind, MessageKind::no_receive) << "the peer is told as well";
}

TEST_F(VerbsQueueWatch, ASendThatIsSlowIsLookedAtAgainAndAgain) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* d = descriptor(8);
    post_send(d);
    begin();
    for (int i = 0; i < 5; ++i) {
        next_look_at_sends();
        ASSERT_EQ(next_, now_ + kSendTimeout);
        ASSERT_EQ(d->CS.Status, 0u);
    }
    complete_send(0, IBV_WC_SUCCESS);
    next_look_at_sends();
    EXPECT_EQ(d->CS.Status, kSent);
    EXPECT_FALSE(core_.is_marked_broken());
}

TEST_F(VerbsQueueWatch, OfSeveralTheOldestCounts) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_DESCRIPTOR* d[] = {descriptor(8), descriptor(8), descriptor(8)};
    post_send(d[0]);
    begin();
    post_send(d[1]);  // posting is no asking
    complete_send(0, IBV_WC_SUCCESS);
    complete_send(1, IBV_WC_RETRY_EXC_ERR);
    next_look_at_sends();
    EXPECT_EQ(d[0]->CS.Status, kSent);
    EXPECT_EQ(d[1]->CS.Status, kSent | VIP_STATUS_TRANSPORT_ERROR);
}

TEST_F(VerbsQueueWatch, AProgramThatAsksIsLeftAlone) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_send(descriptor(8));
    begin();
    for (size_t i = 0; i < 5; ++i) {
        complete_send(i, IBV_WC_SUCCESS);
        post_send(descriptor(8));
        poll_send(core_);
        const uint32_t looks = group_.looks.load();
        next_look_at_sends();
        EXPECT_EQ(group_.looks.load(), looks);
        EXPECT_EQ(next_, now_ + kSendTimeout) << "one is always out";
    }
}

TEST_F(VerbsQueueWatch, EndsWhenNothingIsOutAndBeginsWithTheNextSend) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    EXPECT_EQ(watch_sends(nic_, now_), kNever);
    post_send(descriptor(8));
    begin();
    complete_send(0, IBV_WC_SUCCESS);
    poll_send(core_);
    EXPECT_EQ(watch_sends(nic_, now_ + 1), next_);
    for (uint32_t i = 0; i < kEmptyLooks; ++i) {
        next_look_at_sends();
        ASSERT_EQ(next_, now_ + kSendTimeout) << "not for every gap between two sends";
    }
    next_look_at_sends();
    EXPECT_EQ(next_, kNever);
    EXPECT_EQ(nic_.sends_watched.load(), 0u);
    VIP_DESCRIPTOR* d = descriptor(8);
    post_send(d);
    EXPECT_EQ(nic_.sends_watched.load(), 1u);
    begin();
    complete_send(1, IBV_WC_SUCCESS);
    next_look_at_sends();
    EXPECT_EQ(d->CS.Status, kSent);
}

TEST_F(VerbsQueueWatch, AProgramThatSendsNowAndThenPaysForOneBeginning) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_send(descriptor(8));
    begin();
    complete_send(0, IBV_WC_SUCCESS);
    poll_send(core_);
    for (size_t i = 1; i < 20; ++i) {
        for (uint32_t look = 0; look < kEmptyLooks; ++look) next_look_at_sends();
        ASSERT_EQ(nic_.sends_watched.load(), 1u) << "after " << i;
        post_send(descriptor(8));
        next_look_at_sends();
        complete_send(i, IBV_WC_SUCCESS);
        poll_send(core_);
    }
}

TEST_F(VerbsQueueWatch, WhatWasFlushedIsNotOut) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    two_sends(IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR);
    begin();
    for (uint32_t i = 0; i <= kEmptyLooks; ++i) next_look_at_sends();
    EXPECT_EQ(next_, kNever);
}

TEST_F(VerbsQueueWatch, AGroupWithoutAPollIsPolledNowAndThen) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    EXPECT_EQ(watch_groups(nic_, now_), kNever) << "the peer does not know of the connection yet";
    link_.joined.store(true);
    VIP_DESCRIPTOR* d[] = {descriptor(8), descriptor(8)};
    for (VIP_DESCRIPTOR* one : d) post_recv(one);
    next_ = watch_groups(nic_, now_);
    ASSERT_EQ(next_, now_ + kGroupTimeout);
    complete(fake_.receives[0].wr.wr_id, IBV_WC_SUCCESS, 8, IBV_WC_RECV);
    watch_groups(nic_, next_ - 1);
    EXPECT_EQ(d[0]->CS.Status, 0u);
    next_look_at_groups();
    EXPECT_EQ(d[0]->CS.Status, static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));

    poll_recv(core_);
    complete(fake_.receives[1].wr.wr_id, IBV_WC_SUCCESS, 8, IBV_WC_RECV);
    next_look_at_groups();
    EXPECT_EQ(d[1]->CS.Status, 0u) << "the program has polled: it will again";
    next_look_at_groups();
    EXPECT_EQ(d[1]->CS.Status, static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));
}

}  // namespace
}  // namespace viaduct::verbs
