// SPDX-License-Identifier: BSD-2-Clause
// vipkad: options, log, limits, socket, loop. Everything else is in the library beside it.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "core/agent/meeting_point.hpp"
#include "core/agent/name_holder.hpp"
#include "core/agent/own_limits.hpp"
#include "core/config/config.hpp"
#include "core/config/paths.hpp"
#include "core/process/never_destroyed.hpp"
#include "kagent/server.hpp"
#include "kagent/service.hpp"
#include "viaduct/kagent.hpp"

namespace {

constexpr int kWrongOptions = 2;  // as of the tools

using namespace viaduct;

struct Options {
    std::string socket, config, log_level;
    bool foreground = false, automatic = false;
    std::optional<int64_t> linger_ms;
};

// Standard error is where the starting process has it: a terminal, the journal, or nowhere.
void open_log(const Options& o) {
    auto log = spdlog::stderr_logger_st("vipkad");
    log->set_level(spdlog::level::from_str(!o.log_level.empty() ? o.log_level
                                           : o.foreground       ? "info"
                                                                : "warn"));
    spdlog::set_default_logger(log);
    spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e vipkad[%P] %l: %v");
}

std::string default_address() {
    if (const char* named = ::secure_getenv(kagent::kAgentVariable); named != nullptr && *named != '\0')
        return named;
    return kagent::kUserSocketPrefix + std::to_string(::geteuid());
}

// An agent that an application has started serves all programs of that user: what it has inherited from the program
// that started it is undone where the system allows it. What is left a client with better limits may replace.
uint32_t set_right(const Options& o) {
    raise_own_limits();
    if (o.automatic) shed_inherited();
    const uint32_t flaws = o.automatic ? own_flaws() : 0;
    if (flaws != 0)
        spdlog::warn("inherited from the program that started this agent, and not to be changed: {}",
                     names_of_flaws(flaws));
    return flaws;
}

int serve(const Options& o, uint32_t flaws) {
    std::string error;
    Fd listener = kagent::activated_socket(&error);
    if (!error.empty()) {
        spdlog::critical(error);
        return 1;
    }
    kagent::Server::Options server_options;
    server_options.keep_socket = listener.valid();
    server_options.forever = o.foreground && !o.linger_ms;
    if (!listener.valid()) {
        // From here on an end is an orderly one: the path about to be taken is given back.
        kagent::hold_end_signals();
        server_options.address = o.socket.empty() ? default_address() : o.socket;
        const std::string asked = server_options.address;
        // Each process that can reach a path of root's may connect: the agent serves every user there. At an abstract
        // name, and at the fallback socket in place of one, the agent accepts its own user only.
        const bool for_all = asked[0] != '@' && ::geteuid() == 0;
        const Status s = listen_at(asked, for_all, &listener, &server_options.address, &error);
        if (s == Status::not_done) {
            // Many processes may have started an agent at once; one is enough.
            spdlog::info("another agent serves {} already", server_options.address);
            return 0;
        }
        if (s != Status::ok) {
            spdlog::critical(error);
            return 1;
        }
        if (server_options.address != asked) {
            server_options.own_user_only = true;
            const std::string holder = other_user_at(asked);
            spdlog::warn("{} is held by {}, which is not known to be root or user {}: serving {} instead", asked,
                         holder.empty() ? "a user that the kernel does not name" : holder, ::geteuid(),
                         server_options.address);
        }
    }

    // Threads that ask providers read it, and may outlast this function.
    static const NeverDestroyed<Config> kept(Config::load());
    const Config& config = *kept;
    for (const ConfigProblem& problem : config.problems())
        if (problem.section != "mpi") spdlog::warn("configuration: {}", problem.text);
    auto settings = kagent::AgentSettings::from(config);
    if (o.linger_ms) {
        settings.linger_ms = *o.linger_ms;
        // The option limits the statistics of ended processes, too: the agent does not stay for them.
        if (*o.linger_ms >= 0) settings.ended_ms = std::min(settings.ended_ms, *o.linger_ms);
    }
    settings.flaws = flaws;
    kagent::Providers providers;
    providers.load_all(config);

    kagent::Server server(std::move(server_options), std::move(settings), providers, std::move(listener));
    for (const NicInfo& nic : providers.nics()) spdlog::info("NIC {}: {}", nic.name, nic.description);
    for (const auto& r : providers.rejected())
        spdlog::info("not offered: {} {}: {} ({})", r.provider, r.name, r.reason, r.cure);
    kagent::notify_manager("READY=1");
    server.run();
    // The destructors of static objects, in libraries of providers too, would run beside a thread that uses them.
    if (server.asks_providers()) ::_exit(0);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options o;
    CLI::App app{"Viaduct kernel agent: opens NICs and joins connections for the programs of this host",
                 "vipkad"};
    app.add_option("--socket", o.socket, "Address to listen at: a path, or @name for an abstract one");
    app.add_flag("--foreground", o.foreground, "Run for a person: log what happens, stay until interrupted");
    app.add_flag("--automatic", o.automatic,
                 "Started by a program that needed it: limits inherited from that are undone");
    app.add_option("--linger-ms", o.linger_ms, "Leave so long after the last client; negative: stay");
    app.add_option("--log-level", o.log_level, "What goes to standard error")
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "critical", "off"}));
    app.add_option("--config", o.config, "Configuration file, read after the usual ones")
        ->check(CLI::ExistingFile);
    app.set_version_flag("--version", std::string("vipkad ") + kVersion);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kWrongOptions;
    }

    ::signal(SIGPIPE, SIG_IGN);  // the reader of the log may end
    ::signal(SIGXFSZ, SIG_IGN);  // the program that started us may have been given short files
    open_log(o);
    const uint32_t flaws = set_right(o);
    if (!o.config.empty()) ::setenv("VIADUCT_CONFIG", o.config.c_str(), 1);
    try {
        return serve(o, flaws);
    } catch (const std::exception& e) {
        spdlog::critical("ended by an exception: {}", e.what());
        ::_exit(1);  // as in serve(): a thread may ask a provider
    }
}
