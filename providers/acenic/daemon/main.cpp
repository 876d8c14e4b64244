// SPDX-License-Identifier: BSD-2-Clause
// viaduct-acenicd: its options and its port. How it starts and ends is in providers/packet/daemon.hpp.
#include <cerrno>

#include "core/provider/explain.hpp"
#include "providers/acenic/daemon/server.hpp"
#include "providers/acenic/end_report.hpp"
#include "providers/acenic/port_lock.hpp"
#include "providers/packet/daemon.hpp"

namespace {

constexpr int kWrongOptions = 2;  // as of the tools

using namespace viaduct;
using namespace viaduct::acenic;

struct Options {
    std::string port, faults, report_end;
    packet::DaemonOptions daemon{"acenicd"};
};

// The port, or why it cannot be had. The lock is this process' for as long as it has the port.
std::unique_ptr<Port> open_port(const Options& options, Fd* lock, std::string* why, std::string* cure) {
    PortSpec spec;
    Rejection rejection;
    if (!read_port(options.port.c_str(), options.faults.c_str(), 0, &spec, &rejection)) {
        *why = rejection.reason;
        *cure = rejection.cure;
        return nullptr;
    }
    *lock = acquire_port_lock(spec);
    if (!lock->valid() && errno != EADDRINUSE) {
        *why = with_error(options.port + ": no socket for the lock of the port", errno);
        *cure = "raise the limit of open files (ulimit -n)";
        return nullptr;
    }
    if (!lock->valid()) {
        *why = options.port + " is in use by another process in exclusive mode";
        *cure = "set acenic.mode to shared for that one too, or use another interface";
        return nullptr;
    }
    return Port::open(spec, why, cure);
}

int report(const Options& options) {
    PortSpec spec;
    Rejection rejection;
    return read_port(options.port, &spec, &rejection) ? report_end(spec, options.report_end) : 1;
}

int serve(const Options& options) {
    PortSpec spec;
    Rejection rejection;
    read_port(options.port, &spec, &rejection);  // for its name; whether it can be had is seen below
    const std::string address = options.daemon.address_or(engine_address(short_name(spec), ::geteuid()));
    Fd lock;
    const auto use_port = [&](Server& server, std::string* why, std::string* cure) {
        auto port = open_port(options, &lock, why, cure);
        if (port == nullptr) return false;
        VIADUCT_LOG(info, "acenicd", "%s serves %s", options.port.c_str(), address.c_str());
        server.use(std::move(port));
        return true;
    };
    const uint32_t flaws = packet::flaws_of(options.daemon);
    return packet::serve_programs<Server>(
        options.daemon, address, {options.port, !options.faults.empty(), options.daemon.linger_ns(), flaws}, use_port);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"Viaduct engine process: lets several programs share one acenic port", options.daemon.program()};
    app.add_option("--port", options.port, "The port, as acenic.ports has it")->required();
    app.add_option("--faults", options.faults,
                   "For tests: a fault plan for all that leaves, as acenic.faults has it");
    app.add_option("--report-end", options.report_end,
                   "For programs: open no port, and report the end of the program at that address to its peers");
    packet::add_daemon_options(app, &options.daemon);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kWrongOptions;
    }
    packet::settle_process(options.daemon);
    return options.report_end.empty() ? serve(options) : report(options);
}
