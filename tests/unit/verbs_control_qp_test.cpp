// SPDX-License-Identifier: BSD-2-Clause
// What the control QP brings, and what is done when it has no room (providers/verbs/control_qp.hpp).
#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs::test {
namespace {

constexpr uint32_t kNoKey = UINT32_MAX;

int no_event(ibv_comp_channel*, ibv_cq**, void**) { return -1; }

class VerbsControlQp : public VerbsFixture {
protected:
    VerbsControlQp() {
        table_.get_cq_event = no_event;
        nic_.control_cq = &cq_;
    }
    uint64_t number(bool receive, uint32_t buffer) const {
        return uint64_t{link_.number} << 32 | uint64_t{link_.generation} << 16 | uint64_t{receive} << 8 |
               buffer;
    }
    void receive(const Message& m, uint32_t buffer) {
        write_message(m, buffers_ + buffer * kMessageBytes);
        complete(number(true, buffer), IBV_WC_SUCCESS, kMessageBytes, IBV_WC_RECV);
        serve_control_qps(nic_);
    }
    void see_that_a_peer_has_ended() {
        complete(number(false, 0), IBV_WC_SUCCESS);
        serve_control_qps(nic_);
    }
    Message question() const {
        Message m;
        m.kind = MessageKind::ask;
        m.handle = handle_;
        m.address = reinterpret_cast<uintptr_t>(memory_);
        m.length = 8;
        return m;
    }
};

TEST_F(VerbsControlQp, AQuestionIsAnsweredAndItsBufferIsUsedAgain) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    receive(question(), 3);
    ASSERT_EQ(fake_.messages.size(), 1u);
    EXPECT_EQ(message(0).kind, MessageKind::answer);
    EXPECT_EQ(message(0).handle, handle_);
    ASSERT_EQ(fake_.receives.size(), 1u);
    EXPECT_EQ(fake_.receives[0].wr.wr_id, number(true, 3));
}

// The owner of memory decides: region, range, tag, and what region and VI allow.
TEST_F(VerbsControlQp, AKeyIsGivenForWhatRegionAndViAllow) {
    const struct {
        uint32_t region, vi, wanted;
        uint64_t offset, length;
        uint32_t flags;  // of the answer; kNoKey: it is refused
    } rows[] = {{kRegionRdmaWrite, kRegionRdmaWrite, kRegionRdmaWrite, 0, 64, kRegionRdmaWrite},
                {kRegionRdmaWrite | kRegionRdmaRead, kRegionRdmaRead, kRegionRdmaRead, 0, 64, kRegionRdmaRead},
                {kRegionRdmaWrite, 0, kRegionRdmaWrite, 0, 64, kNoKey},
                {0, kRegionRdmaWrite, kRegionRdmaWrite, 0, 64, kNoKey},
                {kRegionRdmaWrite, kRegionRdmaWrite, kRegionRdmaWrite, 0, 65, kNoKey},
                {kRegionRdmaWrite, kRegionRdmaWrite, kRegionRdmaWrite, 64, 1, kNoKey}};
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    for (const auto& row : rows) {
        SCOPED_TRACE(&row - rows);
        link_.traits.rdma_write = (row.vi & kRegionRdmaWrite) != 0;
        link_.traits.rdma_read = (row.vi & kRegionRdmaRead) != 0;
        Message m = question();
        m.handle = add_region(memory_, 64, row.region);
        m.address += row.offset;
        m.length = row.length;
        m.flags = row.wanted;
        fake_.messages.clear();
        receive(m, 3);
        const bool given = row.flags != kNoKey;
        EXPECT_EQ(message(0).key, given ? nic_.keys.remote_key(m.handle) : 0u);
        EXPECT_EQ(message(0).flags, given ? row.flags : 0u);
    }
}

TEST_F(VerbsControlQp, MemoryOfAnotherTagHasNoKey) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    core_.ptag = 5;
    Region other;
    other.base = reinterpret_cast<uintptr_t>(memory_);
    other.length = 64;
    other.ptag = 7;
    Message m = question();
    m.handle = regions_.add(other);
    ASSERT_EQ(nic_.keys.add(m.handle, other), Status::ok);
    receive(m, 3);
    EXPECT_EQ(message(0).key, 0u);
}

TEST_F(VerbsControlQp, AnAnswerIsForTheRegionThatWasAskedFor) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    post_send(rdma(8, VIP_CONTROL_OP_RDMAWRITE, 77, 0x1000));
    Message m;
    m.kind = MessageKind::answer;
    m.handle = 78;
    m.key = 4711;
    m.address = 0x1000;
    m.length = 4096;
    m.flags = kRegionRdmaWrite;
    receive(m, 3);
    EXPECT_TRUE(fake_.sends.empty());
    m.handle = 77;
    receive(m, 4);
    EXPECT_EQ(fake_.sends.size(), 1u);
}

TEST_F(VerbsControlQp, MessagesOfAnEarlierConnectionAndFlushedOnesAreNoMessages) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    write_message(question(), buffers_ + 3 * kMessageBytes);
    complete(number(true, 3) ^ 1u << 16, IBV_WC_SUCCESS, kMessageBytes, IBV_WC_RECV);
    complete(number(true, 3), IBV_WC_WR_FLUSH_ERR, kMessageBytes, IBV_WC_RECV);
    serve_control_qps(nic_);
    EXPECT_TRUE(fake_.messages.empty());
}

TEST_F(VerbsControlQp, APeerWhoseHostDoesNotAnswerIsLost) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    complete(number(false, 0), IBV_WC_WR_FLUSH_ERR);
    serve_control_qps(nic_);
    EXPECT_FALSE(link_.lost) << "flushed: this end leaves";
    complete(number(false, 0), IBV_WC_RETRY_EXC_ERR);
    serve_control_qps(nic_);
    EXPECT_TRUE(link_.lost);
}

TEST_F(VerbsControlQp, APeersWordEndsAReliableConnectionOnly) {
    connect(VIP_SERVICE_UNRELIABLE);
    Message m;
    m.kind = MessageKind::no_receive;
    receive(m, 3);
    EXPECT_FALSE(core_.is_marked_broken());
    EXPECT_EQ(told_.errors, std::vector<VIP_ERROR_CODE>{VIP_ERROR_RECVQ_EMPTY});
    link_.traits.reliability = VIP_SERVICE_RELIABLE_DELIVERY;
    receive(m, 4);
    EXPECT_TRUE(core_.is_marked_broken());
    EXPECT_EQ(core_.reason.code, VIP_ERROR_RECVQ_EMPTY);
}

// As no correct peer does: the first one gets no answer, and its buffer is not lost.
TEST_F(VerbsControlQp, AQuestionBehindOneThatHasNoAnswerGivesTheFirstOnesBufferBack) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    link_.free_sends = 0;
    receive(question(), 3);
    receive(question(), 4);
    ASSERT_EQ(fake_.receives.size(), 1u);
    EXPECT_EQ(fake_.receives[0].wr.wr_id, number(true, 3));
}

// The peer asks once and waits for ever.
TEST_F(VerbsControlQp, AnAnswerThatFindsNoRoomComesAsSoonAsThereIsSome) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    link_.free_sends = 0;
    receive(question(), 3);
    EXPECT_TRUE(fake_.messages.empty());
    EXPECT_TRUE(fake_.receives.empty()) << "the question stays where it is";
    see_that_a_peer_has_ended();
    ASSERT_EQ(fake_.messages.size(), 1u);
    EXPECT_EQ(message(0).kind, MessageKind::answer);
    ASSERT_EQ(fake_.receives.size(), 1u);
    EXPECT_EQ(fake_.receives[0].wr.wr_id, number(true, 3));
    see_that_a_peer_has_ended();
    EXPECT_EQ(fake_.messages.size(), 1u) << "once";
}

// What one end has found out about the other waits for room, and comes in order.
TEST_F(VerbsControlQp, WhatThePeerHasToKnowComesAsSoonAsThereIsRoom) {
    connect(VIP_SERVICE_UNRELIABLE);
    link_.free_sends = 0;
    tell_peer(link_, MessageKind::no_receive);
    tell_peer(link_, MessageKind::write_refused);
    EXPECT_TRUE(fake_.messages.empty());
    see_that_a_peer_has_ended();
    ASSERT_EQ(fake_.messages.size(), 1u);
    EXPECT_EQ(message(0).kind, MessageKind::no_receive);
    EXPECT_FALSE(ask_peer(link_, handle_, 0, 8, 0)) << "nothing passes what waits";
    see_that_a_peer_has_ended();
    ASSERT_EQ(fake_.messages.size(), 2u);
    EXPECT_EQ(message(1).kind, MessageKind::write_refused);
    see_that_a_peer_has_ended();
    EXPECT_EQ(fake_.messages.size(), 2u) << "once each";
    EXPECT_TRUE(ask_peer(link_, handle_, 0, 8, 0));
}

// The same through a descriptor: an RDMA that the owner has refused while there is no room.
TEST_F(VerbsControlQp, ARefusedRdmaIsToldItsOwnerThoughThereIsNoRoomNow) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_DESCRIPTOR* d = rdma(8, VIP_CONTROL_OP_RDMAWRITE, 77, 0x1000);
    post_send(d);
    link_.free_sends = 0;
    answer(77, RemoteKey{});
    EXPECT_TRUE(d->CS.Status & VIP_STATUS_RDMA_PROT_ERROR);
    ASSERT_EQ(fake_.messages.size(), 1u) << "the question";
    see_that_a_peer_has_ended();
    ASSERT_EQ(fake_.messages.size(), 2u);
    EXPECT_EQ(message(1).kind, MessageKind::write_refused);
}

// A device that takes nothing has no completion to come.
TEST_F(VerbsControlQp, WhatTheDeviceDidNotTakeIsTriedAgainWithTheWordThatWeAreAlive) {
    connect(VIP_SERVICE_UNRELIABLE);
    link_.joined.store(true);
    keep_alive(nic_, now_);
    fake_.refuse_sends = true;
    tell_peer(link_, MessageKind::no_receive);
    EXPECT_EQ(link_.free_sends, kControlDepth);
    fake_.refuse_sends = false;
    keep_alive(nic_, link_.alive_at);
    ASSERT_EQ(fake_.messages.size(), 2u);
    EXPECT_EQ(message(0).kind, MessageKind::no_receive);
    EXPECT_EQ(message(1).kind, MessageKind::alive);
}

Message refused_write(uint32_t immediate) {
    Message m;
    m.kind = MessageKind::write_refused;
    m.flags = kWithImmediate;
    m.key = immediate;
    return m;
}
constexpr uint32_t kRefused =
    VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE | VIP_STATUS_RDMA_PROT_ERROR;

TEST_F(VerbsControlQp, ARefusedWriteIsToldInTheReceiveWithItsImmediateData) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_DESCRIPTOR* d = descriptor(8);
    post_recv(d);
    receive(refused_write(7), 3);
    EXPECT_EQ(d->CS.Status, kRefused);
    EXPECT_EQ(d->CS.ImmediateData, 7u);
    EXPECT_TRUE(core_.is_marked_broken());
}

TEST_F(VerbsControlQp, ARefusedWriteComesBehindWhatHasArrived) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_DESCRIPTOR* const d[] = {descriptor(8), descriptor(8)};
    for (VIP_DESCRIPTOR* one : d) post_recv(one);
    write_message(refused_write(7), buffers_ + 3 * kMessageBytes);
    fake_.completions.clear();
    complete(number(true, 3), IBV_WC_SUCCESS, kMessageBytes, IBV_WC_RECV);
    for (size_t i = 1; i < 16; ++i) complete(0, IBV_WC_SUCCESS);  // of no link: fill what is looked at together
    complete(fake_.receives[0].wr.wr_id, IBV_WC_SUCCESS, 8, IBV_WC_RECV);
    serve_control_qps(nic_);
    EXPECT_EQ(d[0]->CS.Status, uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE});
    EXPECT_EQ(d[1]->CS.Status, kRefused);
}

TEST_F(VerbsControlQp, ARefusedWriteThatFindsNoReceiveIsReported) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    receive(refused_write(7), 3);
    EXPECT_TRUE(core_.is_marked_broken());
    EXPECT_EQ(core_.reason.code, VIP_ERROR_RDMAW_PROT);
    EXPECT_TRUE(core_.reason.report);
}

TEST_F(VerbsControlQp, AtUnreliableEachOfSeveralIsToldInItsTurn) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* const d[] = {descriptor(8), descriptor(8)};
    for (VIP_DESCRIPTOR* one : d) post_recv(one);
    const std::vector<test::PostedReceive> posted = fake_.receives;
    receive(refused_write(7), 3);
    receive(refused_write(8), 4);
    for (const test::PostedReceive& r : posted) complete(r.wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    recover_links(nic_, now_);
    for (uint32_t i = 0; i < 2; ++i) {
        EXPECT_EQ(d[i]->CS.Status, kRefused);
        EXPECT_EQ(d[i]->CS.ImmediateData, 7 + i);
    }
    EXPECT_FALSE(core_.is_marked_broken());
}

}  // namespace
}  // namespace viaduct::verbs::test
