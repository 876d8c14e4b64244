// SPDX-License-Identifier: BSD-2-Clause
// Connections of level Unreliable over a reliable queue pair that fails: made anew, nothing lost, nothing
// twice.
#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs {
namespace {

class VerbsRecovery : public test::VerbsFixture {
protected:
    // A send that fails in a way that the connection outlives; the round has begun.
    void fail_one_send() {
        post_send(descriptor(8));
        complete(fake_.sends.back().wr.wr_id, IBV_WC_RNR_RETRY_EXC_ERR);
        poll_send(core_);
        recover_links(nic_, now_);
    }
    void receive(MessageKind kind, uint32_t round, uint32_t received = 0) {
        Message m;
        m.kind = kind;
        m.handle = round;
        m.length = received;
        handle_recovery(link_, *core_.endpoint, m);
        recover_links(nic_, now_ += 1'000'000);
    }
};

TEST_F(VerbsRecovery, TheQueuePairIsMadeAnewAndTheRestSentAgain) {
    connect(VIP_SERVICE_UNRELIABLE);
    std::vector<VIP_DESCRIPTOR*> d;
    for (int i = 0; i < 4; ++i) {
        d.push_back(descriptor(8));
        post_send(d.back());
    }
    complete(fake_.sends[0].wr.wr_id, IBV_WC_SUCCESS);
    complete(fake_.sends[1].wr.wr_id, IBV_WC_RNR_RETRY_EXC_ERR);
    complete(fake_.sends[2].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    complete(fake_.sends[3].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    poll_send(core_);
    EXPECT_EQ(d[1]->CS.Status, static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND)) << "dropped";
    EXPECT_EQ(d[2]->CS.Status, 0u);
    EXPECT_FALSE(core_.is_marked_broken());
    ASSERT_EQ(fake_.messages.size(), 1u);
    EXPECT_EQ(message(0).kind, MessageKind::no_receive);

    recover_links(nic_, now_);
    ASSERT_EQ(fake_.messages.size(), 2u);
    EXPECT_EQ(message(1).kind, MessageKind::reset);
    EXPECT_EQ(message(1).handle, 1u);
    EXPECT_EQ(message(1).length, 0u) << "nothing has arrived here";
    ASSERT_EQ(fake_.states.size(), 1u);
    EXPECT_EQ(fake_.states[0].qp_state, IBV_QPS_ERR);
    post_send(descriptor(8));
    EXPECT_EQ(fake_.sends.size(), 4u) << "nothing is posted meanwhile";

    peer_says(MessageKind::reset, 1);
    ASSERT_EQ(fake_.states.size(), 5u);
    EXPECT_EQ(fake_.states[1].qp_state, IBV_QPS_RESET);
    EXPECT_EQ(fake_.states[2].qp_state, IBV_QPS_INIT);
    EXPECT_EQ(fake_.states[3].qp_state, IBV_QPS_RTR);
    EXPECT_EQ(fake_.states[3].rq_psn, 0xABCDEFu);
    EXPECT_EQ(fake_.states[4].qp_state, IBV_QPS_RTS);
    EXPECT_EQ(fake_.states[4].sq_psn, message(1).key);
    ASSERT_EQ(fake_.messages.size(), 3u);
    EXPECT_EQ(message(2).kind, MessageKind::ready);
    EXPECT_EQ(fake_.sends.size(), 4u) << "the peer is not ready yet";

    peer_says(MessageKind::ready);
    ASSERT_EQ(fake_.sends.size(), 7u);
    EXPECT_EQ(position_of(fake_.sends[4].wr.wr_id), 2u);
    EXPECT_EQ(position_of(fake_.sends[5].wr.wr_id), 3u);
    EXPECT_EQ(position_of(fake_.sends[6].wr.wr_id), 4u);
    EXPECT_FALSE(link_.recovery.wanted.load());
    for (size_t i = 4; i < 7; ++i) complete(fake_.sends[i].wr.wr_id, IBV_WC_SUCCESS);
    poll_send(core_);
    EXPECT_EQ(core_.send.completed, 5u);
}

TEST_F(VerbsRecovery, NothingIsSentTwice) {
    connect(VIP_SERVICE_UNRELIABLE);
    // The peer's queue pair failed after the first had arrived, but its word of that did not come through.
    VIP_DESCRIPTOR* const first = two_sends(IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR).first;
    recover_links(nic_, now_);
    peer_says(MessageKind::reset, 1);
    EXPECT_EQ(first->CS.Status, static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
    peer_says(MessageKind::ready);
    ASSERT_EQ(fake_.sends.size(), 3u);
    EXPECT_EQ(position_of(fake_.sends[2].wr.wr_id), 1u);
}

TEST_F(VerbsRecovery, ReceivesAreKeptOverARecovery) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* shorter = descriptor(8);
    VIP_DESCRIPTOR* kept = descriptor(8);
    post_recv(shorter);
    post_recv(kept);
    complete(fake_.receives[0].wr.wr_id, IBV_WC_LOC_LEN_ERR);
    poll_recv(core_);
    EXPECT_EQ(shorter->CS.Status,
              static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_LENGTH_ERROR));
    recover_links(nic_, now_);
    EXPECT_TRUE(fake_.messages.empty()) << "not before the device has told of every receive";
    complete(fake_.receives[1].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    recover_links(nic_, now_);
    ASSERT_EQ(fake_.messages.size(), 1u);
    EXPECT_EQ(message(0).length, 1u) << "the message that was too long has arrived";
    peer_says(MessageKind::reset, 0);
    ASSERT_EQ(fake_.receives.size(), 3u);
    EXPECT_EQ(position_of(fake_.receives[2].wr.wr_id), 1u);
    EXPECT_EQ(kept->CS.Status, 0u);
    peer_says(MessageKind::ready);
    complete(fake_.receives[2].wr.wr_id, IBV_WC_SUCCESS, 5, IBV_WC_RECV);
    poll_recv(core_);
    EXPECT_EQ(kept->CS.Status, static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));
    EXPECT_EQ(kept->CS.Length, 5u);
    EXPECT_FALSE(core_.is_marked_broken());
}

// The peer may have refused its own write before it heard that we begin anew.
TEST_F(VerbsRecovery, ARefusalThatComesInTheMiddleOfARoundTakesItsReceiveInThatRound) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* shorter = descriptor(8);
    VIP_DESCRIPTOR* refused = descriptor(8);
    VIP_DESCRIPTOR* kept = descriptor(8);
    for (VIP_DESCRIPTOR* d : {shorter, refused, kept}) post_recv(d);
    complete(fake_.receives[0].wr.wr_id, IBV_WC_LOC_LEN_ERR);
    complete(fake_.receives[1].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    complete(fake_.receives[2].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    poll_recv(core_);
    recover_links(nic_, now_);
    ASSERT_EQ(fake_.messages.size(), 1u);
    ASSERT_EQ(message(0).kind, MessageKind::reset);
    refuse_later(link_, *core_.endpoint, 7);
    peer_says(MessageKind::reset, 0);
    EXPECT_EQ(refused->CS.Status, static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE |
                                                        VIP_STATUS_IMMEDIATE | VIP_STATUS_RDMA_PROT_ERROR));
    EXPECT_EQ(refused->CS.ImmediateData, 7u);
    ASSERT_EQ(fake_.receives.size(), 4u);
    EXPECT_EQ(position_of(fake_.receives[3].wr.wr_id), 2u) << "the next message is for the one behind it";
    peer_says(MessageKind::ready);
    EXPECT_EQ(kept->CS.Status, 0u);
    EXPECT_FALSE(link_.recovery.wanted.load());
}

TEST_F(VerbsRecovery, RefusalsThatNoReceiveCanBeThereForAreNotKept) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* d = descriptor(8);
    post_recv(d);
    constexpr uint32_t kMore = 100;
    for (uint32_t i = 0; i < test::kDepth + kMore; ++i) refuse_later(link_, *core_.endpoint, i);
    EXPECT_EQ(link_.recovery.refused.size(), test::kDepth);
    EXPECT_EQ(told_.errors.size(), kMore) << "they are told as those are that find none";
    complete(fake_.receives[0].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    recover_links(nic_, now_);
    EXPECT_EQ(d->CS.ImmediateData, 0u);
    EXPECT_NE(d->CS.Status & VIP_STATUS_RDMA_PROT_ERROR, 0u);
    EXPECT_EQ(told_.errors.size(), test::kDepth - 1 + kMore);
    EXPECT_EQ(told_.errors.back(), VIP_ERROR_RDMAW_PROT);
}

TEST_F(VerbsRecovery, APeerThatDoesNotAnswerIsLost) {
    connect(VIP_SERVICE_UNRELIABLE);
    post_send(descriptor(8));
    complete(fake_.sends[0].wr.wr_id, IBV_WC_RNR_RETRY_EXC_ERR);
    poll_send(core_);
    recover_links(nic_, now_);
    EXPECT_FALSE(core_.is_marked_broken());
    recover_links(nic_, now_ + 60'000'000'000);
    EXPECT_TRUE(core_.is_marked_broken());
    EXPECT_EQ(core_.reason.code, VIP_ERROR_CONN_LOST);
}

TEST_F(VerbsRecovery, WordsOfAnotherRoundMeanNothing) {
    connect(VIP_SERVICE_UNRELIABLE);
    fail_one_send();
    const size_t states = fake_.states.size();
    for (const uint32_t round : {0u, 2u, 77u}) receive(MessageKind::reset, round, 1);
    EXPECT_EQ(fake_.states.size(), states);
    EXPECT_FALSE(link_.recovery.peer_told);
}

TEST_F(VerbsRecovery, APeerIsReadyNoSoonerThanItHasSaidHowFarItGot) {
    connect(VIP_SERVICE_UNRELIABLE);
    fail_one_send();
    receive(MessageKind::ready, 1);
    receive(MessageKind::reset, 1);
    EXPECT_TRUE(link_.recovery.under_way) << "its queue pair is not known to be ready";
    receive(MessageKind::ready, 1);
    EXPECT_FALSE(link_.recovery.under_way);
}

TEST_F(VerbsRecovery, APeerSaysOnceHowFarItGot) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* const second = two_sends(IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR).second;
    Message m;
    m.kind = MessageKind::reset;
    m.handle = 1;
    for (m.length = 1; m.length <= 2; ++m.length) handle_recovery(link_, *core_.endpoint, m);
    recover_links(nic_, now_);
    EXPECT_EQ(second->CS.Status, 0u);
}

TEST_F(VerbsRecovery, EachRoundCountsAnew) {
    connect(VIP_SERVICE_UNRELIABLE);
    for (uint32_t round = 1; round <= 2; ++round) {
        SCOPED_TRACE(round);
        VIP_DESCRIPTOR* received = descriptor(8);
        post_recv(received);
        complete(fake_.receives.back().wr.wr_id, IBV_WC_SUCCESS, 8, IBV_WC_RECV);
        poll_recv(core_);
        const size_t before = fake_.messages.size();
        fail_one_send();
        ASSERT_EQ(fake_.messages.size(), before + 2);
        EXPECT_EQ(message(before + 1).handle, round);
        EXPECT_EQ(message(before + 1).length, 1u) << "received since the round before";
        EXPECT_EQ(link_.recovery.sent, 1u) << "and so for what was sent";
        receive(MessageKind::reset, round);
        receive(MessageKind::ready, round);
        EXPECT_FALSE(link_.recovery.under_way);
    }
}

TEST_F(VerbsRecovery, ReceivesThatArePostedMeanwhileGoToTheNewQueuePair) {
    connect(VIP_SERVICE_UNRELIABLE);
    fail_one_send();
    post_recv(descriptor(8));
    EXPECT_TRUE(fake_.receives.empty());
    receive(MessageKind::reset, 1);
    EXPECT_EQ(fake_.receives.size(), 1u);
}

TEST_F(VerbsRecovery, WhatIsSentAgainIsCheckedAgain) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* const first = two_sends(IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR).first;
    recover_links(nic_, now_);
    receive(MessageKind::reset, 1);
    Region removed;
    ASSERT_TRUE(regions_.remove(handle_, 0, &removed));
    receive(MessageKind::ready, 1);
    EXPECT_EQ(fake_.sends.size(), 2u);
    poll_send(core_);
    EXPECT_EQ(first->CS.Status,
              static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND | VIP_STATUS_PROTECTION_ERROR));
}

TEST_F(VerbsRecovery, WordsOfRecoveryMeanNothingAtReliableLevels) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    peer_says(MessageKind::reset, 7);
    peer_says(MessageKind::ready);
    EXPECT_TRUE(fake_.states.empty());
    EXPECT_TRUE(fake_.messages.empty());
}

}  // namespace
}  // namespace viaduct::verbs
