// SPDX-License-Identifier: BSD-2-Clause
// The record of what the suite has really checked: cells (call x return code x VI state) and rows (reliability table,
// asynchronous errors, descriptor errors). Tests write into it from any thread; main prints it.
#pragma once

#include <gtest/gtest.h>
#include <vipl.h>

#include <string>

namespace viaduct::conformance {

/// The state of the VI a call was made on; kNone for calls that have no VI.
enum class VS { kNone, kIdle, kPending, kConnected, kError };

char state_letter(VS state);
const char* state_name(VS state);
const char* code_name(VIP_RETURN code);

/// Compares, records the cell and, on a difference, fails the test at the caller's line. True when equal.
bool conform_cell(const char* file, int line, const char* call_text, VIP_RETURN want, VS state, VIP_RETURN got);

/// Says why a documented cell could not be reached on this provider. Known only while the suite runs.
void cannot_show(const char* call, VIP_RETURN code, VS state, const std::string& reason);

/// One row of the second table ("6.2 ..." and so on) for as long as a test is at it: passed, failed or skipped like
/// the test. level is 0 where the row does not depend on it.
class Row {
public:
    explicit Row(const char* id, VIP_RELIABILITY_LEVEL level = 0);
    ~Row();
    Row(const Row&) = delete;
    Row& operator=(const Row&) = delete;

private:
    std::string id_;
    VIP_RELIABILITY_LEVEL level_;
};

/// Writes what was recorded, so that several runs can be added up; and reads it back.
bool save_record(const std::string& path);
bool load_record(const std::string& path);

/// Prints the tables. Returns the number of gaps and of failed entries: anything documented in conform_table.cpp that
/// has neither a check nor a reason, and anything checked that is not documented there.
int print_tables(const std::string& nic, std::ostream& out);

}  // namespace viaduct::conformance

/// CONFORM(code, state, VipCall(...)): the call returns code on a VI in that state.
#define CONFORM(code, state, ...)                                                                            \
    ::viaduct::conformance::conform_cell(__FILE__, __LINE__, #__VA_ARGS__, code,                             \
                                         ::viaduct::conformance::VS::state, (__VA_ARGS__))

/// The same for a call whose result was taken earlier, for instance by another thread, or whose state is a variable.
#define CONFORM_RESULT(call, code, state, result)                                                            \
    ::viaduct::conformance::conform_cell(__FILE__, __LINE__, call, code, state, result)
