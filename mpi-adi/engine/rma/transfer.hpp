// SPDX-License-Identifier: BSD-2-Clause
// A transfer between a buffer of this origin and a member: counted as outstanding until it is done.
#pragma once

#include <memory>

#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/engine/rma/layout.hpp"
#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi::rma {

class Transfer final : public Watcher {
public:
    // `mine` is the program's request, completed with the transfer, or null.
    Transfer(Window& window, int rank, Request* mine) : window_(window), rank_(rank), mine_(mine) {}

    // Of data that the operation needs before it is done at this end.
    void send(const Payload& data);
    // Of data that comes back: `bytes` of it, or the operation has failed.
    void receive(const Payload& where, uint32_t tag, uint64_t bytes);
    // Comes back as whole elements, put into the program's buffer by this layout when it is there.
    void receive_aside(void* base, uint64_t count, TypeRef layout, uint32_t tag, uint64_t bytes);

    void done(Request* message) override;

private:
    void watch(Request* message);

    Window& window_;
    const int rank_;
    Request* const mine_;
    bool receives_ = false;
    uint64_t expected_ = 0;
    std::unique_ptr<char[]> aside_;
    TypeRef layout_;
    void* base_ = nullptr;
    uint64_t count_ = 0;
};

// The program's request for an operation on this window, not complete yet.
Request* new_operation(Window& window);

}  // namespace viaduct::mpi::rma
