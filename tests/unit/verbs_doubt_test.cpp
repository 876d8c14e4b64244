// SPDX-License-Identifier: BSD-2-Clause
// Requests and refusals that the network loses (providers/verbs/doubt.hpp), with an rdma_cm made of
// functions.
#include <arpa/inet.h>

#include <algorithm>
#include <mutex>

#include "core/clock/clock.hpp"
#include "providers/verbs/connect.hpp"
#include "providers/verbs/doubt.hpp"
#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs::test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Asked {
    rdma_cm_id* id;
    uint32_t qp;
    Hello hello;
};
// What rdma_cm has been told.
struct FakeCm {
    std::vector<std::unique_ptr<rdma_cm_id>> ids;
    std::vector<std::unique_ptr<ibv_qp>> qps;
    std::vector<uint16_t> ports;  // that a way was looked for to
    std::vector<Asked> asked;
    std::vector<Refusal> refused;
    int accepted = 0;
    std::vector<size_t> confirmed;  // with how many receives posted
    bool refuses_confirmation = false;
    ibv_context* context = nullptr;
};
FakeCm* cm = nullptr;

int cm_create_id(rdma_event_channel*, rdma_cm_id** out, void*, rdma_port_space) {
    cm->ids.push_back(std::make_unique<rdma_cm_id>());
    *out = cm->ids.back().get();
    return 0;
}
int cm_resolve_addr(rdma_cm_id*, sockaddr*, sockaddr* to, int) {
    cm->ports.push_back(ntohs(reinterpret_cast<sockaddr_in*>(to)->sin_port));
    return 0;
}
int cm_resolve_route(rdma_cm_id*, int) { return 0; }
int cm_init_qp_attr(rdma_cm_id*, ibv_qp_attr*, int*) { return 0; }
int cm_connect(rdma_cm_id* id, rdma_conn_param* param) {
    Asked one{id, param->qp_num, {}};
    EXPECT_EQ(read_request(param->private_data, param->private_data_len, &one.hello), Status::ok);
    cm->asked.push_back(one);
    return 0;
}
int cm_establish(rdma_cm_id*) {
    cm->confirmed.push_back(device->receives.size());
    return cm->refuses_confirmation ? -1 : 0;
}
int cm_accept(rdma_cm_id*, rdma_conn_param*) {
    ++cm->accepted;
    return 0;
}
int cm_reject(rdma_cm_id*, const void* data, uint8_t bytes) {
    Refusal why{};
    EXPECT_TRUE(read_refusal(data, bytes, &why));
    cm->refused.push_back(why);
    return 0;
}
ibv_qp* cm_create_qp(ibv_pd*, ibv_qp_init_attr*) {
    cm->qps.push_back(std::make_unique<ibv_qp>());
    cm->qps.back()->context = cm->context;
    cm->qps.back()->qp_num = static_cast<uint32_t>(cm->qps.size());
    return cm->qps.back().get();
}

class VerbsDoubt : public VerbsFixture {
protected:
    VerbsDoubt() {
        cm = &cm_;
        cm_.context = &context_;
        table_.create_id = cm_create_id;
        table_.resolve_addr = cm_resolve_addr;
        table_.resolve_route = cm_resolve_route;
        table_.init_qp_attr = cm_init_qp_attr;
        table_.connect = cm_connect;
        table_.establish = cm_establish;
        table_.accept = cm_accept;
        table_.reject = cm_reject;
        table_.create_qp = cm_create_qp;
        nic_.control_cq = &cq_;
        std::call_once(nic_.progress_once, [] {});  // the test is the progress thread
        nic_.ip.s_addr = htonl(0xC0000202);
        nic_.info.address = address_of(nic_.ip);
        traits_.reliability = VIP_SERVICE_RELIABLE_DELIVERY;
        local_ = end_at(nic_.ip, "asker");
        in_addr far{};
        far.s_addr = htonl(0xC0000201);
        remote_ = end_at(far, "waiter");
    }
    ~VerbsDoubt() override {
        if (core_.endpoint->link != nullptr) {
            disconnect(core_);
            for (Link* link : nic_.leaving) destroy_link(link);
        }
        if (op_ != nullptr) {
            give_up_link(*op_);
            op_->decided = true;
            op_->result.status = Status::timeout;
            ConnectResult unused;
            connect_finish(op_, &unused);
        }
        for (Link* link : nic_.dropped) destroy_link(link);
    }

    static EndAddress end_at(in_addr ip, const char* discriminator) {
        EndAddress end;
        end.host = address_of(ip);
        end.discriminator_len = static_cast<uint16_t>(std::strlen(discriminator));
        std::memcpy(end.discriminator, discriminator, end.discriminator_len);
        return end;
    }
    void event(rdma_cm_event_type type, rdma_cm_id* id, const void* data = nullptr, size_t bytes = 0) {
        CmEvent e;
        e.type = type;
        e.id = id;
        e.bytes = bytes;
        if (bytes != 0) std::memcpy(e.data, data, bytes);
        handle_event(nic_, e);
    }
    void resolve(rdma_cm_id* id) {
        event(RDMA_CM_EVENT_ADDR_RESOLVED, id);
        event(RDMA_CM_EVENT_ROUTE_RESOLVED, id);
    }
    void refuse_with(rdma_cm_id* id, Refusal why) {
        uint8_t data[kRejectBytes];
        write_refusal(why, data);
        event(RDMA_CM_EVENT_REJECTED, id, data, sizeof data);
    }
    // A request that is out and has had no answer.
    void ask() {
        ASSERT_EQ(request(&nic_, core_, local_, remote_, traits_, kNever, &op_), Status::ok);
        resolve(op_->id);
        ASSERT_EQ(cm_.asked.size(), 1u);
    }
    // ... nor has it after so long.
    void wait(int64_t ns) { run_timers(nic_, now_ns() + ns); }
    void probe() {
        wait(kFirstDoubtNs);
        ASSERT_NE(op_->probe, nullptr);
        resolve(op_->probe);
    }
    bool is_retired(rdma_cm_id* id) const {
        return std::find(nic_.graveyard.begin(), nic_.graveyard.end(), id) != nic_.graveyard.end();
    }
    void hear_request(HelloKind kind, uint32_t nonce) {
        Hello hello;
        hello.kind = kind;
        hello.traits = traits_;
        hello.nonce = nonce;
        hello.local = remote_;
        hello.remote = local_;
        uint8_t data[kRequestBytes];
        write_request(hello, data);
        rdma_cm_id* id = nullptr;
        cm_create_id(nullptr, &id, nullptr, RDMA_PS_TCP);
        event(RDMA_CM_EVENT_CONNECT_REQUEST, id, data, sizeof data);
    }
    void accept_it(rdma_cm_id* id) {
        Hello hello;
        hello.traits = traits_;
        uint8_t data[kAcceptBytes];
        write_accept(hello, data);
        event(RDMA_CM_EVENT_CONNECT_RESPONSE, id, data, sizeof data);
    }
    void finish() {
        ConnectResult result;
        EXPECT_EQ(connect_finish(std::exchange(op_, nullptr), &result), Status::ok);
    }
    void begin() {
        core_.state.store(VIP_STATE_CONNECTED);
        const std::scoped_lock both(core_.recv.lock, core_.send.lock);
        start(core_);
    }
    Refusal answer_to_probe(uint32_t nonce) {
        const size_t before = cm_.refused.size();
        hear_request(HelloKind::probe, nonce);
        EXPECT_EQ(cm_.refused.size(), before + 1);
        return cm_.refused.back();
    }

    FakeCm cm_;
    ViTraits traits_;
    EndAddress local_, remote_;
    ConnectOp* op_ = nullptr;
};

TEST_F(VerbsDoubt, ARequesterConfirmsWhenItTakesReceivesAsTheyArePosted) {
    ask();
    accept_it(cm_.asked[0].id);
    ASSERT_TRUE(op_->decided);
    EXPECT_TRUE(cm_.confirmed.empty());
    finish();
    core_.recv.push(descriptor(64));  // another thread's, which finds the VI not connected yet
    const size_t before = fake_.receives.size();
    begin();
    ASSERT_EQ(cm_.confirmed.size(), 1u);
    EXPECT_EQ(cm_.confirmed[0], before + 1) << "the first message may be for it";
    EXPECT_FALSE(core_.endpoint->link->lost);
}

TEST_F(VerbsDoubt, AConfirmationThatCannotBeSentLosesTheConnection) {
    ask();
    accept_it(cm_.asked[0].id);
    finish();
    cm_.refuses_confirmation = true;
    begin();
    EXPECT_TRUE(core_.endpoint->link->lost);
}

TEST_F(VerbsDoubt, BetweenPeersNobodyHasToAskForTheConfirmation) {
    ASSERT_EQ(peer_request(&nic_, core_, local_, remote_, traits_, kNever, &op_), Status::ok);
    ASSERT_NE(op_->id, nullptr);
    resolve(op_->id);
    accept_it(op_->id);
    EXPECT_EQ(cm_.confirmed.size(), 1u);
    finish();
    begin();
    EXPECT_EQ(cm_.confirmed.size(), 1u);
}

TEST_F(VerbsDoubt, AProbeAsksForTheRequestAtTheSamePort) {
    ask();
    wait(kFirstDoubtNs / 2);
    EXPECT_EQ(op_->probe, nullptr) << "too early";
    probe();
    ASSERT_EQ(cm_.asked.size(), 2u);
    EXPECT_EQ(cm_.asked[1].hello.kind, HelloKind::probe);
    EXPECT_EQ(cm_.asked[1].hello.nonce, cm_.asked[0].hello.nonce);
    EXPECT_NE(cm_.asked[1].qp, cm_.asked[0].qp) << "a host refuses a second request of one queue pair";
    EXPECT_EQ(cm_.ports[1], cm_.ports[0]);
    EXPECT_FALSE(is_retired(cm_.asked[0].id)) << "the request still counts";
}

TEST_F(VerbsDoubt, ARequestThatIsNotKnownIsMadeAnew) {
    ask();
    probe();
    refuse_with(op_->probe, Refusal::no_match);
    EXPECT_TRUE(is_retired(cm_.asked[0].id));
    EXPECT_TRUE(is_retired(cm_.asked[1].id));
    EXPECT_EQ(cm_.ports.back(), cm_.ports[0]) << "that port was not refused";
    resolve(op_->id);
    ASSERT_EQ(cm_.asked.size(), 3u);
    EXPECT_EQ(cm_.asked[2].hello.kind, HelloKind::request);
    EXPECT_NE(cm_.asked[2].hello.nonce, cm_.asked[0].hello.nonce);
    EXPECT_NE(cm_.asked[2].qp, cm_.asked[0].qp);
    EXPECT_FALSE(op_->decided);
}

TEST_F(VerbsDoubt, ARefusalOfTheKernelMeansNotKnown) {
    ask();
    probe();
    event(RDMA_CM_EVENT_REJECTED, op_->probe);
    EXPECT_TRUE(is_retired(cm_.asked[0].id));
}

TEST_F(VerbsDoubt, APeerThatKnowsNoProbesIsAskedOnce) {
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

TEST_F(VerbsDoubt, ARequestOfAKindThatThePeerDoesNotKnowIsOfAnotherVersion) {
    ask();
    refuse_with(op_->id, Refusal::unknown);
    EXPECT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::version);
}

TEST_F(VerbsDoubt, AKnownRequestGoesOnAndIsAnswered) {
    ask();
    probe();
    refuse_with(op_->probe, Refusal::known);
    EXPECT_EQ(op_->probe, nullptr);
    EXPECT_EQ(op_->id, cm_.asked[0].id);
    Hello hello;
    hello.kind = HelloKind::accept;
    hello.traits = traits_;
    uint8_t data[kAcceptBytes];
    write_accept(hello, data);
    event(RDMA_CM_EVENT_CONNECT_RESPONSE, op_->id, data, sizeof data);
    EXPECT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::ok);
}

TEST_F(VerbsDoubt, AProbeThatIsLostIsFollowedByAnother) {
    ask();
    probe();
    rdma_cm_id* const first = op_->probe;
    wait(kFirstDoubtNs + kSecond / 2);
    EXPECT_EQ(op_->probe, first) << "the pause grows";
    wait(kFirstDoubtNs + 2 * kSecond);
    EXPECT_TRUE(is_retired(first));
    ASSERT_NE(op_->probe, nullptr);
    resolve(op_->probe);
    EXPECT_EQ(cm_.asked.size(), 3u);
    event(RDMA_CM_EVENT_UNREACHABLE, op_->probe);
    EXPECT_EQ(op_->probe, nullptr);
    EXPECT_EQ(op_->id, cm_.asked[0].id) << "a probe that fails says nothing of the request";
    EXPECT_FALSE(op_->decided);
}

TEST_F(VerbsDoubt, AnAnswerEndsTheDoubt) {
    ask();
    probe();
    rdma_cm_id* const id = op_->probe;
    refuse_with(op_->id, Refusal::no_match);  // the next port
    EXPECT_TRUE(is_retired(id));
    EXPECT_EQ(op_->probe, nullptr);
    EXPECT_EQ(op_->doubt_at, 0);
    const size_t ways = cm_.ports.size();
    wait(60 * kSecond);
    EXPECT_EQ(cm_.ports.size(), ways) << "nothing is out that could be lost";
}

TEST_F(VerbsDoubt, TheDeadlineHoldsWhateverIsInDoubt) {
    ASSERT_EQ(request(&nic_, core_, local_, remote_, traits_, now_ns() + 30 * kSecond, &op_), Status::ok);
    resolve(op_->id);
    probe();
    wait(31 * kSecond);
    EXPECT_TRUE(op_->decided);
    EXPECT_EQ(op_->result.status, Status::timeout);
}

TEST_F(VerbsDoubt, BetweenPeersTheRequestIsMadeAnewAtOnce) {
    ASSERT_GT(compare_ends(local_, remote_), 0) << "the higher end asks";
    ASSERT_EQ(peer_request(&nic_, core_, local_, remote_, traits_, kNever, &op_), Status::ok);
    resolve(op_->id);
    ASSERT_EQ(cm_.asked.size(), 1u);
    wait(kFirstDoubtNs);
    EXPECT_TRUE(is_retired(cm_.asked[0].id));
    resolve(op_->id);
    ASSERT_EQ(cm_.asked.size(), 2u);
    EXPECT_EQ(cm_.asked[1].hello.kind, HelloKind::peer);
    EXPECT_EQ(cm_.asked[1].hello.nonce, cm_.asked[0].hello.nonce) << "it decides whose request counts";
    EXPECT_NE(cm_.asked[1].qp, cm_.asked[0].qp);
}

// ... and as the network may be gone for a while, no way to the other host does not end it, only its timeout.
TEST_F(VerbsDoubt, BetweenPeersTheRequestIsMadeAnewUntilTheTimeout) {
    const int64_t deadline = now_ns() + 30 * kSecond;
    ASSERT_EQ(peer_request(&nic_, core_, local_, remote_, traits_, deadline, &op_), Status::ok);
    resolve(op_->id);
    for (const auto failure : {RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ROUTE_ERROR}) {
        wait(kLongestDoubtNs);
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
TEST_F(VerbsDoubt, OnlyARequestThatIsThoughtAboutIsKnown) {
    nic_.listeners[port_of(nic_.settings, local_)] = nullptr;  // as if we listened
    EXPECT_EQ(answer_to_probe(7), Refusal::no_match);
    ASSERT_EQ(listen(&nic_, local_, &op_), Status::ok);
    EXPECT_EQ(answer_to_probe(7), Refusal::no_match) << "a probe is no request";
    EXPECT_FALSE(op_->decided);
    hear_request(HelloKind::request, 7);
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
    connect_finish(accepting, &unused);
}

TEST_F(VerbsDoubt, AKindOfRequestThatIsNotKnownIsToldSo) {
    hear_request(static_cast<HelloKind>(77), 7);
    ASSERT_EQ(cm_.refused.size(), 1u);
    EXPECT_EQ(cm_.refused[0], Refusal::unknown);
}

TEST_F(VerbsDoubt, ARequestThatIsTurnedAwayIsNotKnown) {
    nic_.listeners[port_of(nic_.settings, local_)] = nullptr;
    ASSERT_EQ(listen(&nic_, local_, &op_), Status::ok);
    hear_request(HelloKind::request, 7);
    ASSERT_TRUE(op_->decided);
    ASSERT_EQ(reject(&nic_, op_->result.incoming), Status::ok);
    EXPECT_EQ(answer_to_probe(7), Refusal::no_match);
}

}  // namespace
}  // namespace viaduct::verbs::test
