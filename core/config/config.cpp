// SPDX-License-Identifier: BSD-2-Clause
// Puts the surfaces together: defaults, what was measured, files, environment, in this order, each value with
// its origin.
#include "core/config/config.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "core/clock/limits.hpp"
#include "core/config/config_file.hpp"
#include "core/config/config_text.hpp"
#include "core/config/tuning.hpp"
#include "core/text/file_text.hpp"

namespace viaduct {

namespace {

constexpr const char* kSystemFile = "/etc/viaduct/viaduct.toml";
constexpr size_t kLargestFile = 1 << 20;
constexpr std::string_view kPrefix = "VIADUCT_";
constexpr std::string_view kMpiPrefix = "CMPI_";
constexpr std::string_view kMpi = "mpi";

// Variables that are no setting of the table; here so that a misspelt one is told. Those of CMPI_ name compilers for
// the wrappers.
const std::vector<std::string>& plain_variables() {
    static const auto& names = *new std::vector<std::string>{
        "VIADUCT_AGENT",    "VIADUCT_CONFIG",        "VIADUCT_HOSTS",  "VIADUCT_LOG",    "VIADUCT_LOG_FILE",
        "VIADUCT_NICS",     "VIADUCT_PROVIDER_PATH", "VIADUCT_TUNING", "VIADUCT_VIPKAD", "VIADUCT_ACENICD",
        "VIADUCT_UDPD",     "VIADUCT_WHY",           "CMPI_CC",        "CMPI_CXX",       "CMPI_FC",
        kTimeFactorVariable};
    return names;
}

const ConfigKey* find_row(std::string_view section, std::string_view key) {
    for (const ConfigKey& row : Config::keys()) {
        if (section == row.section && key == row.key) return &row;
    }
    return nullptr;
}

// The row that a former name stands for; null: it is none.
const ConfigKey* find_renamed(std::string_view section, std::string_view key) {
    for (const OldKey& old : Config::old_keys()) {
        if (section == old.section && key == old.old_key) return find_row(section, old.key);
    }
    return nullptr;
}

std::string user_file() {
    if (const char* base = ::secure_getenv("XDG_CONFIG_HOME"); base != nullptr && *base == '/')
        return fmt::format("{}/viaduct/viaduct.toml", base);
    if (const char* home = ::secure_getenv("HOME"); home != nullptr && *home == '/')
        return fmt::format("{}/.config/viaduct/viaduct.toml", home);
    return "";
}

std::string or_nearest(const std::string& name, const std::vector<std::string>& known) {
    const std::string near = nearest(name, known);
    return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

class SectionSettings final : public Settings {
public:
    std::map<std::string, ConfigValue, std::less<>> values;

    const char* get(const char* key, const char* fallback) const override {
        const auto found = values.find(key);
        return found == values.end() ? fallback : found->second.text.c_str();
    }
    int64_t get_int(const char* key, int64_t fallback) const override {
        const auto found = values.find(key);
        if (found == values.end()) return fallback;
        return parse_number(types.at(found->first), found->second.text).value_or(fallback);
    }
    std::map<std::string, std::string, std::less<>> types;
};

}  // namespace

struct Config::State {
    std::map<std::string, SectionSettings, std::less<>> sections;
    std::map<std::string, std::string> aliases;
    std::vector<ConfigProblem> problems;

    State() {
        for (const ConfigKey& row : keys()) {
            sections[row.section].values[row.key] = default_of(row);
            sections[row.section].types[row.key] = row.type;
        }
    }

    static ConfigValue default_of(const ConfigKey& row) {
        if (time_factor() == 1 || limit_of_setting(row.section, row.key) == nullptr) return {row.fallback, "default"};
        const int64_t value = parse_number(row.type, row.fallback).value_or(0) * time_factor();
        return {fmt::format("{}", value), fmt::format("default, {} times", time_factor())};
    }

    void set_from_file(const ConfigKey& row, const std::string& text, const std::string& origin) {
        if (const std::string wanted = wrong_value(row, text); !wanted.empty()) {
            problems.push_back({row.section, false,
                                fmt::format("{}: [{}] {} = \"{}\" is not {}; ignored", origin, row.section, row.key,
                                            text, wanted)});
            return;
        }
        sections[row.section].values[row.key] = {text, origin};
    }

    void set_from_environment(const ConfigKey& row, const std::string& variable, const std::string& text) {
        if (const std::string wanted = wrong_value(row, text); !wanted.empty()) {
            problems.push_back({row.section, true,
                                fmt::format("{}={} is not {}{}", variable, text, wanted,
                                            row.section == kMpi ? "" : "; ignored")});
            return;
        }
        sections[row.section].values[row.key] = {text, "environment " + variable};
    }

    void unknown(const FileSetting& s, const std::string& place) {
        std::vector<std::string> known_sections{"nics"}, known_keys;
        for (const auto& [name, section] : sections) {
            known_sections.push_back(name);
            if (name != s.section) continue;
            for (const auto& [key, value] : section.values) known_keys.push_back(key);
        }
        if (known_keys.empty()) {
            problems.push_back({"", false,
                                fmt::format("{}: unknown section [{}]{}", place, s.section,
                                            or_nearest(s.section, known_sections))});
        } else {
            problems.push_back({s.section, false,
                                fmt::format("{}: unknown setting [{}] {}{}", place, s.section, s.key,
                                            or_nearest(s.key, known_keys))});
        }
    }

    static bool has_setting(const FileContent& content, std::string_view section, std::string_view key) {
        return std::any_of(content.settings.begin(), content.settings.end(),
                           [&](const FileSetting& s) { return s.section == section && s.key == key; });
    }

    void apply_toml(std::string_view text, const std::string& origin) {
        FileContent content = read_toml(text, origin);
        for (const FileSetting& s : content.settings) {
            const std::string place = fmt::format("{}:{}", origin, s.line);
            if (s.section == "nics") {
                aliases[s.key] = s.text;
            } else if (const ConfigKey* row = find_row(s.section, s.key)) {
                set_from_file(*row, s.text, place);
            } else if (const ConfigKey* renamed = find_renamed(s.section, s.key)) {
                problems.push_back({s.section, false,
                                    fmt::format("{}: [{}] {} is the old name of {}", place, s.section, s.key,
                                                renamed->key)});
                if (!has_setting(content, s.section, renamed->key)) set_from_file(*renamed, s.text, place);
            } else {
                unknown(s, place);
            }
        }
        for (std::string& problem : content.problems) problems.push_back({"", false, std::move(problem)});
    }

    // A file that is not there is no problem unless the user named it.
    void apply_file(const std::string& path, bool must_exist) {
        if (path.empty()) return;
        std::string text;
        const FileRead how = read_text(path, kLargestFile + 1, &text);
        if (how == FileRead::not_opened) {
            if (must_exist || (errno != ENOENT && errno != ENOTDIR))
                problems.push_back({"", false, fmt::format("{}: {}", path, std::strerror(errno))});
            return;
        }
        if (how == FileRead::not_regular) {
            problems.push_back({"", false, fmt::format("{}: no regular file; passed over", path)});
            return;
        }
        if (how == FileRead::failed || text.size() > kLargestFile) {
            problems.push_back(
                {"", false, fmt::format("{}: cannot be read, or larger than {} bytes", path, kLargestFile)});
            return;
        }
        apply_toml(text, path);
    }

    // Ignores a tuning file of another machine without an error; vipinfo --doctor reports that file.
    void apply_tuning() {
        const Tuning tuning = load_tuning();
        for (const FileSetting& s : tuning.settings) {
            if (const ConfigKey* row = find_row(s.section, s.key))
                set_from_file(*row, s.text, "measured, " + tuning.path);
        }
    }

    void apply_nics_variable(std::string_view list) {
        while (!list.empty()) {
            const size_t comma = list.find(',');
            const std::string_view pair = list.substr(0, comma);
            list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
            const size_t equals = pair.find('=');
            if (equals == std::string_view::npos || equals == 0 || equals + 1 == pair.size()) {
                problems.push_back({"", true, fmt::format("VIADUCT_NICS: {} is not name=nic; ignored", pair)});
                continue;
            }
            aliases[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
        }
    }

    // Before the variables of the table, so that a present name counts more.
    void apply_old_variables() {
        for (const OldKey& old : old_keys()) {
            const std::string name = variable_of(old.section, old.old_key);
            const char* text = ::secure_getenv(name.c_str());
            if (text == nullptr) continue;
            problems.push_back({old.section, false,
                                fmt::format("environment {} is the old name of {}", name,
                                            variable_of(old.section, old.key))});
            set_from_environment(*find_row(old.section, old.key), name, text);
        }
    }

    void apply_environment() {
        apply_old_variables();
        for (const ConfigKey& row : keys()) {
            const std::string name = variable_of(row);
            const char* text = ::secure_getenv(name.c_str());
            if (text != nullptr) set_from_environment(row, name, text);
        }
        if (const char* list = ::secure_getenv("VIADUCT_NICS")) apply_nics_variable(list);
        if (const char* files = ::secure_getenv("VIADUCT_HOSTS"); files != nullptr && *files != '\0') {
            ConfigValue& hosts = sections["names"].values["hosts"];
            hosts = {fmt::format("{}:{}", files, hosts.text), "environment VIADUCT_HOSTS"};
        }
        report_unknown_variables();
        report_log_level();
        report_time_factor();
    }

    // time_factor() reads it by itself, before there is a configuration.
    void report_time_factor() {
        const char* text = ::secure_getenv(kTimeFactorVariable);
        if (text == nullptr || parse_time_factor(text)) return;
        problems.push_back({"", true,
                            fmt::format("{}={} is not a whole number from 1 to {}; ignored", kTimeFactorVariable, text,
                                        kMostTimeFactor)});
    }

    // log::level reads it by itself, before there is a configuration.
    void report_log_level() {
        static const auto& levels = *new std::vector<std::string>{"off", "error", "warn", "info", "debug"};
        const char* text = ::secure_getenv("VIADUCT_LOG");
        if (text == nullptr || *text == '\0' || std::find(levels.begin(), levels.end(), text) != levels.end()) return;
        problems.push_back({"", true,
                            fmt::format("VIADUCT_LOG={} is not one of off|error|warn|info|debug{}; ignored", text,
                                        or_nearest(text, levels))});
    }

    // Of VIADUCT_ those that a known one is near to, for others may be other programs'; of CMPI_ all.
    void report_unknown_variables() {
        std::vector<std::string> known = plain_variables();
        for (const ConfigKey& row : keys()) known.push_back(variable_of(row));
        const std::vector<std::string> present = known;
        for (const OldKey& old : old_keys()) known.push_back(variable_of(old.section, old.old_key));
        for (char** entry = __environ; entry != nullptr && *entry != nullptr; ++entry) {
            const std::string_view text(*entry);
            const bool of_mpi = text.starts_with(kMpiPrefix);
            if (!of_mpi && !text.starts_with(kPrefix)) continue;
            const std::string name(text.substr(0, text.find('=')));
            if (std::find(known.begin(), known.end(), name) != known.end()) continue;
            const std::string hint = or_nearest(name, present);
            if (of_mpi || !hint.empty())
                problems.push_back({of_mpi ? std::string(kMpi) : "", false,
                                    fmt::format("environment {} is unknown{}", name, hint)});
        }
    }

    // The defaults, for a Config that was not loaded.
    static const State& defaults() {
        static const auto* const state = new State;
        return *state;
    }
};

std::string Config::variable_of(const ConfigKey& row) { return variable_of(row.section, row.key); }

std::string Config::variable_of(std::string_view section, std::string_view key) {
    std::string name = section == kMpi ? fmt::format("{}{}", kMpiPrefix, key)
                                       : fmt::format("{}{}_{}", kPrefix, section, key);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return name;
}

Config Config::load() {
    Config config;
    config.state_ = std::make_shared<State>();
    config.state_->apply_tuning();
    config.state_->apply_file(kSystemFile, false);
    config.state_->apply_file(user_file(), false);
    if (const char* path = ::secure_getenv("VIADUCT_CONFIG"); path != nullptr && *path != '\0')
        config.state_->apply_file(path, true);
    config.state_->apply_environment();
    return config;
}

Config Config::parse(std::string_view toml, std::string_view origin) {
    Config config;
    config.state_ = std::make_shared<State>();
    config.state_->apply_toml(toml, std::string(origin));
    return config;
}

const Config::State& Config::state() const { return state_ ? *state_ : State::defaults(); }

ConfigValue Config::value(const char* section, const char* key) const {
    const auto found = state().sections.find(section);
    if (found == state().sections.end()) return {};
    const auto entry = found->second.values.find(key);
    return entry == found->second.values.end() ? ConfigValue{} : entry->second;
}

std::string Config::get(const char* section, const char* key) const { return value(section, key).text; }

int64_t Config::get_int(const char* section, const char* key) const {
    return settings(section).get_int(key, 0);
}

bool Config::get_bool(const char* section, const char* key) const { return get_int(section, key) != 0; }

const std::map<std::string, std::string>& Config::nic_aliases() const { return state().aliases; }

const std::string* Config::nic_of_alias(const std::string& name) const {
    const auto found = nic_aliases().find(name);
    return found == nic_aliases().end() ? nullptr : &found->second;
}

const Settings& Config::settings(const char* section) const {
    static const auto& none = *new SectionSettings;
    const auto found = state().sections.find(section);
    if (found == state().sections.end()) return none;
    return found->second;
}

// FNV-1a, 64 bits. What only programs read is left out: theirs may differ from that of the agent.
std::string Config::fingerprint() const {
    uint64_t hash = 0xcbf2'9ce4'8422'2325;
    for (const ConfigKey& row : keys()) {
        const std::string_view section(row.section);
        const bool of_programs = section == "vipl" || section == kMpi;
        const bool of_names = section == "names" && std::string_view(row.key) != "strict" &&
                              std::string_view(row.key) != "default_provider";
        if (of_programs || of_names) continue;
        for (const char c : fmt::format("{}.{}={};", row.section, row.key, get(row.section, row.key)))
            hash = (hash ^ static_cast<uint8_t>(c)) * 0x100'0000'01b3;
    }
    return fmt::format("{:016x}", hash);
}

const std::vector<ConfigProblem>& Config::problems() const { return state().problems; }

}  // namespace viaduct
