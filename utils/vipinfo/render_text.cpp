// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/text/printable.hpp"
#include "utils/vipinfo/render.hpp"

namespace viaduct::vipinfo {

using namespace tools;

namespace {

std::string levels(uint16_t mask) {
    std::string out;
    const auto add = [&](uint16_t bit, const char* name) {
        if ((mask & bit) != 0) out += (out.empty() ? "" : ", ") + std::string(name);
    };
    add(1, "unreliable");
    add(2, "reliable delivery");
    add(4, "reliable reception");
    return out.empty() ? "none" : out;
}

std::string capabilities(uint32_t mask) {
    static constexpr const char* names[] = {"RDMA write",  "RDMA read",  "immediate data", "atomics",
                                            "own wake-up", "local only", "fault plan",       "atomic words"};
    std::string out;
    for (size_t bit = 0; bit < std::size(names); ++bit) {
        if ((mask & (1u << bit)) != 0) out += (out.empty() ? "" : ", ") + std::string(names[bit]);
    }
    return out;
}

std::string size_text(uint64_t bytes) {
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < std::size(units)) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{} {}", bytes, units[unit]);
}

void heading(std::string& out, const char* title) { out += fmt::format("\n{}\n", title); }

void providers_text(std::string& out, const Inventory& all) {
    heading(out, "Providers considered:");
    for (const ProviderRow& row : all.providers) {
        out +=
            fmt::format("  {:<10} {:<6} {}\n", row.name, row.version.empty() ? "-" : row.version, row.path);
        if (!row.description.empty()) out += fmt::format("             {}\n", row.description);
        if (!row.error.empty())
            out += fmt::format("             rejected: {}\n             cure: {}\n", row.error, row.cure);
    }
    if (all.providers.empty()) out += "  none found\n";
    for (const RejectedNic& nic : all.rejected) {
        out += fmt::format("  {:<10} NIC {} rejected: {}\n", nic.provider, nic.name, nic.reason);
        if (!nic.cure.empty()) out += fmt::format("             cure: {}\n", nic.cure);
    }
}

void settings_text(std::string& out, const Inventory& all) {
    heading(out, "Settings in force:");
    for (const SettingRow& row : all.settings) {
        out += fmt::format("  {:<34} {:<24} ({})\n", row.section + "." + row.key, row.value, row.origin);
    }
    for (const std::string& problem : all.config_problems) out += fmt::format("  problem: {}\n", problem);
}

void links_text(std::string& out, const Inventory& all) {
    heading(out, "Links of this host:");
    const auto status = nlohmann::json::parse(all.status_json, nullptr, false);
    if (!status.is_object() || !status.contains("links")) {
        out += "  the agent did not tell\n";
        return;
    }
    for (const auto& link : status["links"]) {
        if (!link.is_object()) continue;
        std::string line = fmt::format("  {:<16}", link.value("name", std::string("?")));
        for (const auto& [key, value] : link.items()) {
            if (key == "name" || value == "") continue;
            line += fmt::format(" {}={}", key, value.is_string() ? value.get<std::string>() : value.dump());
        }
        out += line + "\n";
    }
}

// Makes text that other programs have sent to the agent printable: the agent does not check it.
std::string word_of(const nlohmann::json& entry, const char* key) {
    const auto found = entry.find(key);
    return found != entry.end() && found->is_string() ? printable(found->get<std::string>()) : "?";
}

int64_t number_of(const nlohmann::json& entry, const char* key) {
    const auto found = entry.find(key);
    return found != entry.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

void waiters_text(std::string& out, const Inventory& all) {
    heading(out, "Calls that wait to be connected, on NICs of paramnet:");
    const auto status = nlohmann::json::parse(all.status_json, nullptr, false);
    if (!status.is_object() || !status.contains("waiters") || !status["waiters"].is_array()) {
        out += "  the agent did not tell\n";
        return;
    }
    for (const auto& w : status["waiters"]) {
        if (!w.is_object()) continue;
        const std::string peer = word_of(w, "for");
        out += fmt::format("  {:<12} {}{}  for {:.1f} s, process {} ({}) of user {}\n", word_of(w, "nic"),
                           word_of(w, "at"), peer.empty() ? "" : ", to " + peer,
                           static_cast<double>(number_of(w, "since_ms")) / 1000, number_of(w, "pid"),
                           word_of(w, "program"), number_of(w, "uid"));
    }
    if (status["waiters"].empty()) out += "  none\n";
}

}  // namespace

std::string text_of_nic(const NicInfo& nic, bool attributes, bool is_default) {
    std::string out =
        fmt::format("{:<12} {:<10} {}  link {:<5} {}{}\n", text_of(nic.name), text_of(nic.provider),
                    address_text(nic.address), nic.link_up != 0 ? "up" : "down", text_of(nic.description),
                    is_default ? "  [default]" : "");
    if (!attributes) return out;
    const auto row = [&](const char* name, const std::string& value) {
        out += fmt::format("    {:<24} {}\n", name, value);
    };
    row("hardware version", std::to_string(nic.hardware_version));
    row("provider version", fmt::format("{}.{}", nic.provider_version >> 16, nic.provider_version & 0xFFFF));
    row("reliability levels", levels(nic.reliability_mask));
    row("RDMA read at", levels(nic.rdma_read_mask));
    row("can do", capabilities(nic.capabilities));
    row("max transfer", size_text(nic.max_transfer));
    row("native MTU", size_text(nic.native_mtu));
    row("max VIs", std::to_string(nic.max_vi));
    row("max descriptors/queue", std::to_string(nic.max_descriptors_per_queue));
    row("max segments/descriptor", std::to_string(nic.max_segments));
    row("max CQs", std::to_string(nic.max_cq));
    row("max CQ entries", std::to_string(nic.max_cq_entries));
    row("max protection tags", std::to_string(nic.max_ptags));
    row("max discriminator", size_text(nic.max_discriminator));
    row("max registered", size_text(nic.max_register_bytes));
    row("max regions", std::to_string(nic.max_register_regions));
    row("max region", size_text(nic.max_register_block_bytes));
    row("inline send", size_text(nic.send.inline_bytes));
    row("nominal latency", fmt::format("{} ns", nic.profile.latency_ns));
    row("nominal bandwidth", fmt::format("{} MB/s", nic.profile.bandwidth_mb_s));
    return out;
}

std::string text(const Inventory& all, const View& view) {
    std::string out;
    if (all.agent_error.empty()) {
        for (const NicInfo& nic : all.nics)
            out += text_of_nic(nic, view.attributes, text_of(nic.name) == all.default_nic);
        if (all.nics.empty()) out += "no NIC\n";
        if (view.attributes) {
            out +=
                fmt::format("\nAgent: vipkad {} (process {}), protocol {}, at {} ({})\n", all.agent_version,
                            all.agent_pid, all.protocol, all.agent_address, all.agent_origin);
        }
    }
    if (view.providers) providers_text(out, all);
    if (view.settings) settings_text(out, all);
    if (view.links) links_text(out, all);
    if (view.waiters) waiters_text(out, all);
    return out;
}

}  // namespace viaduct::vipinfo
