// SPDX-License-Identifier: BSD-2-Clause
#include "core/provider/defaults.hpp"

namespace viaduct {

namespace {

// One default for each signature: results say so, everything else is left alone.
template <class Operation>
struct Missing;

template <class... Arguments>
struct Missing<Status (*)(Arguments...)> {
    static Status operation(Arguments...) { return Status::not_supported; }
};

template <class... Arguments>
struct Missing<void (*)(Arguments...)> {
    static void operation(Arguments...) {}
};

template <class... Arguments>
struct Missing<uint32_t (*)(Arguments...)> {
    static uint32_t operation(Arguments...) { return 0; }
};

template <class... Operations>
void fill(Operations*... operations) {
    ((*operations = *operations != nullptr ? *operations : &Missing<Operations>::operation), ...);
}

}  // namespace

void fill_missing_operations(Provider* provider) {
    ControlOps& c = provider->control;
    fill(&c.discover, &c.join);
    DataOps& d = provider->data;
    fill(&d.open, &d.close, &d.describe, &d.group_create, &d.group_destroy, &d.poll_group, &d.endpoint_create,
         &d.endpoint_destroy, &d.listen, &d.request, &d.peer_request, &d.accept, &d.reject, &d.connect_await,
         &d.connect_finish, &d.start, &d.finish_traffic, &d.disconnect, &d.kick_send, &d.kick_recv, &d.write_now,
         &d.mapped_at, &d.poll_send, &d.poll_recv, &d.sleep_begin, &d.sleep_wait, &d.sleep_end, &d.wake,
         &d.region_added, &d.region_changed, &d.region_removed, &d.memory_alloc, &d.memory_free, &d.set_fault_plan,
         &d.resolve);
    // Every operation is a pointer: a new one that is missing above does not compile unnoticed.
    static_assert(sizeof(ControlOps) == 2 * sizeof(void (*)()));
    static_assert(sizeof(DataOps) == 35 * sizeof(void (*)()));
}

}  // namespace viaduct
