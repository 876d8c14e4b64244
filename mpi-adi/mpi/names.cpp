// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that publish the names of ports.
#include <cstring>

#include "mpi-adi/engine/dynamic/names.hpp"
#include "mpi-adi/mpi/call.hpp"

using namespace viaduct::mpi;

VIADUCT_MPI(Publish_name, (const char* service_name, MPI_Info info, const char* port_name)) {
    Call call("MPI_Publish_name");
    VIADUCT_MPI_NEED(service_name, port_name)
    if (!is_info_or_none(info)) {
        return call.result(MPI_ERR_INFO);
    }
    const size_t length = strnlen(port_name, MPI_MAX_PORT_NAME);
    const bool is_port = length > 0 && length < MPI_MAX_PORT_NAME && !std::strpbrk(port_name, " \n");
    return call.result(is_port ? publish_name(service_name, port_name) : MPI_ERR_PORT);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Unpublish_name, (const char* service_name, MPI_Info info, const char* port_name)) {
    Call call("MPI_Unpublish_name");
    VIADUCT_MPI_NEED(service_name, port_name)
    if (!is_info_or_none(info)) {
        return call.result(MPI_ERR_INFO);
    }
    return call.result(unpublish_name(service_name));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Lookup_name, (const char* service_name, MPI_Info info, char* port_name)) {
    Call call("MPI_Lookup_name");
    VIADUCT_MPI_NEED(service_name, port_name)
    if (!is_info_or_none(info)) {
        return call.result(MPI_ERR_INFO);
    }
    std::string port;
    const int error = look_up_name(service_name, &port);
    if (error != MPI_SUCCESS || port.size() >= MPI_MAX_PORT_NAME) {
        return call.result(MPI_ERR_NAME);
    }
    std::strcpy(port_name, port.c_str());
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()
