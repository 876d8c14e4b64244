// SPDX-License-Identifier: BSD-2-Clause
// viaduct-acenicd: options, socket, port, loop. Everything else is beside it.
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/agent/socket_address.hpp"
#include "core/config/paths.hpp"
#include "core/log/log.hpp"
#include "providers/acenic/daemon/server.hpp"
#include "providers/acenic/only_one.hpp"

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

// 0, or the errno.
int listen_at(const std::string& address, Fd* out) {
    sockaddr_un name;
    socklen_t length = 0;
    // A path would outlive us when we are killed, and would be seen from other network namespaces.
    if (address[0] != '@' || !fill_socket_address(address, &name, &length)) return EINVAL;
    Fd fd(above_stdio(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0 ||
        ::listen(fd.get(), SOMAXCONN) != 0)
        return errno;
    *out = std::move(fd);
    return 0;
}

// The port, or words for everybody who asks for it.
std::unique_ptr<Port> open_port(const Words& words, Fd* ours, std::string* why, std::string* cure) {
    PortSpec spec;
    Rejection rejection;
    if (!read_port(words.port.c_str(), words.faults.c_str(), 0, &spec, &rejection)) {
        *why = rejection.reason;
        *cure = rejection.cure;
        return nullptr;
    }
    *ours = take_port(spec);
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
    if (const int e = listen_at(address, &listener); e != 0) {
        // Many applications may have started an engine at once; one is enough.
        if (e == EADDRINUSE && !words.foreground) return 0;
        std::fprintf(stderr, "viaduct-acenicd: cannot listen at %s: %s\n", address.c_str(), std::strerror(e));
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
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {  // three descriptors for each application
        files.rlim_cur = files.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &files);
    }
    ::signal(SIGPIPE, SIG_IGN);
    return serve(words);
}
