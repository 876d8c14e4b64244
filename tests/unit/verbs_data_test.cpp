// SPDX-License-Identifier: BSD-2-Clause
// The data path of the verbs provider: what descriptors become as work requests, and what completions become
// as descriptors.
#include <arpa/inet.h>

#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs {
namespace {

using test::kLocalKeyBase;
using test::PostedSend;

class VerbsData : public test::VerbsFixture {};

TEST_F(VerbsData, ASendBecomesOneSignalledWorkRequest) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* d = descriptor(100, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE);
    d->CS.ImmediateData = 0x01020304;
    post_send(d);
    ASSERT_EQ(fake_.sends.size(), 1u);
    const PostedSend& posted = fake_.sends[0];
    EXPECT_EQ(posted.wr.opcode, IBV_WR_SEND_WITH_IMM);
    EXPECT_EQ(posted.wr.imm_data, htonl(0x01020304));
    EXPECT_EQ(posted.wr.send_flags, static_cast<unsigned>(IBV_SEND_SIGNALED | IBV_SEND_FENCE));
    ASSERT_EQ(posted.pieces.size(), 1u);
    EXPECT_EQ(posted.pieces[0].addr, reinterpret_cast<uintptr_t>(memory_));
    EXPECT_EQ(posted.pieces[0].length, 100u);
    EXPECT_EQ(posted.pieces[0].lkey, kLocalKeyBase);
    EXPECT_EQ(d->CS.Status & VIP_STATUS_DONE, 0u);

    complete(posted.wr.wr_id, IBV_WC_SUCCESS);
    poll_send(core_);
    EXPECT_EQ(d->CS.Status, static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
    EXPECT_EQ(d->CS.Length, 100u);
}

TEST_F(VerbsData, SmallSendsTravelInTheWorkRequest) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_send(descriptor(64));
    post_send(descriptor(65));
    post_send(descriptor(0));
    ASSERT_EQ(fake_.sends.size(), 3u);
    EXPECT_NE(fake_.sends[0].wr.send_flags & IBV_SEND_INLINE, 0u);
    EXPECT_EQ(fake_.sends[1].wr.send_flags & IBV_SEND_INLINE, 0u);
    EXPECT_EQ(fake_.sends[2].wr.send_flags & IBV_SEND_INLINE, 0u);
    EXPECT_TRUE(fake_.sends[2].pieces.empty()) << "a segment without bytes is not looked at";
}

TEST_F(VerbsData, InARowOnlySomeAreSignalledAndAllComplete) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    std::vector<VIP_DESCRIPTOR*> row;
    row.reserve(20);
    for (int i = 0; i < 20; ++i) row.push_back(descriptor(8));
    for (VIP_DESCRIPTOR* d : row) core_.send.push(d);
    kick_send(core_);
    ASSERT_EQ(fake_.sends.size(), 20u);
    int signalled = 0;
    for (const PostedSend& s : fake_.sends)
        if ((s.wr.send_flags & IBV_SEND_SIGNALED) != 0) {
            ++signalled;
            complete(s.wr.wr_id, IBV_WC_SUCCESS);
        }
    EXPECT_EQ(signalled, 2);
    EXPECT_NE(fake_.sends.back().wr.send_flags & IBV_SEND_SIGNALED, 0u)
        << "or the last would not be reported";
    poll_send(core_);
    for (const VIP_DESCRIPTOR* d : row) EXPECT_NE(d->CS.Status & VIP_STATUS_DONE, 0u);
    EXPECT_EQ(core_.send.completed, 20u);
}

TEST_F(VerbsData, MoreThanTheWindowWaitsForRoom) {
    core_.endpoint->send_window = 4;
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    for (int i = 0; i < 10; ++i) post_send(descriptor(8));
    EXPECT_EQ(fake_.sends.size(), 4u);
    EXPECT_EQ(nic_.backlogs.load(), 1u) << "the progress thread has to know";
    for (size_t i = 0; i < 10; ++i) {
        ASSERT_LT(i, fake_.sends.size());
        if ((fake_.sends[i].wr.send_flags & IBV_SEND_SIGNALED) != 0)
            complete(fake_.sends[i].wr.wr_id, IBV_WC_SUCCESS);
        poll_send(core_);
    }
    EXPECT_EQ(core_.send.completed, 10u);
    EXPECT_EQ(nic_.backlogs.load(), 0u);
}

TEST_F(VerbsData, AMistakeInADescriptorBreaksAReliableConnectionInItsTurn) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* good = descriptor(8);
    VIP_DESCRIPTOR* bad = descriptor(8);
    bad->CS.Length = 9;
    core_.send.push(good);
    core_.send.push(bad);
    kick_send(core_);
    ASSERT_EQ(fake_.sends.size(), 1u);
    EXPECT_NE(fake_.sends[0].wr.send_flags & IBV_SEND_SIGNALED, 0u)
        << "nothing follows that would tell of it";
    EXPECT_EQ(bad->CS.Status, 0u) << "not before the one in front of it";
    complete(fake_.sends[0].wr.wr_id, IBV_WC_SUCCESS);
    poll_send(core_);
    EXPECT_EQ(good->CS.Status, static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
    EXPECT_EQ(bad->CS.Status,
              static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND | VIP_STATUS_LENGTH_ERROR));
    EXPECT_TRUE(core_.is_marked_broken());
    EXPECT_FALSE(core_.reason.report) << "the descriptor has said it";
}

TEST_F(VerbsData, AMistakeInADescriptorLeavesAnUnreliableConnectionAlone) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* bad = descriptor(8);
    bad->DS[0].Local.Handle = handle_ + 1;
    post_send(bad);
    EXPECT_EQ(bad->CS.Status,
              static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND | VIP_STATUS_PROTECTION_ERROR));
    EXPECT_FALSE(core_.is_marked_broken());
    post_send(descriptor(8));
    EXPECT_EQ(fake_.sends.size(), 1u);
}

// Soft-RoCE, when the way to the peer has removed with its link.
TEST_F(VerbsData, ABadWorkRequestWhoseDescriptorIsGoodIsTheNetworksFault) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* d = descriptor(8);
    post_send(d);
    complete(fake_.sends[0].wr.wr_id, IBV_WC_LOC_QP_OP_ERR);
    poll_send(core_);
    EXPECT_EQ(d->CS.Status,
              static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND | VIP_STATUS_TRANSPORT_ERROR));
    EXPECT_TRUE(core_.is_marked_broken());
    EXPECT_TRUE(core_.reason.report) << "as CONN_LOST";
}

TEST_F(VerbsData, ABadWorkRequestWhoseMemoryIsUnmappedSaysSo) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* d = descriptor(8);
    post_send(d);
    Region removed;
    ASSERT_TRUE(regions_.remove(handle_, 0, &removed));
    complete(fake_.sends[0].wr.wr_id, IBV_WC_LOC_QP_OP_ERR);
    poll_send(core_);
    EXPECT_EQ(d->CS.Status,
              static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND | VIP_STATUS_PROTECTION_ERROR));
    EXPECT_TRUE(core_.is_marked_broken());
    EXPECT_FALSE(core_.reason.report);
}

TEST_F(VerbsData, ANetworkThatGivesUpIsATransportErrorAndTheRestIsLeftToTheFlush) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    const auto [first, second] = two_sends(IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(first->CS.Status,
              static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND | VIP_STATUS_TRANSPORT_ERROR));
    EXPECT_EQ(first->CS.Length, 0u);
    EXPECT_EQ(second->CS.Status, 0u);
    EXPECT_TRUE(core_.is_marked_broken());
    EXPECT_TRUE(core_.reason.report);
}

TEST_F(VerbsData, APeerWithoutAReceiveIsToldSo) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_DESCRIPTOR* d = descriptor(8);
    post_send(d);
    complete(fake_.sends[0].wr.wr_id, IBV_WC_RNR_RETRY_EXC_ERR);
    poll_send(core_);
    EXPECT_NE(d->CS.Status & VIP_STATUS_REMOTE_DESC_ERROR, 0u);
    ASSERT_EQ(fake_.messages.size(), 1u);
    EXPECT_EQ(message(0).kind, MessageKind::no_receive);
}

TEST_F(VerbsData, AnUnexplainedFlushWaitsForThePeersWord) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_send(descriptor(8));
    complete(fake_.sends[0].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    poll_send(core_);
    EXPECT_FALSE(core_.is_marked_broken());
    EXPECT_NE(link_.suspect_until, 0) << "but not for ever";
}

TEST_F(VerbsData, ReceivesArePostedBeforeTheStartAndCompleteInOrder) {
    VIP_DESCRIPTOR* first = descriptor(32);
    VIP_DESCRIPTOR* second = descriptor(32);
    post_recv(first);
    post_recv(second);
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    ASSERT_EQ(fake_.receives.size(), 2u);
    EXPECT_EQ(core_.recv.taken, 2u);
    ibv_wc wc{};
    wc.wr_id = fake_.receives[0].wr.wr_id;
    wc.opcode = IBV_WC_RECV;
    wc.byte_len = 20;
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = htonl(77);
    fake_.completions.push_back(wc);
    wc.wr_id = fake_.receives[1].wr.wr_id;
    wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    wc.byte_len = 4000;
    fake_.completions.push_back(wc);
    poll_recv(core_);
    EXPECT_EQ(first->CS.Status,
              static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE));
    EXPECT_EQ(first->CS.Length, 20u);
    EXPECT_EQ(first->CS.ImmediateData, 77u);
    EXPECT_EQ(second->CS.Status, static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE |
                                                       VIP_STATUS_IMMEDIATE));
    EXPECT_EQ(second->CS.Length, 4000u);
}

TEST_F(VerbsData, AReceiveThatCannotBeUsedHasAKeyThatDoesNotExist) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* bad = descriptor(32, 0x4000);
    post_recv(bad);
    ASSERT_EQ(fake_.receives.size(), 1u);
    ASSERT_EQ(fake_.receives[0].pieces.size(), 1u);
    EXPECT_EQ(fake_.receives[0].pieces[0].lkey, 0u);
    complete(fake_.receives[0].wr.wr_id, IBV_WC_LOC_PROT_ERR);
    poll_recv(core_);
    EXPECT_EQ(bad->CS.Status,
              static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_FORMAT_ERROR))
        << "what is wrong with it, not what the device noticed";
    EXPECT_TRUE(core_.is_marked_broken());
}

TEST_F(VerbsData, AReceiveThatIsLongerThanItsRegionIsPostedAsFarAsThatGoes) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* longer[2];
    for (VIP_DESCRIPTOR*& d : longer) {
        d = descriptor(32);
        auto& segment = const_cast<VIP_DATA_SEGMENT&>(segments_of(d)->Local);
        segment.Data.AddressBits = reinterpret_cast<uintptr_t>(memory_) + sizeof memory_ - 100;
        segment.Length = 65472;
        post_recv(d);
    }
    ASSERT_EQ(fake_.receives.size(), 2u);
    ASSERT_EQ(fake_.receives[0].pieces.size(), 1u);
    EXPECT_EQ(fake_.receives[0].pieces[0].length, 100u);
    EXPECT_EQ(fake_.receives[0].pieces[0].lkey, kLocalKeyBase);
    complete(fake_.receives[0].wr.wr_id, IBV_WC_SUCCESS);
    complete(fake_.receives[1].wr.wr_id, IBV_WC_LOC_LEN_ERR);
    poll_recv(core_);
    EXPECT_EQ(longer[0]->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
    EXPECT_EQ(longer[1]->CS.Status & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_PROTECTION_ERROR});
    EXPECT_FALSE(core_.is_marked_broken());
}

TEST_F(VerbsData, WithVipStrictAReceiveThatIsLongerThanItsRegionCannotBeUsed) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    core_.strict_receives = true;
    VIP_DESCRIPTOR* d = descriptor(32);
    const_cast<VIP_DATA_SEGMENT&>(segments_of(d)->Local).Length = sizeof memory_ + 1;
    post_recv(d);
    ASSERT_EQ(fake_.receives.size(), 1u);
    EXPECT_EQ(fake_.receives[0].pieces[0].lkey, 0u);
}

TEST_F(VerbsData, AMessageThatIsTooLongIsALengthError) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_DESCRIPTOR* d = descriptor(32);
    post_recv(d);
    complete(fake_.receives[0].wr.wr_id, IBV_WC_LOC_LEN_ERR);
    poll_recv(core_);
    EXPECT_EQ(d->CS.Status,
              static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_LENGTH_ERROR));
    EXPECT_TRUE(core_.is_marked_broken());
    EXPECT_FALSE(core_.reason.report);
}

TEST_F(VerbsData, CompletionsOfAnEarlierConnectionAreDropped) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_DESCRIPTOR* d = descriptor(32);
    post_recv(d);
    complete(make_wr_id(core_.slot, link_.generation - 1, true, 0), IBV_WC_WR_FLUSH_ERR);
    complete(make_wr_id(77, link_.generation, true, 0), IBV_WC_SUCCESS);
    poll_recv(core_);
    EXPECT_EQ(d->CS.Status, 0u);
    EXPECT_EQ(link_.suspect_until, 0);
}

TEST_F(VerbsData, RdmaAsksForTheKeyOnceAndThenUsesIt) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    const uint32_t theirs = 0x4001;
    post_send(rdma(100, VIP_CONTROL_OP_RDMAWRITE, theirs, 0x10000));
    EXPECT_TRUE(fake_.sends.empty());
    ASSERT_EQ(fake_.messages.size(), 1u);
    const Message question = message(0);
    EXPECT_EQ(question.kind, MessageKind::ask);
    EXPECT_EQ(question.handle, theirs);
    EXPECT_EQ(question.address, 0x10000u);
    EXPECT_EQ(question.length, 100u);
    answer(theirs, RemoteKey{0x10000, 4096, 4711, kRegionRdmaWrite});
    ASSERT_EQ(fake_.sends.size(), 1u);
    EXPECT_EQ(fake_.sends[0].wr.opcode, IBV_WR_RDMA_WRITE);
    EXPECT_EQ(fake_.sends[0].wr.wr.rdma.rkey, 4711u);
    EXPECT_EQ(fake_.sends[0].wr.wr.rdma.remote_addr, 0x10000u);

    post_send(rdma(8, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, theirs, 0x10FF8));
    ASSERT_EQ(fake_.sends.size(), 2u) << "the same region needs no second question";
    EXPECT_EQ(fake_.sends[1].wr.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
    EXPECT_EQ(fake_.messages.size(), 1u);
    post_send(rdma(8, VIP_CONTROL_OP_RDMAREAD, theirs, 0x10000));
    EXPECT_EQ(fake_.messages.size(), 2u) << "what was not allowed then is asked for anew";
}

TEST_F(VerbsData, SendsBehindAnRdmaThatAsksWaitForIt) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_send(rdma(100, VIP_CONTROL_OP_RDMAWRITE, 5, 0x10000));
    post_send(descriptor(8));
    EXPECT_TRUE(fake_.sends.empty());
    answer(5, RemoteKey{0x10000, 4096, 4711, kRegionRdmaWrite});
    ASSERT_EQ(fake_.sends.size(), 2u);
    EXPECT_EQ(fake_.sends[0].wr.opcode, IBV_WR_RDMA_WRITE);
    EXPECT_EQ(fake_.sends[1].wr.opcode, IBV_WR_SEND);
}

TEST_F(VerbsData, ARefusedWriteIsWhatTheLevelSays) {
    const struct {
        uint16_t level;
        uint32_t bits;
        bool breaks, report;
    } rows[] = {{VIP_SERVICE_UNRELIABLE, 0, false, false},
                {VIP_SERVICE_RELIABLE_DELIVERY, 0, true, true},
                {VIP_SERVICE_RELIABLE_RECEPTION, VIP_STATUS_RDMA_PROT_ERROR, true, false}};
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    for (const auto& row : rows) {
        SCOPED_TRACE(row.level);
        core_.traits.reliability = row.level;
        core_.broken.store(0);
        core_.endpoint->stopped = false;
        fake_.messages.clear();
        VIP_DESCRIPTOR* d = rdma(100, VIP_CONTROL_OP_RDMAWRITE, 5, 0x10000);
        post_send(d);
        answer(5, RemoteKey());
        EXPECT_EQ(d->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE | row.bits);
        EXPECT_EQ(core_.is_marked_broken(), row.breaks);
        EXPECT_EQ(row.breaks && core_.reason.report, row.report);
        ASSERT_EQ(fake_.messages.size(), 2u);
        EXPECT_EQ(message(1).kind, MessageKind::write_refused) << "the target is told";
        EXPECT_TRUE(fake_.sends.empty()) << "nothing of it reaches the wire";
    }
}

TEST_F(VerbsData, ARefusedWriteWithImmediateDataComesBehindWhatWasSentBefore) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    post_send(descriptor(8));
    VIP_DESCRIPTOR* d = rdma(100, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, 5, 0x10000);
    d->CS.ImmediateData = 0x01020304;
    post_send(d);
    EXPECT_TRUE(fake_.messages.empty()) << "the send may still be under way";
    complete(fake_.sends[0].wr.wr_id, IBV_WC_SUCCESS);
    poll_send(core_);
    ASSERT_EQ(fake_.messages.size(), 1u);
    answer(5, RemoteKey());
    ASSERT_EQ(fake_.messages.size(), 2u);
    EXPECT_EQ(message(1).kind, MessageKind::write_refused);
    EXPECT_EQ(message(1).flags, kWithImmediate) << "a receive has to say it";
    EXPECT_EQ(message(1).key, 0x01020304u) << "and what came with the write";
}

TEST_F(VerbsData, RegistrationAsksForWhatTheRegionAllows) {
    fake_.registered.clear();
    Region region;
    region.base = reinterpret_cast<uintptr_t>(memory_);
    region.length = 128;
    region.flags = kRegionRdmaWrite;
    const uint32_t handle = regions_.add(region);
    ASSERT_EQ(nic_.keys.add(handle, region), Status::ok);
    EXPECT_EQ(fake_.registered.back(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    const uint32_t before = nic_.keys.remote_key(handle);
    region.flags |= kRegionRdmaRead;
    ASSERT_EQ(nic_.keys.change(handle, region), Status::ok);
    EXPECT_NE(nic_.keys.remote_key(handle), before);
    EXPECT_EQ(fake_.live_mrs, 3) << "peers may still hold the first key, which allows nothing more";
    region.flags = 0;
    ASSERT_EQ(nic_.keys.change(handle, region), Status::ok);
    EXPECT_EQ(fake_.live_mrs, 2) << "what was taken back is removed";
    nic_.keys.remove(handle);
    EXPECT_EQ(nic_.keys.local_key(handle), 0u);
    fake_.refuse_registration = true;
    EXPECT_EQ(nic_.keys.add(handle, region), Status::out_of_resources);
}

TEST_F(VerbsData, CompletionQueuesGrowAndThenBecomeMore) {
    DeviceQueue* first = reserve(group_, 60);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(fake_.resized_to, 0);
    EXPECT_EQ(reserve(group_, 60), first);
    EXPECT_GE(fake_.resized_to, 120);
    EXPECT_EQ(reserve(group_, 5000), nullptr) << "more than any queue of the device holds";
    group_.armed.store(1);
    fake_.armed = 0;
    DeviceQueue* second = reserve(group_, 4000);
    ASSERT_NE(second, nullptr);
    EXPECT_NE(second, first);
    EXPECT_EQ(fake_.armed, 1) << "a thread sleeps on the group";
    give_back(*first, 120);
    EXPECT_EQ(reserve(group_, 120), first);
}

}  // namespace
}  // namespace viaduct::verbs
