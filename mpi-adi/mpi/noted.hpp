// SPDX-License-Identifier: BSD-2-Clause
// Which calls the debugging mode (engine/check/check.hpp) looks at, known when their entries are compiled. Calls that
// make requests are not among them: publish() asks for those.
#pragma once

#include <string_view>

#include "mpi-adi/engine/check/check.hpp"

namespace viaduct::mpi {

constexpr std::string_view without_suffix(std::string_view function) {
    if (function.ends_with("_c")) function.remove_suffix(2);
    return function;
}

// Collective calls on the first communicator among their parameters.
constexpr bool meets_by_name(std::string_view function) {
    for (const std::string_view one :
         {"MPI_Comm_dup", "MPI_Comm_dup_with_info", "MPI_Comm_split", "MPI_Comm_split_type", "MPI_Comm_create",
          "MPI_Cart_create", "MPI_Cart_sub", "MPI_Graph_create", "MPI_Dist_graph_create",
          "MPI_Dist_graph_create_adjacent", "MPI_Intercomm_create", "MPI_Intercomm_merge", "MPI_Win_create",
          "MPI_Win_allocate", "MPI_Win_allocate_shared", "MPI_Win_create_dynamic", "MPI_File_open", "MPI_Comm_spawn",
          "MPI_Comm_spawn_multiple", "MPI_Comm_accept", "MPI_Comm_connect"})
        if (without_suffix(function) == one) return true;
    return false;
}

// Keys of attributes are plain ints.
constexpr bool makes_a_keyval(std::string_view function) {
    return function.ends_with("_create_keyval") || function == "MPI_Keyval_create";
}
constexpr bool ends_a_keyval(std::string_view function) {
    return function.ends_with("_free_keyval") || function == "MPI_Keyval_free";
}

constexpr bool ends_an_object(std::string_view function) {
    for (const std::string_view one :
         {"MPI_Comm_free", "MPI_Comm_disconnect", "MPI_Type_free", "MPI_Group_free", "MPI_Op_free", "MPI_Win_free",
          "MPI_Info_free", "MPI_Errhandler_free", "MPI_Session_finalize"})
        if (function == one) return true;
    return ends_a_keyval(function);
}

constexpr bool is_looked_at_before(std::string_view function) { return meets_by_name(function); }

// The object of that handle has ended.
[[gnu::cold]] void note_end(std::string_view function, int handle);

// Those whose answer is not the program's to free are left out.
constexpr bool makes_an_object(std::string_view function, std::string_view parameters) {
    for (const std::string_view one : {"MPI_Type_commit", "MPI_Type_match_size", "MPI_Type_create_f90_integer",
                                       "MPI_Type_create_f90_real", "MPI_Type_create_f90_complex",
                                       "MPI_Comm_get_parent"})
        if (function == one) return false;
    if (ends_an_object(function)) return false;
    if (makes_a_keyval(function) || without_suffix(function) == "MPI_Type_get_contents") return true;
    for (const std::string_view type : {"MPI_Comm", "MPI_Datatype", "MPI_Group", "MPI_Op", "MPI_Win", "MPI_Info",
                                        "MPI_Errhandler", "MPI_Session"})
        for (size_t at = parameters.find(type); at != parameters.npos; at = parameters.find(type, at + 1)) {
            std::string_view behind = parameters.substr(at + type.size());
            if (behind.starts_with(' ')) behind.remove_prefix(1);
            if (behind.starts_with('*')) return true;
        }
    return false;
}

}  // namespace viaduct::mpi
