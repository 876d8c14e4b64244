// SPDX-License-Identifier: BSD-2-Clause
// Configuration: one table of keys with default, type and help, three surfaces. Later wins: built-in default, what
// was measured on this machine (core/config/tuning.hpp), /etc/viaduct/viaduct.toml,
// ~/.config/viaduct/viaduct.toml, the file named by VIADUCT_CONFIG, environment (VIADUCT_<SECTION>_<KEY>,
// CMPI_<KEY> for [mpi], and VIADUCT_NICS for [nics]). A value must be of its row's type and in its range, whatever
// surface it comes from; unknown keys are reported with the nearest known one. Every value has its origin.
#pragma once

#include <cstdint>
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
    // "int", "bool", "string", "size" (bytes, with K/M/G/T), "auto_or_size", "duration_ms", "c_int" and "c_size" (the
    // same with hexadecimal and octal digits as C writes them), or "one|other", where one may be empty.
    const char* type;
    const char* fallback;
    const char* help;
    int64_t low = 0, high = 0;  // of a number, both allowed; both 0: any of its type
    bool has_range() const { return low != 0 || high != 0; }
};

// A former name of a key. It sets the same value, and is reported once; the present name counts when both are set.
struct OldKey {
    const char* section;
    const char* old_key;
    const char* key;
};

struct ConfigValue {
    std::string text;
    // "default", "default, N times" of a time limit (core/clock/limits.hpp), "file:line", "measured, " and a file, or
    // "environment " and a variable.
    std::string origin;
};

struct ConfigProblem {
    // Whose it is to report: "mpi" is libcmpi's, all else libvipl's and the agent's. Empty: a file as a whole, or a
    // name that belongs to no section.
    std::string section;
    bool wrong_in_environment = false;  // a variable has a value that is not allowed
    std::string text;
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
    // program's own: a client of the agent asks here first, and the agent does not.
    const std::string* nic_of_alias(const std::string& name) const;
    // A provider's section as it sees it; lives as long as the Config.
    const Settings& settings(const char* section) const;
    // Of all values that the agent and its providers read, where two that differ have different ones.
    std::string fingerprint() const;
    const std::vector<ConfigProblem>& problems() const;
    static const std::vector<ConfigKey>& keys();  // the table
    static const std::vector<OldKey>& old_keys();
    // The environment variable of a row, or of a key.
    static std::string variable_of(const ConfigKey&);
    static std::string variable_of(std::string_view section, std::string_view key);

private:
    struct State;
    const State& state() const;
    std::shared_ptr<State> state_;  // none: the defaults
};

}  // namespace viaduct
