// SPDX-License-Identifier: BSD-2-Clause
#include "utils/doctor/probe.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "core/clock/clock.hpp"

namespace viaduct::doctor {

namespace {

constexpr uint64_t kMagic = 0x56495044'4f435431;  // "VIPDOCT1"
constexpr int kRoom = 4 << 20;
constexpr uint32_t kMostAfterwards = 2 * kMostOfSeries;
constexpr uint8_t kNoVersion = 255;
constexpr size_t kQuoteAt = 8, kQuoteBytes = 64;  // docs/wire-format.md, "Other versions"

struct Head {
    uint64_t magic;
    uint32_t series, index, bytes, zero;
};

std::byte pattern(uint32_t index, uint32_t at) { return static_cast<std::byte>(index * 37 + at * 11 + 5); }

void sleep_ns(int64_t ns) {
    const timespec t = timespec_of(ns);
    ::nanosleep(&t, nullptr);
}

bool is_whole(const std::vector<std::byte>& room, size_t bytes, const Head& head) {
    if (head.bytes != bytes) return false;
    for (auto i = static_cast<uint32_t>(sizeof head); i < bytes; ++i)
        if (room[i] != pattern(head.index, i)) return false;
    return true;
}

}  // namespace

Probe::Probe(const in_addr& here) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr = here;
    const int probe = IP_PMTUDISC_PROBE;
    ::setsockopt(socket_.get(), IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &kRoom, sizeof kRoom);
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) socket_ = Fd();
}

uint16_t Probe::port() const {
    sockaddr_in at{};
    socklen_t bytes = sizeof at;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&at), &bytes);
    return ntohs(at.sin_port);
}

Sent Probe::send(const sockaddr_in& to, const Series& series) {
    const uint32_t bytes = std::clamp(series.bytes, kLeastProbe, kMostProbe);
    std::vector<std::byte> data(bytes);
    Sent result;
    for (uint32_t i = 0; i < std::min(series.count, kMostOfSeries); ++i) {
        const Head head{kMagic, series.number, i, bytes, 0};
        std::memcpy(data.data(), &head, sizeof head);
        for (auto at = static_cast<uint32_t>(sizeof head); at < bytes; ++at) data[at] = pattern(i, at);
        const ssize_t n =
            ::sendto(socket_.get(), data.data(), bytes, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
        if (n >= 0) ++result.sent;
        if (n < 0 && errno == EMSGSIZE) ++result.too_large;
        if (n < 0 && errno != EMSGSIZE) result.error = errno;
        if (series.gap_us != 0) sleep_ns(int64_t{series.gap_us} * 1000);
    }
    return result;
}

Received Probe::collect(uint32_t series, uint32_t wanted, int64_t timeout_ns) {
    Received result;
    std::set<uint32_t> seen;
    std::vector<std::byte> room(kMostProbe);
    const int64_t until = now_ns() + timeout_ns;
    // What has come by then is taken yet, but not for as long as a sender goes on.
    for (uint32_t late = 0; seen.size() < wanted && late < kMostAfterwards; late += now_ns() > until ? 1 : 0) {
        sockaddr_in from{};
        socklen_t bytes = sizeof from;
        const ssize_t n = ::recvfrom(socket_.get(), room.data(), room.size(), MSG_DONTWAIT,
                                     reinterpret_cast<sockaddr*>(&from), &bytes);
        if (n < 0) {
            const int64_t left = until - now_ns();
            if (left <= 0) break;
            pollfd p{socket_.get(), POLLIN, 0};
            ::poll(&p, 1, static_cast<int>(left / 1'000'000) + 1);
            continue;
        }
        Head head{};
        if (static_cast<size_t>(n) < sizeof head) continue;
        std::memcpy(&head, room.data(), sizeof head);
        if (head.magic != kMagic || head.series != series || head.index >= kMostOfSeries) continue;
        result.from = from;
        if (!is_whole(room, static_cast<size_t>(n), head)) {
            ++result.damaged;
        } else if (!seen.insert(head.index).second) {
            ++result.twice;
        }
    }
    result.count = static_cast<uint32_t>(seen.size());
    return result;
}

int version_spoken_at(const sockaddr_in& to, int tries, int64_t each_ns) {
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid() || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return -1;
    bool refused = false;
    for (int i = 0; i < tries; ++i) {
        std::array<uint8_t, 80> question{};
        question[0] = kNoVersion;
        question[1] = 1;  // a request
        question[kQuoteAt] = static_cast<uint8_t>(i + 1);
        ::send(socket.get(), question.data(), question.size(), 0);
        const int64_t until = now_ns() + each_ns;
        for (int64_t left = each_ns; left > 0; left = until - now_ns()) {
            pollfd p{socket.get(), POLLIN, 0};
            ::poll(&p, 1, static_cast<int>(left / 1'000'000) + 1);
            std::array<uint8_t, 128> answer{};
            const ssize_t n = ::recv(socket.get(), answer.data(), answer.size(), 0);
            if (n < 0 && errno == ECONNREFUSED) refused = true;
            if (n < static_cast<ssize_t>(kQuoteAt + kQuoteBytes) || answer[0] != 0 || answer[1] != 1 ||
                answer[3] != kNoVersion || std::memcmp(&answer[kQuoteAt], question.data(), 8) != 0)
                continue;
            return answer[2];
        }
    }
    return refused ? -2 : -1;
}

bool port_is_taken(const sockaddr_in& at) {
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 && errno == EADDRINUSE;
}

uint32_t mtu_of_address(const in_addr& ip, std::string* interface) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return 0;
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, ::freeifaddrs);
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
        if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
        sockaddr_in in;
        std::memcpy(&in, i->ifa_addr, sizeof in);
        const bool inside = (i->ifa_flags & IFF_LOOPBACK) != 0 && ntohl(ip.s_addr) >> 24 == 127;
        if (in.sin_addr.s_addr != ip.s_addr && !inside) continue;
        *interface = i->ifa_name;
        const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ifreq r{};
        interface->copy(r.ifr_name, sizeof r.ifr_name - 1);
        return ::ioctl(socket.get(), SIOCGIFMTU, &r) == 0 ? static_cast<uint32_t>(r.ifr_mtu) : 0;
    }
    return 0;
}

}  // namespace viaduct::doctor
