// SPDX-License-Identifier: BSD-2-Clause
#include <nlohmann/json.hpp>

#include "utils/vipinfo/render.hpp"

namespace viaduct::vipinfo {

using namespace tools;

namespace {

using nlohmann::ordered_json;

constexpr char kNicSchema[] = "viaduct/vipinfo-nic/1";

ordered_json limit(const OperationLimit& l) {
    return {{"max_bytes", l.max_bytes},
            {"alignment", l.alignment},
            {"max_segments", l.max_segments},
            {"inline_bytes", l.inline_bytes}};
}

ordered_json nic_object(const NicInfo& nic, bool is_default) {
    return {
        {"name", text_of(nic.name)},
        {"provider", text_of(nic.provider)},
        {"description", text_of(nic.description)},
        {"address", address_text(nic.address)},
        {"default", is_default},
        {"link_up", nic.link_up != 0},
        {"capabilities", nic.capabilities},
        {"hardware_version", nic.hardware_version},
        {"provider_version", nic.provider_version},
        {"reliability_mask", nic.reliability_mask},
        {"rdma_read_mask", nic.rdma_read_mask},
        {"max_discriminator", nic.max_discriminator},
        {"max_register_bytes", nic.max_register_bytes},
        {"max_register_regions", nic.max_register_regions},
        {"max_register_block_bytes", nic.max_register_block_bytes},
        {"max_vi", nic.max_vi},
        {"max_descriptors_per_queue", nic.max_descriptors_per_queue},
        {"max_segments_per_descriptor", nic.max_segments},
        {"max_cq", nic.max_cq},
        {"max_cq_entries", nic.max_cq_entries},
        {"max_transfer", nic.max_transfer},
        {"native_mtu", nic.native_mtu},
        {"max_ptags", nic.max_ptags},
        {"send", limit(nic.send)},
        {"put", limit(nic.put)},
        {"get", limit(nic.get)},
        {"atomic", limit(nic.atomic)},
        {"latency_ns", nic.profile.latency_ns},
        {"bandwidth_mb_s", nic.profile.bandwidth_mb_s},
    };
}

// Names and paths may hold any bytes; JSON may not.
std::string print(const ordered_json& what) {
    return what.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string json_of_nic(const std::string& name, const NicInfo& nic, const std::string& note) {
    ordered_json out = {{"schema", kNicSchema}, {"asked", name}, {"opens", nic_object(nic, false)}};
    if (!note.empty()) out["unknown"] = note;
    return print(out);
}

std::string json_of_failure(const std::string& name, const std::string& why) {
    return print({{"schema", kNicSchema}, {"asked", name}, {"opens", nullptr}, {"error", why}});
}

std::string json(const Inventory& all, const View& view) {
    ordered_json out = {{"schema", "viaduct/vipinfo/1"}};
    out["agent"] = {{"address", all.agent_address}, {"origin", all.agent_origin},
                    {"version", all.agent_version}, {"pid", all.agent_pid},
                    {"protocol", all.protocol},     {"error", all.agent_error}};
    out["nics"] = ordered_json::array();
    for (const NicInfo& nic : all.nics)
        out["nics"].push_back(nic_object(nic, text_of(nic.name) == all.default_nic));
    if (view.providers) {
        out["providers"] = ordered_json::array();
        for (const ProviderRow& p : all.providers) {
            out["providers"].push_back({{"name", p.name},
                                        {"path", p.path},
                                        {"description", p.description},
                                        {"version", p.version},
                                        {"error", p.error},
                                        {"cure", p.cure}});
        }
        out["rejected"] = ordered_json::array();
        for (const RejectedNic& r : all.rejected) {
            out["rejected"].push_back(
                {{"provider", r.provider}, {"name", r.name}, {"reason", r.reason}, {"cure", r.cure}});
        }
    }
    if (view.settings) {
        out["settings"] = ordered_json::array();
        for (const SettingRow& s : all.settings) {
            out["settings"].push_back({{"section", s.section},
                                       {"key", s.key},
                                       {"value", s.value},
                                       {"origin", s.origin},
                                       {"help", s.help}});
        }
        out["config_problems"] = all.config_problems;
    }
    if (view.links) {
        const auto status = ordered_json::parse(all.status_json, nullptr, false);
        out["links"] =
            status.is_object() && status.contains("links") ? status["links"] : ordered_json::array();
    }
    if (view.waiters) {
        const auto status = ordered_json::parse(all.status_json, nullptr, false);
        out["waiters"] =
            status.is_object() && status.contains("waiters") ? status["waiters"] : ordered_json::array();
    }
    return print(out);
}

std::string json(const std::vector<Finding>& findings) {
    return print({{"schema", "viaduct/vipinfo-doctor/1"},
                  {"findings", json_of(findings, false)},
                  {"healthy", !has_problem(findings)}});
}

}  // namespace viaduct::vipinfo
