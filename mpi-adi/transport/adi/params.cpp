// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/adi/params.hpp"

#include <array>
#include <cstring>
#include <exception>
#include <vector>

#include "core/config/config.hpp"
#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::adi {

namespace {

constexpr const char* kSection = "mpi";

// In the order of the enum.
constexpr std::array kKeys = {
    "protocol",         "connect_timeout",  "close_timeout", "via_device",     "prepost_depth", "vbuf_spares",
    "vbuf_max",         "eager_limit",      "rendezvous",    "both_from",      "r3_limit",      "gap_piece",
    "rendezvous_extra", "eager_ring_after", "shm_ring",      "tcp_interfaces", "tcp_buffer",    "on_demand",
    "via_nics",         "rail_timeout",    "wait_learning", "node_collectives", "transports",
    "window_access",
    "name_folder",
    "progress",
    "progress_cpus",
    "robust",
    "check",
};
constexpr size_t kCount = kKeys.size();
static_assert(kCount == static_cast<size_t>(Param::count_), "one key for each parameter");

const ConfigKey& row_of(const char* key) {
    for (const ConfigKey& row : Config::keys())
        if (std::strcmp(row.section, kSection) == 0 && std::strcmp(row.key, key) == 0) return row;
    std::terminate();  // adi.parts asks for each
}

struct Values {
    std::string name[kCount];
    std::string text[kCount];  // of a number in decimal digits
    std::string origin[kCount];
    long number[kCount];
    mpip_param table[kCount];
    std::string wrong;
    std::vector<std::string> problems;

    Values() {
        const Config config = Config::load();
        for (size_t i = 0; i < kCount; ++i) {
            const ConfigKey& row = row_of(kKeys[i]);
            const ConfigValue value = config.value(kSection, kKeys[i]);
            name[i] = Config::variable_of(row);
            number[i] = row.has_range() ? config.get_int(kSection, kKeys[i]) : 0;
            text[i] = row.has_range() ? std::to_string(number[i]) : value.text;
            origin[i] = value.origin;
            table[i] = {name[i].c_str(),   row.help,      row.fallback,  text[i].c_str(),
                        origin[i].c_str(), long(row.low), long(row.high)};
        }
        for (const ConfigProblem& problem : config.problems()) {
            if (problem.section != kSection) continue;
            if (problem.wrong_in_environment)
                wrong += (wrong.empty() ? "" : "; ") + problem.text;
            else
                problems.push_back(problem.text);
        }
    }

    void drop(size_t i) {
        text[i] = table[i].pa_default;
        origin[i] = "default";
        table[i].pa_value = text[i].c_str();
        table[i].pa_origin = origin[i].c_str();
    }

    void set(size_t i, long value) {
        text[i] = std::to_string(value);
        number[i] = value;
        origin[i] = "program";
        table[i].pa_value = text[i].c_str();
        table[i].pa_origin = origin[i].c_str();
    }
};

Values& values() {
    static auto* const all = new Values;
    return *all;
}

}  // namespace

long param_number(Param param) { return values().number[static_cast<size_t>(param)]; }
bool is_check_asked_for() { return Config::load().get_int(kSection, kKeys[static_cast<size_t>(Param::check)]) != 0; }
const char* param_text(Param param) { return values().text[static_cast<size_t>(param)].c_str(); }
bool param_given(Param param) { return !values().origin[static_cast<size_t>(param)].starts_with("default"); }
bool param_from_environment(Param param) {
    return values().origin[static_cast<size_t>(param)].starts_with("environment ");
}
std::string wrong_variables() { return values().wrong; }
const std::vector<std::string>& param_problems() { return values().problems; }

void use_default(Param param, const std::string& why) {
    const auto i = static_cast<size_t>(param);
    Values& all = values();
    all.problems.push_back(all.origin[i] + ": [" + kSection + "] " + kKeys[i] + " = \"" + all.text[i] + "\" " + why +
                           "; ignored");
    all.drop(i);
}

}  // namespace viaduct::adi

extern "C" const struct mpip_param* mpip_params(size_t* count) {
    *count = viaduct::adi::kCount;
    return viaduct::adi::values().table;
}

extern "C" int mpip_set_param(const char* name, long value) {
    using namespace viaduct::adi;
    for (size_t i = 0; i < kCount; ++i) {
        const mpip_param& row = values().table[i];
        if (std::strcmp(row.pa_name, name) != 0) continue;
        if ((row.pa_low == 0 && row.pa_high == 0) || value < row.pa_low || value > row.pa_high)
            return MPIP_ERR_ARG;
        values().set(i, value);
        return MPIP_SUCCESS;
    }
    return MPIP_ERR_ARG;
}
