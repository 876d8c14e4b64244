// SPDX-License-Identifier: BSD-2-Clause
// Which ports there are. rdma_cm tells the device and port of each IPv4 address of the host. This holds for InfiniBand,
// RoCE and iWARP, and connecting uses the same lookup.
#include "providers/verbs/control.hpp"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "core/process/host_capability.hpp"
#include "core/shm/fd.hpp"
#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

// Lists and the channel belong to one call of discover(); they are freed when the sink or an allocation throws as well.
class DeviceList {
public:
    DeviceList() : list_(ops->get_device_list(&count_)) {}
    ~DeviceList() {
        if (list_ != nullptr) ops->free_device_list(list_);
    }
    DeviceList(const DeviceList&) = delete;
    DeviceList& operator=(const DeviceList&) = delete;
    bool valid() const { return list_ != nullptr; }
    int count() const { return list_ != nullptr ? count_ : 0; }
    ibv_device* at(int i) const { return list_[i]; }

private:
    int count_ = 0;
    ibv_device** list_;
};

class AddressList {
public:
    AddressList() {
        if (ops->get_addresses(&list_) != 0) error_ = errno;
    }
    ~AddressList() {
        if (error_ == 0) ops->free_addresses(list_);
    }
    AddressList(const AddressList&) = delete;
    AddressList& operator=(const AddressList&) = delete;
    int error() const { return error_; }
    const ifaddrs* first() const { return error_ == 0 ? list_ : nullptr; }

private:
    ifaddrs* list_ = nullptr;
    int error_ = 0;
};

class EventChannel {
public:
    EventChannel() : channel_(ops->create_event_channel()) {}
    ~EventChannel() {
        if (channel_ != nullptr) ops->destroy_event_channel(channel_);
    }
    EventChannel(const EventChannel&) = delete;
    EventChannel& operator=(const EventChannel&) = delete;
    rdma_event_channel* get() const { return channel_; }

private:
    rdma_event_channel* channel_;
};

// Why something cannot be had, and what to do about it; empty: it can be had.
struct Failure {
    std::string reason;
    const char* cure = "";
    bool happened() const { return !reason.empty(); }
};

Failure failure(const std::string& what, int error, const char* cure) {
    return {what + ": " + std::strerror(error), cure};
}

Failure not_opened(int error) {
    return failure("the device cannot be opened", error, "look at the permissions of /dev/infiniband/uverbs*");
}

Failure not_queried(const char* what, int error) {
    return failure(what, error, "look for messages of the device's driver in the kernel's log ('dmesg')");
}

void reject(NicSink& sink, const char* name, const Failure& why) {
    Rejection r;
    std::snprintf(r.name, sizeof r.name, "%s", name);
    std::snprintf(r.reason, sizeof r.reason, "%s", why.reason.c_str());
    std::snprintf(r.cure, sizeof r.cure, "%s", why.cure);
    sink.reject(r);
}

uint64_t pinnable_bytes() {
    if (has_host_capability(CAP_IPC_LOCK)) return UINT64_MAX;
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

// The IPv4 addresses of the host whose interface is up, without loopback, in the system's order.
std::vector<PortFacts> usable_addresses(const AddressList& list) {
    std::vector<PortFacts> all;
    for (const ifaddrs* i = list.first(); i != nullptr; i = i->ifa_next) {
        if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_UP) == 0 ||
            (i->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        PortFacts one;
        one.ip = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
        std::snprintf(one.interface, sizeof one.interface, "%s", i->ifa_name);
        all.push_back(one);
    }
    return all;
}

// The GID by which peers address the port: the GID of its IPv4 address; without one the port's first (InfiniBand).
ibv_gid gid_of(ibv_context* context, const PortFacts& facts) {
    ibv_gid first{};
    for (int i = 0; i < facts.port_attr.gid_tbl_len; ++i) {
        ibv_gid gid{};
        if (ops->query_gid(context, facts.port, i, &gid) != 0) break;
        if (is_gid_of(gid, facts.ip)) return gid;
        if (i == 0) first = gid;
    }
    return first;
}

Failure query_open_device(ibv_context* context, PortFacts* facts) {
    if (const int error = ops->query_device(context, &facts->device_attr); error != 0)
        return not_queried("the device's attributes cannot be queried", error);
    if (const int error = ops->query_port(context, facts->port, &facts->port_attr); error != 0)
        return not_queried("the port's attributes cannot be queried", error);
    facts->gid = gid_of(context, *facts);
    return {};
}

// Fills what the device tells of itself and of the port.
Failure query_port_facts(const DeviceList& devices, PortFacts* facts) {
    for (int i = 0; i < devices.count(); ++i) {
        ibv_device* device = devices.at(i);
        if (std::strcmp(ops->get_device_name(device), facts->device) != 0) continue;
        facts->transport = device->transport_type;
        ibv_context* context = ops->open_device(device);
        if (context == nullptr) return not_opened(errno);
        const Failure why = query_open_device(context, facts);
        ops->close_device(context);
        return why;
    }
    return failure("the device was not there when devices were listed", ENODEV, "start the agent again");
}

// By device, port and address: NICs have the same numbers in every process.
bool before(const PortFacts& a, const PortFacts& b) {
    const int names = std::strcmp(a.device, b.device);
    if (names != 0) return names < 0;
    if (a.port != b.port) return a.port < b.port;
    return ntohl(a.ip.s_addr) < ntohl(b.ip.s_addr);
}

// The ports behind the host's addresses, in the order of their NICs. `why` is the first thing that kept an address from
// being looked at: a device that is not found may be behind it.
std::vector<PortFacts> find_ports(rdma_event_channel* channel, NicSink& sink, Failure* why) {
    std::vector<PortFacts> ports;
    const AddressList addresses;
    if (addresses.error() != 0)
        *why = failure("the addresses of this host cannot be read", addresses.error(),
                       "let the agent open netlink sockets: a filter of system calls may forbid it");
    for (PortFacts& address : usable_addresses(addresses)) {
        if (find_port_of_address(channel, address.ip, &address)) {
            ports.push_back(address);
        } else if (errno != ENODEV) {
            const int error = errno;
            char ip[INET_ADDRSTRLEN] = {};
            ::inet_ntop(AF_INET, &address.ip, ip, sizeof ip);
            const Failure failed =
                failure(std::string("rdma_cm cannot find the device of address ") + ip, error,
                        "look at /dev/infiniband/rdma_cm and at the limits of files and memory (ulimit -a)");
            reject(sink, address.interface, failed);
            if (!why->happened()) *why = failed;
        }
    }
    std::sort(ports.begin(), ports.end(), before);
    return ports;
}

// Why no address leads to a device.
Failure why_not_found(ibv_device* device, const Failure& lookup) {
    if (lookup.happened()) return lookup;
    ibv_context* context = ops->open_device(device);  // rdma_cm cannot find what it cannot open
    if (context == nullptr) return not_opened(errno);
    ops->close_device(context);
    return {"no interface of it that is up has an IPv4 address, by which peers find it",
            "set one: 'ip link set IFACE up; ip address add A.B.C.D/N dev IFACE' (InfiniBand: IPoIB)"};
}

void offer_ports(const DeviceList& devices, const NicSettings& settings, rdma_event_channel* channel, NicSink& sink) {
    std::set<std::string> seen;
    Failure lookup;
    uint32_t index = 0;
    for (PortFacts& facts : find_ports(channel, sink, &lookup)) {
        seen.insert(facts.device);
        if (!wants_device(settings, facts.device)) continue;
        facts.memlock = pinnable_bytes();
        if (const Failure failed = query_port_facts(devices, &facts); failed.happened()) {
            reject(sink, facts.device, failed);
            continue;
        }
        NicInfo nic;
        Rejection why;
        if (describe_port(facts, settings, index, &nic, &why)) {
            sink.offer(nic);
            ++index;
        } else {
            sink.reject(why);
        }
    }
    for (int i = 0; i < devices.count(); ++i) {
        const char* name = ops->get_device_name(devices.at(i));
        if (wants_device(settings, name) && seen.count(name) == 0)
            reject(sink, name, why_not_found(devices.at(i), lookup));
    }
}

// Without descriptors devices and ports that exist look missing.
Status ok_if_descriptors_are_left() { return descriptors_left(1) ? Status::ok : Status::out_of_resources; }

}  // namespace

bool find_port_of_address(rdma_event_channel* channel, in_addr ip, PortFacts* out) {
    rdma_cm_id* id = nullptr;
    if (ops->create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) return false;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr = ip;
    int error = ops->bind_addr(id, reinterpret_cast<sockaddr*>(&address)) != 0 ? errno : 0;
    if (error == 0 && id->verbs == nullptr) error = ENODEV;
    if (error == EADDRNOTAVAIL) error = ENODEV;  // the host has lost the address
    if (error == 0) {
        std::snprintf(out->device, sizeof out->device, "%s", ops->get_device_name(id->verbs->device));
        out->port = id->port_num;
    }
    ops->destroy_id(id);
    errno = error;
    return error == 0;
}

Status discover(const Settings& settings, const Hints&, NicSink& sink) {
    NicSettings nic_settings;
    Rejection why;
    if (!read_settings(settings, &nic_settings, &why)) {
        sink.reject(why);
        return Status::ok;
    }
    const DeviceList devices;
    if (!devices.valid() && errno != ENOSYS)
        reject(sink, "verbs", not_queried("the RDMA devices of this host cannot be listed", errno));
    if (devices.count() == 0)  // most hosts: nothing to offer and nothing to tell
        return devices.valid() ? Status::ok : ok_if_descriptors_are_left();
    const EventChannel channel;
    if (channel.get() == nullptr) {
        const Failure failed =
            failure("connections cannot be made: /dev/infiniband/rdma_cm cannot be opened", errno,
                    "load the module rdma_ucm ('modprobe rdma_ucm') and look at the file's permissions");
        for (int i = 0; i < devices.count(); ++i) reject(sink, ops->get_device_name(devices.at(i)), failed);
        return ok_if_descriptors_are_left();
    }
    offer_ports(devices, nic_settings, channel.get(), sink);
    return ok_if_descriptors_are_left();
}

}  // namespace viaduct::verbs
