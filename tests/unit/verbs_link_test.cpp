// SPDX-License-Identifier: BSD-2-Clause
// The two queue pairs of a connection (providers/verbs/link.hpp): what the device is told of each, and what is given
// back.
#include <algorithm>

#include "providers/verbs/connect.hpp"
#include "tests/unit/verbs_cm_fixture.hpp"

namespace viaduct::verbs::test {
namespace {

struct StateTold {
    const ibv_qp* qp;
    ibv_qp_attr attr;
};
std::vector<StateTold>* kept_states = nullptr;
int keep_state(ibv_qp* qp, ibv_qp_attr* attr, int) {
    kept_states->push_back({qp, *attr});
    return 0;
}

uint32_t most_inline = UINT32_MAX;
ibv_qp* modest_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
    if (init->cap.max_inline_data > most_inline) return nullptr;
    return cm_create_qp(pd, init);
}

class VerbsLink : public VerbsCmFixture {
protected:
    VerbsLink() {
        kept_states = &states_;
        table_.modify_qp = keep_state;
        table_.create_qp = modest_create_qp;
        most_inline = UINT32_MAX;
        nic_.reads = 16;
        nic_.settings.ack_timeout = 13;
        nic_.settings.retries = 3;
        traits_.rdma_write = traits_.rdma_read = 1;
    }
    // The attributes of the data queue pair, or of the other one, on its way to that state.
    ibv_qp_attr state(ibv_qp_state wanted, bool control) {
        const ibv_qp* data = op_->link->data;
        for (const StateTold& one : states_)
            if (one.attr.qp_state == wanted && (one.qp != data) == control) return one.attr;
        ADD_FAILURE() << "the device was not told of state " << wanted;
        return {};
    }
    // The peer serves so many reads, and its control QP has that number.
    void connect_to(uint8_t reads, uint32_t control) {
        ask();
        PrivateData theirs;
        theirs.traits = traits_;
        theirs.control_qp = control;
        uint8_t data[kAcceptBytes];
        write_accept(theirs, data);
        CmEvent e;
        e.type = RDMA_CM_EVENT_CONNECT_RESPONSE;
        e.id = op_->id;
        e.reads = reads;
        e.bytes = sizeof data;
        std::memcpy(e.data, data, sizeof data);
        handle_event(nic_, e);
        ASSERT_TRUE(op_->decided);
        ASSERT_EQ(op_->result.status, Status::ok);
    }

    std::vector<StateTold> states_;
};

TEST_F(VerbsLink, ADataQueuePairAllowsWhatItsViAllows) {
    ask();
    EXPECT_EQ(state(IBV_QPS_INIT, false).qp_access_flags,
              unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ});
    EXPECT_EQ(state(IBV_QPS_INIT, true).qp_access_flags, 0u) << "the control QP reaches no memory";
}

TEST_F(VerbsLink, WithoutEnablesNothingIsReached) {
    traits_.rdma_write = traits_.rdma_read = 0;
    ask();
    EXPECT_EQ(state(IBV_QPS_INIT, false).qp_access_flags, unsigned{IBV_ACCESS_LOCAL_WRITE});
}

TEST_F(VerbsLink, ReadsBelongToTheReliableLevels) {
    traits_.reliability = VIP_SERVICE_UNRELIABLE;
    ask();
    EXPECT_EQ(state(IBV_QPS_INIT, false).qp_access_flags, unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE});
}

TEST_F(VerbsLink, TheControlQpMeetsTheOtherEndsControlQp) {
    connect_to(4, 4711);
    EXPECT_EQ(state(IBV_QPS_RTR, true).dest_qp_num, 4711u);
    EXPECT_NE(state(IBV_QPS_RTR, false).dest_qp_num, 4711u);
}

TEST_F(VerbsLink, AMessageWithoutAReceiveFailsAtOnceAndAControlMessageWaits) {
    connect_to(4, 4711);
    EXPECT_EQ(state(IBV_QPS_RTS, false).rnr_retry, 0);
    EXPECT_EQ(state(IBV_QPS_RTS, true).rnr_retry, 7);
}

TEST_F(VerbsLink, NoMoreReadsAreOutThanThePeerServes) {
    connect_to(4, 4711);
    EXPECT_EQ(state(IBV_QPS_RTS, false).max_rd_atomic, 4);
    EXPECT_EQ(state(IBV_QPS_RTR, false).max_dest_rd_atomic, 16) << "what we serve is ours to say";
}

TEST_F(VerbsLink, HowLongAPeerMayBeSilentIsTheSettings) {
    connect_to(4, 4711);
    EXPECT_EQ(state(IBV_QPS_RTS, false).timeout, 13);
    EXPECT_EQ(state(IBV_QPS_RTS, false).retry_cnt, 3);
}

TEST_F(VerbsLink, TheControlQpHasItsReceivesBeforeThePeerCanKnowOfIt) {
    ask();
    const auto of_control = [this](const PostedReceive& r) { return r.qp != op_->link->data; };
    EXPECT_EQ(std::count_if(fake_.receives.begin(), fake_.receives.end(), of_control), kControlDepth);
}

TEST_F(VerbsLink, ADeviceThatSendsLessInlineIsAskedForLess) {
    nic_.settings.inline_bytes = 256;
    most_inline = 64;
    ask();
    EXPECT_LE(op_->link->inline_bytes, 64u);
}

TEST_F(VerbsLink, RoomInCompletionQueuesIsGivenBack) {
    const uint32_t before = group_.queues[0]->wanted;
    ask();
    EXPECT_GT(group_.queues[0]->wanted, before);
    drop_link_of(*op_);
    EXPECT_EQ(group_.queues[0]->wanted, before);
}

}  // namespace
}  // namespace viaduct::verbs::test
