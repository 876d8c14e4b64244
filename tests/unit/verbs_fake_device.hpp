// SPDX-License-Identifier: BSD-2-Clause
// A device that is made of functions: it keeps what it is given and says what a test has put into it.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace viaduct::verbs::test {

inline constexpr uint32_t kLocalKeyBase = 1000;

struct PostedSend {
    ibv_send_wr wr;
    std::vector<ibv_sge> pieces;
};
struct PostedReceive {
    ibv_recv_wr wr;
    std::vector<ibv_sge> pieces;
    const ibv_qp* qp;
};

// What the device has been given, and what it will say.
struct FakeDevice {
    std::vector<PostedSend> sends;     // of the data queue pair
    std::vector<PostedSend> messages;  // of the control QP
    std::vector<PostedReceive> receives;
    std::deque<ibv_wc> completions;
    std::vector<int> registered;      // access flags, in order
    std::vector<ibv_qp_attr> states;  // of the data queue pair, as it was taken through them
    int live_mrs = 0;
    int armed = 0;
    int resized_to = 0;
    bool refuse_registration = false;
    bool refuse_sends = false;
};
inline FakeDevice* device = nullptr;
inline ibv_qp* control_qp = nullptr;

inline int fake_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
    if (device->refuse_sends) return ENOMEM;
    PostedSend posted{*wr, {wr->sg_list, wr->sg_list + wr->num_sge}};
    (qp == control_qp ? device->messages : device->sends).push_back(posted);
    return 0;
}
inline int fake_post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr**) {
    device->receives.push_back({*wr, {wr->sg_list, wr->sg_list + wr->num_sge}, qp});
    return 0;
}
inline int fake_poll_cq(ibv_cq*, int n, ibv_wc* out) {
    int found = 0;
    for (; found < n && !device->completions.empty(); ++found) {
        out[found] = device->completions.front();
        device->completions.pop_front();
    }
    return found;
}
inline int fake_req_notify(ibv_cq*, int) {
    ++device->armed;
    return 0;
}
inline ibv_mr* fake_reg_mr(ibv_pd*, void* address, size_t length, int access) {
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
inline int fake_dereg_mr(ibv_mr* mr) {
    delete mr;
    --device->live_mrs;
    return 0;
}
inline int fake_modify_qp(ibv_qp*, ibv_qp_attr* attr, int) {
    device->states.push_back(*attr);
    return 0;
}
inline int fake_destroy_qp(ibv_qp*) { return 0; }
inline ibv_cq* fake_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel*, int) {
    static ibv_cq more;
    more.context = context;
    more.cqe = entries;
    return &more;
}
inline int fake_resize_cq(ibv_cq* cq, int entries) {
    device->resized_to = entries;
    cq->cqe = entries;
    return 0;
}

}  // namespace viaduct::verbs::test
