// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/tcp/card.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "mpi-adi/transport/tcp/tcp.hpp"

namespace viaduct::tcp {

namespace {

constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_mapped(const Address& a) { return std::memcmp(a.ip, kMapped, sizeof kMapped) == 0; }

uint8_t bits_of(const unsigned char* mask, size_t bytes) {
    int bits = 0;
    for (size_t i = 0; i < bytes; ++i) bits += std::popcount(mask[i]);
    return static_cast<uint8_t>(bits);
}

// False for addresses that another host cannot connect to by the address alone: other families, link-local ones.
bool read_address(const ifaddrs& from, Address* to) {
    *to = {};
    if (from.ifa_addr == nullptr || from.ifa_netmask == nullptr) return false;
    to->loopback = (from.ifa_flags & IFF_LOOPBACK) != 0 ? 1 : 0;
    if (from.ifa_addr->sa_family == AF_INET) {
        const auto* address = reinterpret_cast<const sockaddr_in*>(from.ifa_addr);
        const auto* mask = reinterpret_cast<const sockaddr_in*>(from.ifa_netmask);
        std::memcpy(to->ip, kMapped, sizeof kMapped);
        std::memcpy(to->ip + 12, &address->sin_addr, 4);
        to->prefix =
            static_cast<uint8_t>(96 + bits_of(reinterpret_cast<const unsigned char*>(&mask->sin_addr), 4));
        return true;
    }
    if (from.ifa_addr->sa_family != AF_INET6) return false;
    const auto* address = reinterpret_cast<const sockaddr_in6*>(from.ifa_addr);
    const auto* mask = reinterpret_cast<const sockaddr_in6*>(from.ifa_netmask);
    if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) return false;
    std::memcpy(to->ip, &address->sin6_addr, 16);
    to->prefix = bits_of(mask->sin6_addr.s6_addr, 16);
    return true;
}

// Whether a name is one of a list with commas between them.
bool listed(const std::string& names, const char* name) {
    return ("," + names + ",").find("," + std::string(name) + ",") != std::string::npos;
}

bool share_network(const Address& a, const Address& b) {
    if (a.prefix != b.prefix || a.prefix > 128) return false;
    for (unsigned bit = 0; bit < a.prefix; bit += 8) {
        const unsigned left = std::min(8U, a.prefix - bit);
        const auto mask = static_cast<unsigned char>(0xff << (8 - left));
        if (((a.ip[bit / 8] ^ b.ip[bit / 8]) & mask) != 0) return false;
    }
    return true;
}

// Lower is better; none: -1. Alike when the two change places.
int distance(const Address& mine, const Address& theirs, bool same_host) {
    if (is_mapped(mine) != is_mapped(theirs)) return -1;
    if (mine.loopback != 0 || theirs.loopback != 0) {
        return same_host && mine.loopback != 0 && theirs.loopback != 0 ? 0 : -1;
    }
    return share_network(mine, theirs) ? 1 : 2;
}

}  // namespace

std::vector<Address> own_addresses(const std::string& names, bool others) {
    std::vector<Address> found;
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return found;
    for (const ifaddrs* one = all; one != nullptr && found.size() < kAddresses; one = one->ifa_next) {
        Address address;
        if ((one->ifa_flags & IFF_UP) == 0 || !read_address(*one, &address)) continue;
        const bool wanted =
            names.empty() ? address.loopback != 0 || others : listed(names, one->ifa_name);
        if (wanted) found.push_back(address);
    }
    ::freeifaddrs(all);
    return found;
}

Card card_of(const taskinfo_t* task, int rank) {
    Card card = {};
    int size = 0;
    const void* found = mpip_environment(task, MPIP_PROTO_TCP, rank, &size);
    if (found != nullptr && size == sizeof card) std::memcpy(&card, found, sizeof card);
    if (card.magic != kMagic || card.count > kAddresses || card.piece == 0) card.count = 0;
    return card;
}

std::vector<Address> call_addresses(const Card& mine, const Card& theirs) {
    std::vector<std::pair<int, Address>> sorted;
    for (size_t t = 0; t < theirs.count; ++t) {
        int best = -1;
        for (size_t m = 0; m < mine.count; ++m) {
            const int d = distance(mine.addresses[m], theirs.addresses[t], mine.host == theirs.host);
            if (d >= 0 && (best < 0 || d < best)) best = d;
        }
        if (best >= 0) sorted.emplace_back(best, theirs.addresses[t]);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Address> result;
    for (const auto& one : sorted) result.push_back(one.second);
    return result;
}

socklen_t to_sockaddr(const Address& address, sockaddr_storage* out) {
    *out = {};
    if (is_mapped(address)) {
        auto* to = reinterpret_cast<sockaddr_in*>(out);
        to->sin_family = AF_INET;
        to->sin_port = htons(address.port);
        std::memcpy(&to->sin_addr, address.ip + 12, 4);
        return sizeof *to;
    }
    auto* to = reinterpret_cast<sockaddr_in6*>(out);
    to->sin6_family = AF_INET6;
    to->sin6_port = htons(address.port);
    std::memcpy(&to->sin6_addr, address.ip, 16);
    return sizeof *to;
}

std::string text_of(const Address& address) {
    char text[INET6_ADDRSTRLEN] = "?";
    if (is_mapped(address)) {
        ::inet_ntop(AF_INET, address.ip + 12, text, sizeof text);
        return std::string(text) + ":" + std::to_string(address.port);
    }
    ::inet_ntop(AF_INET6, address.ip, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(address.port);
}

}  // namespace viaduct::tcp
