// SPDX-License-Identifier: BSD-2-Clause
// viaduct-udpd: its options and its port. How it starts and ends is in providers/packet/daemon.hpp.
#include <arpa/inet.h>

#include "core/config/config.hpp"
#include "providers/packet/daemon.hpp"
#include "providers/udp/address.hpp"
#include "providers/udp/daemon/server.hpp"
#include "providers/wire/encapsulation.hpp"

namespace {

constexpr int kWrongOptions = 2;  // as of the tools

using namespace viaduct;

struct Options {
    std::string address;
    uint16_t port = wire::kUdpPort;
    packet::DaemonOptions daemon{"udpd"};
};

int serve(const Options& options) {
    in_addr ip{};
    if (::inet_pton(AF_INET, options.address.c_str(), &ip) != 1) {
        std::fprintf(stderr, "viaduct-udpd: %s is no IPv4 address\n", options.address.c_str());
        return kWrongOptions;
    }
    const NicAddress nic = wire::udp_address(ntohl(ip.s_addr), options.port);
    const auto open_port = [&](udp::RequestServer& server, std::string* why, std::string* cure) {
        if (!server.open_port(why, cure)) return false;
        VIADUCT_LOG(info, "udpd", "%s is open", udp::text_of(nic).c_str());
        return true;
    };
    const std::string address =
        options.daemon.address_or(udp::daemon_address(udp::text_of(nic), ::geteuid()));
    const bool cross_user = Config::load().get_bool("agent", "cross_user");
    const uint32_t flaws = packet::flaws_of(options.daemon);
    return packet::serve_programs<udp::RequestServer>(options.daemon, address,
                                                      {nic, options.daemon.linger_ns(), cross_user, flaws}, open_port);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"Viaduct: passes connection requests on to the programs of a host that speak VI over UDP",
                 options.daemon.program()};
    app.add_option("--address", options.address, "The IPv4 address of the NIC")->required();
    app.add_option("--port", options.port, "The port that requests come to, as udp.port has it")
        ->check(CLI::Range(1, 65535));
    packet::add_daemon_options(app, &options.daemon);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kWrongOptions;
    }
    packet::settle_process(options.daemon);
    return serve(options);
}
