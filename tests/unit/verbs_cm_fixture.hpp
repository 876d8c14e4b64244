// SPDX-License-Identifier: BSD-2-Clause
// A VI that connects by an rdma_cm made of functions: the test is the network and the peer.
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/clock/clock.hpp"
#include "providers/verbs/connect.hpp"
#include "providers/verbs/mapping.hpp"
#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs::test {

struct Asked {
    rdma_cm_id* id;
    uint32_t qp;
    PrivateData private_data;
};
// What rdma_cm has been told.
struct FakeCm {
    std::vector<std::unique_ptr<rdma_cm_id>> ids;
    std::vector<std::unique_ptr<ibv_qp>> qps;
    std::vector<uint16_t> ports;  // that a way was looked for to
    std::vector<Asked> asked;
    std::vector<Refusal> refused;
    int accepted = 0;
    int confirmed = 0;
    bool refuses_confirmation = false;
    ibv_context* context = nullptr;
};
inline FakeCm* cm = nullptr;

inline int cm_create_id(rdma_event_channel*, rdma_cm_id** out, void*, rdma_port_space) {
    cm->ids.push_back(std::make_unique<rdma_cm_id>());
    *out = cm->ids.back().get();
    return 0;
}
inline int cm_resolve_addr(rdma_cm_id*, sockaddr*, sockaddr* to, int) {
    cm->ports.push_back(ntohs(reinterpret_cast<sockaddr_in*>(to)->sin_port));
    return 0;
}
inline int cm_resolve_route(rdma_cm_id*, int) { return 0; }
inline int cm_init_qp_attr(rdma_cm_id*, ibv_qp_attr*, int*) { return 0; }
inline int cm_connect(rdma_cm_id* id, rdma_conn_param* param) {
    Asked one{id, param->qp_num, {}};
    EXPECT_EQ(read_request(param->private_data, param->private_data_len, &one.private_data), Status::ok);
    cm->asked.push_back(one);
    return 0;
}
inline int cm_establish(rdma_cm_id*) {
    ++cm->confirmed;
    return cm->refuses_confirmation ? -1 : 0;
}
inline int cm_accept(rdma_cm_id*, rdma_conn_param*) {
    ++cm->accepted;
    return 0;
}
inline int cm_reject(rdma_cm_id*, const void* data, uint8_t bytes) {
    Refusal why{};
    EXPECT_TRUE(read_refusal(data, bytes, &why));
    cm->refused.push_back(why);
    return 0;
}
inline ibv_qp* cm_create_qp(ibv_pd*, ibv_qp_init_attr*) {
    cm->qps.push_back(std::make_unique<ibv_qp>());
    cm->qps.back()->context = cm->context;
    cm->qps.back()->qp_num = static_cast<uint32_t>(cm->qps.size());
    return cm->qps.back().get();
}

class VerbsCmFixture : public VerbsFixture {
protected:
    VerbsCmFixture() {
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
    ~VerbsCmFixture() override {
        if (core_.endpoint->link != nullptr) {
            disconnect(core_);
            for (Link* link : nic_.leaving) destroy_link(link);
        }
        if (op_ != nullptr) {
            drop_link_of(*op_);
            op_->decided = true;
            op_->result.status = Status::timeout;
            ConnectResult unused;
            (void)connect_finish(op_, &unused);
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
    bool is_retired(rdma_cm_id* id) const {
        return std::find(nic_.ids_to_destroy.begin(), nic_.ids_to_destroy.end(), id) != nic_.ids_to_destroy.end();
    }
    void hear_request(PrivateDataKind kind, uint32_t nonce) {
        PrivateData private_data;
        private_data.kind = kind;
        private_data.traits = traits_;
        private_data.nonce = nonce;
        private_data.local = remote_;
        private_data.remote = local_;
        uint8_t data[kRequestBytes];
        write_request(private_data, data);
        rdma_cm_id* id = nullptr;
        cm_create_id(nullptr, &id, nullptr, RDMA_PS_TCP);
        event(RDMA_CM_EVENT_CONNECT_REQUEST, id, data, sizeof data);
    }
    void accept_it(rdma_cm_id* id) {
        PrivateData private_data;
        private_data.traits = traits_;
        uint8_t data[kAcceptBytes];
        write_accept(private_data, data);
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

    FakeCm cm_;
    ViTraits traits_;
    EndAddress local_, remote_;
    ConnectOp* op_ = nullptr;
};

}  // namespace viaduct::verbs::test
