// SPDX-License-Identifier: BSD-2-Clause
// Control variables. A number may be written until the job begins, because the modules read it then; text
// comes from the environment alone.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/mpi/tool/tool.hpp"
#include "mpi-adi/mpi/tool/variables.hpp"

struct MPIR_T_cvar_handle_s {
    viaduct::mpi::tool::Control control;
};

namespace viaduct::mpi::tool {
namespace {

using Handles = std::vector<std::unique_ptr<MPIR_T_cvar_handle_s>>;

Handles& handles() {
    static auto* all = new Handles();
    return *all;
}

Handles::iterator find(MPI_T_cvar_handle handle) {
    auto& all = handles();
    auto one = all.begin();
    while (one != all.end() && one->get() != handle) {
        ++one;
    }
    return one;
}

}  // namespace

void clear_cvar_handles() { handles().clear(); }

}  // namespace viaduct::mpi::tool

using namespace viaduct::mpi;
using namespace viaduct::mpi::tool;

VIADUCT_MPI_EXPORT(MPI_T_cvar_get_num)
VIADUCT_MPI_FUNCTION PMPI_T_cvar_get_num(int* num_cvar) try {
    VIADUCT_TOOL_CALL()
    give(num_cvar, controls().size());
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_cvar_get_info)
VIADUCT_MPI_FUNCTION PMPI_T_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity,
                                          MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc,
                                          int* desc_len, int* bind, int* scope) try {
    VIADUCT_TOOL_CALL()
    const auto all = controls();
    if (cvar_index < 0 || size_t(cvar_index) >= all.size()) {
        return MPI_T_ERR_INVALID_INDEX;
    }
    const Control& one = all[size_t(cvar_index)];
    give_text(one.row->pa_name, name, name_len);
    give(verbosity, MPI_T_VERBOSITY_TUNER_BASIC);
    give(datatype, one.is_number() ? MPI_COUNT : MPI_CHAR);
    give(enumtype, MPI_T_ENUM_NULL);
    give_text(one.row->pa_help, desc, desc_len);
    give(bind, MPI_T_BIND_NO_OBJECT);
    give(scope, one.is_number() ? MPI_T_SCOPE_ALL_EQ : MPI_T_SCOPE_READONLY);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_cvar_get_index)
VIADUCT_MPI_FUNCTION PMPI_T_cvar_get_index(const char* name, int* cvar_index) try {
    VIADUCT_TOOL_CALL()
    const auto all = controls();
    for (size_t i = 0; name && i < all.size(); ++i) {
        if (std::strcmp(all[i].row->pa_name, name) == 0) {
            give(cvar_index, i);
            return MPI_SUCCESS;
        }
    }
    return MPI_T_ERR_INVALID_NAME;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_cvar_handle_alloc)
VIADUCT_MPI_FUNCTION PMPI_T_cvar_handle_alloc(int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) try {
    VIADUCT_TOOL_CALL()
    const auto all = controls();
    if (cvar_index < 0 || size_t(cvar_index) >= all.size()) {
        return MPI_T_ERR_INVALID_INDEX;
    }
    if (!handle) {
        return MPI_T_ERR_INVALID;
    }
    const Control& one = all[size_t(cvar_index)];
    handles().push_back(std::make_unique<MPIR_T_cvar_handle_s>(one));
    *handle = handles().back().get();
    give(count, one.is_number() ? 1 : std::strlen(one.row->pa_value) + 1);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_cvar_handle_free)
VIADUCT_MPI_FUNCTION PMPI_T_cvar_handle_free(MPI_T_cvar_handle* handle) try {
    VIADUCT_TOOL_CALL()
    const auto found = handle ? find(*handle) : handles().end();
    if (found == handles().end()) {
        return MPI_T_ERR_INVALID_HANDLE;
    }
    handles().erase(found);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_cvar_read)
VIADUCT_MPI_FUNCTION PMPI_T_cvar_read(MPI_T_cvar_handle handle, void* buf) try {
    VIADUCT_TOOL_CALL()
    const auto found = find(handle);
    if (found == handles().end()) {
        return MPI_T_ERR_INVALID_HANDLE;
    }
    if (!buf) {
        return MPI_T_ERR_INVALID;
    }
    const Control& one = (*found)->control;
    if (one.is_number()) {
        const MPI_Count value = std::strtol(one.row->pa_value, nullptr, 0);
        std::memcpy(buf, &value, sizeof value);
    } else {
        std::memcpy(buf, one.row->pa_value, std::strlen(one.row->pa_value) + 1);
    }
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_cvar_write)
VIADUCT_MPI_FUNCTION PMPI_T_cvar_write(MPI_T_cvar_handle handle, const void* buf) try {
    VIADUCT_TOOL_CALL()
    const auto found = find(handle);
    if (found == handles().end()) {
        return MPI_T_ERR_INVALID_HANDLE;
    }
    if (!buf) {
        return MPI_T_ERR_INVALID;
    }
    const Control& one = (*found)->control;
    if (!one.is_number() || engine.stage != Stage::before) {
        return MPI_T_ERR_CVAR_SET_NEVER;
    }
    MPI_Count value;
    std::memcpy(&value, buf, sizeof value);
    return mpip_set_param(one.row->pa_name, value) == MPIP_SUCCESS ? MPI_SUCCESS : MPI_T_ERR_INVALID;
} VIADUCT_MPI_CATCH()
