// SPDX-License-Identifier: BSD-2-Clause
// How arguments are written in texts of errors, and which of them is wrong.
#pragma once

#include <string>
#include <string_view>

#include "mpi-adi/mpi/explain.hpp"

namespace viaduct::mpi {

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}
std::string hexadecimal(long long number);

// MPI_INT, MPI_COMM_WORLD, or what the program calls it; empty when the argument is no handle.
std::string name_of_handle(const Argument& argument);
std::string text_of_pointer(const Argument& argument);
std::string text_of_number(const Argument& argument);

// Which argument makes an error of that class, with its value and what it must be; empty when that cannot be told.
std::string reason_of(const char* function, int error_class, const ArgumentList& arguments);

}  // namespace viaduct::mpi
