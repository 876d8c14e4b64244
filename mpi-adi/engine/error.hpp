// SPDX-License-Identifier: BSD-2-Clause
// Error codes, their texts, and error handlers. An error code is its class, unless the program added it by
// MPI_Add_error_code. Every MPI function that fails returns through raise().
#pragma once

#include <cxxabi.h>
#include <mpi.h>

#include <exception>
#include <string>

namespace viaduct::mpi {

struct Comm;

// The numbers of the first three are those of the C++ layer.
enum class ErrhandlerKind : int { comm = 0, file = 1, win = 2, session = 3 };

// MPI::ERRORS_THROW_EXCEPTIONS.
constexpr MPI_Errhandler kErrorsThrowExceptions = 0x54000002;

// Thrown by an error handler of the program: it passes through MPI and reaches the program as it was.
struct FromHandler {
    std::exception_ptr exception;
};

using ErrhandlerProxy = void (*)(int kind, int* object, int* code, void (*function)());

struct Errhandler {
    int handle = MPI_ERRHANDLER_NULL;
    ErrhandlerKind kind = ErrhandlerKind::comm;
    MPI_Comm_errhandler_function* function = nullptr;  // null in the built-in ones
    int references = 1;
    ErrhandlerProxy proxy = nullptr;  // how to call a function written in C++

    // Whether the calls that fail just return; in C++ they then throw.
    bool returns() const { return handle == MPI_ERRORS_RETURN || handle == kErrorsThrowExceptions; }
    // The program's function.
    void call(int* object, int* code, const char* mpi_function) const {
        try {
            if (proxy) {
                proxy(int(kind), object, code, reinterpret_cast<void (*)()>(function));
            } else {
                function(object, code, mpi_function);
            }
        } catch (abi::__forced_unwind&) {
            throw;
        } catch (...) {
            throw FromHandler{std::current_exception()};
        }
    }
};

Errhandler* errhandler_of(MPI_Errhandler handle);
MPI_Errhandler errhandler_create(ErrhandlerKind kind, MPI_Comm_errhandler_function* function);
void errhandler_retain(Errhandler* handler);
void errhandler_release(Errhandler* handler);

// Runs the error handler of the communicator (null: of MPI_COMM_WORLD, or of MPI_COMM_SELF when that of the world is
// fatal) and returns `code`; does not return when the handler is MPI_ERRORS_ARE_FATAL. MPI_SUCCESS passes through.
[[nodiscard]] int tell(Comm* comm, int code, const char* function);
// The same at the end of the MPI function (failure.hpp), which the code is returned to.
[[nodiscard]] int raise(Comm* comm, int code, const char* function);

int error_class_of(int code);  // or -1 for a code that was not made
std::string error_text(int code);  // of this thread's last error of that class, if there was one, with its call
const char* class_text(int error_class);
int add_error_class();
int add_error_code(int error_class);  // or -1
[[nodiscard]] bool set_error_text(int code, const char* text);
// Takes back what was added; false when nothing was, or when codes of the class are left.
[[nodiscard]] bool delete_error_code(int code);
[[nodiscard]] bool delete_error_class(int error_class);
int* last_used_code();  // the value of the attribute MPI_LASTUSEDCODE

}  // namespace viaduct::mpi
