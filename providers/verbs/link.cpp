// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/link.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "core/log/log.hpp"
#include "core/shm/own_mapping.hpp"
#include "providers/verbs/atomic.hpp"
#include "providers/verbs/control_qp.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/nic.hpp"
#include "providers/verbs/progress.hpp"
#include "providers/verbs/verbs_ops.hpp"
#include "vipl.h"

namespace viaduct::verbs {

namespace {

constexpr size_t kBufferBytes = 2 * kControlDepth * kMessageBytes;
constexpr uint8_t kForever = 7;  // rnr_retry: until it works
constexpr uint8_t kShortRnrTimer =
    12;  // 0.64 ms; what rdma_cm would set is 655 ms (spec/verbs e.2 row 9)

// Devices that cannot send so much inline say so by failing.
ibv_qp* create_data(NicContext& nic, const Link& link, uint32_t* inline_bytes) {
    ibv_qp_init_attr init{};
    init.send_cq = link.send_queue->cq;
    init.recv_cq = link.recv_queue->cq;
    init.qp_type = IBV_QPT_RC;  // at all levels: see recover.cpp
    init.sq_sig_all = 0;
    const auto segments = static_cast<uint32_t>(nic.info.max_segments);
    for (uint32_t bytes = nic.settings.inline_bytes;; bytes /= 2) {
        init.cap = ibv_qp_cap{link.send_room, link.recv_room, segments, segments, bytes};
        if (ibv_qp* qp = ops->create_qp(nic.pd, &init)) {
            *inline_bytes = std::min(init.cap.max_inline_data, nic.settings.inline_bytes);
            return qp;
        }
        if (bytes == 0) return nullptr;
    }
}

ibv_qp* create_control_qp(NicContext& nic) {
    ibv_qp_init_attr init{};
    init.send_cq = nic.control_cq;
    init.recv_cq = nic.control_cq;
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = ibv_qp_cap{kControlDepth, kControlDepth, 1, 1, 0};
    return ops->create_qp(nic.pd, &init);
}

bool register_buffers(Link& link) {
    void* memory = map_own(kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (memory == nullptr) return false;
    link.buffers = static_cast<std::byte*>(memory);
    link.buffers_mr = ops->reg_mr(link.nic->pd, memory, kBufferBytes, IBV_ACCESS_LOCAL_WRITE);
    return link.buffers_mr != nullptr;
}

void take_number(Link& link) {
    NicContext& nic = *link.nic;
    const std::lock_guard lock(nic.links_mutex);
    nic.leaving.reserve(nic.links.size() + 1);  // the end of a connection allocates nothing
    nic.dropped.reserve(nic.links.size() + 1);
    const auto free = std::find(nic.links.begin(), nic.links.end(), nullptr);
    link.number = static_cast<uint32_t>(free - nic.links.begin());
    if (free == nic.links.end()) {
        nic.links.push_back(&link);
    } else {
        *free = &link;
    }
    link.generation = nic.next_generation++ & kGenerationMask;
}

bool reserve_room(Link& link, Endpoint& ep) {
    link.send_room = ep.send_window;
    link.recv_room = ep.vi->recv.depth();
    link.send_queue = reserve(*ep.send_group, link.send_room);
    link.recv_queue = reserve(*ep.recv_group, link.recv_room);
    return link.send_queue != nullptr && link.recv_queue != nullptr && reserve_control(*link.nic);
}

// Attributes for one transition, for the path that rdma_cm has found.
bool path_attributes(rdma_cm_id* id, ibv_qp_state state, Transition* step) {
    step->attr = ibv_qp_attr{};
    step->attr.qp_state = state;
    return ops->init_qp_attr(id, &step->attr, &step->mask) == 0;
}

uint32_t access_of(const ViTraits& traits, bool device_has_atomics) {
    uint32_t access = IBV_ACCESS_LOCAL_WRITE;
    if (traits.rdma_write != 0) access |= IBV_ACCESS_REMOTE_WRITE;
    // Reads belong to the reliable levels (spec/reliability 6.1).
    if (traits.rdma_read != 0 && traits.reliability != VIP_SERVICE_UNRELIABLE)
        access |= IBV_ACCESS_REMOTE_READ;
    return access | atomic_access(device_has_atomics, access);
}

bool modify(ibv_qp* qp, Transition step, const char* what) {
    if (ops->modify_qp(qp, &step.attr, step.mask) == 0) return true;
    VIADUCT_LOG(error, "verbs", "queue pair cannot be made %s: errno %d", what, errno);
    return false;
}

}  // namespace

Link* create_link(Endpoint& ep, const ViTraits& traits) {
    NicContext& nic = *ep.nic;
    std::unique_ptr<Link> made(new (std::nothrow) Link);
    if (!made) return nullptr;
    made->nic = &nic;
    made->endpoint = &ep;
    made->traits = traits;
    take_number(*made);
    std::unique_ptr<Link, void (*)(Link*)> link(made.release(), drop_link);
    if (!reserve_room(*link, ep)) return nullptr;
    link->data = create_data(nic, *link, &link->inline_bytes);
    link->control_qp = link->data != nullptr ? create_control_qp(nic) : nullptr;
    if (link->control_qp == nullptr || !register_buffers(*link)) {
        VIADUCT_LOG(error, "verbs", "no queue pair: errno %d", errno);
        return nullptr;
    }
    return link.release();
}

bool make_initial(Link& link, rdma_cm_id* id) {
    Transition& step = link.initial;
    if (!path_attributes(id, IBV_QPS_INIT, &step)) return false;
    step.attr.qp_access_flags = access_of(link.traits, (link.nic->info.capabilities & kCapAtomics) != 0);
    if (!modify(link.data, step, "initial")) return false;
    Transition control = step;
    control.attr.qp_access_flags = 0;
    return modify(link.control_qp, control, "initial") && post_control_receives(link);
}

bool make_ready(Link& link, rdma_cm_id* id) {
    Transition& receive = link.to_receive;
    if (!path_attributes(id, IBV_QPS_RTR, &receive)) return false;
    receive.attr.max_dest_rd_atomic = std::max<uint8_t>(link.nic->reads, 1);
    receive.attr.min_rnr_timer = kShortRnrTimer;
    receive.mask &= ~(IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
    if (!modify(link.data, receive, "ready to receive")) return false;
    Transition control = receive;
    control.attr.dest_qp_num = link.peer.control_qp;
    control.attr.max_dest_rd_atomic = 1;
    if (!modify(link.control_qp, control, "ready to receive")) return false;

    Transition& send = link.to_send;
    if (!path_attributes(id, IBV_QPS_RTS, &send)) return false;
    send.attr.timeout = link.nic->settings.ack_timeout;
    send.attr.retry_cnt = link.nic->settings.retries;
    send.attr.rnr_retry = 0;  // a message without a posted receive fails (spec/reliability 6.2)
    send.attr.max_rd_atomic = std::max<uint8_t>(std::min(link.nic->reads, link.peer_reads), 1);
    send.mask &= ~(IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
    if (!modify(link.data, send, "ready to send")) return false;
    control = send;
    control.attr.rnr_retry = kForever;
    control.attr.max_rd_atomic = 1;
    return modify(link.control_qp, control, "ready to send");
}

bool renew_data(Link& link, uint32_t own_psn, uint32_t peer_psn) {
    Transition reset;
    reset.attr.qp_state = IBV_QPS_RESET;
    reset.mask = IBV_QP_STATE;
    link.to_receive.attr.rq_psn = peer_psn;
    link.to_send.attr.sq_psn = own_psn;
    return modify(link.data, reset, "new") && modify(link.data, link.initial, "initial") &&
           modify(link.data, link.to_receive, "ready to receive") &&
           modify(link.data, link.to_send, "ready to send");
}

void drop_link(Link* link) {
    NicContext& nic = *link->nic;
    destroy_data(*link);
    {
        const std::lock_guard lock(nic.links_mutex);
        link->endpoint = nullptr;
        nic.dropped.push_back(link);
    }
    wake_progress(nic);
}

void stop_data(Link& link) {
    ibv_qp_attr error{};
    error.qp_state = IBV_QPS_ERR;
    ops->modify_qp(link.data, &error, IBV_QP_STATE);
}

void destroy_data(Link& link) {
    ibv_qp* qp = nullptr;
    {
        const std::lock_guard lock(link.nic->links_mutex);
        qp = std::exchange(link.data, nullptr);
    }
    if (qp != nullptr) ops->destroy_qp(qp);
    if (DeviceQueue* q = std::exchange(link.send_queue, nullptr)) give_back(*q, link.send_room);
    if (DeviceQueue* q = std::exchange(link.recv_queue, nullptr)) give_back(*q, link.recv_room);
}

void destroy_link(Link* link) {
    destroy_data(*link);
    if (link->control_qp != nullptr) ops->destroy_qp(link->control_qp);
    {
        const std::lock_guard lock(link->nic->links_mutex);
        link->nic->links[link->number] = nullptr;
    }
    if (link->buffers_mr != nullptr) ops->dereg_mr(link->buffers_mr);
    if (link->buffers != nullptr) ::munmap(link->buffers, kBufferBytes);
    delete link;
}

}  // namespace viaduct::verbs
