// SPDX-License-Identifier: BSD-2-Clause
// Statuses between the languages: the ABI gives all of them the same five integers.
#include <cstring>

#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint));
static_assert(sizeof(MPI_F08_status) == sizeof(MPI_Status));

int convert(const void* from, void* to) {
    std::memcpy(to, from, sizeof(MPI_Status));
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Status_c2f, (const MPI_Status* c_status, MPI_Fint* f_status)) {
    Call call("MPI_Status_c2f");
    VIADUCT_MPI_NEED(c_status, f_status)
    return c_status == MPI_STATUS_IGNORE ? call.result(MPI_ERR_OTHER) : convert(c_status, f_status);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Status_f2c, (const MPI_Fint* f_status, MPI_Status* c_status)) {
    Call call("MPI_Status_f2c");
    VIADUCT_MPI_NEED(c_status)
    bool ignored = f_status == MPI_F_STATUS_IGNORE || f_status == MPI_F_STATUSES_IGNORE;
    if (ignored) {
        return call.result(MPI_ERR_OTHER);
    }
    VIADUCT_MPI_NEED(f_status)
    return convert(f_status, c_status);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Status_c2f08, (const MPI_Status* c_status, MPI_F08_status* f08_status)) {
    Call call("MPI_Status_c2f08");
    VIADUCT_MPI_NEED(c_status, f08_status)
    return c_status == MPI_STATUS_IGNORE ? call.result(MPI_ERR_OTHER) : convert(c_status, f08_status);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Status_f082c, (const MPI_F08_status* f08_status, MPI_Status* c_status)) {
    Call call("MPI_Status_f082c");
    VIADUCT_MPI_NEED(c_status)
    bool ignored = f08_status == MPI_F08_STATUS_IGNORE || f08_status == MPI_F08_STATUSES_IGNORE;
    if (ignored) {
        return call.result(MPI_ERR_OTHER);
    }
    VIADUCT_MPI_NEED(f08_status)
    return convert(f08_status, c_status);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Status_f2f08, (const MPI_Fint* f_status, MPI_F08_status* f08_status)) {
    Call call("MPI_Status_f2f08");
    VIADUCT_MPI_NEED(f_status, f08_status)
    return convert(f_status, f08_status);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Status_f082f, (const MPI_F08_status* f08_status, MPI_Fint* f_status)) {
    Call call("MPI_Status_f082f");
    VIADUCT_MPI_NEED(f08_status, f_status)
    return convert(f08_status, f_status);
} VIADUCT_MPI_CATCH()
