// SPDX-License-Identifier: BSD-2-Clause
#include "utils/doctor/paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/clock/limits.hpp"

namespace viaduct::doctor {

namespace {

constexpr int kVersionTries = 5;
constexpr uint32_t kFirst = 8;   // datagrams that show that anything passes
constexpr uint32_t kMany = 200;  // and how much is lost
constexpr uint32_t kGapUs = 500;
constexpr uint32_t kManyBytes = 512;
constexpr uint32_t kEach = 3;  // of a size
constexpr double kLossy = 0.01;
constexpr uint32_t kLeastFrame = 576 + kHeadersOfUdp;
constexpr uint32_t kMostFrame = 16'384 + kHeadersOfUdp;

}  // namespace

int ask_port_here(Channel& channel, tools::Findings& out, int64_t port, const std::string& host) {
    sockaddr_in at = channel.here();
    at.sin_port = htons(static_cast<uint16_t>(port));
    const int version = version_spoken_at(at, kVersionTries, limit_ns(TimeLimit::doctor_version_far));
    if (version < 0) return version;
    const Json answer = channel.ask({{"do", "ask_you"}, {"port", port}}, limit_ns(TimeLimit::doctor_answer));
    if (!answer.contains("answers")) return version;  // an older release
    const std::string name = fmt::format("UDP port {} of this host", port);
    const int64_t seen = number_in(answer, "answers", -2, 255);
    if (seen >= 0) {
        out.ok("requests", fmt::format("{} answers {}", name, host));
    } else {
        out.problem("requests-filtered-here", "requests",
                    fmt::format("{} answers here, but not from {}: {}", name, host,
                                seen == -2 ? "it is refused on the way" : "silence"),
                    fmt::format("programs here cannot be servers for {}: let the firewalls of this host and of "
                                "the network pass UDP to port {}",
                                host, port));
    }
    return version;
}

bool Paths::ask_request_port(const Report& there, int own_version) {
    sockaddr_in at = channel_.there();
    at.sin_port = htons(static_cast<uint16_t>(there.udp_port));
    const std::string name = fmt::format("UDP port {} of {}", there.udp_port, text_of(at.sin_addr));
    const int version = version_spoken_at(at, kVersionTries, limit_ns(TimeLimit::doctor_version_far));
    const Json local =
        channel_.ask({{"do", "request_port"}, {"port", there.udp_port}}, limit_ns(TimeLimit::doctor_answer));
    const int64_t there_version = number_in(local, "answers", -2, 255);
    if (version >= 0) {
        if (own_version >= 0 && own_version != version) {
            out_.problem(
                "version-differs", "protocol",
                fmt::format("{} speaks version {} of the wire format, this host version {}", host_, version,
                            own_version),
                "install the same release at both");
            return false;
        }
        out_.ok("requests", fmt::format("{} answers, version {} of the wire format", name, version));
        return true;
    }
    if (there_version >= 0) {
        out_.problem(
            "requests-filtered", "requests",
            fmt::format("{} answers there, but not from here: {}", name,
                        version == -2 ? "it is refused on the way" : "silence"),
            fmt::format("let the firewalls of {} and of the network pass UDP to port {}", host_, there.udp_port));
    } else if (const auto taken = local.find("taken");
               taken != local.end() && taken->is_boolean() && taken->get<bool>()) {
        out_.problem("request-port-taken", "requests", fmt::format("another program than viaduct-udpd has {}", name),
                     "end it, or set udp.port to another port, the same at all hosts; ss -lunp names it");
    } else {
        out_.problem("requests-unserved", "requests", fmt::format("no viaduct-udpd serves {}", name),
                     fmt::format("run viaduct-udpd --foreground at {} and see what it says", host_));
    }
    return false;
}

// How many of a series have arrived. Ports: those of the sockets with that number.
uint32_t Paths::transfer(bool to_there, uint32_t socket, uint32_t count, uint32_t bytes, uint32_t gap_us,
                         Direction* direction) {
    const Series s{++series_, count, bytes, gap_us};
    const Json same = {{"socket", socket}, {"series", s.number},
                       {"count", count},   {"bytes", bytes},
                       {"gap_us", gap_us}, {"wait_ms", limit_ns(TimeLimit::doctor_packets) / 1'000'000}};
    if (!to_there) {
        Json question = same;
        question["do"] = "send";
        question["to"] = own_[socket]->port();
        channel_.ask(question, limit_ns(TimeLimit::doctor_answer));
        const Received got = own_[socket]->collect(s.number, count, limit_ns(TimeLimit::doctor_packets));
        if (direction != nullptr) {
            direction->damaged += got.damaged;
            direction->twice += got.twice;
        }
        return got.count;
    }
    sockaddr_in to = channel_.there();
    to.sin_port = htons(their_ports_[socket]);
    own_[socket]->send(to, s);
    Json question = same;
    question["do"] = "count";
    const Json got = channel_.ask(question, limit_ns(TimeLimit::doctor_answer));
    if (direction != nullptr) {
        direction->damaged += static_cast<uint32_t>(number_in(got, "damaged", 0, count));
        direction->twice += static_cast<uint32_t>(number_in(got, "twice", 0, count));
    }
    return static_cast<uint32_t>(number_in(got, "count", 0, count));
}

// Each direction has ports of its own, which nothing has been sent from: a firewall that lets answers pass stops these.
bool Paths::passes_at_all(Direction& direction) {
    const uint32_t socket = direction.to_there ? 1 : 0;
    direction.passes = transfer(direction.to_there, socket, kFirst, kLeastProbe, kGapUs, nullptr);
    if (direction.passes != 0) return true;
    direction.answers = false;
    transfer(!direction.to_there, socket, kFirst, kLeastProbe, kGapUs, nullptr);
    direction.answers = transfer(direction.to_there, socket, kFirst, kLeastProbe, kGapUs, nullptr) != 0;
    return false;
}

void Paths::tell_silence(const Direction& direction) {
    const char* const name = direction.to_there ? "blocked-there" : "blocked-here";
    const std::string what = fmt::format("from {} to {}", from(direction), to(direction));
    out_.problem(name, "datagrams",
                 direction.answers ? fmt::format("UDP {} passes only as an answer: a firewall keeps state", what)
                             : fmt::format("no UDP between free ports comes {}, while TCP does", what),
                 fmt::format("let the firewall at {} (or on the way) pass incoming UDP to the ports that the kernel "
                             "chooses: sysctl net.ipv4.ip_local_port_range",
                             to(direction)));
}

void Paths::measure_loss(Direction& direction) {
    const uint32_t socket = direction.to_there ? 1 : 0;
    direction.sent = kMany;
    direction.lost =
        kMany - std::min(kMany, transfer(direction.to_there, socket, kMany, kManyBytes, kGapUs, &direction));
    const std::string what = fmt::format("from {} to {}", from(direction), to(direction));
    const double share = static_cast<double>(direction.lost) / direction.sent;
    if (direction.damaged != 0)
        out_.problem(direction.to_there ? "damage-there" : "damage-here", "datagrams",
                     fmt::format("{} of {} came damaged {}", direction.damaged, direction.sent, what),
                     "reliable levels repair that; look for a bad cable, memory or offload of checksums (ethtool -K)");
    if (direction.twice > direction.sent / 100)
        out_.note(direction.to_there ? "duplicates-there" : "duplicates-here", "datagrams",
                  fmt::format("{} of {} came twice {}", direction.twice, direction.sent, what),
                  "look for a loop of switches, or two links that both carry all");
    if (share > kLossy) {
        out_.problem(direction.to_there ? "loss-there" : "loss-here", "datagrams",
                     fmt::format("{} of {} were lost {} ({:.0f} %)", direction.lost, direction.sent, what, 100 * share),
                     fmt::format("reliable levels repair that, slowly; compare the counters of each interface on the "
                                 "way (ip -s link, ethtool -S) and the receive buffer at {}",
                                 to(direction)));
    } else {
        out_.ok("datagrams", fmt::format("{} of {} arrived {}", direction.sent - direction.lost, direction.sent, what));
    }
}

// By halves: the largest that passes, to the byte.
void Paths::measure_size(Direction& direction, uint32_t most) {
    const uint32_t socket = direction.to_there ? 1 : 0;
    const auto passes = [&](uint32_t size) {
        return transfer(direction.to_there, socket, kEach, size - kHeadersOfUdp, kGapUs, nullptr) != 0;
    };
    uint32_t good = kLeastFrame - 1, bad = std::min(most, kMostFrame) + 1;
    if (passes(bad - 1)) good = bad - 1;
    while (bad - good > 1) {
        const uint32_t middle = good + (bad - good) / 2;
        (passes(middle) ? good : bad) = middle;
    }
    direction.largest = good;
}

void Paths::tell_size(const Direction& direction, uint32_t own_mtu, uint32_t their_mtu) {
    const std::string what = fmt::format("from {} to {}", from(direction), to(direction));
    const uint32_t least = std::min({own_mtu, their_mtu, kMostFrame});
    const char* const name = direction.to_there ? "mtu-there" : "mtu-here";
    if (direction.largest < kLeastFrame) {
        out_.problem(name, "path MTU",
                     fmt::format("packets of {} bytes do not pass {}: no connection is possible", kLeastFrame, what),
                     "let the path pass at least 604 bytes");
    } else if (direction.largest < least) {
        out_.problem(name, "path MTU",
                     fmt::format("packets of more than {} bytes do not pass {}, the interfaces take {}",
                                 direction.largest, what, least),
                     fmt::format("connections find that out, and use smaller frames; raise the MTU of the switch or "
                                 "router on the way, or save them the search: ip link set mtu {}",
                                 direction.largest));
    } else {
        out_.ok("path MTU", fmt::format("{} bytes pass {}", direction.largest, what));
    }
}

bool Paths::compare(uint32_t own_mtu, uint32_t their_mtu) {
    const Json opened = channel_.ask({{"do", "open"}}, limit_ns(TimeLimit::doctor_answer));
    const auto ports = opened.find("ports");
    for (uint32_t i = 0; i < 2; ++i) {
        own_[i] = std::make_unique<Probe>(channel_.here().sin_addr);
        if (ports == opened.end() || !ports->is_array() || ports->size() != 2 || !own_[i]->valid())
            throw ChannelError("no UDP sockets are to be had");
        their_ports_[i] = static_cast<uint16_t>(number_in(Json{{"port", (*ports)[i]}}, "port", 1, 65535));
    }
    if (own_mtu != their_mtu)
        out_.note("mtu-differs", "MTU",
                  fmt::format("the interface here has {}, that of {} {}", own_mtu, host_, their_mtu),
                  "connections find the size that passes, after one more try; give both the same");
    Direction back{false}, there{true};
    const bool comes = passes_at_all(back), goes = passes_at_all(there);
    for (Direction* direction : {&there, &back}) {
        if (direction->passes == 0) {
            tell_silence(*direction);
            continue;
        }
        measure_loss(*direction);
        measure_size(*direction, std::max(own_mtu, their_mtu));
        tell_size(*direction, own_mtu, their_mtu);
    }
    return comes && goes;
}

}  // namespace viaduct::doctor
