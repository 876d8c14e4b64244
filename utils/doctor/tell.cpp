// SPDX-License-Identifier: BSD-2-Clause
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/config/paths.hpp"
#include "utils/common/error.hpp"
#include "utils/doctor/examine.hpp"

namespace viaduct::doctor {

int tell_examination(const char* tool, const std::string& host, bool as_json) {
    const tools::Findings findings = examine(host);
    const bool has_problem = tools::has_problem(findings.all());
    std::string text = tools::text_of(findings.all());
    if (as_json) {
        const nlohmann::ordered_json out = {{"schema", "viaduct/vipping-doctor/1"},
                                            {"tool", tool},
                                            {"version", kVersion},
                                            {"host", host},
                                            {"findings", tools::json_of(findings.all(), true)},
                                            {"healthy", !has_problem}};
        text = out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    }
    std::fputs(text.c_str(), stdout);
    return has_problem ? tools::kExitProblem : tools::kExitWell;
}

}  // namespace viaduct::doctor
