// SPDX-License-Identifier: BSD-2-Clause
// What every function of the MPI interface begins with: the lock, and the communicator whose error handler is called.
#pragma once

#include "mpi-adi/engine/any_time.hpp"
#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/critical.hpp"
#include "mpi-adi/engine/error.hpp"
#include "mpi-adi/mpi/export.hpp"

// Defines MPI_name and PMPI_name: VIADUCT_MPI(Type_size, (MPI_Datatype datatype, int* size)) { ... }
// VIADUCT_MPI_CATCH()
#define VIADUCT_MPI(name, parameters) VIADUCT_MPI_ENTRY(MPI_##name, parameters) try

// The same for MPICH's extensions, MPIX_name.
#define VIADUCT_MPIX(name, parameters) VIADUCT_MPI_ENTRY(MPIX_##name, parameters) try

namespace viaduct::mpi {

class Call {
  public:
    explicit Call(const char* name, Comm* comm = nullptr) : name_(name), comm_(comm) {}

    // Gives the code to the error handler and back; MPI_SUCCESS passes.
    [[nodiscard]] int result(int code) const { return code == MPI_SUCCESS ? code : raise(comm_, code, name_); }
    // Asks the handler at once, when the object does not outlive the function or the call is about the handler.
    [[nodiscard]] int now(int code) const { return code == MPI_SUCCESS ? code : tell(comm_, code, name_); }
    [[nodiscard]] int on(Comm& comm, int code) const { return code == MPI_SUCCESS ? code : raise(&comm, code, name_); }

  private:
    Critical guard_;
    const char* name_;
    Comm* comm_;
};

// A call that MPI allows at any time from any thread. Its error handler runs when the body has ended, without the lock.
class AnyTimeCall : public Call {
  public:
    explicit AnyTimeCall(const char* name) : Call(name) {}

  private:
    AnyTime tables_;
};

// Whether one of them is null: the places where answers go have to be somewhere.
template <typename... Pointers>
bool missing(Pointers... pointers) {
    return (... || (pointers == nullptr));
}

}  // namespace viaduct::mpi

// In a function with its Call, `call`: refuses null pointers.
#define VIADUCT_MPI_NEED(...)            \
    if (missing(__VA_ARGS__)) {          \
        return call.result(MPI_ERR_ARG); \
    }
