// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "utils/common/limits.hpp"
#include "utils/common/stop.hpp"
#include "utils/vipperf/control.hpp"
#include "utils/vipperf/limit.hpp"
#include "utils/vipperf/loops.hpp"

namespace viaduct::vipperf {

namespace {

constexpr VIP_ULONG kSliceMs = 200;  // waits look for Ctrl-C so often, in turns at each NIC

// One client, from its connection to its end.
class Session {
public:
    Session(const ServerOptions& options, const std::string& device, Control& control)
        : options_(options), device_(device), control_(control) {}

    void run() {
        Command command;
        while (next(&command) && command.what != Command::What::end) run_command(command);
    }

private:
    bool next(Command* command) {
        // A client may pause for as long as it likes; when it leaves, its VI breaks.
        while (!tools::stopped()) {
            if (control_.receive(command, kSliceMs)) return true;
        }
        return false;
    }

    void run_command(const Command& command) {
        switch (command.what) {
            case Command::What::setup:
                return set_up(command.plan);
            case Command::What::run:
                return run_one(command.run);
            case Command::What::distance:
                if (options_.pair != nullptr) options_.pair->distance();
                return;
            case Command::What::limit:
                if (options_.pair != nullptr) measure_limit(*options_.pair, command.limit, command.run.bytes);
                return;
            case Command::What::window:
            case Command::What::end:
                break;
        }
        throw tools::ToolError("the client requests what this server does not have");
    }

    static Answer trouble(const std::string& why) {
        Answer answer;
        std::strncpy(answer.trouble, why.c_str(), sizeof answer.trouble - 1);
        return answer;
    }

    void set_up(const Plan& plan) {
        std::string why = fault_of(plan);
        if (why.empty() && bundles_.size() >= kMostBundles) why = "too many plans of one client";
        std::unique_ptr<Bundle> bundle;
        if (why.empty()) {
            try {
                bundle = std::make_unique<Bundle>(device_, plan);
            } catch (const tools::ToolError& error) {
                why = error.what();
            }
        }
        if (!why.empty()) return control_.send(trouble(why));
        Answer answer;
        answer.bundle = static_cast<uint32_t>(bundles_.size());
        answer.window = bundle->window();
        control_.send(answer);
        bundle->accept_all(options_.discriminator + "/" + std::to_string(answer.bundle));
        Command theirs;
        if (!control_.receive(&theirs, stall_ms()) || theirs.what != Command::What::window)
            throw tools::ToolError("the client does not answer");
        bundle->set_remote(theirs.window);
        bundles_.push_back(std::move(bundle));
        control_.send(Answer{});
    }

    void run_one(const Run& run) {
        if (run.bundle >= bundles_.size()) return control_.send(trouble("no such plan"));
        Bundle& bundle = *bundles_[run.bundle];
        const std::string why = fault_of(run, bundle.plan());
        if (!why.empty()) return control_.send(trouble(why));
        control_.send(Answer{});  // ready
        Answer answer;
        const Measured taken = measure(bundle, run, false);
        answer.ns = taken.ns;
        answer.share = taken.share;
        answer.peak_ns = taken.peak_ns;
        control_.send(answer);
    }

    const ServerOptions& options_;
    const std::string& device_;
    Control& control_;
    std::vector<std::unique_ptr<Bundle>> bundles_;
};

// Where clients connect on one NIC.
struct Listener {
    std::string device;
    std::unique_ptr<Control> control;
};

using LineCallback = std::function<void(const std::string&)>;

// A NIC at which no client can be waited for is left out, if there is another one.
std::vector<Listener> open_listeners(const ServerOptions& options, const LineCallback& on_line) {
    std::vector<Listener> listeners;
    for (const std::string& device : options.devices) {
        try {
            listeners.push_back({device, std::make_unique<Control>(device)});
        } catch (const tools::ToolError& error) {
            if (listeners.empty() && device == options.devices.back()) throw;
            on_line(fmt::format("not serving on {}: {}", device, error.what()));
            continue;
        }
        tools::Nic& nic = listeners.back().control->nic();
        on_line(fmt::format("serving on {} {}, discriminator {}", nic.name(), tools::text_of(nic.local("").head),
                            options.discriminator));
    }
    return listeners;
}

// The listener at which a client has come; null: the server was stopped.
Listener* await_client(const ServerOptions& options, std::vector<Listener>& listeners, const LineCallback& on_line) {
    while (!tools::stopped() && !listeners.empty()) {
        const auto slice = static_cast<VIP_ULONG>(kSliceMs / listeners.size());
        for (size_t i = 0; i < listeners.size() && !tools::stopped(); ++i) {
            try {
                if (listeners[i].control->accept(options.discriminator, slice)) return &listeners[i];
            } catch (const tools::ToolError& error) {
                if (listeners.size() == 1) throw;
                on_line(fmt::format("not serving on {} any more: {}", listeners[i].device, error.what()));
                listeners.erase(listeners.begin() + static_cast<std::ptrdiff_t>(i));
                break;
            }
        }
    }
    return nullptr;
}

}  // namespace

void serve(const ServerOptions& options, const LineCallback& on_line) {
    std::vector<Listener> listeners = open_listeners(options, on_line);
    while (Listener* const listener = await_client(options, listeners, on_line)) {
        on_line(fmt::format("{} has come", listener->control->peer()));
        try {
            Session(options, listener->device, *listener->control).run();
            on_line(fmt::format("{} has left", listener->control->peer()));
        } catch (const tools::ToolError& error) {
            if (options.once) throw;
            on_line(fmt::format("{} has left: {}", listener->control->peer(), error.what()));
        }
        if (options.once) return;
        listener->control.reset();  // a VI for the next client
        listener->control = std::make_unique<Control>(listener->device);
    }
}

}  // namespace viaduct::vipperf
