// SPDX-License-Identifier: BSD-2-Clause
// viaduct-udpd: options, sockets, loop. Everything else is beside it.
#include <arpa/inet.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "core/agent/meeting_point.hpp"
#include "core/agent/own_limits.hpp"
#include "core/config/paths.hpp"
#include "core/log/log.hpp"
#include "providers/udp/address.hpp"
#include "providers/udp/daemon/server.hpp"
#include "providers/wire/encapsulation.hpp"

namespace {

using namespace viaduct;

struct Words {
    std::string address, socket;
    uint16_t port = wire::kUdpPort;
    bool foreground = false;
    int64_t linger_ms = 2000;
};

udp::RequestServer* serving = nullptr;

void end(int) { serving->stop(); }

int serve(const Words& words) {
    in_addr ip{};
    if (::inet_pton(AF_INET, words.address.c_str(), &ip) != 1) {
        std::fprintf(stderr, "viaduct-udpd: %s is no IPv4 address\n", words.address.c_str());
        return 1;
    }
    const NicAddress nic = wire::udp_address(ntohl(ip.s_addr), words.port);
    const std::string address =
        words.socket.empty() ? udp::daemon_address(udp::text_of(nic), ::geteuid()) : words.socket;
    Fd listener;
    std::string place, error = "a path would be seen from other network namespaces, name it @name";
    // Root's serves all users.
    const Status taken = address[0] != '@' ? Status::invalid
                                           : listen_at(address, ::geteuid() == 0, &listener, &place, &error);
    if (taken != Status::ok) {
        // Many programs may have started one at once; one is enough.
        if (taken == Status::not_done && !words.foreground) return 0;
        if (taken == Status::not_done) error = "another one listens there";
        std::fprintf(stderr, "viaduct-udpd: %s: %s\n", address.c_str(), error.c_str());
        return 1;
    }
    udp::RequestServer server({nic, words.linger_ms < 0 ? -1 : words.linger_ms * 1'000'000}, std::move(listener));
    serving = &server;
    struct sigaction action {};
    action.sa_handler = end;
    for (const int s : {SIGTERM, SIGINT, SIGHUP}) ::sigaction(s, &action, nullptr);
    std::string why, cure;
    if (server.open_port(&why, &cure)) {
        VIADUCT_LOG(info, "udpd", "%s is open", udp::text_of(nic).c_str());
    } else {
        VIADUCT_LOG(error, "udpd", "%s; %s", why.c_str(), cure.c_str());
        if (words.foreground) return 1;
        server.refuse(why, cure);
    }
    server.run();
    if (place[0] != '@') ::unlink(place.c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Words words;
    CLI::App app{"Viaduct: passes connection requests on to the programs of a host that speak VI over UDP",
                 "viaduct-udpd"};
    app.add_option("--address", words.address, "The IPv4 address of the NIC")->required();
    app.add_option("--port", words.port, "The port that requests come to, as udp.port has it");
    app.add_option("--socket", words.socket, "Address to listen at: @name, in the abstract name space");
    app.add_flag("--foreground", words.foreground, "Run for a person or a service manager: log to standard error");
    app.add_option("--linger-ms", words.linger_ms, "Leave so long after the last program; negative: stay");
    app.set_version_flag("--version", std::string("viaduct-udpd ") + kVersion);
    CLI11_PARSE(app, argc, argv);
    if (words.foreground && !log::enabled(log::Level::info)) log::set_level(log::Level::info);
    raise_own_limits();  // two descriptors for each program
    if (!words.foreground) shed_inherited();
    ::signal(SIGPIPE, SIG_IGN);
    return serve(words);
}
