// SPDX-License-Identifier: BSD-2-Clause
// What was measured on this machine and kept (vipperf --tune): a small file of settings that stand between
// the built-in defaults and the configuration. It counts only on a machine like the one it was measured on:
// the same model of processor, the same kernel. Any thread; nothing here throws unless memory runs out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/config_file.hpp"

namespace viaduct {

struct MachineKey {
    std::string processor;  // its model, as the processor names itself
    std::string kernel;     // release
    bool operator==(const MachineKey&) const = default;
};
MachineKey this_machine();

struct Tuning {
    enum class State {
        none,     // no such file
        valid,    // `settings` count
        foreign,  // measured on another machine or another kernel; `why` says which
        damaged,  // not a file that vipperf has written; `why` says what is wrong
    };
    State state = State::none;
    std::string path;      // of the file
    std::string why;       // foreign, damaged
    std::string measured;  // when
    std::vector<FileSetting> settings;
};

// The user's own file (~/.cache/viaduct/tuning.toml) when it counts, else that of the machine
// (/var/lib/viaduct/tuning.toml); when neither does, the file that says why. VIADUCT_TUNING names another
// file, or is "off".
Tuning load_tuning();

// A file's text as it counts on that machine. `path` is for the result only.
Tuning parse_tuning(std::string_view text, const std::string& path, const MachineKey& machine);

// The sections and keys that such a file may have, in its order; each a number of bytes, 0: never.
struct TunedKey {
    const char* section;
    const char* key;
};
const std::vector<TunedKey>& tuned_keys();

// The text of a file. `settings` are of tuned_keys(), `measured` is a date, `notes` become comments.
std::string tuning_text(const MachineKey& machine, const std::string& measured,
                        const std::vector<FileSetting>& settings, const std::vector<std::string>& notes);

// Where this user's measurements are kept: root's count for all users. Empty: nowhere (no home).
std::string own_tuning_path();

// Writes the file anew, whole or not at all; makes its folder. Empty when that went well, else why not.
std::string write_tuning(const std::string& path, const std::string& text);

}  // namespace viaduct
