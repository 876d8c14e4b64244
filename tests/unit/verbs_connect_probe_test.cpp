// SPDX-License-Identifier: BSD-2-Clause
// Requests and refusals that the network loses (providers/verbs/connect_probe.hpp), with an rdma_cm made of
// functions.
#include "providers/verbs/connect_probe.hpp"

#include "core/clock/clock.hpp"
#include "providers/verbs/connect.hpp"
#include "tests/moved_clock.hpp"
#include "tests/unit/verbs_cm_fixture.hpp"

namespace viaduct::verbs::test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class VerbsConnectProbe : public VerbsCmFixture {
protected:
    tests::MovedClock clock_;
    // ... nor has it after so long.
    void wait(int64_t ns) {
        clock_.move(std::chrono::nanoseconds(ns));
        run_timers(nic_, clock_.now());
    }
    void probe() {
        wait(kFirstProbeNs);
        ASSERT_NE(op_->probe, nullptr);
        resolve(op_->probe);
    }
    Refusal answer_to_probe(uint32_t nonce) {
        const size_t before = cm_.refused.size();
        hear_request(PrivateDataKind::probe, nonce);
        EXPECT_EQ(cm_.refused.size(), before + 1);
        return cm_.refused.back();
    }
};

TEST_F(VerbsConnectProbe, AProbeAsksForTheRequestAtTheSamePort) {
    const int64_t begun = clock_.now();
    ask();
    EXPECT_GE(op_->probe_at, begun + kFirstProbeNs);
    run_timers(nic_, op_->probe_at - 1);
    EXPECT_EQ(op_->probe, nullptr) << "too early";
    probe();
    ASSERT_EQ(cm_.asked.size(), 2u);
    EXPECT_EQ(cm_.asked[1].private_data.kind, PrivateDataKind::probe);
    EXPECT_EQ(cm_.asked[1].private_data.nonce, cm_.asked[0].private_data.nonce);
    EXPECT_NE(cm_.asked[1].qp, cm_.asked[0].qp) << "a host refuses a second request of one queue pair";
    EXPECT_EQ(cm_.ports[1], cm_.ports[0]);
    EXPECT_FALSE(is_retired(cm_.asked[0].id)) << "the request still counts";
}

TEST_F(VerbsConnectProbe, ARequestThatIsNotKnownIsMadeAnew) {
    ask();
    probe();
    refuse_with(op_->probe, Refusal::no_match);
    EXPECT_TRUE(is_retired(cm_.asked[0].id));
    EXPECT_TRUE(is_retired(cm_.asked[1].id));
    EXPECT_EQ(cm_.ports.back(), cm_.ports[0]) << "that port was not refused";
    resolve(op_->id);
    ASSERT_EQ(cm_.asked.size(), 3u);
    EXPECT_EQ(cm_.asked[2].private_data.kind, PrivateDataKind::request);
    EXPECT_NE(cm_.asked[2].private_data.nonce, cm_.asked[0].private_data.nonce);
    EXPECT_NE(cm_.asked[2].qp, cm_.asked[0].qp);
    EXPECT_FALSE(op_->decided);
}

TEST_F(VerbsConnectProbe, ARefusalOfTheKernelMeansNotKnown) {
    ask();
    probe();
    event(RDMA_CM_EVENT_REJECTED, op_->probe);
    EXPECT_TRUE(is_retired(cm_.asked[0].id));
}

TEST_F(VerbsConnectProbe, APeerWithoutProbesIsProbedOnce) {
    ask();
    probe();
    refuse_with(op_->probe, Refusal::unknown);
    EXPECT_EQ(op_->probe, nullptr);
    EXPECT_EQ(op_->id, cm_.asked[0].id) << "the request still counts";
    const size_t ways = cm_.ports.size();
    wait(60 * kSecond);
    EXPECT_EQ(cm_.ports.size(), ways);
    EXPECT_FALSE(op_->decided);
}

TEST_F(VerbsConnectProbe, ARequestOfAKindThatThePeerDoesNotKnowIsOfAnotherVersion) {
    ask();
    refuse_with(op_->id, Refusal::unknown);
    EXPECT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::version);
}

TEST_F(VerbsConnectProbe, AKnownRequestGoesOnAndIsAnswered) {
    ask();
    probe();
    refuse_with(op_->probe, Refusal::known);
    EXPECT_EQ(op_->probe, nullptr);
    EXPECT_EQ(op_->id, cm_.asked[0].id);
    PrivateData private_data;
    private_data.kind = PrivateDataKind::accept;
    private_data.traits = traits_;
    uint8_t data[kAcceptBytes];
    write_accept(private_data, data);
    event(RDMA_CM_EVENT_CONNECT_RESPONSE, op_->id, data, sizeof data);
    EXPECT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::ok);
}

TEST_F(VerbsConnectProbe, AProbeThatIsLostIsFollowedByAnother) {
    ask();
    const int64_t begun = clock_.now();
    probe();
    rdma_cm_id* const first = op_->probe;
    EXPECT_GE(op_->probe_at, begun + kFirstProbeNs + 2 * kFirstProbeNs) << "the pause grows";
    run_timers(nic_, op_->probe_at - 1);
    EXPECT_EQ(op_->probe, first);
    wait(kFirstProbeNs + 2 * kSecond);
    EXPECT_TRUE(is_retired(first));
    ASSERT_NE(op_->probe, nullptr);
    resolve(op_->probe);
    EXPECT_EQ(cm_.asked.size(), 3u);
    event(RDMA_CM_EVENT_UNREACHABLE, op_->probe);
    EXPECT_EQ(op_->probe, nullptr);
    EXPECT_EQ(op_->id, cm_.asked[0].id) << "a probe that fails says nothing of the request";
    EXPECT_FALSE(op_->decided);
}

TEST_F(VerbsConnectProbe, AnAnswerEndsTheProbes) {
    ask();
    probe();
    rdma_cm_id* const id = op_->probe;
    refuse_with(op_->id, Refusal::no_match);  // the next port
    EXPECT_TRUE(is_retired(id));
    EXPECT_EQ(op_->probe, nullptr);
    EXPECT_EQ(op_->probe_at, 0);
    const size_t ways = cm_.ports.size();
    wait(60 * kSecond);
    EXPECT_EQ(cm_.ports.size(), ways) << "nothing is out that could be lost";
}

TEST_F(VerbsConnectProbe, TheDeadlineHoldsWithoutAnAnswer) {
    ASSERT_EQ(request(&nic_, core_, local_, remote_, traits_, clock_.now() + 30 * kSecond, &op_), Status::ok);
    resolve(op_->id);
    probe();
    wait(31 * kSecond);
    EXPECT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::timeout);
}

TEST_F(VerbsConnectProbe, BetweenPeersTheRequestIsMadeAnewAtOnce) {
    ASSERT_GT(compare_ends(local_, remote_), 0) << "the higher end asks";
    ASSERT_EQ(peer_request(&nic_, core_, local_, remote_, traits_, kNever, &op_), Status::ok);
    resolve(op_->id);
    ASSERT_EQ(cm_.asked.size(), 1u);
    wait(kFirstProbeNs);
    EXPECT_TRUE(is_retired(cm_.asked[0].id));
    resolve(op_->id);
    ASSERT_EQ(cm_.asked.size(), 2u);
    EXPECT_EQ(cm_.asked[1].private_data.kind, PrivateDataKind::peer);
    EXPECT_EQ(cm_.asked[1].private_data.nonce, cm_.asked[0].private_data.nonce) << "it decides whose request counts";
    EXPECT_NE(cm_.asked[1].qp, cm_.asked[0].qp);
}

// ... and as the network may fail for a while, no route to the other host does not end it, only its timeout.
TEST_F(VerbsConnectProbe, BetweenPeersTheRequestIsMadeAnewUntilTheTimeout) {
    const int64_t deadline = clock_.now() + 30 * kSecond;
    ASSERT_EQ(peer_request(&nic_, core_, local_, remote_, traits_, deadline, &op_), Status::ok);
    resolve(op_->id);
    for (const auto failure : {RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ROUTE_ERROR}) {
        wait(kLongestProbeNs);
        rdma_cm_id* const id = op_->id;
        const size_t ways = cm_.ports.size();
        event(failure, id);
        ASSERT_FALSE(op_->decided);
        EXPECT_TRUE(is_retired(id));
        wait(kSecond);
        EXPECT_EQ(cm_.ports.size(), ways + 1);
        resolve(op_->id);
    }
    EXPECT_EQ(cm_.asked.size(), 3u);
    wait(31 * kSecond);
    EXPECT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::timeout);
}

// The asked side.
TEST_F(VerbsConnectProbe, OnlyARequestThatIsThoughtAboutIsKnown) {
    nic_.listeners[port_of(nic_.settings, local_)] = nullptr;  // as if we listened
    EXPECT_EQ(answer_to_probe(7), Refusal::no_match);
    ASSERT_EQ(listen(&nic_, local_, kNever, &op_), Status::ok);
    EXPECT_EQ(answer_to_probe(7), Refusal::no_match) << "a probe is no request";
    EXPECT_FALSE(op_->decided);
    hear_request(PrivateDataKind::request, 7);
    ASSERT_TRUE(op_->decided);
    EXPECT_EQ(answer_to_probe(7), Refusal::known);
    EXPECT_EQ(answer_to_probe(8), Refusal::no_match);

    ConnectOp* accepting = nullptr;
    ASSERT_EQ(accept(&nic_, op_->result.incoming, core_, traits_, &accepting), Status::ok);
    EXPECT_EQ(cm_.accepted, 1);
    EXPECT_EQ(answer_to_probe(7), Refusal::known) << "the answer is on its way";
    decide(*accepting, Status::timeout);
    EXPECT_EQ(answer_to_probe(7), Refusal::no_match);
    ConnectResult unused;
    EXPECT_EQ(connect_finish(accepting, &unused), Status::timeout);
}

TEST_F(VerbsConnectProbe, AKindOfRequestThatIsNotKnownIsToldSo) {
    hear_request(static_cast<PrivateDataKind>(77), 7);
    ASSERT_EQ(cm_.refused.size(), 1u);
    EXPECT_EQ(cm_.refused[0], Refusal::unknown);
}

TEST_F(VerbsConnectProbe, ARequestThatIsTurnedAwayIsNotKnown) {
    nic_.listeners[port_of(nic_.settings, local_)] = nullptr;
    ASSERT_EQ(listen(&nic_, local_, kNever, &op_), Status::ok);
    hear_request(PrivateDataKind::request, 7);
    ASSERT_TRUE(op_->decided);
    ASSERT_EQ(reject(&nic_, op_->result.incoming), Status::ok);
    EXPECT_EQ(answer_to_probe(7), Refusal::no_match);
}

}  // namespace
}  // namespace viaduct::verbs::test
