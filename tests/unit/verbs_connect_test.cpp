// SPDX-License-Identifier: BSD-2-Clause
// Steps of a connection, at the requester and at the acceptor (providers/verbs/connect.hpp), with an
// rdma_cm made of functions.
#include "core/clock/clock.hpp"
#include "providers/verbs/connect.hpp"
#include "tests/moved_clock.hpp"
#include "tests/unit/verbs_cm_fixture.hpp"

namespace viaduct::verbs::test {
namespace {

constexpr int64_t kOneSecond = 1'000'000'000;

class VerbsConnect : public VerbsCmFixture {
protected:
    tests::MovedClock clock_;
    void wait(int64_t ns) {
        clock_.move(std::chrono::nanoseconds(ns));
        run_timers(nic_, clock_.now());
    }
    void listen_for(const EndAddress& local) {
        nic_.listeners[port_of(nic_.settings, local)] = nullptr;  // as if we listened
        ASSERT_EQ(listen(&nic_, local, kNever, &op_), Status::ok);
    }
    // Ourselves the lower of two peers, with a request of our own or without.
    void be_a_peer(uint32_t far_host) {
        in_addr far{};
        far.s_addr = htonl(far_host);
        remote_ = end_at(far, "waiter");
        nic_.listeners[port_of(nic_.settings, local_)] = nullptr;
        ASSERT_EQ(peer_request(&nic_, core_, local_, remote_, traits_, kNever, &op_), Status::ok);
    }
    uint64_t incoming() {
        listen_for(local_);
        hear_request(PrivateDataKind::request, 7);
        ConnectResult found;
        EXPECT_EQ(connect_finish(std::exchange(op_, nullptr), &found), Status::ok);
        return found.incoming;
    }
};

constexpr uint32_t kHigher = 0xC0000203;
constexpr uint32_t kLower = 0xC0000201;

// --- the end that asks ---

TEST_F(VerbsConnect, ARefusalIsToldAsWhatItIs) {
    const struct {
        Refusal why;
        Status status;
    } rows[] = {{Refusal::rejected, Status::rejected},         {Refusal::mismatch_level, Status::mismatch_level},
                {Refusal::mismatch_mtu, Status::mismatch_mtu}, {Refusal::no_resources, Status::timeout},
                {Refusal::version, Status::version},           {Refusal::unknown, Status::version}};
    for (const auto& row : rows) {
        SCOPED_TRACE(static_cast<int>(row.why));
        cm_.asked.clear();
        ask();
        refuse_with(op_->id, row.why);
        ASSERT_TRUE(op_->decided);
        EXPECT_EQ(op_->result.status, row.status);
        ConnectResult unused;
        EXPECT_EQ(connect_finish(std::exchange(op_, nullptr), &unused), row.status);
    }
}

TEST_F(VerbsConnect, FourPortsAreTriedAndThenAllOfThemAgainForAWhile) {
    constexpr int64_t kGrace = 100'000'000;
    ask();
    for (uint32_t i = 1; i < kPortTries; ++i) {
        refuse_with(op_->id, Refusal::no_match);
        ASSERT_EQ(cm_.ports.size(), i + 1);
        EXPECT_EQ(cm_.ports[i], cm_.ports[0] + i);
        resolve(op_->id);
    }
    clock_.move(std::chrono::nanoseconds(kGrace - 1));
    refuse_with(op_->id, Refusal::no_match);
    ASSERT_FALSE(op_->decided) << "the other end may be about to wait";
    wait(kOneSecond);
    EXPECT_EQ(cm_.ports.back(), cm_.ports[0]) << "from the first port on";
    op_->begun -= kOneSecond;
    for (uint32_t i = 0; i < kPortTries; ++i) {
        resolve(op_->id);
        refuse_with(op_->id, Refusal::no_match);
    }
    ASSERT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::no_match);
}

TEST_F(VerbsConnect, ADeadlineEndsAnAttemptThatLooksForAPort) {
    const int64_t deadline = clock_.now() + kOneSecond;
    ASSERT_EQ(request(&nic_, core_, local_, remote_, traits_, deadline, &op_), Status::ok);
    run_timers(nic_, deadline - 1);
    EXPECT_FALSE(op_->decided);
    run_timers(nic_, deadline);
    ASSERT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::timeout);
}

TEST_F(VerbsConnect, AnAnswerThatIsNotOursConnectsNothing) {
    ask();
    uint8_t data[kAcceptBytes] = {};
    event(RDMA_CM_EVENT_CONNECT_RESPONSE, op_->id, data, sizeof data);
    ASSERT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::broken);
    EXPECT_EQ(cm_.confirmed, 0);
}

TEST_F(VerbsConnect, EventsOfAnotherIdMeanNothing) {
    ask();
    rdma_cm_id* const first = op_->id;
    refuse_with(first, Refusal::no_match);
    accept_it(first);
    EXPECT_FALSE(op_->decided);
    EXPECT_EQ(cm_.confirmed, 0);
}

TEST_F(VerbsConnect, APeerThatLeavesBeforeTheProgramIsToldIsLost) {
    ask();
    accept_it(op_->id);
    ASSERT_TRUE(op_->decided);
    EXPECT_FALSE(op_->link->lost);
    event(RDMA_CM_EVENT_DISCONNECTED, op_->id);
    EXPECT_TRUE(op_->link->lost);
}

TEST_F(VerbsConnect, APeerThatLeavesAConnectionIsLost) {
    for (const rdma_cm_event_type type : {RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DEVICE_REMOVAL}) {
        SCOPED_TRACE(type);
        cm_.asked.clear();
        ask();
        rdma_cm_id* const id = op_->id;
        accept_it(id);
        finish();
        Link& link = *core_.endpoint->link;
        event(RDMA_CM_EVENT_ADDR_RESOLVED, id);
        EXPECT_FALSE(link.lost);
        event(type, id);
        EXPECT_TRUE(link.lost);
        {
            const std::scoped_lock both(core_.recv.lock, core_.send.lock);
            disconnect(core_);
        }
        for (Link* one : std::exchange(nic_.leaving, {})) destroy_link(one);
    }
}

// --- the end that is asked ---

TEST_F(VerbsConnect, ARequestIsForTheDiscriminatorThatItNames) {
    listen_for(end_at(nic_.ip, "other"));
    hear_request(PrivateDataKind::request, 7);
    EXPECT_FALSE(op_->decided);
    ASSERT_EQ(cm_.refused.size(), 1u);
    EXPECT_EQ(cm_.refused[0], Refusal::no_match);
}

TEST_F(VerbsConnect, AWaiterIsToldOfOneRequest) {
    listen_for(local_);
    hear_request(PrivateDataKind::request, 7);
    ASSERT_TRUE(op_->decided);
    hear_request(PrivateDataKind::request, 8);
    ASSERT_EQ(cm_.refused.size(), 1u);
    EXPECT_EQ(cm_.refused[0], Refusal::no_match);
    EXPECT_EQ(nic_.incoming.size(), 1u);
}

TEST_F(VerbsConnect, RequestsThatNoProgramDecidesAreNotKeptWithoutEnd) {
    for (uint32_t i = 0; i < 1024; ++i) nic_.incoming[1'000'000 + i];
    listen_for(local_);
    hear_request(PrivateDataKind::request, 7);
    EXPECT_FALSE(op_->decided);
    ASSERT_EQ(cm_.refused.size(), 1u);
    EXPECT_EQ(cm_.refused[0], Refusal::no_resources);
}

TEST_F(VerbsConnect, ARequesterThatHasLeftIsNotAccepted) {
    const uint64_t number = incoming();
    event(RDMA_CM_EVENT_DISCONNECTED, nic_.incoming.at(number).id);
    ASSERT_EQ(accept(&nic_, number, core_, traits_, &op_), Status::ok);
    EXPECT_EQ(op_->result.status, Status::timeout);
    EXPECT_EQ(cm_.accepted, 0);
}

TEST_F(VerbsConnect, ARequestThatIsRejectedIsRemoved) {
    const uint64_t number = incoming();
    EXPECT_EQ(reject(&nic_, number), Status::ok);
    ASSERT_EQ(cm_.refused.size(), 1u);
    EXPECT_EQ(cm_.refused[0], Refusal::rejected);
    EXPECT_EQ(reject(&nic_, number), Status::invalid);
    EXPECT_EQ(accept(&nic_, number, core_, traits_, &op_), Status::invalid);
}

TEST_F(VerbsConnect, OnlyAConnectedEndDisconnects) {
    ASSERT_EQ(accept(&nic_, incoming(), core_, traits_, &op_), Status::ok);
    ASSERT_FALSE(op_->decided);
    event(RDMA_CM_EVENT_DISCONNECTED, op_->id);
    ASSERT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::ok) << "what it sent before is there";
    EXPECT_TRUE(op_->link->lost);
}

TEST_F(VerbsConnect, ADiscriminatorThatIsTooLongIsNotWaitedFor) {
    EndAddress longer = end_at(nic_.ip, "0123456789abcdef0");
    EXPECT_EQ(listen(&nic_, longer, kNever, &op_), Status::invalid);
    EXPECT_EQ(request(&nic_, core_, local_, longer, traits_, kNever, &op_), Status::invalid);
}

// --- peers ---

TEST_F(VerbsConnect, TheLowerPeerAnswersWhenLevelAndSizeAgree) {
    be_a_peer(kHigher);
    traits_.reliability = VIP_SERVICE_UNRELIABLE;
    hear_request(PrivateDataKind::peer, 7);
    ASSERT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::mismatch_level);
    ASSERT_EQ(cm_.refused.size(), 1u);
    EXPECT_EQ(cm_.refused[0], Refusal::mismatch_level);
    EXPECT_EQ(cm_.accepted, 0);
}

TEST_F(VerbsConnect, TheHigherPeerAsks) {
    be_a_peer(kLower);
    hear_request(PrivateDataKind::peer, 7);
    EXPECT_EQ(cm_.accepted, 0);
    ASSERT_EQ(cm_.refused.size(), 1u);
    EXPECT_EQ(cm_.refused[0], Refusal::use_mine);
}

TEST_F(VerbsConnect, APeerAnswersTheOneItNamesOnly) {
    be_a_peer(kHigher);
    in_addr far{};
    far.s_addr = htonl(kHigher + 1);
    remote_ = end_at(far, "waiter");
    hear_request(PrivateDataKind::peer, 7);
    EXPECT_EQ(cm_.accepted, 0);
    ASSERT_EQ(cm_.refused.size(), 1u);
    EXPECT_EQ(cm_.refused[0], Refusal::no_match);
}

TEST_F(VerbsConnect, APeerIsNotItsOwnPeer) {
    be_a_peer(kHigher);
    hear_request(PrivateDataKind::peer, op_->nonce);
    EXPECT_EQ(cm_.accepted, 0);
}

TEST_F(VerbsConnect, APeerThatIsToldToWaitLooksAtNoOtherPort) {
    be_a_peer(kLower);
    resolve(op_->id);
    const size_t looks = cm_.ports.size();
    refuse_with(op_->id, Refusal::use_mine);
    EXPECT_FALSE(op_->decided);
    EXPECT_EQ(cm_.ports.size(), looks);
}

}  // namespace
}  // namespace viaduct::verbs::test
