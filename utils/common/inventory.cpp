// SPDX-License-Identifier: BSD-2-Clause
// Queries the agent over its protocol (viaduct/kagent.hpp), loads each provider, and reads the configuration. Changes
// nothing but that it may start the agent. One thread; see inventory.hpp.
#include "utils/common/inventory.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <vipl.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

#include "core/agent/asked_name.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/config/config_text.hpp"
#include "core/provider/loader.hpp"
#include "core/provider/provider_name.hpp"

namespace viaduct::tools {

namespace {


LinkOptions as_tool() {
    LinkOptions options;
    options.hello_flags = kagent::kHelloTool;
    return options;
}

std::string status_text(const Mail& answer) {
    kagent::Error error;
    if (!answer.get(&error)) return "the agent sent an answer of the wrong size";
    return std::string(viaduct::text_of(error.text));
}

// NICs and rejections come one message each until one says that no more follow.
void ask_nics(AgentLink& link, Inventory& all) {
    uint32_t ticket = 0;
    Status status = link.start(Mail(kagent::Type::kListNics), &ticket);
    bool more = status == Status::ok;
    const Deadline deadline = now_ns() + limit_ns(TimeLimit::tool_inventory);
    while (more) {
        Mail answer;
        status = link.await(ticket, deadline, &answer);
        if (status != Status::ok) break;
        more = false;
        if (answer.type() == kagent::Type::kNicEntry) {
            kagent::NicEntry entry;
            if (!answer.get(&entry)) break;
            all.nics.push_back(entry.nic);
            more = entry.more != 0;
        } else if (answer.type() == kagent::Type::kRejection) {
            kagent::RejectionEntry entry;
            if (!answer.get(&entry)) break;
            const auto text = [](const auto& field) { return std::string(viaduct::text_of(field)); };
            all.rejected.push_back({text(entry.provider), text(entry.name), text(entry.reason), text(entry.cure)});
            more = entry.more != 0;
        } else if (answer.type() == kagent::Type::kError) {
            all.agent_error = status_text(answer);
        }
    }
    if (status != Status::ok && all.agent_error.empty())
        all.agent_error = "no complete answer: " + link.last_error();
}

// The NIC that this program's configuration makes the default one, which need not be the agent's.
void ask_default(AgentLink& link, Inventory& all) {
    const kagent::NameText name = asked_name("nic0", Config::load().get("names", "default_provider"));
    Mail answer;
    kagent::NicEntry entry;
    const Status status = link.call(Mail::of(kagent::Type::kResolveName, name), &answer,
                                    now_ns() + limit_ns(TimeLimit::tool_inventory));
    if (status == Status::ok && answer.get(&entry)) all.default_nic = viaduct::text_of(entry.nic.name);
}

std::string contents_of(int fd) {
    std::string text;
    char piece[4096];
    for (off_t at = 0;;) {
        const ssize_t n = ::pread(fd, piece, sizeof piece, at);
        if (n <= 0) break;
        text.append(piece, static_cast<size_t>(n));
        at += n;
    }
    return text.c_str();  // without the zero at its end
}

void ask_status(AgentLink& link, Inventory& all) {
    Mail answer;
    if (link.call(Mail(kagent::Type::kStatus), &answer, now_ns() + limit_ns(TimeLimit::tool_inventory)) != Status::ok)
        return;
    if (answer.type() != kagent::Type::kStatusText) return;
    if (!answer.descriptors.empty()) {  // too long for a message (kagent.hpp, kStatusText)
        all.status_json = contents_of(answer.descriptors[0].get());
        return;
    }
    const auto* text = reinterpret_cast<const char*>(answer.payload.data());
    all.status_json.assign(text, ::strnlen(text, answer.payload.size()));
}

void ask_agent(Inventory& all) {
    all.agent_address = agent_address(&all.agent_origin);
    AgentLink link(as_tool());
    if (link.connect() != Status::ok) {
        all.agent_error = link.last_error();
        return;
    }
    const kagent::Welcome& welcome = link.welcome();
    all.agent_version = viaduct::text_of(welcome.agent_version);
    all.agent_pid = welcome.agent_pid;
    all.protocol = welcome.version;
    ask_nics(link, all);
    ask_default(link, all);
    ask_status(link, all);
    const auto status = nlohmann::json::parse(all.status_json, nullptr, false);
    if (status.is_object()) all.agent_configuration = status.value("configuration", "");
}

void look_at_providers(Inventory& all) {
    for (const ProviderFile& file : find_providers()) {
        ProviderRow row;
        row.name = file.name;
        row.path = file.path;
        const LoadedProvider loaded = load_provider(file.name);
        row.error = loaded.error;
        row.cure = loaded.cure;
        if (loaded.provider != nullptr) {
            row.description = loaded.provider->description;
            row.version =
                fmt::format("{}.{}", loaded.provider->version >> 16, loaded.provider->version & 0xFFFF);
        }
        all.providers.push_back(std::move(row));
    }
}

void look_at_settings(Inventory& all) {
    const Config config = Config::load();
    all.own_configuration = config.fingerprint();
    for (const ConfigKey& key : Config::keys()) {
        const ConfigValue value = config.value(key.section, key.key);
        all.settings.push_back({key.section, key.key, value.text, value.origin, key.help});
    }
    for (const auto& [name, nic] : config.nic_aliases()) {
        all.settings.push_back({"nics", name, nic, "configuration", "name given to VipOpenNic"});
    }
    for (const ConfigProblem& problem : config.problems()) all.config_problems.push_back(problem.text);
}

}  // namespace

Inventory take_inventory() {
    Inventory all;
    look_at_settings(all);
    look_at_providers(all);
    ask_agent(all);
    return all;
}

namespace {

// The NIC that "host:NAME" opens is found by opening it: the system's routes and resolver take part.
std::string opened_by(const std::string& name) {
    VIP_NIC_HANDLE nic = nullptr;
    if (!name.starts_with("host:") || VipOpenNic(name.c_str(), &nic) != VIP_SUCCESS) return name;
    VIP_NIC_ATTRIBUTES attributes{};
    const bool known = VipQueryNic(nic, &attributes) == VIP_SUCCESS;
    VipCloseNic(nic);
    return known ? attributes.Name : name;
}

}  // namespace

namespace {

// A name that nothing is known of opens the default provider's NIC; with the known name that it is nearest to.
std::string guessed_text(const std::string& name, const NicInfo& nic) {
    std::vector<std::string> known{viaduct::text_of(nic.name).data()};
    for (const ProviderFile& file : find_providers())
        for (const char* which : {"", "0", "1"}) known.push_back(file.name + which);
    std::string hint = nearest(name, known);
    if (!provider_meant_by(name).empty())
        hint = fmt::format("; \"vipinfo --doctor {}\" says why", name);
    else if (!hint.empty())
        hint = fmt::format("; did you mean {}?", hint);
    return fmt::format("unknown name, opens the default {} because names.strict is off and no NIC has the name{}",
                       viaduct::text_of(nic.name), hint);
}

}  // namespace

// As vipl/device.cpp finds it.
Status resolve_name(const std::string& given, NicInfo* nic, std::string* why) {
    const Config config = Config::load();
    const std::string* const alias = config.nic_of_alias(given);
    const std::string name = opened_by(alias != nullptr ? *alias : given);
    if (name.size() >= sizeof(kagent::NameText::name)) {
        *why = fmt::format("longer than {} characters", sizeof(kagent::NameText::name) - 1);
        return Status::invalid;
    }
    const kagent::NameText request = asked_name(name, config.get("names", "default_provider"));
    AgentLink link(as_tool());
    uint32_t ticket = 0;
    Mail answer;
    Status status = link.start(Mail::of(kagent::Type::kResolveName, request), &ticket);
    if (status == Status::ok) status = link.await(ticket, now_ns() + limit_ns(TimeLimit::tool_inventory), &answer);
    if (status != Status::ok) {
        *why = link.last_error().empty() ? "the agent does not answer" : link.last_error();
        return status == Status::not_done ? Status::timeout : status;
    }
    kagent::NicEntry entry;
    if (answer.type() == kagent::Type::kNicEntry && answer.get(&entry)) {
        *nic = entry.nic;
        if ((entry.is_default & kagent::kNicIsGuessed) != 0) *why = guessed_text(name, *nic);
        if (alias == nullptr || alias->find(':') != std::string::npos || viaduct::text_of(nic->name) == *alias)
            return Status::ok;
        *why = fmt::format("the configuration gives that name to {}, and there is no such NIC", *alias);
        return Status::unknown_name;
    }
    *why = status_text(answer);
    return Status::unknown_name;
}

std::string provider_meant_by(const std::string& name) {
    std::vector<std::string> installed;
    for (const ProviderFile& file : find_providers()) installed.push_back(file.name);
    if (std::find(installed.begin(), installed.end(), name) != installed.end()) return name;
    return std::string(provider_named_by(name, installed));
}

std::string address_text(const NicAddress& address) {
    const uint8_t* b = address.bytes;
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", b[0], b[1], b[2], b[3], b[4], b[5]);
}

}  // namespace viaduct::tools
