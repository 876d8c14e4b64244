// SPDX-License-Identifier: BSD-2-Clause
// How arguments are written in texts of errors.
#include <cstdio>

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/op.hpp"
#include "mpi-adi/engine/rma/window.hpp"
#include "mpi-adi/mpi/reasons.hpp"

namespace viaduct::mpi {
namespace {

struct Handles {
    std::string_view type;
    const char* name;  // of what the number is, in front of it
    int null;
    const char* null_name;
};

constexpr Handles kHandles[] = {
    {"MPI_Comm", "comm", MPI_COMM_NULL, "MPI_COMM_NULL"},
    {"MPI_Datatype", "dtype", MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL"},
    {"MPI_Op", "op", MPI_OP_NULL, "MPI_OP_NULL"},
    {"MPI_Group", "group", MPI_GROUP_NULL, "MPI_GROUP_NULL"},
    {"MPI_Request", "request", MPI_REQUEST_NULL, "MPI_REQUEST_NULL"},
    {"MPI_Win", "win", MPI_WIN_NULL, "MPI_WIN_NULL"},
    {"MPI_Info", "info", MPI_INFO_NULL, "MPI_INFO_NULL"},
    {"MPI_Errhandler", "errh", MPI_ERRHANDLER_NULL, "MPI_ERRHANDLER_NULL"},
    {"MPI_Session", "session", MPI_SESSION_NULL, "MPI_SESSION_NULL"},
};

std::string own_name(std::string_view type, int handle) {
    if (type == "MPI_Comm") {
        const Communicator* comm = comm_of(handle);
        return comm != nullptr ? comm->name : "";
    }
    if (type == "MPI_Datatype") {
        const Datatype* found = type_of(handle);
        return found != nullptr ? found->name : "";
    }
    if (type == "MPI_Op") {
        const char* const known = op_name(handle);
        return known != nullptr ? known : "";
    }
    if (type == "MPI_Win") {
        const rma::Window* win = rma::win_of(handle);
        return win != nullptr ? win->name : "";
    }
    if (type == "MPI_Group" && handle == MPI_GROUP_EMPTY) return "MPI_GROUP_EMPTY";
    if (type == "MPI_Errhandler" && handle == MPI_ERRORS_ARE_FATAL) return "MPI_ERRORS_ARE_FATAL";
    if (type == "MPI_Errhandler" && handle == MPI_ERRORS_RETURN) return "MPI_ERRORS_RETURN";
    return "";
}

}  // namespace

std::string hexadecimal(long long number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%x", unsigned(number));
    return text;
}

std::string name_of_handle(const Argument& argument) {
    const int handle = int(argument.value.number);
    for (const Handles& one : kHandles) {
        if (argument.type != one.type) continue;
        if (handle == one.null) return one.null_name;
        const std::string name = own_name(argument.type, handle);
        return name.empty() ? std::string(one.name) + "=" + hexadecimal(handle) : name;
    }
    return {};
}

std::string text_of_pointer(const Argument& argument) {
    const void* const pointer = argument.value.pointer;
    if (pointer == nullptr) return "(nil)";
    if (argument.type == "MPI_Status" && pointer == MPI_STATUS_IGNORE) return "MPI_STATUS_IGNORE";
    if (pointer == MPI_IN_PLACE && argument.type == "void") return "MPI_IN_PLACE";
    char text[32];
    std::snprintf(text, sizeof text, "%p", pointer);
    return text;
}

std::string text_of_number(const Argument& argument) {
    const long long number = argument.value.number;
    if (argument.type == "MPI_File") return number == 0 ? "MPI_FILE_NULL" : std::to_string(number);
    if (number == MPI_ANY_SOURCE && contains(argument.name, "source")) return "MPI_ANY_SOURCE";
    if (number == MPI_ANY_TAG && contains(argument.name, "tag")) return "MPI_ANY_TAG";
    if (number == MPI_PROC_NULL && (contains(argument.name, "source") || contains(argument.name, "dest")))
        return "MPI_PROC_NULL";
    if (number == MPI_UNDEFINED) return "MPI_UNDEFINED";
    if (number == MPI_ROOT && argument.name == "root") return "MPI_ROOT";
    if (argument.name == "amode" || argument.name == "assert") return hexadecimal(number);
    return std::to_string(number);
}

}  // namespace viaduct::mpi
