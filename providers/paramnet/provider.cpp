// SPDX-License-Identifier: BSD-2-Clause
// paramnet, the default NIC: a functional model of PARAMNet-II for processes on one host. This file is its
// table of operations.
#include "providers/paramnet/connect.hpp"
#include "providers/paramnet/control.hpp"
#include "providers/paramnet/endpoint.hpp"
#include "providers/paramnet/group.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/rdma.hpp"
#include "providers/paramnet/receive.hpp"
#include "providers/paramnet/send.hpp"

namespace viaduct::paramnet {

namespace {

constexpr Provider make_provider() {
    Provider p{};
    p.name = "paramnet";
    p.description = "PARAMNet-II model: processes of one host over shared memory";
    p.version = 1;

    p.control.discover = discover;
    p.control.join = join;

    p.data.open = open;
    p.data.close = close;
    p.data.describe = describe;
    p.data.group_create = group_create;
    p.data.group_destroy = group_destroy;
    p.data.poll_group = poll_group;
    p.data.endpoint_create = endpoint_create;
    p.data.endpoint_destroy = endpoint_destroy;
    p.data.listen = listen;
    p.data.request = request;
    p.data.peer_request = peer_request;
    p.data.accept = accept;
    p.data.reject = reject;
    p.data.connect_await = connect_await;
    p.data.connect_finish = connect_finish;
    p.data.start = start;
    p.data.finish_traffic = finish_traffic;
    p.data.disconnect = disconnect;
    p.data.kick_send = kick_send;
    p.data.kick_recv = kick_recv;
    p.data.write_now = write_now;
    p.data.mapped_at = mapped_at;
    p.data.poll_send = poll_send;
    p.data.poll_recv = poll_recv;
    p.data.sleep_begin = sleep_begin;
    p.data.sleep_wait = sleep_wait;
    p.data.sleep_end = sleep_end;
    p.data.wake = wake;
    p.data.region_removed = region_removed;
    p.data.memory_alloc = memory_alloc;
    p.data.memory_free = memory_free;
    p.data.set_fault_plan = set_fault_plan;
    p.data.resolve = resolve;
    return p;
}

}  // namespace

}  // namespace viaduct::paramnet

extern "C" __attribute__((visibility("default"))) constexpr viaduct::Provider viaduct_provider_v1 =
    viaduct::paramnet::make_provider();
