// SPDX-License-Identifier: BSD-2-Clause
// libFuzzer's entry for configuration files: whatever stands in one, reading ends, every setting has a value
// of its type, and what was wrong is told with its line.
#include <cstdlib>
#include <string>

#include "core/config/config.hpp"
#include "core/config/config_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using viaduct::Config;
    const Config config = Config::parse({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
    for (const viaduct::ConfigKey& key : Config::keys()) {
        const viaduct::ConfigValue value = config.value(key.section, key.key);
        if (!viaduct::wrong_value(key, value.text).empty()) std::abort();
        config.settings(key.section).get(key.key, "");
    }
    for (const viaduct::ConfigProblem& problem : config.problems())
        if (problem.text.empty()) std::abort();
    for (const auto& [name, nic] : config.nic_aliases())
        if (nic.empty() && name.empty()) std::abort();
    return 0;
}
