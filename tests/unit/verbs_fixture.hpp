// SPDX-License-Identifier: BSD-2-Clause
// A VI of the verbs provider on a device that is made of functions, with a connection when a test needs one:
// no library, no agent, no device.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "providers/verbs/control_qp.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/recover.hpp"
#include "providers/verbs/verbs_ops.hpp"
#include "tests/unit/verbs_fake_device.hpp"

namespace viaduct::verbs::test {

inline constexpr uint32_t kDepth = 64;

// What the user agent would have been told.
struct Told {
    std::vector<VIP_ERROR_CODE> errors;
    int settled = 0;
};
inline Told* told = nullptr;
inline const ViEvents kEvents = {
    [](ViCore&, VIP_ERROR_CODE code, VIP_RESOURCE_CODE, VIP_ULONG, VIP_DESCRIPTOR*) { told->errors.push_back(code); },
    [](ViCore&) { ++told->settled; }, [](WorkQueue&) {}, [](WorkQueue&) {}, nullptr};

// How often a thread of ours has slept; -1: it has ended.
inline int sleeps_of(pid_t thread) {
    std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
    const std::string wanted = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(status, line);)
        if (line.rfind(wanted, 0) == 0) return std::stoi(line.substr(wanted.size()));
    return -1;
}

class VerbsFixture : public testing::Test {
protected:
    VerbsFixture() {
        device = &fake_;
        told = &told_;
        table_.reg_mr = fake_reg_mr;
        table_.dereg_mr = fake_dereg_mr;
        table_.modify_qp = fake_modify_qp;
        table_.destroy_qp = fake_destroy_qp;
        table_.resize_cq = fake_resize_cq;
        table_.create_cq = fake_create_cq;
        ops = &table_;
        context_.ops.post_send = fake_post_send;
        context_.ops.post_recv = fake_post_recv;
        context_.ops.poll_cq = fake_poll_cq;
        context_.ops.req_notify_cq = fake_req_notify;
        qp_.context = control_qp_.context = &context_;
        control_qp = &control_qp_;
        cq_.context = &context_;
        cq_.cqe = 64;
        nic_.info.max_segments = 16;
        nic_.device = &context_;
        nic_.regions = &regions_;
        nic_.most_entries = 4096;
        nic_.keys.allocate(nullptr, true);
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
        core_.atomic_widths = 8;
        core_.regions = &regions_;
        core_.events = &kEvents;
        core_.slot = 3;
        EXPECT_EQ(endpoint_create(&nic_, EndpointArgs{&core_, &group_, &group_}, &core_.endpoint),
                  Status::ok);
        handle_ = add_region(memory_, sizeof memory_, 0);
    }
    ~VerbsFixture() override {
        if (core_.endpoint->link != nullptr) {
            link_.data = nullptr;
            core_.endpoint->link = nullptr;
        }
        endpoint_destroy(core_.endpoint);
        if (link_.buffers_mr != nullptr) fake_dereg_mr(link_.buffers_mr);
        nic_.keys.clear();
        EXPECT_EQ(fake_.live_mrs, 0) << "a registration has leaked";
        ops = &library_ops;
    }

    uint32_t add_region(void* base, uint64_t length, uint32_t flags) {
        Region region;
        region.base = reinterpret_cast<uintptr_t>(base);
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
        link_.control_qp = &control_qp_;
        link_.traits = core_.traits;
        link_.inline_bytes = 64;
        nic_.links = {&link_};
        link_.initial.attr.qp_state = IBV_QPS_INIT;
        link_.to_receive.attr.qp_state = IBV_QPS_RTR;
        link_.to_send.attr.qp_state = IBV_QPS_RTS;
        link_.buffers = buffers_;
        link_.buffers_mr = fake_reg_mr(nullptr, buffers_, sizeof buffers_, IBV_ACCESS_LOCAL_WRITE);
        core_.endpoint->link = core_.endpoint->takes_receives = &link_;
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
    // Two sends, which end like this.
    std::pair<VIP_DESCRIPTOR*, VIP_DESCRIPTOR*> two_sends(ibv_wc_status first, ibv_wc_status second) {
        VIP_DESCRIPTOR* const both[] = {descriptor(8), descriptor(8)};
        for (VIP_DESCRIPTOR* d : both) post_send(d);
        complete(fake_.sends[0].wr.wr_id, first);
        complete(fake_.sends[1].wr.wr_id, second);
        poll_send(core_);
        return {both[0], both[1]};
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
        handle_recovery(link_, *core_.endpoint, m);
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
    VerbsOps table_ = library_ops;
    ibv_context context_{};
    ibv_qp qp_{}, control_qp_{};
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
    std::byte buffers_[2 * kControlDepth * kMessageBytes] = {};
    alignas(64) char descriptors_[128 * 64] = {};
};

}  // namespace viaduct::verbs::test
