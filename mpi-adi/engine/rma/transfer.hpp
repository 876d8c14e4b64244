// SPDX-License-Identifier: BSD-2-Clause
// A transfer between a buffer of this origin and a member: counted as outstanding until it is done.
#pragma once

#include <memory>

#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/engine/rma/layout.hpp"
#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi::rma {

// The data of an operation in one piece, where the program's buffer has gaps.
class StagingBuffer {
public:
    StagingBuffer(void* base, uint64_t count, TypeRef layout, uint64_t bytes)
        : data_(std::make_unique_for_overwrite<char[]>(bytes)), base_(base), count_(count), layout_(std::move(layout)),
          bytes_(bytes) {}
    char* data() const { return data_.get(); }
    uint64_t bytes() const { return bytes_; }
    // Into the program's buffer.
    void unpack() const { layout_->unpack(base_, count_, 0, bytes_, data_.get()); }

private:
    std::unique_ptr<char[]> data_;
    void* base_;
    uint64_t count_;
    TypeRef layout_;
    uint64_t bytes_;
};

class Transfer final : public Watcher {
public:
    // `mine` is the program's request, completed with the transfer, or null.
    Transfer(Window& window, int rank, Request* mine) : window_(window), rank_(rank), mine_(mine) {}

    // Of data that the operation needs before it is done at this end.
    void send(const Payload& data);
    // Of data that comes back: `bytes` of it, or the operation has failed.
    void receive(const Payload& where, uint32_t tag, uint64_t bytes);
    // For a request that has begun, of a transfer to the member, or of `bytes` bytes from it.
    void wait_for(Request* begun) { watch(begun); }
    void wait_for(Request* begun, uint64_t bytes);
    // Of data that comes back as whole elements: into the staging buffer, and when it is there into the program's.
    void receive_staged(std::unique_ptr<StagingBuffer> staging, uint32_t tag);
    // Keeps the staging buffer until the transfer is done; what has come then goes into the program's buffer.
    void keep(std::unique_ptr<StagingBuffer> staging) { staging_ = std::move(staging); }

    void done(Request* message) override;

private:
    void watch(Request* message);

    Window& window_;
    const int rank_;
    Request* const mine_;
    bool receives_ = false;
    uint64_t expected_ = 0;
    std::unique_ptr<StagingBuffer> staging_;
};

// The program's request for an operation on this window, not complete yet.
Request* new_operation(Window& window);

}  // namespace viaduct::mpi::rma
