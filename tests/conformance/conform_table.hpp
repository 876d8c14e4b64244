// SPDX-License-Identifier: BSD-2-Clause
// What the interface documents, as data: the cells and rows that a complete run has to show, and the reasons for those
// that cannot be shown by any program that only uses vipl.h.
#pragma once

namespace viaduct::conformance {

/// One call: its label in the three-step matrix of spec/conformance 11 and its cells, "CODE:states" with the
/// letters I, P, C, E for the states and - for "no VI involved".
struct DocumentedCall {
    const char* call;
    const char* label;
    const char* cells;
};

/// A documented cell no portable check exists for, and why.
struct NotShown {
    const char* call;
    const char* code;
    const char* states;
    const char* reason;
};

/// A row of the second table; levels is any of "U", "D", "R", or "-" where the level does not matter.
struct DocumentedRow {
    const char* id;
    const char* levels;
};

struct RowNotShown {
    const char* id;
    const char* reason;
};

struct ConformanceTable {
    const DocumentedCall* calls;
    int call_count;
    const NotShown* not_shown;
    int not_shown_count;
    const DocumentedRow* rows;
    int row_count;
    const RowNotShown* rows_not_shown;
    int rows_not_shown_count;
};

ConformanceTable conformance_table();

}  // namespace viaduct::conformance
