// SPDX-License-Identifier: BSD-2-Clause
// The arguments of a call that makes a datatype, as MPI_Type_get_contents gives them back.
#pragma once

#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "mpi-adi/engine/datatype.hpp"

namespace viaduct::mpi {

using Contents = Datatype::Contents;

template <typename T>
void append(std::vector<T>& to, const T* from, MPI_Count n) {
    to.insert(to.end(), from, from + n);
}

// Keep arguments of the call. MPI_Type_get_contents_c gives the arguments of a function with counts of 64 bits (..._c)
// as large counts, displacements too; an argument that is an int in both forms of the function stays an integer.
inline void note(Contents& contents, std::initializer_list<int> values) {
    contents.integers.insert(contents.integers.end(), values);
}
inline void note(Contents& contents, std::initializer_list<MPI_Count> values) {
    contents.large_counts.insert(contents.large_counts.end(), values);
}
inline void note(Contents& contents, const int* values, MPI_Count n) { append(contents.integers, values, n); }
inline void note(Contents& contents, const MPI_Count* values, MPI_Count n) { append(contents.large_counts, values, n); }

// Keeps displacements in bytes: as addresses, or as large counts in a function with counts of 64 bits.
template <typename Count>
void note_bytes(Contents& contents, const MPI_Aint* values, MPI_Count n) {
    append(std::is_same_v<Count, int> ? contents.addresses : contents.large_counts, values, n);
}

// Gives the type a handle, with the arguments it was made from.
inline int publish_with(Datatype* made, Contents contents, MPI_Datatype* newtype) {
    *newtype = type_publish(made, std::move(contents));
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
