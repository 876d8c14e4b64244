// SPDX-License-Identifier: BSD-2-Clause
// Keeps the record behind CONFORM and Row, adds up the records of several runs and prints the tables.
#include "conform.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <map>
#include <mutex>
#include <ostream>
#include <set>
#include <sstream>
#include <tuple>

#include "conform_table.hpp"

namespace viaduct::conformance {
namespace {

constexpr const char* kCodeNames[] = {
    "SUCCESS",         "NOT_DONE",        "INVALID_PARAMETER", "ERROR_RESOURCE",    "TIMEOUT",
    "REJECT",          "INVALID_RELIABILITY_LEVEL", "INVALID_MTU", "INVALID_QOS",   "INVALID_PTAG",
    "INVALID_RDMAREAD", "DESCRIPTOR_ERROR", "INVALID_STATE",    "ERROR_NAMESERVICE", "NO_MATCH",
    "NOT_REACHABLE",   "ERROR_NOT_SUPPORTED"};

struct Counted {
    long passed = 0;
    long failed = 0;
    long skipped = 0;
    std::string reason;
};

/// (call, code, state letter) or (row, level letter, 0).
using CellKey = std::tuple<std::string, std::string, char>;
using RowKey = std::pair<std::string, char>;

struct Record {
    std::mutex mutex;
    std::map<CellKey, Counted> cells;
    std::map<RowKey, Counted> rows;
};

Record& record() {
    static Record instance;
    return instance;
}

char level_letter(VIP_RELIABILITY_LEVEL level) {
    switch (level) {
        case VIP_SERVICE_UNRELIABLE: return 'U';
        case VIP_SERVICE_RELIABLE_DELIVERY: return 'D';
        case VIP_SERVICE_RELIABLE_RECEPTION: return 'R';
        default: return '-';
    }
}

const char* level_text(char letter) {
    switch (letter) {
        case 'U': return "Unreliable";
        case 'D': return "Reliable Delivery";
        case 'R': return "Reliable Reception";
        default: return "-";
    }
}

const char* state_text(char letter) {
    switch (letter) {
        case 'I': return "Idle";
        case 'P': return "Connect-Pending";
        case 'C': return "Connected";
        case 'E': return "Error";
        default: return "-";
    }
}

std::string call_of(const char* text) {
    const char* end = text;
    while (std::isalnum(static_cast<unsigned char>(*end))) {
        ++end;
    }
    return {text, end};
}

/// The message of the GTEST_SKIP() that ended the running test.
std::string skip_reason() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    for (int i = 0; info != nullptr && i < info->result()->total_part_count(); ++i) {
        const testing::TestPartResult& part = info->result()->GetTestPartResult(i);
        if (part.skipped()) {
            std::string message = part.message();
            message.erase(std::remove(message.begin(), message.end(), '\n'), message.end());
            return message;
        }
    }
    return "skipped without a reason";
}

std::string verdict(const Counted& entry) {
    if (entry.failed > 0) {
        return "FAIL";
    }
    if (entry.passed > 0) {
        return "PASS";
    }
    return "SKIPPED(" + entry.reason + ")";
}

struct Tally {
    int pass = 0;
    int fail = 0;
    int skipped = 0;
    int not_shown = 0;
    int gaps = 0;

    void add(const Counted& entry) {
        if (entry.failed > 0) {
            ++fail;
        } else if (entry.passed > 0) {
            ++pass;
        } else {
            ++skipped;
        }
    }

    void print(const char* title, std::ostream& out) const {
        out << title << ": " << pass << " passed, " << fail << " failed, " << skipped << " skipped, " << not_shown
            << " not shown with a reason, " << gaps << " gaps\n";
    }
};

const NotShown* find_reason(const ConformanceTable& table, const std::string& call, const std::string& code,
                            char state) {
    for (int i = 0; i < table.not_shown_count; ++i) {
        const NotShown& entry = table.not_shown[i];
        if (call == entry.call && code == entry.code && std::strchr(entry.states, state) != nullptr) {
            return &entry;
        }
    }
    return nullptr;
}

const RowNotShown* find_row_reason(const ConformanceTable& table, const std::string& id) {
    for (int i = 0; i < table.rows_not_shown_count; ++i) {
        if (id == table.rows_not_shown[i].id) {
            return &table.rows_not_shown[i];
        }
    }
    return nullptr;
}

void print_call(const ConformanceTable& table, const DocumentedCall& call, std::set<CellKey>& open, Tally& tally,
                std::ostream& out) {
    std::istringstream cells(call.cells);
    for (std::string cell; cells >> cell;) {
        const std::string code = cell.substr(0, cell.find(':'));
        for (const char state : cell.substr(cell.find(':') + 1)) {
            const CellKey key{call.call, code, state};
            open.erase(key);
            out << std::left << std::setw(14) << call.label << std::setw(29) << call.call << std::setw(26) << code
                << std::setw(16) << state_text(state);
            const auto found = record().cells.find(key);
            const NotShown* reason = find_reason(table, call.call, code, state);
            if (found != record().cells.end()) {
                out << verdict(found->second);
                if (found->second.passed > 0) {
                    out << " (" << found->second.passed << ")";
                }
                tally.add(found->second);
            } else if (reason != nullptr) {
                out << "not shown: " << reason->reason;
                ++tally.not_shown;
            } else {
                out << "GAP: documented, but neither checked nor explained";
                ++tally.gaps;
            }
            out << "\n";
        }
    }
}

int print_cells(const ConformanceTable& table, std::ostream& out) {
    std::set<CellKey> open;
    for (const auto& [key, entry] : record().cells) {
        open.insert(key);
    }
    Tally tally;
    for (int i = 0; i < table.call_count; ++i) {
        print_call(table, table.calls[i], open, tally, out);
    }
    for (const auto& [call, code, state] : open) {
        out << std::left << std::setw(14) << "?" << std::setw(29) << call << std::setw(26) << code << std::setw(16)
            << state_text(state) << "GAP: checked, but not in the table of documented results\n";
        ++tally.gaps;
    }
    tally.print("Calls", out);
    return tally.fail + tally.gaps;
}

int print_rows(const ConformanceTable& table, std::ostream& out) {
    std::set<RowKey> open;
    for (const auto& [key, entry] : record().rows) {
        open.insert(key);
    }
    Tally tally;
    for (int i = 0; i < table.row_count; ++i) {
        for (const char* level = table.rows[i].levels; *level != '\0'; ++level) {
            const RowKey key{table.rows[i].id, *level};
            open.erase(key);
            out << std::left << std::setw(53) << table.rows[i].id << std::setw(20) << level_text(*level);
            const auto found = record().rows.find(key);
            const RowNotShown* reason = find_row_reason(table, table.rows[i].id);
            if (found != record().rows.end()) {
                out << verdict(found->second);
                tally.add(found->second);
            } else if (reason != nullptr) {
                out << "not shown: " << reason->reason;
                ++tally.not_shown;
            } else {
                out << "GAP: documented, but neither checked nor explained";
                ++tally.gaps;
            }
            out << "\n";
        }
    }
    for (const auto& [id, level] : open) {
        out << std::left << std::setw(53) << id << std::setw(20) << level_text(level)
            << "GAP: checked, but not in the table of rows\n";
        ++tally.gaps;
    }
    tally.print("Rows", out);
    return tally.fail + tally.gaps;
}

void add(Counted& entry, long passed, long failed, long skipped, const std::string& reason) {
    entry.passed += passed;
    entry.failed += failed;
    entry.skipped += skipped;
    if (!reason.empty()) {
        entry.reason = reason;
    }
}

}  // namespace

char state_letter(VS state) {
    constexpr char kLetters[] = {'-', 'I', 'P', 'C', 'E'};
    return kLetters[static_cast<int>(state)];
}

const char* state_name(VS state) { return state_text(state_letter(state)); }

const char* code_name(VIP_RETURN code) {
    const auto index = static_cast<unsigned>(code);
    return index < std::size(kCodeNames) ? kCodeNames[index] : "a number outside the enumeration";
}

bool conform_cell(const char* file, int line, const char* call_text, VIP_RETURN want, VS state, VIP_RETURN got) {
    const std::string call = call_of(call_text);
    {
        const std::lock_guard lock(record().mutex);
        Counted& entry = record().cells[{call, code_name(want), state_letter(state)}];
        (got == want ? entry.passed : entry.failed) += 1;
    }
    if (got != want) {
        GTEST_MESSAGE_AT_(file, line, "", testing::TestPartResult::kNonFatalFailure)
            << call << " on a VI in state " << state_name(state) << " has to return " << code_name(want)
            << ", it returned " << code_name(got) << "\n  " << call_text;
    }
    return got == want;
}

void cannot_show(const char* call, VIP_RETURN code, VS state, const std::string& reason) {
    const std::lock_guard lock(record().mutex);
    add(record().cells[{call, code_name(code), state_letter(state)}], 0, 0, 1, reason);
}

Row::Row(const char* id, VIP_RELIABILITY_LEVEL level) : id_(id), level_(level) {}

Row::~Row() {
    const bool skipped = testing::Test::IsSkipped();
    const bool failed = testing::Test::HasFailure() || std::uncaught_exceptions() > 0;
    const std::string reason = skipped ? skip_reason() : "";
    const std::lock_guard lock(record().mutex);
    add(record().rows[{id_, level_letter(level_)}], !failed && !skipped, failed, skipped, reason);
}

bool save_record(const std::string& path) {
    const std::lock_guard lock(record().mutex);
    std::ofstream file(path, std::ios::trunc);
    for (const auto& [key, entry] : record().cells) {
        const auto& [call, code, state] = key;
        file << "cell\t" << call << '\t' << code << '\t' << state << '\t' << entry.passed << '\t' << entry.failed
             << '\t' << entry.skipped << '\t' << entry.reason << '\n';
    }
    for (const auto& [key, entry] : record().rows) {
        file << "row\t" << key.first << "\t-\t" << key.second << '\t' << entry.passed << '\t' << entry.failed << '\t'
             << entry.skipped << '\t' << entry.reason << '\n';
    }
    file.close();
    return !file.fail();
}

bool load_record(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        return false;
    }
    const std::lock_guard lock(record().mutex);
    for (std::string line; std::getline(file, line);) {
        std::string fields[8];
        std::istringstream in(line);
        for (std::string& field : fields) {
            std::getline(in, field, '\t');
        }
        if (fields[3].size() != 1) {
            return false;
        }
        Counted& entry = fields[0] == "cell" ? record().cells[{fields[1], fields[2], fields[3][0]}]
                                           : record().rows[{fields[1], fields[3][0]}];
        add(entry, std::stol(fields[4]), std::stol(fields[5]), std::stol(fields[6]), fields[7]);
    }
    return true;
}

int print_tables(const std::string& nic, std::ostream& out) {
    const std::lock_guard lock(record().mutex);
    const ConformanceTable table = conformance_table();
    out << "VIPL conformance of " << nic << "\n\n";
    const int bad_cells = print_cells(table, out);
    out << "\n";
    const int bad_rows = print_rows(table, out);
    return bad_cells + bad_rows;
}

}  // namespace viaduct::conformance
