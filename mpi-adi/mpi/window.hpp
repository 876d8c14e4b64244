// SPDX-License-Identifier: BSD-2-Clause
// What an MPI function on a window begins with: the lock, and the window whose error handler is called.
#pragma once

#include "mpi-adi/engine/critical.hpp"
#include "mpi-adi/engine/rma/window.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {

class WindowCall {
public:
    WindowCall(const char* name, MPI_Win handle) : name_(name), window_(rma::win_of(handle)) {}

    bool valid() const { return window_ != nullptr; }
    rma::Window& operator*() const { return *window_; }
    rma::Window* operator->() const { return window_; }
    // Gives the code to the window's error handler and back; MPI_SUCCESS passes.
    [[nodiscard]] int result(int code) const { return code == MPI_SUCCESS ? code : rma::raise(window_, code, name_); }
    [[nodiscard]] int now(int code) const { return code == MPI_SUCCESS ? code : rma::tell(window_, code, name_); }
    bool has_rank(int rank) const { return rank >= 0 && rank < window_->group_size(); }

private:
    Critical guard_;
    const char* name_;
    rma::Window* window_;
};

// The window of a call that is done before anything else is looked at: null where the lock is needed.
inline rma::Window* window_without_lock(MPI_Win handle) {
    return EngineLock::enabled() ? nullptr : rma::win_of(handle);
}

}  // namespace viaduct::mpi

// Defines MPI_Win_name for a window that exists, `call`; the body gives an error class.
#define VIADUCT_MPI_WIN(name, parameters, ...)              \
    VIADUCT_MPI(name, parameters) {                         \
        WindowCall call("MPI_" #name, win);                 \
        if (!call.valid()) return call.result(MPI_ERR_WIN); \
        return call.result([&]() -> int __VA_ARGS__());     \
    } VIADUCT_MPI_CATCH(win)
