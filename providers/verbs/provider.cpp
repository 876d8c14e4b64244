// SPDX-License-Identifier: BSD-2-Clause
// verbs: VI on rdma-core, for InfiniBand, RoCE and iWARP devices. This file is its table of operations.
#include "providers/verbs/connect.hpp"
#include "providers/verbs/control.hpp"
#include "providers/verbs/endpoint.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/nic.hpp"

namespace viaduct::verbs {

namespace {

constexpr Provider make_provider() {
    Provider p{};
    p.name = "verbs";
    p.description = "RDMA devices through rdma-core: InfiniBand, RoCE, iWARP";
    p.version = 1;

    p.control.discover = discover;

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
    p.data.poll_send = poll_send;
    p.data.poll_recv = poll_recv;
    p.data.sleep_begin = sleep_begin;
    p.data.sleep_wait = sleep_wait;
    p.data.sleep_end = sleep_end;
    p.data.wake = wake;
    p.data.region_added = region_added;
    p.data.region_changed = region_changed;
    p.data.region_removed = region_removed;
    p.data.resolve = resolve;
    return p;
}

}  // namespace

}  // namespace viaduct::verbs

extern "C" __attribute__((visibility("default"))) constexpr viaduct::Provider viaduct_provider_v1 =
    viaduct::verbs::make_provider();
