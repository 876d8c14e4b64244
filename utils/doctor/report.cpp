// SPDX-License-Identifier: BSD-2-Clause
#include "utils/doctor/report.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "core/config/paths.hpp"
#include "utils/common/error.hpp"
#include "utils/common/inventory.hpp"
#include "utils/common/nic.hpp"

namespace viaduct::doctor {

namespace {

constexpr size_t kMostLines = 64;

std::string setting(const tools::Inventory& all, std::string_view section, std::string_view key) {
    for (const tools::SettingRow& row : all.settings)
        if (row.section == section && row.key == key) return row.value;
    return {};
}

NicLine line_of(const NicInfo& nic) {
    NicLine line;
    line.name = viaduct::text_of(nic.name);
    line.provider = viaduct::text_of(nic.provider);
    line.about = viaduct::text_of(nic.description);
    line.mtu = nic.native_mtu;
    line.up = nic.link_up != 0;
    const uint8_t* const b = nic.address.bytes;
    if (line.provider == "udp") line.ip = fmt::format("{}.{}.{}.{}", b[0], b[1], b[2], b[3]);
    return line;
}

// What discovery has found may still be refused: a key file that others can read, no descriptor left.
void try_to_open(const std::string& name, std::vector<std::string>* faults) try {
    const tools::Nic nic(name);
} catch (const tools::ToolError& error) {
    faults->emplace_back(error.what());
}

std::vector<std::string> texts_in(const Json& object, const char* key) {
    std::vector<std::string> all;
    const auto found = object.find(key);
    if (found == object.end() || !found->is_array()) return all;
    for (const Json& one : *found) {
        if (all.size() == kMostLines) break;
        all.push_back(text_in(Json{{"text", one}}, "text"));
    }
    return all;
}

bool flag_in(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

int64_t clock_us() {
    timespec t{};
    ::clock_gettime(CLOCK_REALTIME, &t);
    return int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
}

Report own_report() {
    const tools::Inventory all = tools::take_inventory();
    Report r;
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    r.host = name;
    r.version = kVersion;
    r.default_provider = setting(all, "names", "default_provider");
    r.far_provider = setting(all, "names", "far_provider");
    r.udp_port = std::strtoll(setting(all, "udp", "port").c_str(), nullptr, 10);
    r.has_key = !setting(all, "udp", "auth_key_file").empty();
    r.agent_error = all.agent_error;
    for (const NicInfo& nic : all.nics) r.nics.push_back(line_of(nic));
    for (const tools::RejectedNic& nic : all.rejected)
        r.rejected.push_back(fmt::format("{}: {}; {}", nic.name, nic.reason, nic.cure));
    r.faults = all.config_problems;
    for (const NicLine& nic : r.nics)
        if (nic.provider == "udp") try_to_open(nic.name, &r.faults);
    r.clock_us = clock_us();
    return r;
}

Json to_json(const Report& r) {
    Json out = {{"host", r.host},         {"version", r.version},   {"default_provider", r.default_provider},
                {"clock_us", r.clock_us}, {"udp_port", r.udp_port}, {"has_key", r.has_key},
                {"agent", r.agent_error}, {"rejected", r.rejected}, {"faults", r.faults},
                {"far_provider", r.far_provider}};
    out["nics"] = Json::array();
    for (const NicLine& nic : r.nics)
        out["nics"].push_back({{"name", nic.name},
                               {"provider", nic.provider},
                               {"about", nic.about},
                               {"ip", nic.ip},
                               {"mtu", nic.mtu},
                               {"up", nic.up}});
    return out;
}

Report report_in(const Json& from) {
    Report r;
    r.host = text_in(from, "host");
    r.version = text_in(from, "version");
    r.default_provider = text_in(from, "default_provider");
    r.far_provider = text_in(from, "far_provider");
    r.agent_error = text_in(from, "agent");
    r.clock_us = number_in(from, "clock_us", 0, INT64_MAX);
    r.udp_port = number_in(from, "udp_port", 0, 65535);
    r.has_key = flag_in(from, "has_key");
    r.rejected = texts_in(from, "rejected");
    r.faults = texts_in(from, "faults");
    const auto nics = from.find("nics");
    if (nics == from.end() || !nics->is_array()) return r;
    for (const Json& nic : *nics) {
        if (!nic.is_object() || r.nics.size() == kMostLines) continue;
        r.nics.push_back({text_in(nic, "name"), text_in(nic, "provider"), text_in(nic, "about"), text_in(nic, "ip"),
                          number_in(nic, "mtu", 0, 1 << 20), flag_in(nic, "up")});
    }
    return r;
}

}  // namespace viaduct::doctor
