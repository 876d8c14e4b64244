// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/adi/cmpi_adi.h"

extern "C" const void* mpip_environment(const taskinfo_t* task, int proto, int rank, int* size) {
    const int* sizes = task->ti_renvsizes[proto];
    if (sizes == nullptr || sizes[rank] == 0) return nullptr;
    size_t offset = 0;
    for (int i = 0; i < rank; ++i) offset += static_cast<size_t>(sizes[i]);
    *size = sizes[rank];
    return task->ti_renvs[proto] + offset;
}
