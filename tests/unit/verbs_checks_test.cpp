// SPDX-License-Identifier: BSD-2-Clause
// What the verbs provider checks itself before it uses a device: regions and their tags, ranges of a
// peer's memory, and whether a completion belongs to what is posted.
#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs {
namespace {

constexpr uint32_t kSendDone = VIP_STATUS_DONE | VIP_STATUS_OP_SEND;
constexpr uint32_t kReceiveDone = VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE;
constexpr uint32_t kPeersRegion = 0x4001;

class VerbsChecks : public test::VerbsFixture {
protected:
    VIP_DATA_SEGMENT& segment(VIP_DESCRIPTOR* d, uint32_t i = 0) { return d->DS[i].Local; }
    // A key for 4096 bytes from 0x10000 on.
    void learn_key() {
        post_send(rdma(100, VIP_CONTROL_OP_RDMAWRITE, kPeersRegion, 0x10000));
        answer(kPeersRegion, RemoteKey{0x10000, 4096, 4711, kRegionRdmaWrite});
        ASSERT_EQ(fake_.sends.size(), 1u);
    }
    void flush_all_sends() {
        for (const test::PostedSend& one : fake_.sends) complete(one.wr.wr_id, IBV_WC_WR_FLUSH_ERR);
        poll_send(core_);
        recover_links(nic_, now_);
    }
};

TEST_F(VerbsChecks, AReceiveTakesNoPartOfARegionOfAnotherTag) {
    Region other;
    other.base = reinterpret_cast<uintptr_t>(memory_);
    other.length = 64;
    other.ptag = 7;
    const uint32_t handle = regions_.add(other);
    ASSERT_EQ(nic_.keys.add(handle, other), Status::ok);
    core_.ptag = 5;
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* d = descriptor(32);
    segment(d).Handle = handle;
    post_recv(d);
    ASSERT_EQ(fake_.receives.size(), 1u);
    EXPECT_TRUE(fake_.receives[0].pieces.empty());
}

TEST_F(VerbsChecks, NothingBehindASegmentThatIsNotHeldWholeIsWritten) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* d = descriptor(32);
    segment(d).Length = sizeof memory_ + 1;
    d->CS.SegCount = 2;
    segment(d, 1) = segment(d);
    segment(d, 1).Length = 8;
    post_recv(d);
    ASSERT_EQ(fake_.receives.size(), 1u);
    ASSERT_EQ(fake_.receives[0].pieces.size(), 1u);
    EXPECT_EQ(fake_.receives[0].pieces[0].length, sizeof memory_);
}

// A device does not look at the key of an entry without bytes.
TEST_F(VerbsChecks, AReceiveThatCannotBeUsedHasBytesThatNoMessageMayTake) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_recv(descriptor(32, 0x4000));
    ASSERT_EQ(fake_.receives.size(), 1u);
    EXPECT_NE(fake_.receives[0].pieces.at(0).length, 0u);
}

TEST_F(VerbsChecks, AKeyIsUsedForItsRangeAlone) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    for (const uint64_t address : {uint64_t{0x10FF9}, uint64_t{0x0FFFF}, uint64_t{0x11000}}) {
        SCOPED_TRACE(address);
        link_.remote_keys[kPeersRegion] = RemoteKey{0x10000, 4096, 4711, kRegionRdmaWrite};
        fake_.messages.clear();
        fake_.sends.clear();
        post_send(rdma(8, VIP_CONTROL_OP_RDMAWRITE, kPeersRegion, address));
        EXPECT_TRUE(fake_.sends.empty());
        EXPECT_EQ(fake_.messages.size(), 1u) << "the owner is asked";
        answer(kPeersRegion, RemoteKey{address, 8, 4712, kRegionRdmaWrite});
        ASSERT_EQ(fake_.sends.size(), 1u);
        EXPECT_EQ(fake_.sends[0].wr.wr.rdma.rkey, 4712u);
    }
}

TEST_F(VerbsChecks, AWriteTakesNoReceiveOfThePeer) {
    connect(VIP_SERVICE_UNRELIABLE);
    learn_key();
    VIP_DESCRIPTOR* send = descriptor(8);
    post_send(send);
    flush_all_sends();
    peer_says(MessageKind::reset, 1);
    EXPECT_EQ(send->CS.Status, kSendDone) << "what has arrived is the send";
}

TEST_F(VerbsChecks, AWriteWithImmediateDataTakesOne) {
    connect(VIP_SERVICE_UNRELIABLE);
    learn_key();
    post_send(rdma(8, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, kPeersRegion, 0x10000));
    VIP_DESCRIPTOR* send = descriptor(8);
    post_send(send);
    flush_all_sends();
    peer_says(MessageKind::reset, 1);
    EXPECT_EQ(send->CS.Status, 0u) << "what has arrived is the write";
}

TEST_F(VerbsChecks, ReceivesCompleteInPostingOrderOnly) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    complete(make_wr_id(core_.slot, link_.generation, true, 0), IBV_WC_SUCCESS, 8, IBV_WC_RECV);
    poll_recv(core_);  // none is posted
    VIP_DESCRIPTOR* const d[] = {descriptor(8), descriptor(8)};
    for (VIP_DESCRIPTOR* one : d) post_recv(one);
    complete(fake_.receives[1].wr.wr_id, IBV_WC_SUCCESS, 8, IBV_WC_RECV);
    poll_recv(core_);
    EXPECT_EQ(d[0]->CS.Status, 0u);
    EXPECT_EQ(d[1]->CS.Status, 0u);
}

TEST_F(VerbsChecks, CompletionsOfOtherSendsAreDropped) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* d = descriptor(8);
    post_send(d);
    complete(make_wr_id(core_.slot, link_.generation - 1, false, 0), IBV_WC_SUCCESS);
    complete(make_wr_id(core_.slot, link_.generation, false, 5), IBV_WC_SUCCESS);
    poll_send(core_);
    EXPECT_EQ(d->CS.Status, 0u);
}

TEST_F(VerbsChecks, AfterTheFirstErrorTheRestIsLeftToTheFlush) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_DESCRIPTOR* const received[] = {descriptor(8), descriptor(8)};
    for (VIP_DESCRIPTOR* one : received) post_recv(one);
    const auto [first, second] = two_sends(IBV_WC_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(first->CS.Status, kSendDone | VIP_STATUS_TRANSPORT_ERROR);
    EXPECT_EQ(second->CS.Status, 0u);
    complete(fake_.receives[0].wr.wr_id, IBV_WC_LOC_LEN_ERR);
    poll_recv(core_);
    EXPECT_EQ(received[0]->CS.Status, 0u);
}

TEST_F(VerbsChecks, AnErrorCompletesWhatWasBeforeIt) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* const d[] = {descriptor(8), descriptor(8)};
    for (VIP_DESCRIPTOR* one : d) core_.send.push(one);
    kick_send(core_);
    ASSERT_EQ(fake_.sends.size(), 2u);
    EXPECT_EQ(fake_.sends[0].wr.send_flags & IBV_SEND_SIGNALED, 0u);
    complete(fake_.sends[1].wr.wr_id, IBV_WC_RETRY_EXC_ERR);
    poll_send(core_);
    EXPECT_EQ(d[0]->CS.Status, kSendDone);
    EXPECT_EQ(d[1]->CS.Status, kSendDone | VIP_STATUS_TRANSPORT_ERROR);
}

TEST_F(VerbsChecks, ASendIsToldOfWhenWhatFollowsMayHaveToWait) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    core_.send.push(descriptor(8));
    core_.send.push(rdma(8, VIP_CONTROL_OP_RDMAWRITE, kPeersRegion, 0x10000));
    kick_send(core_);
    ASSERT_EQ(fake_.sends.size(), 1u) << "no key is known";
    EXPECT_NE(fake_.sends[0].wr.send_flags & IBV_SEND_SIGNALED, 0u);
}

TEST_F(VerbsChecks, NothingIsSentBehindAMistake) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* const d[] = {descriptor(8), descriptor(8), descriptor(8)};
    d[1]->CS.Length = 9;
    for (VIP_DESCRIPTOR* one : d) core_.send.push(one);
    kick_send(core_);
    EXPECT_EQ(fake_.sends.size(), 1u);
    EXPECT_EQ(nic_.backlogs.load(), 0u) << "and nothing waits for room";
}

TEST_F(VerbsChecks, NothingIsSentBehindAFlush) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_send(descriptor(8));
    complete(fake_.sends[0].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    poll_send(core_);
    post_send(descriptor(8));
    EXPECT_EQ(fake_.sends.size(), 1u);
}

TEST_F(VerbsChecks, ASendBehindARefusedOneWaitsForItsOwnCompletion) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* bad = descriptor(8);
    bad->CS.Length = 9;
    post_send(bad);
    VIP_DESCRIPTOR* good = descriptor(8);
    post_send(good);
    poll_send(core_);
    EXPECT_EQ(good->CS.Status, 0u);
    complete(fake_.sends.at(0).wr.wr_id, IBV_WC_SUCCESS);
    poll_send(core_);
    EXPECT_EQ(good->CS.Status, kSendDone);
}

TEST_F(VerbsChecks, AMessageWithoutBytesDoesNotMakeABadReceiveGood) {
    connect(VIP_SERVICE_UNRELIABLE);
    for (const uint16_t level : {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY}) {
        SCOPED_TRACE(level);
        core_.traits.reliability = level;
        VIP_DESCRIPTOR* bad = descriptor(32, 0x4000);
        post_recv(bad);
        complete(fake_.receives.back().wr.wr_id, IBV_WC_SUCCESS, 0, IBV_WC_RECV);
        poll_recv(core_);
        EXPECT_EQ(bad->CS.Status, kReceiveDone | VIP_STATUS_FORMAT_ERROR);
        EXPECT_EQ(core_.is_marked_broken(), level != VIP_SERVICE_UNRELIABLE);
    }
}

TEST_F(VerbsChecks, AReceiveWhoseMemoryIsUnmappedSaysSo) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* d = descriptor(32);
    post_recv(d);
    Region removed;
    ASSERT_TRUE(regions_.remove(handle_, 0, &removed));
    complete(fake_.receives[0].wr.wr_id, IBV_WC_LOC_QP_OP_ERR);
    poll_recv(core_);
    EXPECT_EQ(d->CS.Status, kReceiveDone | VIP_STATUS_PROTECTION_ERROR);
}

TEST_F(VerbsChecks, AFlushedReceiveWaitsForThePeersWord) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* d = descriptor(32);
    post_recv(d);
    complete(fake_.receives[0].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    poll_recv(core_);
    EXPECT_EQ(d->CS.Status, 0u);
    EXPECT_FALSE(core_.is_marked_broken());
    EXPECT_NE(link_.suspect_until, 0);
}

TEST_F(VerbsChecks, TheOwnerIsToldWhatItsDeviceHasRefused) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    learn_key();
    complete(fake_.sends[0].wr.wr_id, IBV_WC_REM_ACCESS_ERR);
    poll_send(core_);
    ASSERT_EQ(fake_.messages.size(), 2u);
    EXPECT_EQ(message(1).kind, MessageKind::write_refused);
}

TEST_F(VerbsChecks, ARefusedReadIsToldAsOne) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_send(rdma(8, VIP_CONTROL_OP_RDMAREAD, kPeersRegion, 0x10000));
    answer(kPeersRegion, RemoteKey());
    ASSERT_EQ(fake_.messages.size(), 2u);
    EXPECT_EQ(message(1).kind, MessageKind::read_refused);
}

TEST_F(VerbsChecks, WhatWaitsForAKeyIsKnownToTheProgressThread) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_send(rdma(8, VIP_CONTROL_OP_RDMAWRITE, kPeersRegion, 0x10000));
    EXPECT_EQ(nic_.backlogs.load(), 1u);
    answer(kPeersRegion, RemoteKey{0x10000, 4096, 4711, kRegionRdmaWrite});
    EXPECT_EQ(nic_.backlogs.load(), 0u);
}

}  // namespace
}  // namespace viaduct::verbs
