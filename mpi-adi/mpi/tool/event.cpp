// SPDX-License-Identifier: BSD-2-Clause
// MPI_T functions on events and event sources (MPI 4.0). This library has none: the functions that count them answer 0,
// and all others fail, because no index, name or handle is valid. VIADUCT_TOOL_CALL (tool.hpp) checks that the tools
// interface is initialized.
#include "mpi-adi/mpi/tool/tool.hpp"

using namespace viaduct::mpi::tool;

VIADUCT_MPI_EXPORT(MPI_T_event_callback_get_info)
VIADUCT_MPI_FUNCTION PMPI_T_event_callback_get_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_callback_set_info)
VIADUCT_MPI_FUNCTION PMPI_T_event_callback_set_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_copy)
VIADUCT_MPI_FUNCTION PMPI_T_event_copy(MPI_T_event_instance, void*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_get_index)
VIADUCT_MPI_FUNCTION PMPI_T_event_get_index(const char*, int*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_NAME;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_get_info)
VIADUCT_MPI_FUNCTION PMPI_T_event_get_info(int, char*, int*, int*, MPI_Datatype[], MPI_Aint[], int*,
                                           MPI_T_enum*, MPI_Info*, char*, int*, int*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_INDEX;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_get_num)
VIADUCT_MPI_FUNCTION PMPI_T_event_get_num(int* number) try {
    VIADUCT_TOOL_CALL()
    give(number, 0);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_get_source)
VIADUCT_MPI_FUNCTION PMPI_T_event_get_source(MPI_T_event_instance, int*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_get_timestamp)
VIADUCT_MPI_FUNCTION PMPI_T_event_get_timestamp(MPI_T_event_instance, MPI_Count*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_handle_alloc)
VIADUCT_MPI_FUNCTION PMPI_T_event_handle_alloc(int, void*, MPI_Info, MPI_T_event_registration*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_INDEX;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_handle_free)
VIADUCT_MPI_FUNCTION PMPI_T_event_handle_free(MPI_T_event_registration, void*, MPI_T_event_free_cb_function) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_handle_get_info)
VIADUCT_MPI_FUNCTION PMPI_T_event_handle_get_info(MPI_T_event_registration, MPI_Info*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_handle_set_info)
VIADUCT_MPI_FUNCTION PMPI_T_event_handle_set_info(MPI_T_event_registration, MPI_Info) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_read)
VIADUCT_MPI_FUNCTION PMPI_T_event_read(MPI_T_event_instance, int, void*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_register_callback)
VIADUCT_MPI_FUNCTION PMPI_T_event_register_callback(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info,
                                                    void*, MPI_T_event_cb_function) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_event_set_dropped_handler)
VIADUCT_MPI_FUNCTION PMPI_T_event_set_dropped_handler(MPI_T_event_registration,
                                                      MPI_T_event_dropped_cb_function) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_HANDLE;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_source_get_info)
VIADUCT_MPI_FUNCTION PMPI_T_source_get_info(int, char*, int*, char*, int*, MPI_T_source_order*, MPI_Count*,
                                            MPI_Count*, MPI_Info*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_INDEX;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_source_get_num)
VIADUCT_MPI_FUNCTION PMPI_T_source_get_num(int* number) try {
    VIADUCT_TOOL_CALL()
    give(number, 0);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_source_get_timestamp)
VIADUCT_MPI_FUNCTION PMPI_T_source_get_timestamp(int, MPI_Count*) try {
    VIADUCT_TOOL_CALL()
    return MPI_T_ERR_INVALID_INDEX;
} VIADUCT_MPI_CATCH()
