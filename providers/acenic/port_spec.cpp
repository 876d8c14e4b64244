// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/port_spec.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/shm/segment.hpp"

namespace viaduct::acenic {

namespace {

constexpr uint32_t kOtherMtu = 9000, kLeastMtu = 576, kMostMtu = 16000;

bool refuse(const std::string& text, Rejection* why, const std::string& reason, const char* cure) {
    std::snprintf(why->name, sizeof why->name, "%s", text.c_str());
    std::snprintf(why->reason, sizeof why->reason, "%s", reason.c_str());
    std::snprintf(why->cure, sizeof why->cure, "%s", cure);
    return false;
}

// The value of "key=..." in a list separated by commas; empty: none.
std::string argument(const std::string& list, const std::string& key) {
    size_t at = 0;
    while (at < list.size()) {
        size_t end = list.find(',', at);
        if (end == std::string::npos) end = list.size();
        if (list.compare(at, key.size() + 1, key + "=") == 0)
            return list.substr(at + key.size() + 1, end - at - key.size() - 1);
        at = end + 1;
    }
    return {};
}

bool parse_mac(const std::string& text, NicAddress* out) {
    unsigned b[6];
    char rest = 0;
    if (std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                    &rest) != 6)
        return false;
    for (int i = 0; i < 6; ++i) out->bytes[i] = static_cast<uint8_t>(b[i]);
    return (out->bytes[0] & 1) == 0;
}

// Asks through a socket: unlike sysfs, it always answers for this process's own network namespace. The socket is of any
// family: the unit of vipkad permits none that sends to the network.
bool read_interface(PortSpec* port) {
    const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq r{};
    if (!socket.valid() || port->interface.size() >= sizeof r.ifr_name) return false;
    std::strcpy(r.ifr_name, port->interface.c_str());
    if (::ioctl(socket.get(), SIOCGIFHWADDR, &r) != 0 || r.ifr_hwaddr.sa_family != ARPHRD_ETHER) return false;
    std::memcpy(port->address.bytes, r.ifr_hwaddr.sa_data, kNicAddressBytes);
    if (::ioctl(socket.get(), SIOCGIFMTU, &r) != 0) return false;
    port->mtu = static_cast<uint32_t>(r.ifr_mtu);
    if (::ioctl(socket.get(), SIOCGIFFLAGS, &r) != 0) return false;
    port->up = (r.ifr_flags & IFF_UP) != 0;
    return true;
}

// An entry of the neighbour table, if it is complete.
bool known_neighbour(int socket, const PortSpec& port, uint32_t ip, NicAddress* out) {
    arpreq r{};
    auto* address = reinterpret_cast<sockaddr_in*>(&r.arp_pa);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = ip;
    std::snprintf(r.arp_dev, sizeof r.arp_dev, "%s", port.interface.c_str());
    if (::ioctl(socket, SIOCGARP, &r) != 0 || (r.arp_flags & ATF_COM) == 0) return false;
    std::memcpy(out->bytes, r.arp_ha.sa_data, kNicAddressBytes);
    return true;
}

bool is_own_address(int socket, const PortSpec& port, uint32_t ip) {
    ifreq r{};
    std::snprintf(r.ifr_name, sizeof r.ifr_name, "%s", port.interface.c_str());
    if (::ioctl(socket, SIOCGIFADDR, &r) != 0) return false;
    return reinterpret_cast<const sockaddr_in*>(&r.ifr_addr)->sin_addr.s_addr == ip;
}

// Removes from the list an argument of this library, which the driver does not know, and returns its value.
std::string take_argument(std::string* list, const std::string& key) {
    std::string value = argument(*list, key);
    const size_t at = ("," + *list).find("," + key + "=");
    if (at == std::string::npos) return value;
    const size_t end = list->find(',', at);
    // With the comma before it, or behind it when it comes first.
    list->erase(at == 0 ? 0 : at - 1, end == std::string::npos ? end : end - at + 1);
    return value;
}

bool take_mtu(PortSpec* port, Rejection* why) {
    const std::string mtu = take_argument(&port->arguments, "mtu");
    port->mtu = kOtherMtu;
    if (mtu.empty()) return true;
    const auto [end, error] = std::from_chars(mtu.data(), mtu.data() + mtu.size(), port->mtu);
    if (error != std::errc() || end != mtu.data() + mtu.size() || port->mtu < kLeastMtu || port->mtu > kMostMtu)
        return refuse(port->text, why, mtu + " is no MTU", "write a number from 576 to 16000, as mtu=9000");
    return true;
}

// The address of an end without a configured one: it follows from the socket, so that each end can compute both.
NicAddress address_of_end(const std::string& socket, bool listens) {
    uint32_t hash = 2166136261u;  // FNV-1a
    for (const char c : socket) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
    NicAddress a;
    a.bytes[0] = 2;  // locally administered
    for (int i = 0; i < 4; ++i) a.bytes[1 + i] = static_cast<uint8_t>(hash >> (24 - 8 * i));
    a.bytes[5] = listens ? 1 : 2;
    return a;
}

// Two processes of one host that meet at a socket. Any user may, no hugepages, no interface.
bool read_memif(PortSpec* port, Rejection* why) {
    const std::string socket = argument(port->arguments, "socket"), role = argument(port->arguments, "role");
    if (socket.empty() || (role != "server" && role != "client"))
        return refuse(port->text, why, "net_memif without a socket and a role",
                      "write net_memif,socket=/run/user/0/pair.sock,role=server here, role=client there");
    port->joined = true;
    port->listens = role == "server";
    port->zero_copy = argument(port->arguments, "zero-copy") != "yes";
    const bool is_path = argument(port->arguments, "socket-abstract") != "yes";
    port->socket_name = socket;
    if (is_path) port->socket = socket;
    if (is_path && socket[0] != '/')
        return refuse(port->text, why, "the socket of net_memif is no absolute path", "begin it with /");
    const std::string mac = argument(port->arguments, "mac");
    port->address = address_of_end(socket, port->listens);
    if (!mac.empty() && !parse_mac(mac, &port->address))
        return refuse(port->text, why, mac + " is no Ethernet address", "write it as mac=02:00:00:00:00:01");
    if (!take_mtu(port, why)) return false;
    if (is_path && argument(port->arguments, "socket-abstract").empty())
        port->arguments += ",socket-abstract=no";
    if (argument(port->arguments, "id").empty()) port->arguments += ",id=0";
    port->up = true;
    return true;
}

// The same over virtio: net_vhost makes the socket. net_virtio_user connects to it and shares all of its memory with
// net_vhost, which later reads frames out of it.
bool read_virtio(PortSpec* port, Rejection* why) {
    port->joined = true;
    port->listens = port->driver == "net_vhost";
    port->reconnects = !port->listens;
    port->zero_copy = port->listens;
    port->socket = argument(port->arguments, port->listens ? "iface" : "path");
    if (port->socket.empty() || port->socket[0] != '/')
        return refuse(port->text, why, port->driver + " without the absolute path of a socket",
                      "write net_vhost,iface=/run/pair.sock here, net_virtio_user,path=/run/pair.sock there");
    const std::string mac = take_argument(&port->arguments, "mac");
    port->address = address_of_end(port->socket, port->listens);
    if (!mac.empty() && !parse_mac(mac, &port->address))
        return refuse(port->text, why, mac + " is no Ethernet address", "write it as mac=02:00:00:00:00:01");
    if (!take_mtu(port, why)) return false;
    port->up = true;
    return true;
}

}  // namespace

std::vector<std::string> split_ports(const char* setting) {
    std::vector<std::string> ports;
    std::string one;
    for (const char* c = setting;; ++c) {
        if (*c == ';' || *c == '\0') {
            if (!one.empty()) ports.push_back(one);
            one.clear();
            if (*c == '\0') return ports;
        } else if (*c != ' ') {
            one += *c;
        }
    }
}

bool read_port(const std::string& text, PortSpec* out, Rejection* why) {
    out->text = text;
    const size_t comma = text.find(',');
    out->driver = text.substr(0, comma);
    out->arguments = comma == std::string::npos ? "" : text.substr(comma + 1);
    if (out->driver.compare(0, 4, "net_") != 0)
        return refuse(text, why, out->driver + " is no DPDK network driver",
                      "write acenic.ports as \"net_af_packet,iface=eth1\"");
    if (out->driver == "net_af_packet") {
        out->zero_copy = true;
        out->interface = argument(out->arguments, "iface");
        if (out->interface.empty())
            return refuse(text, why, "net_af_packet without an interface", "add iface=NAME");
        if (!descriptors_left(1))
            return refuse(text, why, "no descriptor is left to look at interface " + out->interface + " with",
                          "raise the limit, ulimit -n");
        if (!read_interface(out))
            return refuse(text, why,
                          "there is no Ethernet interface " + out->interface + " in this network namespace",
                          "name one that `ip link` shows");
        return true;
    }
    if (out->driver == "net_memif") return read_memif(out, why);
    if (out->driver == "net_vhost" || out->driver == "net_virtio_user") return read_virtio(out, why);
    if (!parse_mac(argument(out->arguments, "mac"), &out->address))
        return refuse(text, why, out->driver + " without an Ethernet address",
                      "add mac=02:00:00:00:00:01, another one for each end");
    if (!take_mtu(out, why)) return false;
    out->up = true;
    return true;
}

bool read_port(const char* ports, const char* faults, size_t index, PortSpec* out, Rejection* why) {
    const std::vector<std::string> all = split_ports(ports), plans = split_ports(faults);
    if (index >= all.size()) return refuse("acenic", why, "there is no such port", "look at acenic.ports");
    if (!read_port(all[index], out, why)) return false;
    for (const std::string& port : all) out->needs_channel |= port.compare(0, 9, "net_memif") == 0;
    if (index < plans.size() && !parse_fault_plan(plans[index].c_str(), &out->faults))
        return refuse(all[index], why, plans[index] + " is no fault plan",
                      "write acenic.faults as \"seed=1,drop=0.01\", see viaduct(7)");
    return true;
}

bool find_port(const char* ports, const char* faults, const NicAddress& address, PortSpec* out, Rejection* why) {
    const size_t count = split_ports(ports).size();
    bool all_read = true;
    for (size_t place = 0; place < count; ++place) {
        PortSpec port;
        Rejection flaw;
        if (!read_port(ports, faults, place, &port, &flaw)) {
            if (std::exchange(all_read, false)) *why = flaw;
        } else if (port.address == address) {
            *out = std::move(port);
            return true;
        }
    }
    if (!all_read) return false;
    return refuse("acenic", why, "no port has the address of this NIC", "look at acenic.ports, and open the NIC again");
}

bool find_neighbour(const PortSpec& port, uint32_t ip, NicAddress* out) {
    if (port.interface.empty()) return false;
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return false;
    if ((ntohl(ip) >> 24) == 127 || is_own_address(socket.get(), port, ip)) {
        *out = port.address;
        return true;
    }
    if (known_neighbour(socket.get(), port, ip, out)) return true;
    // Any datagram makes the kernel ask for the address; the port is that of "discard".
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(9);
    to.sin_addr.s_addr = ip;
    if (::sendto(socket.get(), "", 0, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) < 0) return false;
    for (const int64_t until = now_ns() + limit_ns(TimeLimit::acenic_neighbour); now_ns() < until; ::usleep(5000))
        if (known_neighbour(socket.get(), port, ip, out)) return true;
    return false;
}

}  // namespace viaduct::acenic
