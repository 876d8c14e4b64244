// SPDX-License-Identifier: BSD-2-Clause
// The data path of the verbs provider on a device that is made of functions in this file: what descriptors
// become as work requests, and what completions become as descriptors.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "providers/verbs/calls.hpp"
#include "providers/verbs/companion.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/recover.hpp"

namespace viaduct::verbs {
namespace {

constexpr uint32_t kDepth = 64;
constexpr uint32_t kLocalKeyBase = 1000;

struct PostedSend {
    ibv_send_wr wr;
    std::vector<ibv_sge> pieces;
};
struct PostedReceive {
    ibv_recv_wr wr;
    std::vector<ibv_sge> pieces;
};

// What the device has been given, and what it will say.
struct FakeDevice {
    std::vector<PostedSend> sends;     // of the data queue pair
    std::vector<PostedSend> messages;  // of the companion
    std::vector<PostedReceive> receives;
    std::deque<ibv_wc> completions;
    std::vector<int> registered;      // access flags, in order
    std::vector<ibv_qp_attr> states;  // of the data queue pair, as it was taken through them
    int live_mrs = 0;
    int armed = 0;
    int resized_to = 0;
    bool refuse_registration = false;
};
FakeDevice* device = nullptr;
ibv_qp* companion_qp = nullptr;

int fake_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
    PostedSend posted{*wr, {wr->sg_list, wr->sg_list + wr->num_sge}};
    (qp == companion_qp ? device->messages : device->sends).push_back(posted);
    return 0;
}
int fake_post_recv(ibv_qp*, ibv_recv_wr* wr, ibv_recv_wr**) {
    device->receives.push_back({*wr, {wr->sg_list, wr->sg_list + wr->num_sge}});
    return 0;
}
int fake_poll_cq(ibv_cq*, int n, ibv_wc* out) {
    int found = 0;
    for (; found < n && !device->completions.empty(); ++found) {
        out[found] = device->completions.front();
        device->completions.pop_front();
    }
    return found;
}
int fake_req_notify(ibv_cq*, int) {
    ++device->armed;
    return 0;
}
ibv_mr* fake_reg_mr(ibv_pd*, void* address, size_t length, int access) {
    if (device->refuse_registration) {
        errno = ENOMEM;
        return nullptr;
    }
    auto* mr = new ibv_mr{};
    mr->addr = address;
    mr->length = length;
    mr->lkey = kLocalKeyBase + static_cast<uint32_t>(device->registered.size());
    mr->rkey = mr->lkey + 5000;
    device->registered.push_back(access);
    ++device->live_mrs;
    return mr;
}
int fake_dereg_mr(ibv_mr* mr) {
    delete mr;
    --device->live_mrs;
    return 0;
}
int fake_modify_qp(ibv_qp*, ibv_qp_attr* attr, int) {
    device->states.push_back(*attr);
    return 0;
}
int fake_destroy_qp(ibv_qp*) { return 0; }
ibv_cq* fake_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel*, int) {
    static ibv_cq more;
    more.context = context;
    more.cqe = entries;
    return &more;
}
int fake_resize_cq(ibv_cq* cq, int entries) {
    device->resized_to = entries;
    cq->cqe = entries;
    return 0;
}

// What the user agent would have been told.
struct Told {
    std::vector<VIP_ERROR_CODE> errors;
    int settled = 0;
};
Told* told = nullptr;
const ViEvents kEvents = {[](ViCore&, VIP_ERROR_CODE code, VIP_RESOURCE_CODE, VIP_ULONG, VIP_DESCRIPTOR*) {
                              told->errors.push_back(code);
                          },
                          [](ViCore&) { ++told->settled; }, [](WorkQueue&) {}, [](WorkQueue&) {}};

class VerbsData : public testing::Test {
protected:
    VerbsData() {
        device = &fake_;
        told = &told_;
        table_.reg_mr = fake_reg_mr;
        table_.dereg_mr = fake_dereg_mr;
        table_.modify_qp = fake_modify_qp;
        table_.destroy_qp = fake_destroy_qp;
        table_.resize_cq = fake_resize_cq;
        table_.create_cq = fake_create_cq;
        calls = &table_;
        context_.ops.post_send = fake_post_send;
        context_.ops.post_recv = fake_post_recv;
        context_.ops.poll_cq = fake_poll_cq;
        context_.ops.req_notify_cq = fake_req_notify;
        qp_.context = companion_.context = &context_;
        companion_qp = &companion_;
        cq_.context = &context_;
        cq_.cqe = 64;
        nic_.info.max_segments = 16;
        nic_.device = &context_;
        nic_.regions = &regions_;
        nic_.most_entries = 4096;
        nic_.keys.allocate(nullptr);
        group_.nic = &nic_;
        group_.queues[0] = std::make_unique<DeviceQueue>();
        *group_.queues[0] = DeviceQueue{&group_, &cq_, 64, 0, 0};
        group_.count = 1;
        core_.recv.allocate(kDepth);
        core_.send.allocate(kDepth);
        core_.recv.vi = core_.send.vi = &core_;
        core_.recv.is_receive = true;
        core_.max_segments = 16;
        core_.max_transfer = 1 << 20;
        core_.rdma_read_allowed = 1;
        core_.regions = &regions_;
        core_.events = &kEvents;
        core_.slot = 3;
        EXPECT_EQ(endpoint_create(&nic_, EndpointArgs{&core_, &group_, &group_}, &core_.endpoint),
                  Status::ok);
        handle_ = add_region(memory_, sizeof memory_, 0);
    }
    ~VerbsData() override {
        if (core_.endpoint->link != nullptr) {
            link_.data = nullptr;
            core_.endpoint->link = nullptr;
        }
        endpoint_destroy(core_.endpoint);
        if (link_.buffers_mr != nullptr) fake_dereg_mr(link_.buffers_mr);
        nic_.keys.clear();
        EXPECT_EQ(fake_.live_mrs, 0) << "a registration has leaked";
        calls = &library_calls;
    }

    uint32_t add_region(void* base, uint64_t length, uint32_t flags) {
        Region region;
        region.base = reinterpret_cast<uint64_t>(base);
        region.length = length;
        region.flags = flags;
        const uint32_t handle = regions_.add(region);
        EXPECT_EQ(nic_.keys.add(handle, region), Status::ok);
        return handle;
    }

    void connect(uint16_t level) {
        core_.traits.reliability = level;
        link_.nic = &nic_;
        link_.endpoint = core_.endpoint;
        link_.generation = 9;
        link_.data = &qp_;
        link_.companion = &companion_;
        link_.traits = core_.traits;
        link_.inline_bytes = 64;
        nic_.links = {&link_};
        link_.initial.attr.qp_state = IBV_QPS_INIT;
        link_.to_receive.attr.qp_state = IBV_QPS_RTR;
        link_.to_send.attr.qp_state = IBV_QPS_RTS;
        link_.buffers = buffers_;
        link_.buffers_mr = fake_reg_mr(nullptr, buffers_, sizeof buffers_, IBV_ACCESS_LOCAL_WRITE);
        core_.endpoint->link = &link_;
        core_.state.store(VIP_STATE_CONNECTED);
        start(core_);
    }

    VIP_DESCRIPTOR* descriptor(uint32_t length, uint16_t control = VIP_CONTROL_OP_SENDRECV) {
        auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(descriptors_ + 128 * used_++);
        std::memset(static_cast<void*>(d), 0, 128);
        const bool rdma = (control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_SENDRECV;
        d->CS.Control = control;
        d->CS.Length = length;
        d->CS.SegCount = rdma ? 2 : 1;
        VIP_DATA_SEGMENT& s = d->DS[rdma ? 1 : 0].Local;
        s.Data.Address = memory_;
        s.Handle = handle_;
        s.Length = length;
        return d;
    }
    VIP_DESCRIPTOR* rdma(uint32_t length, uint16_t control, uint32_t remote_handle, uint64_t address) {
        VIP_DESCRIPTOR* d = descriptor(length, control);
        d->DS[0].Remote.Handle = remote_handle;
        d->DS[0].Remote.Data.AddressBits = address;
        return d;
    }
    void post_send(VIP_DESCRIPTOR* d) {
        core_.send.push(d);
        kick_send(core_);
    }
    void post_recv(VIP_DESCRIPTOR* d) {
        core_.recv.push(d);
        if (core_.endpoint->connected) kick_recv(core_);
    }
    void complete(uint64_t wr_id, ibv_wc_status status, uint32_t length = 0,
                  ibv_wc_opcode opcode = IBV_WC_SEND) {
        ibv_wc wc{};
        wc.wr_id = wr_id;
        wc.status = status;
        wc.byte_len = length;
        wc.opcode = opcode;
        fake_.completions.push_back(wc);
    }
    void answer(uint32_t handle, const RemoteKey& key) {
        ASSERT_TRUE(link_.question.asked);
        ASSERT_EQ(link_.question.handle, handle);
        link_.question.answered = true;
        link_.question.answer = key;
        push_sends(*core_.endpoint);
    }
    // The peer's word about a round of recovery, and what the progress thread does then.
    void peer_says(MessageKind kind, uint32_t received = 0) {
        Message m;
        m.kind = kind;
        m.handle = link_.recovery.epoch + 1;
        m.length = received;
        m.key = 0xABCDEF;
        hear_of_recovery(link_, *core_.endpoint, m);
        recover_links(nic_, now_ += 1'000'000);
    }
    Message message(size_t i) {
        Message m;
        EXPECT_TRUE(read_message(reinterpret_cast<const std::byte*>(fake_.messages.at(i).pieces.at(0).addr),
                                 kMessageBytes, &m));
        return m;
    }

    FakeDevice fake_;
    Told told_;
    Calls table_ = library_calls;
    ibv_context context_{};
    ibv_qp qp_{}, companion_{};
    ibv_cq cq_{};
    RegionTable regions_;
    NicContext nic_;
    Group group_;
    ViCore core_;
    Link link_;
    uint32_t handle_ = 0;
    uint32_t used_ = 0;
    int64_t now_ = 1'000'000'000;
    char memory_[4096] = {};
    std::byte buffers_[2 * kCompanionDepth * kMessageBytes] = {};
    alignas(64) char descriptors_[128 * 64] = {};
};

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
    EXPECT_EQ(posted.pieces[0].addr, reinterpret_cast<uint64_t>(memory_));
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
        << "or nobody would learn of the last";
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

TEST_F(VerbsData, ANetworkThatGivesUpIsATransportErrorAndTheRestIsLeftToTheFlush) {
    connect(VIP_SERVICE_RELIABLE_RECEPTION);
    VIP_DESCRIPTOR* first = descriptor(8);
    VIP_DESCRIPTOR* second = descriptor(8);
    post_send(first);
    post_send(second);
    complete(fake_.sends[0].wr.wr_id, IBV_WC_RETRY_EXC_ERR);
    complete(fake_.sends[1].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    poll_send(core_);
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
    post_send(rdma(100, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, 5, 0x10000));
    EXPECT_TRUE(fake_.messages.empty()) << "the send may still be under way";
    complete(fake_.sends[0].wr.wr_id, IBV_WC_SUCCESS);
    poll_send(core_);
    ASSERT_EQ(fake_.messages.size(), 1u);
    answer(5, RemoteKey());
    ASSERT_EQ(fake_.messages.size(), 2u);
    EXPECT_EQ(message(1).kind, MessageKind::write_refused);
    EXPECT_EQ(message(1).flags, kWithImmediate) << "a receive has to say it";
}

TEST_F(VerbsData, AtUnreliableTheQueuePairIsMadeAnewAndTheRestSentAgain) {
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

TEST_F(VerbsData, AtUnreliableNothingIsSentTwice) {
    connect(VIP_SERVICE_UNRELIABLE);
    VIP_DESCRIPTOR* first = descriptor(8);
    VIP_DESCRIPTOR* second = descriptor(8);
    post_send(first);
    post_send(second);
    // The peer's queue pair failed after the first had arrived, but its word of that did not come through.
    complete(fake_.sends[0].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    complete(fake_.sends[1].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
    poll_send(core_);
    recover_links(nic_, now_);
    peer_says(MessageKind::reset, 1);
    EXPECT_EQ(first->CS.Status, static_cast<uint32_t>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
    peer_says(MessageKind::ready);
    ASSERT_EQ(fake_.sends.size(), 3u);
    EXPECT_EQ(position_of(fake_.sends[2].wr.wr_id), 1u);
}

TEST_F(VerbsData, AtUnreliableReceivesAreKeptOverARecovery) {
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

TEST_F(VerbsData, AtUnreliableAPeerThatDoesNotAnswerIsLost) {
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

TEST_F(VerbsData, WordsOfRecoveryMeanNothingAtReliableLevels) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    peer_says(MessageKind::reset, 7);
    peer_says(MessageKind::ready);
    EXPECT_TRUE(fake_.states.empty());
    EXPECT_TRUE(fake_.messages.empty());
}

TEST_F(VerbsData, RegistrationAsksForWhatTheRegionAllows) {
    fake_.registered.clear();
    Region region;
    region.base = reinterpret_cast<uint64_t>(memory_);
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
    EXPECT_EQ(fake_.live_mrs, 2) << "what was taken back is gone";
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
    EXPECT_EQ(fake_.armed, 1) << "somebody sleeps on the group";
    give_back(*first, 120);
    EXPECT_EQ(reserve(group_, 120), first);
}

}  // namespace
}  // namespace viaduct::verbs
