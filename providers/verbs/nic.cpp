// SPDX-License-Identifier: BSD-2-Clause
// Opening and closing a NIC context, its memory, its addresses.
#include "providers/verbs/nic.hpp"

#include <arpa/inet.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "core/provider/explain.hpp"
#include "providers/verbs/atomic.hpp"
#include "providers/verbs/connect.hpp"
#include "providers/verbs/control.hpp"
#include "providers/verbs/group.hpp"
#include "providers/verbs/progress.hpp"
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

constexpr int kControlEntries = 512;
constexpr uint8_t kMostReads = 16;

bool never_block(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

ibv_context* open_named(const char* name) {
    int count = 0;
    ibv_device** list = ops->get_device_list(&count);
    ibv_context* context = nullptr;
    if (list != nullptr) errno = ENODEV;
    for (int i = 0; list != nullptr && i < count && context == nullptr; ++i)
        if (std::strcmp(ops->get_device_name(list[i]), name) == 0) context = ops->open_device(list[i]);
    const int error = errno;
    if (list != nullptr) ops->free_device_list(list);
    errno = error;
    return context;
}

constexpr const char* kSeeDriver = "look for messages of the device's driver in the kernel's log (dmesg)";
constexpr const char* kSeeLimits = "allow the process more locked memory and descriptors (ulimit -l, ulimit -n)";

// Why a device cannot be opened: of the call that has just failed.
struct NotOpened {
    Status status = Status::ok;
    std::string reason;
    const char* cure = "";
};

NotOpened not_opened(Status status, std::string what, const char* cure) {
    return {status, with_error(std::move(what), errno), cure};
}

// The port behind the NIC's address, and its device.
NotOpened find_device(NicContext& nic) {
    PortFacts port;
    if (!ip_of(nic.info.address, &nic.ip))
        return {Status::unknown_name, "the address of the NIC is none of verbs", "renew vipkad, which has given it"};
    nic.events = ops->create_event_channel();
    if (nic.events == nullptr)
        return not_opened(Status::denied, "/dev/infiniband/rdma_cm cannot be opened",
                          "load the module rdma_ucm (modprobe rdma_ucm) and look at the file's permissions");
    char ip[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &nic.ip, ip, sizeof ip);
    if (!find_port_of_address(nic.events, nic.ip, &port)) {
        if (errno != ENODEV)
            return not_opened(Status::denied, std::string("rdma_cm cannot find the device of address ") + ip,
                              "look at /dev/infiniband/rdma_cm and at the limits of files and memory (ulimit -a)");
        return {Status::unknown_name, std::string("no RDMA device has the address ") + ip + " any more",
                "give the address back to its interface (ip address add), or renew vipkad"};
    }
    nic.device = open_named(port.device);
    nic.port = port.port;
    if (nic.device == nullptr)
        return not_opened(Status::denied, std::string("the device ") + port.device + " cannot be opened",
                          "look at the permissions of /dev/infiniband/uverbs*");
    return {};
}

// Opens the device and makes its objects that this context uses. After a failure, close_device() frees the objects that
// there are.
NotOpened open_device(NicContext& nic) {
    if (NotOpened found = find_device(nic); found.status != Status::ok) return found;
    ibv_device_attr attr{};
    if (const int error = ops->query_device(nic.device, &attr); error != 0) {
        errno = error;
        return not_opened(Status::denied, "the device's attributes cannot be queried", kSeeDriver);
    }
    const int reads = std::min(attr.max_qp_rd_atom, attr.max_qp_init_rd_atom);
    nic.reads = static_cast<uint8_t>(std::clamp<int>(reads, 0, kMostReads));
    nic.most_entries = static_cast<uint32_t>(std::max(attr.max_cqe, 1));
    const auto short_of = [](const char* what) { return not_opened(Status::out_of_resources, what, kSeeLimits); };
    nic.pd = ops->alloc_pd(nic.device);
    if (nic.pd == nullptr) return short_of("the device gives no protection domain");
    nic.channel = ops->create_comp_channel(nic.device);
    nic.control_channel = nic.channel != nullptr ? ops->create_comp_channel(nic.device) : nullptr;
    if (nic.control_channel == nullptr) return short_of("the device gives no completion channel");
    nic.control_cq =
        ops->create_cq(nic.device, std::min<int>(kControlEntries, attr.max_cqe), nullptr, nic.control_channel, 0);
    if (nic.control_cq == nullptr) return short_of("the device gives no completion queue");
    if (!nic.wake_event.open() || !nic.progress_event.open()) return short_of("no eventfd for wake-ups");
    if (!nic.keys.allocate(nic.pd, has_atomics(attr)))
        return {Status::out_of_resources, "no memory for the table of regions", kSeeLimits};
    const bool quiet = never_block(nic.events->fd) && never_block(nic.device->async_fd) &&
                       never_block(nic.channel->fd) && never_block(nic.control_channel->fd);
    return quiet ? NotOpened() : short_of("the device's files cannot be made non-blocking");
}

void close_device(NicContext& nic) {
    nic.keys.clear();
    if (nic.control_cq != nullptr) ops->destroy_cq(nic.control_cq);
    if (nic.control_channel != nullptr) ops->destroy_comp_channel(nic.control_channel);
    if (nic.channel != nullptr) ops->destroy_comp_channel(nic.channel);
    if (nic.pd != nullptr) ops->dealloc_pd(nic.pd);
    if (nic.device != nullptr) ops->close_device(nic.device);
    if (nic.events != nullptr) ops->destroy_event_channel(nic.events);
}

// Takes an id from the NIC: of a request without an answer, or of a listener. Null: there is none left.
rdma_cm_id* take_connecting(NicContext& nic) {
    const std::lock_guard lock(nic.connect_mutex);
    rdma_cm_id* id = nullptr;
    if (const auto request = nic.incoming.begin(); request != nic.incoming.end()) {
        id = request->second.id;
        refuse(id, Refusal::no_resources);  // a server that ends: TIMEOUT (spec/compat C5)
        nic.incoming.erase(request);
    } else if (const auto listener = nic.listeners.begin(); listener != nic.listeners.end()) {
        id = listener->second;
        nic.listeners.erase(listener);
    } else {
        nic.owners.clear();
    }
    return id;
}

// Allocates nothing.
void close_connecting(NicContext& nic) {
    while (rdma_cm_id* const id = take_connecting(nic)) ops->destroy_id(id);
}

}  // namespace

Status open(const OpenArgs& args, NicContext** out) {
    ::ibv_fork_init();  // for kernels that would give a forked child the pages the device writes
    std::unique_ptr<NicContext> nic(new (std::nothrow) NicContext);
    if (!nic) {
        explain(args.agent, "verbs", "no memory is left", kSeeLimits);
        return Status::out_of_resources;
    }
    Rejection why;
    if (!read_settings(*args.settings, &nic->settings, &why)) {
        explain(args.agent, "verbs", why.reason, why.cure);
        return Status::not_supported;
    }
    nic->info = args.nic;
    nic->agent = args.agent;
    nic->regions = args.regions;
    set_registered_memory_check(args.regions->asker());
    nic->nonce_base = static_cast<uint32_t>(args.context_id) << 16;
    Status status = Status::out_of_resources;
    try {
        const NotOpened failed = open_device(*nic);
        status = failed.status;
        if (status != Status::ok) explain(args.agent, "verbs", failed.reason, failed.cure);
    } catch (const std::exception&) {  // of the texts: the device is closed all the same
    }
    if (status != Status::ok) {
        close_device(*nic);
        return status;
    }
    *out = nic.release();
    return Status::ok;
}

void close(NicContext* nic) {
    stop_progress(*nic);
    close_connecting(*nic);
    close_device(*nic);
    delete nic;
}

Status describe(NicContext*, Mail*) { return Status::ok; }  // peers are told everything over rdma_cm

Status region_added(NicContext* nic, uint32_t handle, const Region& region) { return nic->keys.add(handle, region); }

Status region_changed(NicContext* nic, uint32_t handle, const Region& now) { return nic->keys.change(handle, now); }

void region_removed(NicContext* nic, uint32_t handle, const Region&) { nic->keys.remove(handle); }

Status resolve(NicContext* nic, const uint8_t* ip, uint32_t ip_len, uint32_t index, NicAddress* out) {
    // Network 0 has no hosts: what the resolver makes of "192" when a program cuts "192.0.2.1" at its first
    // dot.
    if (ip_len != 4 || index != 0 || ip[0] == 0) return Status::no_match;
    in_addr address{};
    std::memcpy(&address, ip, sizeof address);
    // "localhost" is this NIC; whether an RDMA device is behind another host's address only connecting tells.
    *out = ip[0] == 127 ? nic->info.address : address_of(address);
    return Status::ok;
}

}  // namespace viaduct::verbs
