// SPDX-License-Identifier: BSD-2-Clause
// The arguments of a call that has failed, by their types and names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mpi-adi/mpi/entry.hpp"

namespace viaduct::mpi {

struct Argument {
    std::string_view type;  // without const, * and []
    std::string_view name;
    bool pointer = false;
    bool constant = false;  // what it points to
    Value value;
};

using ArgumentList = std::vector<Argument>;

// `parameters` is the text of a parameter list, with its parentheses. It has no commas within a parameter.
ArgumentList arguments_of(const char* parameters, const Value* values, int count);
// What the call has given the program and the program has to free, for the debugging mode.
void note_made(const char* function, const char* parameters, const Value* values, int count);
std::string text_of_call(const char* function, const ArgumentList& arguments);

}  // namespace viaduct::mpi
