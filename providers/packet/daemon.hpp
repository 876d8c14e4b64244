// SPDX-License-Identifier: BSD-2-Clause
// What the daemons of providers (viaduct-udpd, viaduct-acenicd) have in common: their options, the address where
// programs meet them, how they end, and what they do without a port. Main thread. For the file with main() alone: it
// reads a command line.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "core/agent/meeting_point.hpp"
#include "core/agent/own_limits.hpp"
#include "core/config/paths.hpp"
#include "core/log/log.hpp"
#include "core/shm/fd.hpp"

namespace viaduct::packet {

struct DaemonOptions {
    const char* component;  // "udpd" of viaduct-udpd, in the log
    std::string socket{};   // where it listens; empty: at the address of its port
    bool foreground = false;
    int64_t linger_ms = 2000;

    std::string address_or(const std::string& fallback) const { return socket.empty() ? fallback : socket; }
    std::string program() const { return std::string("viaduct-") + component; }
    int64_t linger_ns() const { return linger_ms < 0 ? -1 : linger_ms * 1'000'000; }
};

inline void add_daemon_options(CLI::App& app, DaemonOptions* o) {
    app.add_option("--socket", o->socket, "Address to listen at: @name, in the abstract name space");
    app.add_flag("--foreground", o->foreground, "Run for a person or a service manager: log to standard error");
    app.add_option("--linger-ms", o->linger_ms, "Leave so long after the last program; negative: stay");
    app.set_version_flag("--version", o->program() + " " + kVersion);
}

// Before anything is opened: a daemon needs descriptors for each program, and serves others than the one that started
// it.
inline void settle_process(const DaemonOptions& o) {
    if (o.foreground && !log::enabled(log::Level::info)) log::set_level(log::Level::info);
    raise_own_limits();
    if (!o.foreground) shed_inherited();
    ::signal(SIGPIPE, SIG_IGN);
}

// The limits that the daemon has inherited from the program that started it and cannot raise. The daemon reports them
// to programs, and a program that can start a better daemon has it replaced.
inline uint32_t flaws_of(const DaemonOptions& o) {
    const uint32_t flaws = o.foreground ? 0 : own_flaws();
    if (flaws != 0)
        VIADUCT_LOG(warn, o.component, "inherited from the program that started %s, and not to be changed: %s",
                    o.program().c_str(), names_of_flaws(flaws).c_str());
    return flaws;
}

// Listens there, for every user if the daemon is root's. Otherwise `*exit_status` is what the process ends with.
inline bool listen_for_programs(const DaemonOptions& o, const std::string& address, Fd* listener, std::string* place,
                                int* exit_status) {
    std::string error = "a path would be seen from other network namespaces, name it @name";
    const Status taken =
        address[0] != '@' ? Status::invalid : listen_at(address, ::geteuid() == 0, listener, place, &error);
    if (taken == Status::ok) return true;
    *exit_status = 1;
    if (taken == Status::not_done) {
        // Many programs may have started one at once; one is enough.
        if (!o.foreground) {
            *exit_status = 0;
            return false;
        }
        error = "another one listens there";
    }
    std::fprintf(stderr, "%s: %s: %s\n", o.program().c_str(), address.c_str(), error.c_str());
    return false;
}

// The server that signals end.
template <class Server>
inline Server* serving = nullptr;

// Listens at `address` and serves until a signal or the end of the linger. open_port(server, &why, &cure) gives the
// server its port; where it cannot, a daemon in the foreground ends, and another one tells each program why.
template <class Server, class OpenPort>
int serve_programs(const DaemonOptions& o, const std::string& address, typename Server::Options options,
                   OpenPort open_port) {
    Fd listener;
    std::string place;
    int exit_status = 0;
    if (!listen_for_programs(o, address, &listener, &place, &exit_status)) return exit_status;
    Server server(std::move(options), std::move(listener));
    serving<Server> = &server;
    struct sigaction action {};
    action.sa_handler = [](int) { serving<Server>->stop(); };
    for (const int s : {SIGTERM, SIGINT, SIGHUP}) ::sigaction(s, &action, nullptr);
    std::string why, cure;
    if (!open_port(server, &why, &cure)) {
        VIADUCT_LOG(error, o.component, "%s; %s", why.c_str(), cure.c_str());
        if (o.foreground) return 1;
        server.refuse(why, cure);
    }
    server.run();
    if (place[0] != '@') ::unlink(place.c_str());
    return 0;
}

}  // namespace viaduct::packet
