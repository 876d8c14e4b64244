// SPDX-License-Identifier: BSD-2-Clause
// What every protocol module must do, run unchanged over each of them by name: `adi_module_test via
// [case...]`. TEST_ROWS may name cases as well.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cases.hpp"
#include "tests/report/rows.hpp"

namespace viaduct::adi_test {

const char* module;
unsigned seed;

namespace {

bool is_for(const Case& c, const char* name) {
    if (c.only == nullptr) return true;
    return *c.only == '!' ? std::strcmp(c.only + 1, name) != 0 : std::strcmp(c.only, name) == 0;
}

int run(const Case& c) {
    std::vector<std::pair<std::string, std::string>> before;  // what is set for all cases
    for (const auto& [name, value] : c.environment) {
        if (const char* old = std::getenv(name)) before.emplace_back(name, old);
        ::setenv(name, value, 1);
    }
    int bad = 0;
    for (seed = 1; seed <= static_cast<unsigned>(c.rounds); ++seed) {
        bad += run_job(c.name, c.size, c.seconds, c.body, c.victims);
    }
    for (const auto& variable : c.environment) ::unsetenv(variable.first);
    for (const auto& [name, value] : before) ::setenv(name.c_str(), value.c_str(), 1);
    return bad;
}

}  // namespace
}  // namespace viaduct::adi_test

int main(int argc, char** argv) {
    using namespace viaduct::adi_test;
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s MODULE [CASE...]\n", argv[0]);
        return 2;
    }
    module = argv[1];
    std::vector<Case> all;
    for (const auto& cases : {traffic_cases(), piece_cases(), damaged_piece_cases(), memory_cases(), table_cases(),
                              end_cases(), descriptor_cases(), rail_cases(), rule_cases(), entry_cases()})
        all.insert(all.end(), cases.begin(), cases.end());
    for (const auto& cases : {on_demand_cases(), half_open_cases(), shortage_cases(), ring_cases(), shared_ring_cases(),
                              long_ring_cases()})
        all.insert(all.end(), cases.begin(), cases.end());
    if (std::strcmp(module, "rails") == 0) {  // via with several NICs
        ::setenv("VIADUCT_PARAMNET_NICS", "3", 0);
        ::setenv("CMPI_VIA_NICS", "all", 0);
    }
    // The transports that are built with the tests lie beside this program.
    const auto transports = std::filesystem::canonical("/proc/self/exe").parent_path() / "transports";
    ::setenv("CMPI_TRANSPORTS", transports.c_str(), 0);
    std::vector<const Case*> cases;
    std::vector<std::string> names;
    for (const Case& c : all) {
        bool wanted = argc == 2;
        for (int i = 2; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], c.name) == 0;
        if (!wanted || !is_for(c, module)) continue;
        cases.push_back(&c);
        names.emplace_back(c.name);
    }
    if (cases.empty()) std::fprintf(stderr, "no such case\n");
    const auto chosen = viaduct::tests::chosen_rows(names);
    if (cases.empty() || !chosen) return 1;
    std::vector<std::string> failed;
    for (const Case* c : cases) {
        if (std::find(chosen->begin(), chosen->end(), c->name) == chosen->end()) continue;
        if (run(*c) != 0) failed.emplace_back(c->name);
    }
    viaduct::tests::report_failed_rows(failed);
    return failed.empty() ? 0 : 1;
}
