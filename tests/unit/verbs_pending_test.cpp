// SPDX-License-Identifier: BSD-2-Clause
// Receives that are posted while a VI connects: the peer may be connected earlier and send what they are
// meant for, so they go to the device at once, whatever the end is to the connection and however far it is.
#include <algorithm>

#include "providers/verbs/connect.hpp"
#include "tests/unit/verbs_cm_fixture.hpp"

namespace viaduct::verbs::test {
namespace {

class VerbsPending : public VerbsCmFixture {
protected:
    VerbsPending() { core_.state.store(VIP_STATE_CONNECT_PENDING); }

    // As the user agent does while the VI connects, and afterwards.
    void post() {
        const std::scoped_lock lock(core_.recv.lock);
        core_.recv.push(descriptor(64));
        kick_recv(core_);
    }
    // Positions of the receives that a queue pair has been given.
    std::vector<uint32_t> given(const ibv_qp* qp) const {
        std::vector<uint32_t> positions;
        for (const PostedReceive& r : fake_.receives)
            if (r.qp == qp) positions.push_back(position_of(r.wr.wr_id));
        return positions;
    }
    // From the attempt's link on: one more with each step, each once and in order.
    void expect_given(uint32_t count, const char* when) {
        std::vector<uint32_t> all(count);
        for (uint32_t i = 0; i < count; ++i) all[i] = i;
        EXPECT_EQ(given(core_.endpoint->takes_receives->data), all) << when;
    }
    void post_until_connected() {
        post();
        expect_given(2, "both ends may use the connection, no call has asked");
        finish();
        post();
        expect_given(3, "bound and not started");
        begin();
        post();
        expect_given(4, "connected");
    }
    // The other end's request, between peers, of which we are the lower.
    void be_the_lower_peer() {
        in_addr far{};
        far.s_addr = htonl(0xC0000203);
        remote_ = end_at(far, "waiter");
        nic_.listeners[port_of(nic_.settings, local_)] = nullptr;  // as if we listened
    }
    // A request that has come and that the program has heard of.
    uint64_t requested() {
        nic_.listeners[port_of(nic_.settings, local_)] = nullptr;
        EXPECT_EQ(listen(&nic_, local_, kNever, &op_), Status::ok);
        hear_request(PrivateDataKind::request, 7);
        ConnectResult found;
        EXPECT_EQ(connect_finish(std::exchange(op_, nullptr), &found), Status::ok);
        return found.incoming;
    }
};

TEST_F(VerbsPending, ARequesterHasThemOnItsDevice) {
    ask();
    post();
    expect_given(1, "the request is out");
    accept_it(op_->id);
    EXPECT_EQ(cm_.confirmed, 1);
    post_until_connected();
    EXPECT_EQ(cm_.confirmed, 1);
}

TEST_F(VerbsPending, AnAcceptorHasThemOnItsDevice) {
    const uint64_t incoming = requested();
    ASSERT_EQ(accept(&nic_, incoming, core_, traits_, &op_), Status::ok);
    EXPECT_EQ(cm_.accepted, 1);
    post();
    expect_given(1, "the requester may have the answer");
    event(RDMA_CM_EVENT_ESTABLISHED, op_->id);
    post_until_connected();
}

TEST_F(VerbsPending, APeerThatAsksHasThemOnItsDevice) {
    ASSERT_EQ(peer_request(&nic_, core_, local_, remote_, traits_, kNever, &op_), Status::ok);
    post();  // there is no queue pair yet
    EXPECT_TRUE(fake_.receives.empty());
    resolve(op_->id);
    expect_given(1, "with the queue pair");
    accept_it(op_->id);
    EXPECT_EQ(cm_.confirmed, 1) << "no call has to ask for it";
    post_until_connected();
}

TEST_F(VerbsPending, APeerThatAnswersHasThemOnItsDevice) {
    be_the_lower_peer();
    ASSERT_EQ(peer_request(&nic_, core_, local_, remote_, traits_, kNever, &op_), Status::ok);
    ASSERT_EQ(op_->id, nullptr) << "the higher end asks";
    post();
    hear_request(PrivateDataKind::peer, 7u << 16);
    EXPECT_EQ(cm_.accepted, 1);
    expect_given(1, "with the queue pair");
    event(RDMA_CM_EVENT_ESTABLISHED, op_->id);
    post_until_connected();
}

TEST_F(VerbsPending, AMessageThatComesBeforeTheEndHasStartedCompletesOne) {
    ASSERT_EQ(peer_request(&nic_, core_, local_, remote_, traits_, kNever, &op_), Status::ok);
    resolve(op_->id);
    accept_it(op_->id);
    post();
    const uint64_t number = fake_.receives.back().wr.wr_id;
    complete(number, IBV_WC_SUCCESS, 5, IBV_WC_RECV);
    poll_group(&group_);  // for another VI of its completion queue
    EXPECT_EQ(core_.recv.completed, 0u) << "the program does not know of the connection yet";
    finish();
    begin();
    ASSERT_EQ(core_.recv.completed, 1u);
    EXPECT_EQ(core_.recv.at(0)->CS.Length, 5u);
}

TEST_F(VerbsPending, RequestsThatCrossLeaveThemToTheQueuePairThatCounts) {
    nic_.listeners[port_of(nic_.settings, local_)] = nullptr;
    remote_ = local_;
    ASSERT_EQ(peer_request(&nic_, core_, local_, remote_, traits_, kNever, &op_), Status::ok);
    resolve(op_->id);
    post();
    const ibv_qp* const asking = core_.endpoint->takes_receives->data;
    EXPECT_EQ(given(asking).size(), 1u);
    hear_request(PrivateDataKind::peer, 0xFFFF0000);
    ASSERT_EQ(cm_.accepted, 1) << "theirs counts";
    ASSERT_NE(core_.endpoint->takes_receives->data, asking);
    expect_given(1, "once more");
    event(RDMA_CM_EVENT_ESTABLISHED, op_->id);
    post_until_connected();
    EXPECT_EQ(given(asking).size(), 1u);
}

TEST_F(VerbsPending, AnAttemptThatHasFailedLeavesThemToTheNext) {
    ask();
    post();
    refuse_with(op_->id, Refusal::rejected);
    ConnectResult unused;
    EXPECT_EQ(connect_finish(std::exchange(op_, nullptr), &unused), Status::rejected);
    EXPECT_EQ(core_.endpoint->takes_receives, nullptr);
    const size_t before = fake_.receives.size();
    post();  // by a thread that has not heard of it
    EXPECT_EQ(fake_.receives.size(), before) << "to a queue pair that is destroyed";
    ASSERT_EQ(request(&nic_, core_, local_, remote_, traits_, kNever, &op_), Status::ok);
    resolve(op_->id);
    expect_given(2, "as they were posted");
}

TEST_F(VerbsPending, AnEndThatIsDisconnectedTakesNoMore) {
    ask();
    accept_it(op_->id);
    finish();
    begin();
    {
        const std::scoped_lock both(core_.recv.lock, core_.send.lock);
        disconnect(core_);
    }
    const size_t before = fake_.receives.size();
    post();
    EXPECT_EQ(fake_.receives.size(), before);
    for (Link* link : nic_.leaving) destroy_link(link);
}

TEST_F(VerbsPending, AConfirmationThatCannotBeSentEndsTheAttempt) {
    ask();
    cm_.refuses_confirmation = true;
    accept_it(op_->id);
    ASSERT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::broken);
}

}  // namespace
}  // namespace viaduct::verbs::test
