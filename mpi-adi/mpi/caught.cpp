// SPDX-License-Identifier: BSD-2-Clause
// What becomes of an exception at the end of an MPI function. See VIADUCT_MPI_CATCH.
#include <cstring>
#include <new>

#include "mpi-adi/engine/error.hpp"
#include "mpi-adi/engine/handle.hpp"
#include "mpi-adi/engine/io/file.hpp"
#include "mpi-adi/engine/rma/window.hpp"
#include "mpi-adi/mpi/export.hpp"

namespace viaduct::mpi {
namespace {

// Gives on what a handler of the program has thrown.
int code_of_exception() {
    try {
        throw;
    } catch (const FromHandler& thrown) {
        std::rethrow_exception(thrown.exception);
    } catch (const std::bad_alloc&) {
        return MPI_ERR_NO_MEM;
    } catch (...) {
        return MPI_ERR_INTERN;
    }
}

}  // namespace

int caught(const char* function, int handle) {
    const int code = code_of_exception();
    // The tools interface has no error handlers.
    if (std::strncmp(function, "PMPI_T_", 7) == 0) return code == MPI_ERR_NO_MEM ? MPI_T_ERR_MEMORY : MPI_ERR_INTERN;
    const Critical guard;
    if (handle_type(handle) == unsigned(HandleType::win)) return rma::raise(rma::win_of(handle), code, function);
    return raise(comm_of(handle), code, function);
}

int caught(const char* function, MPI_File file) {
    const int code = code_of_exception();
    const Critical guard;
    return io::raise(io::file_of(file), code, function);
}

}  // namespace viaduct::mpi
