// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

// These two are macros in <infiniband/verbs.h>.
int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attributes) {
    return ::ibv_query_port(context, port, attributes);
}
ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
    return ::ibv_reg_mr(pd, address, length, access);
}

}  // namespace

const VerbsOps library_ops = {
    .get_device_list = ::ibv_get_device_list,
    .free_device_list = ::ibv_free_device_list,
    .get_device_name = ::ibv_get_device_name,
    .open_device = ::ibv_open_device,
    .close_device = ::ibv_close_device,
    .query_device = ::ibv_query_device,
    .query_port = query_port,
    .query_gid = ::ibv_query_gid,
    .get_addresses = ::getifaddrs,
    .free_addresses = ::freeifaddrs,
    .alloc_pd = ::ibv_alloc_pd,
    .dealloc_pd = ::ibv_dealloc_pd,
    .reg_mr = reg_mr,
    .dereg_mr = ::ibv_dereg_mr,
    .create_comp_channel = ::ibv_create_comp_channel,
    .destroy_comp_channel = ::ibv_destroy_comp_channel,
    .create_cq = ::ibv_create_cq,
    .resize_cq = ::ibv_resize_cq,
    .destroy_cq = ::ibv_destroy_cq,
    .get_cq_event = ::ibv_get_cq_event,
    .ack_cq_events = ::ibv_ack_cq_events,
    .create_qp = ::ibv_create_qp,
    .modify_qp = ::ibv_modify_qp,
    .destroy_qp = ::ibv_destroy_qp,
    .get_async_event = ::ibv_get_async_event,
    .ack_async_event = ::ibv_ack_async_event,
    .create_event_channel = ::rdma_create_event_channel,
    .destroy_event_channel = ::rdma_destroy_event_channel,
    .create_id = ::rdma_create_id,
    .destroy_id = ::rdma_destroy_id,
    .bind_addr = ::rdma_bind_addr,
    .listen = ::rdma_listen,
    .resolve_addr = ::rdma_resolve_addr,
    .resolve_route = ::rdma_resolve_route,
    .init_qp_attr = ::rdma_init_qp_attr,
    .connect = ::rdma_connect,
    .establish = ::rdma_establish,
    .accept = ::rdma_accept,
    .reject = ::rdma_reject,
    .disconnect = ::rdma_disconnect,
    .get_cm_event = ::rdma_get_cm_event,
    .ack_cm_event = ::rdma_ack_cm_event,
};

const VerbsOps* ops = &library_ops;

}  // namespace viaduct::verbs
