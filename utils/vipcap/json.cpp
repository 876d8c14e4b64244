// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipcap/json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace viaduct::vipcap {

namespace {

using nlohmann::ordered_json;

ordered_json object_of(const Frame& f) {
    const char* const name = f.version_answer ? "version-answer" : name_of_kind(f.kind());
    ordered_json fields = ordered_json::object();
    for (const Field& field : fields_of(f)) fields[field.name] = field.value;
    return {{"seconds", f.seconds},
            {"from", text_of(f.from)},
            {"to", text_of(f.to)},
            {"carrier", f.from.udp ? "udp" : "ethernet"},
            {"kind", name != nullptr ? ordered_json(name) : ordered_json(nullptr)},
            {"damaged", f.damaged},
            {"bytes", f.bytes.size()},
            {"summary", summary_of(f)},
            {"fields", std::move(fields)}};
}

ordered_json object_of(const End& end) {
    return {{"address", text_of(end.address)}, {"link", fmt::format("0x{:08x}", end.link)}};
}

}  // namespace

std::string json_of(const std::vector<KeptFrame>& frames, const std::vector<Connection>& connections) {
    ordered_json out = {{"schema", "viaduct/vipcap/1"},
                        {"frames", ordered_json::array()},
                        {"connections", ordered_json::array()}};
    for (const KeptFrame& f : frames) out["frames"].push_back(object_of(f.frame));
    for (const Connection& c : connections)
        out["connections"].push_back(
            {{"first", object_of(c.first)}, {"second", object_of(c.second)}, {"frames", c.frames}});
    return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace viaduct::vipcap
