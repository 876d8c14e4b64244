// SPDX-License-Identifier: BSD-2-Clause
#include "utils/doctor/examine.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>

#include "core/shm/fd.hpp"
#include "utils/common/error.hpp"
#include "utils/common/limits.hpp"
#include "utils/common/nic.hpp"
#include "utils/common/statistics.hpp"
#include "utils/doctor/neighbours.hpp"
#include "utils/doctor/paths.hpp"
#include "utils/messages/ping.hpp"

namespace viaduct::doctor {

namespace {

constexpr VIP_ULONG kListenMs = 50;
constexpr int64_t kClockUs = 1'000'000;
constexpr uint64_t kMessages = 5;

std::optional<in_addr> by_resolver(const std::string& host) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* list = nullptr;
    if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return {};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, ::freeaddrinfo);
    return reinterpret_cast<const sockaddr_in*>(list->ai_addr)->sin_addr;
}

// As a program gets it: hosts files first, then the resolver as far as there is a route.
std::optional<in_addr> by_name_service(const std::string& host, const Report& own) {
    for (const NicLine& line : own.nics) {
        if (line.provider != "udp") continue;
        try {
            tools::Nic nic(line.name);
            const tools::Address found = nic.remote(host, "");
            in_addr ip{};
            std::memcpy(&ip.s_addr, found.room + offsetof(VIP_NET_ADDRESS, HostAddress), sizeof ip.s_addr);
            return ip;
        } catch (const tools::ToolError&) {
            continue;  // by another NIC, perhaps
        }
    }
    return {};
}

bool is_own(const in_addr& ip) {
    if (ntohl(ip.s_addr) >> 24 == 127) return true;
    std::string interface;
    return mtu_of_address(ip, &interface) != 0;
}

class Examiner {
public:
    explicit Examiner(const std::string& host) : host_(host) {}

    tools::Findings run() {
        own_ = own_report();
        assess(own_, "here");
        if (!find_address() || !find_route() || !reach()) return std::move(out_);
        try {
            compare_reports();
            look_for_twins();
            Paths paths(*channel_, out_, host_);
            const bool asked = their_nic_ && paths.ask_request_port(there_, ask_own_port());
            const bool passes = paths.compare(own_mtu_, their_mtu_);
            if (own_nic_ && asked && passes) send_messages();
        } catch (const ChannelError& error) {
            out_.problem("conversation-ended", "the other end", error.what(),
                         fmt::format("is vipping --server --doctor still running at {}?", host_));
        }
        return std::move(out_);
    }

private:
    // What an end says of itself.
    void assess(const Report& r, const std::string& where) {
        if (!r.agent_error.empty())
            out_.problem("agent", "kernel agent", fmt::format("{}: {}", where, r.agent_error),
                         "vipinfo --doctor there says more");
        for (const std::string& fault : r.faults)
            out_.problem("fault", "configuration", fmt::format("{}: {}", where, fault),
                         "correct it there; vipinfo --doctor says more");
        for (const std::string& nic : r.rejected)
            if (nic.starts_with("udp"))
                out_.note("nic-rejected", "NIC", fmt::format("{}: {}", where, nic), "see above");
    }

    bool find_address() {
        const auto resolved = by_resolver(host_), served = by_name_service(host_, own_);
        if (!resolved && !served) {
            out_.problem("name-unknown", "name", fmt::format("no IPv4 address of \"{}\" is known here", host_),
                         "add it to /etc/hosts or the name server; getent ahostsv4 NAME shows what the system knows");
            return false;
        }
        ip_ = served ? *served : *resolved;
        // Of this host the name service tells the NIC's address, the resolver often one of loopback: both are right.
        const bool differ = resolved && served && resolved->s_addr != served->s_addr;
        if (differ && !(is_own(*resolved) && is_own(*served)))
            out_.note("names-differ", "name",
                      fmt::format("a hosts file of VIPL says {}, the system's resolver {}", text_of(*served),
                                  text_of(*resolved)),
                      "correct the one that is wrong; vip_hosts(5) names the files");
        if (is_own(ip_)) {
            out_.problem("name-is-here", "name",
                         fmt::format("\"{}\" is {}, an address of this host", host_, text_of(ip_)),
                         "name the other host; an /etc/hosts that gives its name to 127.0.1.1 is often the cause");
            return false;
        }
        out_.ok("name", fmt::format("{} is {}", host_, text_of(ip_)));
        return true;
    }

    bool find_route() {
        const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_in to{}, from{};
        to.sin_family = AF_INET;
        to.sin_addr = ip_;
        to.sin_port = htons(kDoctorPort);
        socklen_t bytes = sizeof from;
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
            ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&from), &bytes) != 0) {
            out_.problem("no-route", "route",
                         fmt::format("no route from here to {}: {}", text_of(ip_), std::strerror(errno)),
                         fmt::format("bring the interface up, or add a route; ip route get {}", text_of(ip_)));
            return false;
        }
        own_mtu_ = mtu_of_address(from.sin_addr, &own_interface_);
        own_nic_ = nic_at(own_, from.sin_addr);
        if (!own_nic_) {
            out_.problem("no-nic-here", "NIC here",
                         fmt::format("the route starts at {} ({}), which is no NIC of udp", text_of(from.sin_addr),
                                     own_interface_),
                         "add the interface to udp.interfaces; vipinfo --providers says why one is missing");
        } else {
            out_.ok("NIC here", fmt::format("{} at {} ({})", own_nic_->name, own_nic_->ip, own_interface_));
        }
        return true;
    }

    static const NicLine* nic_at(const Report& r, const in_addr& ip) {
        const std::string wanted = text_of(ip);
        const auto found = std::find_if(r.nics.begin(), r.nics.end(), [&](const NicLine& n) { return n.ip == wanted; });
        return found != r.nics.end() ? &*found : nullptr;
    }

    bool reach() {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr = ip_;
        to.sin_port = htons(kDoctorPort);
        Fd socket;
        const int error = Channel::open(to, limit_ns(TimeLimit::doctor_connect), &socket);
        if (error != 0) {
            tell_unreached(error);
            return false;
        }
        channel_ = std::make_unique<Channel>(std::move(socket));
        try {
            sent_us_ = clock_us();
            answer_ = channel_->ask({{"do", "report"}}, limit_ns(TimeLimit::doctor_report));
            came_us_ = clock_us();
        } catch (const ChannelError& failure) {
            out_.problem("conversation-ended", "the other end", failure.what(),
                         fmt::format("does another program than vipping have TCP port {} of {}?", kDoctorPort, host_));
            return false;
        }
        there_ = report_in(answer_);
        return true;
    }

    void tell_unreached(int error) {
        const std::string where = fmt::format("{} ({})", host_, text_of(ip_));
        // Two machines that have one address answer by turns, or the wrong one does.
        look_for_owners(ip_, own_interface_, fmt::format("{} of {}", text_of(ip_), host_), 1);
        const Neighbour known = neighbour_at(ip_);
        if (error == ECONNREFUSED) {
            out_.problem("no-other-end", "the other end",
                         fmt::format("{} is there, but refuses TCP port {}", where, kDoctorPort),
                         fmt::format("run vipping --server --doctor at {}", host_));
        } else if (known == Neighbour::silent || (error == EHOSTUNREACH && known != Neighbour::present)) {
            out_.problem("no-machine", "the other end",
                         fmt::format("no machine answers for {} on {}", text_of(ip_), own_interface_),
                         "is it switched on, its interface up and in this network? Is the address right (getent "
                         "hosts, hosts files)?");
        } else if (error == ETIMEDOUT) {
            out_.problem(
                "silence", "the other end",
                fmt::format("{} says nothing to TCP port {}, though {}", where, kDoctorPort,
                            known == Neighbour::present ? "the machine is on this network" : "there is a route"),
                fmt::format("let the firewalls of {} and of the network pass TCP {} and UDP", host_, kDoctorPort));
        } else {
            out_.problem("unreachable", "the other end", fmt::format("{}: {}", where, std::strerror(error)),
                         "a router or firewall on the way says so; ip route, traceroute");
        }
    }

    void compare_reports() {
        assess(there_, "at " + host_);
        const sockaddr_in here = channel_->here();
        const std::string sees = text_in(answer_, "sees_you_at"), is_at = text_in(answer_, "is_at");
        if (sees != text_of(here.sin_addr) || is_at != text_of(ip_))
            out_.problem("translated", "addresses",
                         fmt::format("this host is {}, and {} sees it at {}; that one is {}, seen here at {}",
                                     text_of(here.sin_addr), host_, sees, is_at, text_of(ip_)),
                         "VI over UDP does not pass address translation: use a route or a tunnel without it");
        if (there_.version != own_.version)
            out_.note("release-differs", "release",
                      fmt::format("here {}, at {} {}", own_.version, host_, there_.version),
                      "install the same release at both");
        const int64_t off = there_.clock_us - (sent_us_ + came_us_) / 2, doubt = (came_us_ - sent_us_) / 2;
        if (std::abs(off) > kClockUs + doubt)
            out_.note("clock", "clock",
                      fmt::format("the clock of {} is {:.1f} s {} this one", host_,
                                  std::abs(static_cast<double>(off)) / 1e6, off > 0 ? "ahead of" : "behind"),
                      "no frame depends on it, but times of logs do: use NTP at both");
        if (there_.udp_port != own_.udp_port)
            out_.problem(
                "ports-differ", "udp.port",
                fmt::format("here {}, at {} {}: requests go to the wrong port", own_.udp_port, host_, there_.udp_port),
                "set the same udp.port at all hosts (viaduct.toml, VIADUCT_UDP_PORT)");
        if (there_.has_key != own_.has_key)
            out_.problem("key-missing", "udp.auth_key_file",
                         fmt::format("only {} has a key: neither end takes frames of the other",
                                     own_.has_key ? "this end" : host_),
                         "give both ends the same key file, or neither");
        if (there_.default_provider != own_.default_provider)
            out_.note("providers-differ", "names.default_provider",
                      fmt::format("here {}, at {} {}: device names of programs open NICs of different kinds",
                                  own_.default_provider, host_, there_.default_provider),
                      "set the same at both, or let programs open host:NAME");
        if (!there_.far_provider.empty() && !own_.far_provider.empty() && there_.far_provider != own_.far_provider)
            out_.note("providers-differ", "names.far_provider",
                      fmt::format("here {}, at {} {}: host:NAME opens NICs that do not meet", own_.far_provider, host_,
                                  there_.far_provider),
                      "set the same at both");
        their_mtu_ = static_cast<uint32_t>(number_in(answer_, "mtu", 0, 1 << 20));
        their_nic_ = nic_at(there_, ip_);
        if (their_nic_ == nullptr && is_at == text_of(ip_)) {
            std::string names;
            for (const NicLine& nic : there_.nics) names += (names.empty() ? "" : ", ") + nic.name;
            out_.problem("no-nic-there", "NIC there",
                         fmt::format("{} has no NIC of udp at {}; it has {}", host_, text_of(ip_),
                                     names.empty() ? "none" : names),
                         "see udp.interfaces there; vipinfo --providers says why one is missing");
        } else if (their_nic_ != nullptr) {
            out_.ok("NIC there",
                    fmt::format("{} at {} ({})", their_nic_->name, their_nic_->ip, text_in(answer_, "interface")));
        }
    }

    // Machines that say that an address is theirs, which is that of `expected` of them.
    bool look_for_owners(const in_addr& ip, const std::string& interface, const std::string& what, size_t expected) {
        const Owners found = owners_of(ip, interface);
        if (found.macs.size() > expected) tell_twins(what, found.macs);
        return found.asked;
    }

    void tell_twins(const std::string& what, const std::vector<std::string>& macs) {
        std::string list;
        for (const std::string& mac : macs) list += (list.empty() ? "" : ", ") + mac;
        out_.problem("address-twice", "addresses",
                     fmt::format("more than one machine has {}: {} answers too", what, list),
                     "give each machine an address of its own: look for that MAC address in the switch");
    }

    void look_for_twins() {
        const bool here = look_for_owners(ip_, own_interface_, fmt::format("{} of {}", text_of(ip_), host_), 1);
        look_for_owners(channel_->here().sin_addr, own_interface_,
                        fmt::format("{} of this host", text_of(channel_->here().sin_addr)), 0);
        const Json answer = channel_->ask({{"do", "owners"}, {"own", 1}}, limit_ns(TimeLimit::doctor_answer));
        const auto asked = answer.find("asked");
        if (!here && (asked == answer.end() || !asked->is_boolean() || !asked->get<bool>()))
            out_.ok("addresses",
                    "whether another machine has the same ones was not asked: that needs CAP_NET_RAW at one end");
    }

    // The version that this host speaks at its own port of requests, which is asked from there, too; -1: none.
    int ask_own_port() {
        if (own_nic_ == nullptr) return -1;
        try {
            const tools::Nic nic(own_nic_->name);
            // What waits for a request starts viaduct-udpd, which stays a moment.
            tools::Address at = nic.local("vipping-doctor"), from{};
            VIP_VI_ATTRIBUTES theirs{};
            VIP_CONN_HANDLE request = nullptr;
            const VIP_RETURN result =
                VipConnectWait(nic.handle(), &at.head, kListenMs, &from.head, &theirs, &request);
            if (result == VIP_SUCCESS) VipConnectReject(request);
            if (result != VIP_SUCCESS && result != VIP_TIMEOUT) tools::fail(result, "VipConnectWait");
        } catch (const tools::ToolError& error) {
            out_.problem("requests-unserved", "requests",
                         fmt::format("programs here cannot wait for any: {}", error.what()),
                         "run viaduct-udpd --foreground here and see what it says");
            return -1;
        }
        return ask_port_here(*channel_, out_, own_.udp_port, host_);
    }

    void send_messages() try {
        messages::Options options;
        options.host = host_;
        options.count = kMessages;
        options.interval_s = 0.01;
        options.connect_wait_ms = static_cast<long>(tools::limit_ms(TimeLimit::doctor_message));
        options.device = own_nic_->name;
        const messages::Outcome outcome = messages::ping(options, {});
        if (outcome.ended_by.empty() && outcome.round_trips_us.size() == kMessages && outcome.damaged == 0) {
            out_.ok("messages", fmt::format("{} of {} came back through {}, in {:.0f} us", kMessages, kMessages,
                                            outcome.nic, tools::summarise(outcome.round_trips_us).p50));
            return;
        }
        out_.problem("messages", "messages",
                     fmt::format("{} of {} came back{}", outcome.round_trips_us.size(), kMessages,
                                 outcome.ended_by.empty() ? "" : ": " + outcome.ended_by),
                     "VIADUCT_LOG=info at both ends says what was sent again and what was dropped");
    } catch (const tools::ToolError& error) {
        if (own_.has_key && there_.has_key) {
            out_.problem(
                "keys-differ", "udp.auth_key_file",
                fmt::format("both ends have a key, datagrams pass, and no frame is answered: {}", error.what()),
                "give both ends the same key");
            return;
        }
        out_.problem("messages", "messages", error.what(),
                     fmt::format("does vipping --server at {} answer on that NIC? It says so when it starts", host_));
    }

    const std::string host_;
    tools::Findings out_;
    Report own_, there_;
    Json answer_;
    int64_t sent_us_ = 0, came_us_ = 0;
    in_addr ip_{};
    std::string own_interface_;
    uint32_t own_mtu_ = 0, their_mtu_ = 0;
    const NicLine* own_nic_ = nullptr;
    const NicLine* their_nic_ = nullptr;
    std::unique_ptr<Channel> channel_;
};

}  // namespace

tools::Findings examine(const std::string& host) { return Examiner(host).run(); }

bool is_known_host(const std::string& name) { return by_resolver(name).has_value(); }

}  // namespace viaduct::doctor
