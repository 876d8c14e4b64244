// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that belong to no object: time, memory, versions, addresses.
#include <time.h>

#include <bit>
#include <cstdlib>
#include <cstring>

#include "mpi-adi/mpi/call.hpp"

using namespace viaduct::mpi;

extern "C" double PMPI_Wtime(void);
extern "C" double MPI_Wtime(void) __attribute__((weak, alias("PMPI_Wtime")));
double PMPI_Wtime(void) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

extern "C" double MPI_Wtick(void) __attribute__((weak, alias("PMPI_Wtick")));
double PMPI_Wtick(void) {
    timespec resolution;
    clock_getres(CLOCK_MONOTONIC, &resolution);
    return double(resolution.tv_sec) + double(resolution.tv_nsec) * 1e-9;
}

VIADUCT_MPI(Get_version, (int* version, int* subversion)) {
    Call call("MPI_Get_version");
    VIADUCT_MPI_NEED(version, subversion)
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Get_library_version, (char* version, int* resultlen)) {
    Call call("MPI_Get_library_version");
    VIADUCT_MPI_NEED(version, resultlen)
    constexpr char kText[] = "Viaduct libcmpi " CMPI_VERSION " (MPICH ABI 12)";
    std::memcpy(version, kText, sizeof kText);
    *resultlen = int(sizeof kText - 1);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Alloc_mem, (MPI_Aint size, MPI_Info info, void* baseptr)) {
    Call call("MPI_Alloc_mem");
    VIADUCT_MPI_NEED(baseptr)
    if (!is_info_or_none(info)) {
        return call.result(MPI_ERR_INFO);
    }
    if (size < 0) {
        return call.result(MPI_ERR_ARG);
    }
    // Of the NIC where messages go by it: long ones then need no registration of their own.
    if (void* registered = mpip_alloc_mem(size ? size_t(size) : 1)) {
        *static_cast<void**>(baseptr) = registered;
        return MPI_SUCCESS;
    }
    // Whole pages: what is registered then belongs to no other allocation.
    constexpr size_t kPage = 4096;
    size_t bytes = (size_t(size) + kPage - 1) / kPage * kPage;
    void* memory = std::aligned_alloc(kPage, bytes ? bytes : kPage);
    if (!memory) {
        return call.result(MPI_ERR_NO_MEM);
    }
    *static_cast<void**>(baseptr) = memory;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Free_mem, (void* base)) {
    Call call("MPI_Free_mem");
    if (mpip_free_mem(base) != MPIP_SUCCESS) std::free(base);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

extern "C" MPI_Aint MPI_Aint_add(MPI_Aint, MPI_Aint) __attribute__((weak, alias("PMPI_Aint_add")));
MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp) { return MPI_Aint(uint64_t(base) + uint64_t(disp)); }

extern "C" MPI_Aint MPI_Aint_diff(MPI_Aint, MPI_Aint) __attribute__((weak, alias("PMPI_Aint_diff")));
MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2) { return MPI_Aint(uint64_t(addr1) - uint64_t(addr2)); }

// For tools that wrap it; the library itself has nothing to switch.
extern "C" int MPI_Pcontrol(const int, ...) __attribute__((weak, alias("PMPI_Pcontrol")));
int PMPI_Pcontrol(const int, ...) try { return MPI_SUCCESS; } VIADUCT_MPI_CATCH_NOW()
