// SPDX-License-Identifier: BSD-2-Clause
// verbs_calls MODE ROUNDS: so many rounds of the verbs provider's part of the hot calls, on a device that is
// made of functions (a few instructions each). Nothing is timed: instructions.py runs it under callgrind and
// counts. The mode says what is sent: send, write or read, 8 bytes. A message arrives for each, after one
// empty look, and its receive is posted again.
#include <cstdlib>

#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs::test {

namespace {

constexpr uint32_t kReceives = 32;

// Everything is done as soon as it has been posted, and nothing is kept that grows.
struct QuickDevice {
    uint64_t receives[kReceives] = {};
    uint32_t first = 0, behind = 0;
    ibv_wc done[2] = {};
    int completions = 0;
} quick;

int quick_send(ibv_qp*, ibv_send_wr* wr, ibv_send_wr**) {
    ibv_wc& sent = quick.done[quick.completions++];
    sent = ibv_wc{};
    sent.wr_id = wr->wr_id;
    return 0;
}
int quick_recv(ibv_qp*, ibv_recv_wr* wr, ibv_recv_wr**) {
    quick.receives[quick.behind++ % kReceives] = wr->wr_id;
    return 0;
}
int quick_poll(ibv_cq*, int, ibv_wc* out) {
    const int found = quick.completions;
    for (int i = 0; i < found; ++i) out[i] = quick.done[i];
    quick.completions = 0;
    return found;
}

class Rounds : public VerbsFixture {
public:
    explicit Rounds(const std::string& what) {
        context_.ops.post_send = quick_send;
        context_.ops.post_recv = quick_recv;
        context_.ops.poll_cq = quick_poll;
        connect(VIP_SERVICE_RELIABLE_DELIVERY);
        nic_.sends_watched.store(1);  // as while a program sends
        link_.remote_keys[7] = RemoteKey{0, 1u << 20, 77, kRegionRdmaRead | kRegionRdmaWrite};
        send_ = what == "read"    ? rdma(8, VIP_CONTROL_OP_RDMAREAD, 7, 64)
                : what == "write" ? rdma(8, VIP_CONTROL_OP_RDMAWRITE, 7, 64)
                                  : descriptor(8);
        receive_ = descriptor(64);
        for (uint32_t i = 0; i < kReceives; ++i) post_recv(receive_);
    }
    void TestBody() override {}
    void round() {
        poll_recv(core_);  // empty
        core_.send.push(send_);
        kick_send(core_);
        poll_send(core_);
        if (core_.send.completed != core_.send.posted) std::abort();
        core_.send.dequeued = core_.send.completed;
        ibv_wc& arrived = quick.done[quick.completions++];
        arrived = ibv_wc{};
        arrived.wr_id = quick.receives[quick.first++ % kReceives];
        arrived.opcode = IBV_WC_RECV;
        arrived.byte_len = 8;
        poll_recv(core_);
        if (core_.recv.completed - core_.recv.dequeued != 1) std::abort();
        core_.recv.dequeued = core_.recv.completed;
        core_.recv.push(receive_);
        kick_recv(core_);
    }

private:
    VIP_DESCRIPTOR* send_ = nullptr;
    VIP_DESCRIPTOR* receive_ = nullptr;
};

}  // namespace

}  // namespace viaduct::verbs::test

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    viaduct::asymmetric_barrier_init();
    viaduct::verbs::test::Rounds rounds(argv[1]);
    for (long left = std::atol(argv[2]); left > 0; --left) rounds.round();
    return 0;
}
