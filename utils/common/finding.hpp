// SPDX-License-Identifier: BSD-2-Clause
// What the doctors say (vipinfo --doctor, and that of two hosts): one finding a line, with what to do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace viaduct::tools {

enum class Verdict { ok, note, problem };

struct Finding {
    Verdict verdict = Verdict::ok;
    std::string subject;
    std::string finding;
    std::string cure;  // of notes and problems
    std::string name = {};  // "blocked-there": one of those in vipping(1), for programs; empty: it has none
};

class Findings {
public:
    void ok(const char* subject, std::string text) { add({Verdict::ok, subject, std::move(text), {}, {}}); }
    void note(const char* name, const char* subject, std::string text, std::string cure) {
        add({Verdict::note, subject, std::move(text), std::move(cure), name});
    }
    void problem(const char* name, const char* subject, std::string text, std::string cure) {
        add({Verdict::problem, subject, std::move(text), std::move(cure), name});
    }
    void add(Finding f) { all_.push_back(std::move(f)); }
    const std::vector<Finding>& all() const { return all_; }

private:
    std::vector<Finding> all_;
};

bool has_problem(const std::vector<Finding>&);
// For people, with a last line that counts the problems.
std::string text_of(const std::vector<Finding>&);
// An array of objects, each with its name or without.
nlohmann::ordered_json json_of(const std::vector<Finding>&, bool with_names);

}  // namespace viaduct::tools
