// SPDX-License-Identifier: BSD-2-Clause
// What every protocol module must do, run unchanged over each of them by name: `adi_module_test via
// [case...]`.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cases.hpp"

namespace viaduct::adi_test {

const char* module;
unsigned seed;

namespace {

int run(const Case& c) {
    for (const auto& [name, value] : c.environment) ::setenv(name, value, 1);
    int bad = 0;
    for (seed = 1; seed <= static_cast<unsigned>(c.rounds); ++seed) {
        bad += run_job(c.name, c.size, c.seconds, c.body, c.victims);
    }
    for (const auto& variable : c.environment) ::unsetenv(variable.first);
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
    std::vector<Case> all = traffic_cases();
    for (const Case& c : end_cases()) all.push_back(c);
    int bad = 0;
    int run_count = 0;
    for (const Case& c : all) {
        bool wanted = argc == 2;
        for (int i = 2; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], c.name) == 0;
        if (!wanted || (c.only != nullptr && std::strcmp(c.only, module) != 0)) continue;
        ++run_count;
        bad += run(c);
    }
    if (run_count == 0) std::fprintf(stderr, "no such case\n");
    return bad == 0 && run_count != 0 ? 0 : 1;
}
