// SPDX-License-Identifier: BSD-2-Clause
// Every call of libibverbs and librdmacm that sets something up or takes it down, as one table: unit tests
// put functions of their own behind it. Posting and polling are not here: they go through the device
// context's own table (ibv_context::ops), as the inline functions of <infiniband/verbs.h> do.
#pragma once

#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

namespace viaduct::verbs {

struct VerbsOps {
    // Devices
    ibv_device** (*get_device_list)(int* count);
    void (*free_device_list)(ibv_device** list);
    const char* (*get_device_name)(ibv_device*);
    ibv_context* (*open_device)(ibv_device*);
    int (*close_device)(ibv_context*);
    int (*query_device)(ibv_context*, ibv_device_attr*);
    int (*query_port)(ibv_context*, uint8_t port, ibv_port_attr*);
    int (*query_gid)(ibv_context*, uint8_t port, int index, ibv_gid*);
    int (*get_addresses)(ifaddrs**);
    void (*free_addresses)(ifaddrs*);

    // Objects
    ibv_pd* (*alloc_pd)(ibv_context*);
    int (*dealloc_pd)(ibv_pd*);
    ibv_mr* (*reg_mr)(ibv_pd*, void*, size_t, int access);
    int (*dereg_mr)(ibv_mr*);
    ibv_comp_channel* (*create_comp_channel)(ibv_context*);
    int (*destroy_comp_channel)(ibv_comp_channel*);
    ibv_cq* (*create_cq)(ibv_context*, int entries, void* user, ibv_comp_channel*, int vector);
    int (*resize_cq)(ibv_cq*, int entries);
    int (*destroy_cq)(ibv_cq*);
    int (*get_cq_event)(ibv_comp_channel*, ibv_cq**, void** user);
    void (*ack_cq_events)(ibv_cq*, unsigned count);
    ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
    int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask);
    int (*destroy_qp)(ibv_qp*);
    int (*get_async_event)(ibv_context*, ibv_async_event*);
    void (*ack_async_event)(ibv_async_event*);

    // Connections
    rdma_event_channel* (*create_event_channel)();
    void (*destroy_event_channel)(rdma_event_channel*);
    int (*create_id)(rdma_event_channel*, rdma_cm_id**, void* context, rdma_port_space);
    int (*destroy_id)(rdma_cm_id*);
    int (*bind_addr)(rdma_cm_id*, sockaddr*);
    int (*listen)(rdma_cm_id*, int backlog);
    int (*resolve_addr)(rdma_cm_id*, sockaddr* from, sockaddr* to, int timeout_ms);
    int (*resolve_route)(rdma_cm_id*, int timeout_ms);
    int (*init_qp_attr)(rdma_cm_id*, ibv_qp_attr*, int* mask);
    int (*connect)(rdma_cm_id*, rdma_conn_param*);
    int (*establish)(rdma_cm_id*);
    int (*accept)(rdma_cm_id*, rdma_conn_param*);
    int (*reject)(rdma_cm_id*, const void* data, uint8_t bytes);
    int (*disconnect)(rdma_cm_id*);
    int (*get_cm_event)(rdma_event_channel*, rdma_cm_event**);
    int (*ack_cm_event)(rdma_cm_event*);
};

// The libraries' own functions, unless a test has put others there (before it opens anything).
extern const VerbsOps* ops;
extern const VerbsOps library_ops;

}  // namespace viaduct::verbs
