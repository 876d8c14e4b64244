// SPDX-License-Identifier: BSD-2-Clause
// Begin and end of the tools interface, and its enumerations.
#include <algorithm>
#include <cstring>

#include "mpi-adi/mpi/tool/tool.hpp"
#include "mpi-adi/mpi/tool/variables.hpp"

namespace viaduct::mpi::tool {
namespace {

std::mutex lists;
int users = 0;

const MPIR_T_enum_s* enum_of(MPI_T_enum handle) { return handle == &stage_enum() ? handle : nullptr; }

}  // namespace

ToolCall::ToolCall() : lists_(lists) {}
bool ToolCall::ready() const { return users > 0; }

void give_text(std::string_view text, char* buffer, int* length) {
    if (!length) {
        return;
    }
    if (buffer && *length > 0) {
        const size_t room = std::min(text.size(), size_t(*length) - 1);
        std::memcpy(buffer, text.data(), room);
        buffer[room] = '\0';
    }
    *length = int(text.size()) + 1;
}

}  // namespace viaduct::mpi::tool

using namespace viaduct::mpi::tool;

VIADUCT_MPI_EXPORT(MPI_T_init_thread)
VIADUCT_MPI_FUNCTION PMPI_T_init_thread(int required, int* provided) try {
    ToolCall call;
    if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE) {
        return MPI_T_ERR_INVALID;
    }
    ++users;
    give(provided, MPI_THREAD_MULTIPLE);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_finalize)
VIADUCT_MPI_FUNCTION PMPI_T_finalize(void) try {
    VIADUCT_TOOL_CALL()
    if (--users == 0) {
        clear_cvar_handles();
        clear_pvar_sessions();
    }
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_enum_get_info)
VIADUCT_MPI_FUNCTION PMPI_T_enum_get_info(MPI_T_enum enumtype, int* num, char* name, int* name_len) try {
    VIADUCT_TOOL_CALL()
    const MPIR_T_enum_s* found = enum_of(enumtype);
    if (!found) {
        return MPI_T_ERR_INVALID_HANDLE;
    }
    give(num, found->items.size());
    give_text(found->name, name, name_len);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_enum_get_item)
VIADUCT_MPI_FUNCTION PMPI_T_enum_get_item(MPI_T_enum enumtype, int item, int* value, char* name,
                                          int* name_len) try {
    VIADUCT_TOOL_CALL()
    const MPIR_T_enum_s* found = enum_of(enumtype);
    if (!found) {
        return MPI_T_ERR_INVALID_HANDLE;
    }
    if (item < 0 || size_t(item) >= found->items.size()) {
        return MPI_T_ERR_INVALID_INDEX;
    }
    give(value, item);
    give_text(found->items[size_t(item)], name, name_len);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()
