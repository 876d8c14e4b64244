// SPDX-License-Identifier: BSD-2-Clause
// viaduct-acenicd: options, socket, port, loop. Everything else is beside it.
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/agent/meeting_point.hpp"
#include "core/agent/own_limits.hpp"
#include "core/config/paths.hpp"
#include "core/log/log.hpp"
#include "providers/acenic/daemon/server.hpp"
#include "providers/acenic/port_lock.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::acenic;

struct Words {
    std::string port, faults, socket;
    bool foreground = false;
    int64_t linger_ms = 2000;
};

Server* serving = nullptr;

void end(int) { serving->stop(); }

// The port, or the answer to all that ask for it.
std::unique_ptr<Port> open_port(const Words& words, Fd* ours, std::string* why, std::string* cure) {
    PortSpec spec;
    Rejection rejection;
    if (!read_port(words.port.c_str(), words.faults.c_str(), 0, &spec, &rejection)) {
        *why = rejection.reason;
        *cure = rejection.cure;
        return nullptr;
    }
    *ours = acquire_port_lock(spec);
    if (!ours->valid()) {
        *why = words.port + " is in use by another process in exclusive mode";
        *cure = "set acenic.mode to shared for that one too, or use another interface";
        return nullptr;
    }
    return Port::open(spec, why, cure);
}

int serve(const Words& words) {
    PortSpec spec;
    Rejection rejection;
    read_port(words.port, &spec, &rejection);  // for its name; whether it can be had is seen below
    const std::string address =
        words.socket.empty() ? engine_address(short_name(spec), ::geteuid()) : words.socket;
    Fd listener;
    std::string place, error = "a path would be seen from other network namespaces, name it @name";
    // Root's engine serves all users.
    const Status taken = address[0] != '@' ? Status::invalid
                                           : listen_at(address, ::geteuid() == 0, &listener, &place, &error);
    if (taken != Status::ok) {
        // Many applications may have started an engine at once; one is enough.
        if (taken == Status::not_done && !words.foreground) return 0;
        if (taken == Status::not_done) error = "another engine listens there";
        std::fprintf(stderr, "viaduct-acenicd: %s: %s\n", address.c_str(), error.c_str());
        return 1;
    }
    Server server({words.port, !words.faults.empty(), words.linger_ms < 0 ? -1 : words.linger_ms * 1'000'000},
                  std::move(listener));
    serving = &server;
    struct sigaction action {};
    action.sa_handler = end;
    for (const int s : {SIGTERM, SIGINT, SIGHUP}) ::sigaction(s, &action, nullptr);
    Fd ours;
    std::string why, cure;
    if (auto port = open_port(words, &ours, &why, &cure)) {
        VIADUCT_LOG(info, "acenicd", "%s serves %s", words.port.c_str(), address.c_str());
        server.use(std::move(port));
    } else {
        VIADUCT_LOG(error, "acenicd", "%s; %s", why.c_str(), cure.c_str());
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
    CLI::App app{"Viaduct engine process: lets several programs share one acenic port", "viaduct-acenicd"};
    app.add_option("--port", words.port, "The port, as acenic.ports has it")->required();
    app.add_option("--faults", words.faults,
                   "For tests: a fault plan for all that leaves, as acenic.faults has it");
    app.add_option("--socket", words.socket, "Address to listen at: @name, in the abstract name space");
    app.add_flag("--foreground", words.foreground,
                 "Run for a person or a service manager: log to standard error");
    app.add_option("--linger-ms", words.linger_ms, "Leave so long after the last program; negative: stay");
    app.set_version_flag("--version", std::string("viaduct-acenicd ") + kVersion);
    CLI11_PARSE(app, argc, argv);
    if (words.foreground && !log::enabled(log::Level::info)) log::set_level(log::Level::info);
    raise_own_limits();  // three descriptors for each application
    if (!words.foreground) shed_inherited();
    ::signal(SIGPIPE, SIG_IGN);
    return serve(words);
}
