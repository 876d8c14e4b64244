// SPDX-License-Identifier: BSD-2-Clause
// How an MPI function is exported: the function is PMPI_X, and MPI_X a weak second name that a tool may replace.
// Inside the library nothing calls MPI_X, so that a tool sees the program's calls and no others.
#pragma once

#include <cxxabi.h>
#include <mpi.h>

#include <type_traits>

#include "mpi-adi/engine/failure.hpp"
#include "mpi-adi/mpi/entry.hpp"

// Most functions are made by VIADUCT_MPI_ENTRY. Those that report no error to a handler (of the tools interface, and
// conversions of handles) say before the definition of PMPI_X: VIADUCT_MPI_EXPORT(MPI_X). A definition inside a
// namespace does not get the visibility that mpi.h gives: it begins with VIADUCT_MPI_FUNCTION.
#define VIADUCT_MPI_EXPORT(name)                             \
    extern "C" std::remove_reference_t<decltype(name)> name \
        __attribute__((weak, visibility("default"), alias("P" #name)));
#define VIADUCT_MPI_FUNCTION extern "C" __attribute__((visibility("default"))) int

// The end of every function: a C program cannot catch what C++ throws. No memory is MPI_ERR_NO_MEM, anything else
// MPI_ERR_INTERN, and the error handler of the communicator, window or file that `handle` names is called, if there is
// one. A thread that is cancelled inside a call must go on to unwind, and what an error handler of the program throws
// is for the program. The functions are `try` blocks as a whole, so that one without this does not compile.
#define VIADUCT_MPI_CATCH(...)                                                             \
    catch (abi::__forced_unwind&) { throw; } catch (...) {                                 \
        return ::viaduct::mpi::caught(__func__ __VA_OPT__(, ) __VA_ARGS__);                \
    }

// The same for functions that have no VIADUCT_MPI_ENTRY around them, which would ask the handler.
#define VIADUCT_MPI_CATCH_NOW(...)                                                                            \
    catch (abi::__forced_unwind&) { throw; } catch (...) {                                                    \
        return ::viaduct::mpi::settle_failure(::viaduct::mpi::caught(__func__ __VA_OPT__(, ) __VA_ARGS__));   \
    }

namespace viaduct::mpi {
// What has been thrown, inside its handler, as an error code for the caller.
[[nodiscard]] int caught(const char* function, int handle = 0);
[[nodiscard]] int caught(const char* function, MPI_File file);
}  // namespace viaduct::mpi

// The functions that count items exist twice: with int, and, as MPI_X_c, with counts and displacements of 64 bits.
// VIADUCT_MPI_COUNTED defines both from one body, which says Count and Displacement: write it outside of namespaces.
namespace viaduct::mpi::narrow {
using Count = int;
using Displacement = int;
}  // namespace viaduct::mpi::narrow
namespace viaduct::mpi::wide {
using Count = MPI_Count;
using Displacement = MPI_Aint;
}  // namespace viaduct::mpi::wide

// With the parameter that names a communicator or window it is VIADUCT_MPI_COUNTED_ON.
#define VIADUCT_MPI_COUNTED(name, parameters, ...) VIADUCT_MPI_COUNTED_ON(0, name, parameters, __VA_ARGS__)
#define VIADUCT_MPI_COUNTED_ON(handle, name, parameters, ...)   \
    namespace viaduct::mpi::narrow {                            \
    VIADUCT_MPI_ENTRY(MPI_##name, parameters) try               \
        __VA_ARGS__ VIADUCT_MPI_CATCH(handle)                   \
    }                                                           \
    namespace viaduct::mpi::wide {                              \
    VIADUCT_MPI_ENTRY(MPI_##name##_c, parameters) try           \
        __VA_ARGS__ VIADUCT_MPI_CATCH(handle)                   \
    }
