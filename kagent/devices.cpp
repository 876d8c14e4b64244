// SPDX-License-Identifier: BSD-2-Clause
// One dump of links and addresses through libnl-route; see devices.hpp.
#include "kagent/devices.hpp"

#include <limits.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netlink/cache.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>

namespace viaduct::kagent {

namespace {

struct SocketFree {
    void operator()(nl_sock* s) const { ::nl_socket_free(s); }
};
struct CacheFree {
    void operator()(nl_cache* c) const { ::nl_cache_free(c); }
};
using Cache = std::unique_ptr<nl_cache, CacheFree>;

// The driver behind an interface; the kernel tells it in sysfs only.
std::string driver_of(const std::string& name) {
    char target[PATH_MAX];
    const ssize_t n =
        ::readlink(("/sys/class/net/" + name + "/device/driver").c_str(), target, sizeof target);
    if (n <= 0) return {};
    const std::string path(target, static_cast<size_t>(n));
    return path.substr(path.rfind('/') + 1);
}

LinkInfo describe(rtnl_link* link) {
    LinkInfo info;
    info.name = ::rtnl_link_get_name(link) != nullptr ? ::rtnl_link_get_name(link) : "";
    if (const char* kind = ::rtnl_link_get_type(link)) info.kind = kind;
    info.mtu = ::rtnl_link_get_mtu(link);
    const unsigned flags = ::rtnl_link_get_flags(link);
    info.up = (flags & IFF_UP) != 0;
    info.running = (flags & IFF_RUNNING) != 0;
    info.loopback = (flags & IFF_LOOPBACK) != 0;
    if (nl_addr* address = ::rtnl_link_get_addr(link)) {
        char text[64] = {};
        info.address = ::nl_addr2str(address, text, sizeof text);
    }
    info.driver = driver_of(info.name);
    return info;
}

}  // namespace

std::string text_of_address(const NicAddress& a) {
    char text[3 * kNicAddressBytes + 1] = {};
    for (uint32_t i = 0; i < kNicAddressBytes; ++i) {
        std::snprintf(text + 3 * i, 4, i + 1 < kNicAddressBytes ? "%02x:" : "%02x", a.bytes[i]);
    }
    return text;
}

Devices Devices::look() {
    Devices found;
    std::unique_ptr<nl_sock, SocketFree> socket(::nl_socket_alloc());
    if (!socket) {
        found.error = "no memory for a netlink socket";
        return found;
    }
    if (const int e = ::nl_connect(socket.get(), NETLINK_ROUTE); e < 0) {
        found.error = std::string("cannot ask the kernel for its interfaces: ") + ::nl_geterror(e);
        return found;
    }
    nl_cache* raw = nullptr;
    if (const int e = ::rtnl_link_alloc_cache(socket.get(), AF_UNSPEC, &raw); e < 0) {
        found.error = std::string("cannot list interfaces: ") + ::nl_geterror(e);
        return found;
    }
    const Cache links(raw);
    for (nl_object* o = ::nl_cache_get_first(links.get()); o != nullptr; o = ::nl_cache_get_next(o)) {
        found.links.push_back(describe(reinterpret_cast<rtnl_link*>(o)));
    }
    if (const int e = ::rtnl_addr_alloc_cache(socket.get(), &raw); e < 0) {
        found.error = std::string("cannot list addresses: ") + ::nl_geterror(e);
        return found;
    }
    const Cache addresses(raw);
    for (nl_object* o = ::nl_cache_get_first(addresses.get()); o != nullptr; o = ::nl_cache_get_next(o)) {
        nl_addr* local = ::rtnl_addr_get_local(reinterpret_cast<rtnl_addr*>(o));
        if (local == nullptr) continue;
        HostIp ip;
        ip.length = ::nl_addr_get_len(local);
        if (ip.length > ip.bytes.size()) continue;
        std::memcpy(ip.bytes.data(), ::nl_addr_get_binary_addr(local), ip.length);
        found.addresses.push_back(ip);
    }
    return found;
}

}  // namespace viaduct::kagent
