// SPDX-License-Identifier: BSD-2-Clause
#include "utils/common/finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace viaduct::tools {

namespace {

bool is_problem(const Finding& f) { return f.verdict == Verdict::problem; }

}  // namespace

bool has_problem(const std::vector<Finding>& all) { return std::any_of(all.begin(), all.end(), is_problem); }

std::string text_of(const std::vector<Finding>& all) {
    std::string out;
    for (const Finding& f : all) {
        const char* const mark = f.verdict == Verdict::ok ? "ok" : f.verdict == Verdict::note ? "note" : "PROBLEM";
        const std::string name = f.name.empty() ? "" : " [" + f.name + "]";
        out += fmt::format("{:<7} {:<20} {}{}\n", mark, f.subject, f.finding, name);
        if (!f.cure.empty() && f.verdict != Verdict::ok) out += fmt::format("{:>28} {}\n", "cure:", f.cure);
    }
    const auto problems = std::count_if(all.begin(), all.end(), is_problem);
    return out + (problems == 0 ? "all well\n" : fmt::format("{} problem{}\n", problems, problems == 1 ? "" : "s"));
}

nlohmann::ordered_json json_of(const std::vector<Finding>& all, bool with_names) {
    auto out = nlohmann::ordered_json::array();
    for (const Finding& f : all) {
        const char* const verdict = f.verdict == Verdict::ok ? "ok" : f.verdict == Verdict::note ? "note" : "problem";
        nlohmann::ordered_json one = {{"verdict", verdict}};
        if (with_names) one["name"] = f.name;
        one["subject"] = f.subject;
        one["finding"] = f.finding;
        one["cure"] = f.cure;
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace viaduct::tools
