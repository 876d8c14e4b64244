// SPDX-License-Identifier: BSD-2-Clause
// Configuration: one table of keys with default, type and help, three surfaces. Later wins: built-in default, what
// was measured on this machine (core/config/tuning.hpp), /etc/viaduct/viaduct.toml, ~/.config/viaduct/viaduct.toml, the file named by VIADUCT_CONFIG, environment
// (VIADUCT_<SECTION>_<KEY>, and VIADUCT_NICS for [nics]). Unknown keys are reported with the nearest known
// one. Every value knows where it came from.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "viaduct/provider.hpp"

namespace viaduct {

struct ConfigKey {
    const char* section;  // "agent", "vipl", "names", "paramnet", ...
    const char* key;
    const char* type;  // "int", "bool", "string", "size" (bytes, with K/M/G/T), "auto_or_size", "duration_ms", or "one|other"
    const char* fallback;
    const char* help;
};

struct ConfigValue {
    std::string text;
    std::string origin;  // "default", a file name, "measured, " and one, or "environment VIADUCT_..."
};

class Config {
public:
    // Reads all surfaces. Errors in files never stop a program: they are collected in problems().
    static Config load();
    // From text only, for tests.
    static Config parse(std::string_view toml, std::string_view origin);

    std::string get(const char* section, const char* key) const;
    int64_t get_int(const char* section, const char* key) const;
    bool get_bool(const char* section, const char* key) const;
    ConfigValue value(const char* section, const char* key) const;
    // [nics]: a VipOpenNic name -> canonical NIC name ("paramnet0"); from files and
    // VIADUCT_NICS="name=nic,name=nic".
    const std::map<std::string, std::string>& nic_aliases() const;
    // The NIC that [nics] gives this name to; null when it gives it to none. What a program's names mean is the
    // program's own: whoever asks the agent for a NIC asks here first, and the agent does not.
    const std::string* nic_of_alias(const std::string& name) const;
    // A provider's section as it sees it; lives as long as the Config.
    const Settings& settings(const char* section) const;
    const std::vector<std::string>& problems() const;
    static const std::vector<ConfigKey>& keys();  // the table

private:
    struct State;
    const State& state() const;
    std::shared_ptr<State> state_;  // none: the defaults
};

}  // namespace viaduct
