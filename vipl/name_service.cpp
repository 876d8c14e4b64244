// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/name_service.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "vipl/device.hpp"
#include "vipl/library.hpp"
#include "vipl/policy.hpp"
#include "vipl/resolver.hpp"
#include "vipl/status.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {

HostsFile hosts_of(const Config& config) {
    const char* first = std::getenv("VIADUCT_HOSTS");
    const std::string configured = config.get("names", "hosts");
    return HostsFile::find(first != nullptr ? std::string(first) + ":" + configured : configured);
}

namespace {

// One past the last address of a host stays past it.
uint32_t index_of(VIP_ULONG index) { return static_cast<uint32_t>(std::min<VIP_ULONG>(index, UINT32_MAX)); }

// The NIC behind an IP address of the host, as far as the provider can tell. *is_host: there is such a host, but its
// NIC is not known.
Status by_resolver(const Nic& nic, const char* name, VIP_ULONG index, NicAddress* out, bool* is_host) {
    if (!nic.library->config.get_bool("names", "resolver")) return Status::unknown_name;
    const std::vector<IpAddress> addresses = resolve(name, now_ns() + limit_ns(TimeLimit::resolver));
    for (const IpAddress& ip : addresses) {
        if (nic.ops->resolve(nic.context, ip.bytes.data(), ip.length, index_of(index), out) == Status::ok)
            return Status::ok;
    }
    *is_host = !addresses.empty();
    return Status::unknown_name;
}

Status by_agent(Nic& nic, const char* name, VIP_ULONG index, Deadline deadline, NicAddress* out) {
    kagent::NameLookup question;
    question.context_id = nic.context_id;
    if (std::strlen(name) >= sizeof question.name) return Status::unknown_name;
    std::strcpy(question.name, name);
    question.index = index_of(index);
    if (const Status known = make_known(nic, deadline); known != Status::ok) return known;
    Mail answer;
    const Status status = nic.library->link.call(Mail::of(kagent::Type::kNameLookup, question), &answer, deadline);
    kagent::NameEntry entry;
    if (status != Status::ok) return status;
    if (!answer.get(&entry)) return Status::broken;
    *out = entry.address;
    return Status::ok;
}

std::string name_by_agent(Nic& nic, const NicAddress& address) {
    kagent::AddressLookup question;
    question.context_id = nic.context_id;
    question.address = address;
    const Deadline deadline = now_ns() + limit_ns(TimeLimit::agent_call);
    Mail answer;
    kagent::NameEntry entry;
    if (make_known(nic, deadline) != Status::ok ||
        nic.library->link.call(Mail::of(kagent::Type::kAddressLookup, question), &answer, deadline) != Status::ok ||
        !answer.get(&entry))
        return {};
    return std::string(text_of(entry.name));
}

bool started(Nic& nic) {
    const std::lock_guard lock(nic.mutex);
    return nic.names_started;
}

// Length and host bytes; the discriminator and its length are the program's (spec/compat A9).
void write_host(const NicAddress& from, VIP_NET_ADDRESS* to) {
    to->HostAddressLen = kNicAddressBytes;
    std::memcpy(reinterpret_cast<uint8_t*>(to) + offsetof(VIP_NET_ADDRESS, HostAddress), from.bytes,
                kNicAddressBytes);
}

VIP_RETURN refuse_unstarted() {
    return refuse(VIP_ERROR_NAMESERVICE, "VipNSInit first", "the name service of this NIC handle was not started");
}

// A NIC of this host cannot be turned into one that reaches others; the log says which one does.
void tell_of_far_host(const Nic& nic, const char* name) {
    if ((nic.info.capabilities & kCapLocalOnly) == 0) return;
    const std::string far = nic.library->config.get("names", "far_provider");
    char cure[200];
    std::snprintf(cure, sizeof cure, "open the NIC \"%s%.60s\", or set names.default_provider = \"%s\"", kHostPrefix,
                  name, far.c_str());
    refuse(VIP_ERROR_NAMESERVICE, cure, "'%s' is another host, and %s reaches this one only", name, nic.info.name);
}

}  // namespace

VIP_RETURN names_start(Nic& nic) {
    const std::lock_guard lock(nic.mutex);
    nic.names_started = true;  // repeating it succeeds (spec/compat D10)
    return VIP_SUCCESS;
}

VIP_RETURN names_stop(Nic& nic) {
    const std::lock_guard lock(nic.mutex);
    if (!std::exchange(nic.names_started, false)) return refuse_unstarted();
    return VIP_SUCCESS;
}

VIP_RETURN names_by_name(Nic& nic, const char* name, VIP_ULONG index, VIP_NET_ADDRESS* out) {
    if (!started(nic)) return refuse_unstarted();
    const HostsFile hosts = hosts_of(nic.library->config);
    if (hosts.knows(name)) {
        const auto address = hosts.address_of(name, index);
        if (!address)  // past the last address of that host
            return refuse(VIP_ERROR_NAMESERVICE, "count NameIndex up from 0 until this answer",
                          "host '%s' has no address with NameIndex %lu", name, index);
        write_host(*address, out);
        return VIP_SUCCESS;
    }
    NicAddress address;
    const Deadline deadline = now_ns() + limit_ns(TimeLimit::agent_call);
    bool is_host = false;
    Status status = by_resolver(nic, name, index, &address, &is_host);
    if (status != Status::ok) status = by_agent(nic, name, index, deadline, &address);
    if (status != Status::ok && is_host && index == 0) tell_of_far_host(nic, name);
    if (status == Status::ok) write_host(address, out);
    if (status != Status::ok)
        refuse(VIP_ERROR_NAMESERVICE,
               "add the host to a vip_hosts file (vip_hosts(5)) or name one in VIADUCT_HOSTS; getent hosts shows "
               "whether the system knows it",
               "no NIC address of host '%s' (NameIndex %lu) is known", name, index);
    return to_return(CallKind::names, status);
}

VIP_RETURN names_by_address(Nic& nic, const VIP_NET_ADDRESS& address, char* name, VIP_ULONG* name_bytes) {
    if (!started(nic)) return refuse_unstarted();
    if (address.HostAddressLen != kNicAddressBytes)
        return refuse(VIP_INVALID_PARAMETER, "copy LocalNicAddress of VipQueryNic",
                      "HostAddressLen is %u, it must be %u", address.HostAddressLen, kNicAddressBytes);
    NicAddress wanted;
    std::memcpy(wanted.bytes,
                reinterpret_cast<const uint8_t*>(&address) + offsetof(VIP_NET_ADDRESS, HostAddress),
                kNicAddressBytes);
    std::string found = hosts_of(nic.library->config).name_of(wanted);
    if (found.empty()) found = name_by_agent(nic, wanted);
    if (found.empty())
        return refuse(VIP_ERROR_NAMESERVICE, "add the host to a vip_hosts file (vip_hosts(5))",
                      "no host name of that address is known");
    const VIP_ULONG room = *name_bytes;
    *name_bytes = found.size() + 1;  // in: room; out: used or needed, the zero included
    if (room < found.size() + 1)
        return refuse(VIP_INVALID_PARAMETER, "call again with that much room",
                      "NameLen is %lu, the name needs %zu bytes with its end", room, found.size() + 1);
    std::memcpy(name, found.c_str(), found.size() + 1);
    return VIP_SUCCESS;
}

VIP_RETURN discover(Nic& nic, VIP_AUTODISCOVERY_LIST* list) {
    const VIP_ULONG room = list->NumAdAddrs;
    if (room != 0 && list->ADAddrArray == nullptr)
        return refuse(VIP_INVALID_PARAMETER, "pass an array of so many addresses",
                      "NumAdAddrs is %lu, ADAddrArray NULL", room);
    std::vector<NicAddress> known{nic.info.address};
    const auto add = [&known](const NicAddress& address) {
        for (const NicAddress& k : known) {
            if (k == address) return;
        }
        known.push_back(address);
    };
    // The agent's NICs of this network: the addresses behind the NIC's own host name, by index.
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) == 0) {
        NicAddress address;
        const Deadline deadline = now_ns() + limit_ns(TimeLimit::agent_call);
        for (VIP_ULONG index = 0; by_agent(nic, host, index, deadline, &address) == Status::ok; ++index) add(address);
    }
    const HostsFile hosts = hosts_of(nic.library->config);
    for (const HostsFile::Line& line : hosts.lines()) add(line.address);

    VIP_ULONG filled = 0;
    for (; filled < room && filled < known.size(); ++filled) {
        VIP_NET_ADDRESS* out = list->ADAddrArray[filled];
        if (out == nullptr)
            return refuse(VIP_INVALID_PARAMETER, "point each entry to an address", "ADAddrArray[%lu] is NULL", filled);
        write_host(known[filled], out);
        out->DiscriminatorLen = 0;
    }
    list->NumAdAddrs = filled;
    list->NumberOfHops = 0;  // all of them are one switch away, or none
    return VIP_SUCCESS;
}

}  // namespace viaduct::vipl
