// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

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
        while (next(&command) && command.what != Command::What::end) obey(command);
    }

private:
    bool next(Command* command) {
        // A client may pause for as long as it likes; when it leaves, its VI breaks.
        while (!tools::stopped()) {
            if (control_.receive(command, kSliceMs)) return true;
        }
        return false;
    }

    void obey(const Command& command) {
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
        if (!control_.receive(&theirs, kStallMs) || theirs.what != Command::What::window)
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
        const Taken taken = measure(bundle, run, false);
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

// Where clients of one NIC come in.
struct Door {
    std::string device;
    std::unique_ptr<Control> control;
};

using Told = std::function<void(const std::string&)>;

// A NIC at which nothing can be waited for is left out, if there is another one.
std::vector<Door> open_doors(const ServerOptions& options, const Told& told) {
    std::vector<Door> doors;
    for (const std::string& device : options.devices) {
        try {
            doors.push_back({device, std::make_unique<Control>(device)});
        } catch (const tools::ToolError& error) {
            if (doors.empty() && device == options.devices.back()) throw;
            told(fmt::format("not serving on {}: {}", device, error.what()));
            continue;
        }
        tools::Nic& nic = doors.back().control->nic();
        told(fmt::format("serving on {} {}, discriminator {}", nic.name(), tools::text_of(nic.local("").head),
                         options.discriminator));
    }
    return doors;
}

// The door by which a client has come; null: the server was stopped.
Door* await_client(const ServerOptions& options, std::vector<Door>& doors, const Told& told) {
    while (!tools::stopped() && !doors.empty()) {
        const auto slice = static_cast<VIP_ULONG>(kSliceMs / doors.size());
        for (size_t i = 0; i < doors.size() && !tools::stopped(); ++i) {
            try {
                if (doors[i].control->accept(options.discriminator, slice)) return &doors[i];
            } catch (const tools::ToolError& error) {
                if (doors.size() == 1) throw;
                told(fmt::format("not serving on {} any more: {}", doors[i].device, error.what()));
                doors.erase(doors.begin() + static_cast<std::ptrdiff_t>(i));
                break;
            }
        }
    }
    return nullptr;
}

}  // namespace

void serve(const ServerOptions& options, const Told& told) {
    std::vector<Door> doors = open_doors(options, told);
    while (Door* const door = await_client(options, doors, told)) {
        told(fmt::format("{} has come", door->control->peer()));
        try {
            Session(options, door->device, *door->control).run();
            told(fmt::format("{} has left", door->control->peer()));
        } catch (const tools::ToolError& error) {
            if (options.once) throw;
            told(fmt::format("{} has left: {}", door->control->peer(), error.what()));
        }
        if (options.once) return;
        door->control.reset();  // a VI for the next client
        door->control = std::make_unique<Control>(door->device);
    }
}

}  // namespace viaduct::vipperf
