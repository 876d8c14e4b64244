// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/shm/segment.hpp"
#include "providers/wire/encapsulation.hpp"
#include "providers/wire/format.hpp"

namespace viaduct::udp {

namespace {

bool refuse(const std::string& text, Rejection* why, const std::string& reason, const char* cure) {
    std::snprintf(why->name, sizeof why->name, "udp %s", text.c_str());
    std::snprintf(why->reason, sizeof why->reason, "%s", reason.c_str());
    std::snprintf(why->cure, sizeof why->cure, "%s", cure);
    return false;
}

// What /etc/hosts has for the own name on many systems: 127.0.1.1.
constexpr uint32_t kDebianOwnName = INADDR_LOOPBACK + 0x100;

struct Found {
    std::string interface;
    uint32_t ip = 0;  // host order
    bool loopback = false, up = false;
};

// In the order of the system, which is that of the interfaces. Requests come over the loopback interface from
// viaduct-udpd.
std::vector<Found> addresses_here(bool* has_loopback = nullptr) {
    std::vector<Found> all;
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return all;
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, ::freeifaddrs);
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
        const bool loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
        if (has_loopback != nullptr && loopback && (i->ifa_flags & IFF_UP) != 0) *has_loopback = true;
        if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
        sockaddr_in in;
        std::memcpy(&in, i->ifa_addr, sizeof in);
        all.push_back({i->ifa_name, ntohl(in.sin_addr.s_addr), loopback,
                       (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_RUNNING) != 0});
    }
    return all;
}

// Asked through a socket: unlike sysfs it always answers for this process's own network namespace.
// Through a socket of any family: the unit of vipkad permits none that sends to the network.
uint32_t mtu_of(const std::string& interface) {
    const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq r{};
    if (!socket.valid() || interface.size() >= sizeof r.ifr_name) return 0;
    std::memcpy(r.ifr_name, interface.c_str(), interface.size());
    return ::ioctl(socket.get(), SIOCGIFMTU, &r) == 0 ? static_cast<uint32_t>(r.ifr_mtu) : 0;
}

}  // namespace

Status list_of_interfaces() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) == 0) {
        ::freeifaddrs(list);
        return descriptors_left(1) ? Status::ok : Status::out_of_resources;
    }
    for (const int shortage : {EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN}) {
        if (errno == shortage) return Status::out_of_resources;
    }
    return Status::denied;
}

bool interfaces_are_chosen_here(const Settings& settings) {
    return std::string_view(settings.get("interfaces", "")) == "auto";
}

uint32_t Spec::max_frame() const { return std::min(mtu - kHeaders, wire::kMaxFrame); }

NicAddress from_socket_address(const sockaddr_in& in) {
    return wire::udp_address(ntohl(in.sin_addr.s_addr), ntohs(in.sin_port));
}

sockaddr_in to_socket_address(const NicAddress& a) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    std::memcpy(&in.sin_addr.s_addr, a.bytes, 4);
    std::memcpy(&in.sin_port, a.bytes + 4, 2);
    return in;
}

std::string text_of(const NicAddress& a) {
    char text[32];
    std::snprintf(text, sizeof text, "%u.%u.%u.%u:%u", a.bytes[0], a.bytes[1], a.bytes[2], a.bytes[3],
                  a.bytes[4] * 256u + a.bytes[5]);
    return text;
}

std::string text_of_ip(const NicAddress& a) {
    const std::string text = text_of(a);
    return text.substr(0, text.find(':'));
}

std::vector<std::string> split_interfaces(const Settings& settings) {
    const std::string setting = settings.get("interfaces", "");
    std::vector<std::string> all;
    if (interfaces_are_chosen_here(settings)) {
        for (const Found& f : addresses_here()) {
            if (f.loopback || !f.up) continue;
            char text[INET_ADDRSTRLEN];
            const in_addr ip{htonl(f.ip)};
            all.emplace_back(::inet_ntop(AF_INET, &ip, text, sizeof text));
        }
        return all;
    }
    std::string one;
    for (const char c : setting + ";") {
        if (c == ' ') continue;
        if (c != ';') {
            one += c;
        } else if (!one.empty()) {
            all.push_back(one);
            one.clear();
        }
    }
    return all;
}

bool read_spec(const Settings& settings, const std::string& text, size_t index, Spec* out, Rejection* why) {
    out->text = text;
    if (text.find(':') != std::string::npos)
        return refuse(text, why, "udp speaks IPv4 only", "name an interface that has an IPv4 address, or that address");
    in_addr wanted{};
    const bool by_address = ::inet_pton(AF_INET, text.c_str(), &wanted) == 1;
    const uint32_t ip = ntohl(wanted.s_addr);
    if (!descriptors_left(1))
        return refuse(text, why, "no descriptor is left to look at the interfaces with", "raise the limit, ulimit -n");
    bool has_loopback = false;
    const std::vector<Found> here = addresses_here(&has_loopback);
    if (!has_loopback && list_of_interfaces() == Status::denied)
        return refuse(text, why, "the interfaces of this host cannot be listed", "let the agent open netlink sockets");
    if (!has_loopback)
        return refuse(text, why, "the loopback interface is down, over which requests are passed on",
                      "ip link set lo up");
    const auto found = std::find_if(here.begin(), here.end(), [&](const Found& f) {
        return by_address ? f.ip == ip || (f.loopback && ip >> 24 == 127) : f.interface == text;
    });
    if (found == here.end())
        return refuse(text, why,
                      by_address ? "no interface of this network namespace has the address " + text
                                 : "there is no interface " + text + " with an IPv4 address in this network namespace",
                      "name one that `ip -4 address` shows, in udp.interfaces");
    const int64_t port = settings.get_int("port", wire::kUdpPort);
    if (port < 1 || port > 65535)
        return refuse(text, why, std::to_string(port) + " is no UDP port", "set udp.port to a number from 1 to 65535");
    out->interface = found->interface;
    out->up = found->up;
    out->address = wire::udp_address(by_address ? ip : found->ip, static_cast<uint16_t>(port));
    out->mtu = mtu_of(out->interface);
    if (out->mtu < wire::kMinFrame + kHeaders)
        return refuse(text, why, "the MTU of " + out->interface + " is " + std::to_string(out->mtu),
                      "frames need 604 bytes: ip link set mtu");
    out->connected = static_cast<uint32_t>(settings.get_int("connected_sockets", 8));
    out->busy_poll_us = static_cast<int>(settings.get_int("busy_poll_us", 0));
    out->zero_copy = std::string(settings.get("zero_copy", "on")) != "off";
    std::string plans = settings.get("faults", "");
    for (size_t i = 0; i < index && !plans.empty(); ++i) {
        const size_t next = plans.find(';');
        plans = next == std::string::npos ? "" : plans.substr(next + 1);
    }
    plans = plans.substr(0, plans.find(';'));
    if (!plans.empty() && !parse_fault_plan(plans.c_str(), &out->faults))
        return refuse(text, why, plans + " is no fault plan",
                      "write udp.faults as \"seed=1,drop=0.01\", see viaduct(7)");
    return true;
}

bool find_host(const Spec& spec, uint32_t ip, NicAddress* out) {
    const bool inside = spec.address.bytes[0] == 127, asked = ntohl(ip) >> 24 == 127;
    *out = spec.address;
    // This host, as others address it. Other addresses of the loopback interface are other "hosts" of a NIC that is
    // there.
    if (asked && (!inside || ntohl(ip) == INADDR_LOOPBACK || ntohl(ip) == kDebianOwnName)) return true;
    if (inside && !asked) return false;
    std::memcpy(out->bytes, &ip, 4);
    // Connecting sends nothing: it only asks for a route.
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in own = to_socket_address(spec.address);
    own.sin_port = 0;
    const sockaddr_in to = to_socket_address(*out);
    return socket.valid() && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0 &&
           ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}

}  // namespace viaduct::udp
