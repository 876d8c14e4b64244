// SPDX-License-Identifier: BSD-2-Clause
// What the functions of the tools interface (MPI_T_) share. They return their codes, no error handler is
// asked; they may be called before MPI_Init and after MPI_Finalize, and from any thread.
#pragma once

#include <mutex>
#include <string_view>

#include "mpi-adi/engine/critical.hpp"
#include "mpi-adi/mpi/export.hpp"

namespace viaduct::mpi::tool {

// First line of every function: the engine's lock, for the counters, and then that of the interface's own
// lists. (A callback of the program that asks holds the first already; so the order is always this one.)
class ToolCall {
public:
    ToolCall();
    // Whether MPI_T_init_thread was called more often than MPI_T_finalize.
    bool ready() const;

private:
    Critical engine_;
    std::lock_guard<std::mutex> lists_;
};

// Gives back a text the way all MPI_T_ functions do: at most *length bytes with the zero byte, and in *length
// what the whole takes; only the length when there is no buffer or *length is 0; nothing when `length` is
// NULL.
void give_text(std::string_view text, char* buffer, int* length);

// Stores a value that may not be wanted.
template <typename Out, typename Value>
void give(Out* out, Value value) {
    if (out) {
        *out = static_cast<Out>(value);
    }
}

// The last MPI_T_finalize frees what the program did not.
void clear_cvar_handles();
void clear_pvar_sessions();

}  // namespace viaduct::mpi::tool

// What every function begins with when it needs the interface to be initialised.
#define VIADUCT_TOOL_CALL()               \
    ToolCall call;                        \
    if (!call.ready()) {                  \
        return MPI_T_ERR_NOT_INITIALIZED; \
    }
