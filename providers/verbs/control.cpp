// SPDX-License-Identifier: BSD-2-Clause
// Which ports there are. rdma_cm finds the device behind each IPv4 address of the host: the one way
// that holds for InfiniBand, RoCE and iWARP alike, and exactly what connecting will need.
#include "providers/verbs/control.hpp"

#include <linux/capability.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "providers/verbs/verbs_ops.hpp"

namespace viaduct::verbs {

namespace {

class DeviceList {
public:
    DeviceList() : list_(ops->get_device_list(&count_)) {}
    ~DeviceList() {
        if (list_ != nullptr) ops->free_device_list(list_);
    }
    DeviceList(const DeviceList&) = delete;
    DeviceList& operator=(const DeviceList&) = delete;
    int count() const { return list_ != nullptr ? count_ : 0; }
    ibv_device* at(int i) const { return list_[i]; }

private:
    int count_ = 0;
    ibv_device** list_;
};

void reject(NicSink& sink, const char* device, const char* reason, const char* cure) {
    Rejection r;
    std::snprintf(r.name, sizeof r.name, "%s", device);
    std::snprintf(r.reason, sizeof r.reason, "%s", reason);
    std::snprintf(r.cure, sizeof r.cure, "%s", cure);
    sink.reject(r);
}

// The kernel does not count processes that may lock memory without limit.
bool may_lock_any_memory() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    return ::syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1u << CAP_IPC_LOCK)) != 0;
}

uint64_t pinnable() {
    if (may_lock_any_memory()) return UINT64_MAX;
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

// All IPv4 addresses of the host whose interface is up, lowest first: NIC numbers must not change from one
// process to the next.
std::vector<PortFacts> own_addresses() {
    std::vector<PortFacts> all;
    ifaddrs* list = nullptr;
    if (ops->get_addresses(&list) != 0) return all;
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
        if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_UP) == 0 ||
            (i->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        PortFacts one;
        one.ip = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
        std::snprintf(one.interface, sizeof one.interface, "%s", i->ifa_name);
        all.push_back(one);
    }
    ops->free_addresses(list);
    return all;
}

// The GID by which peers address the port: that of the address, or the port's first (InfiniBand).
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

// False: the device could not be queried.
bool query(const DeviceList& devices, PortFacts* facts) {
    for (int i = 0; i < devices.count(); ++i) {
        ibv_device* device = devices.at(i);
        if (std::strcmp(ops->get_device_name(device), facts->device) != 0) continue;
        facts->transport = device->transport_type;
        ibv_context* context = ops->open_device(device);
        if (context == nullptr) return false;
        const bool known = ops->query_device(context, &facts->device_attr) == 0 &&
                           ops->query_port(context, facts->port, &facts->port_attr) == 0;
        if (known) facts->gid = gid_of(context, *facts);
        ops->close_device(context);
        return known;
    }
    return false;
}

// In the order of tools: by device, port, address.
bool before(const PortFacts& a, const PortFacts& b) {
    const int names = std::strcmp(a.device, b.device);
    if (names != 0) return names < 0;
    if (a.port != b.port) return a.port < b.port;
    return ntohl(a.ip.s_addr) < ntohl(b.ip.s_addr);
}

void offer_ports(const DeviceList& devices, const NicSettings& settings, rdma_event_channel* channel,
                 NicSink& sink) {
    std::vector<PortFacts> ports;
    std::set<std::string> seen;
    for (PortFacts& address : own_addresses())
        if (port_behind(channel, address.ip, &address)) ports.push_back(address);
    std::sort(ports.begin(), ports.end(), before);
    uint32_t index = 0;
    for (PortFacts& facts : ports) {
        seen.insert(facts.device);
        if (!wants_device(settings, facts.device)) continue;
        facts.memlock = pinnable();
        if (!query(devices, &facts)) {
            reject(sink, facts.device, "the device cannot be opened",
                   "look at the permissions of /dev/infiniband/uverbs*");
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
            reject(sink, name, "no interface of it that is up has an IPv4 address, by which peers find it",
                   "set one: 'ip link set IFACE up; ip address add A.B.C.D/N dev IFACE' (InfiniBand: IPoIB)");
    }
}

}  // namespace

bool port_behind(rdma_event_channel* channel, in_addr ip, PortFacts* out) {
    rdma_cm_id* id = nullptr;
    if (ops->create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) return false;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr = ip;
    const bool found = ops->bind_addr(id, reinterpret_cast<sockaddr*>(&address)) == 0 && id->verbs != nullptr;
    if (found) {
        std::snprintf(out->device, sizeof out->device, "%s", ops->get_device_name(id->verbs->device));
        out->port = id->port_num;
    }
    ops->destroy_id(id);
    return found;
}

Status discover(const Settings& settings, const Hints&, NicSink& sink) {
    NicSettings own;
    Rejection why;
    if (!read_settings(settings, &own, &why)) {
        sink.reject(why);
        return Status::ok;
    }
    const DeviceList devices;
    if (devices.count() == 0) return Status::ok;  // most hosts: nothing to offer and nothing to tell
    rdma_event_channel* channel = ops->create_event_channel();
    if (channel == nullptr) {
        for (int i = 0; i < devices.count(); ++i)
            reject(sink, ops->get_device_name(devices.at(i)),
                   "connections cannot be made: /dev/infiniband/rdma_cm cannot be opened",
                   "load the module rdma_ucm ('modprobe rdma_ucm') and look at the file's permissions");
        return Status::ok;
    }
    offer_ports(devices, own, channel, sink);
    ops->destroy_event_channel(channel);
    return Status::ok;
}

}  // namespace viaduct::verbs
