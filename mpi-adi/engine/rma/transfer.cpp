// SPDX-License-Identifier: BSD-2-Clause
// See transfer.hpp.
#include "mpi-adi/engine/rma/transfer.hpp"

namespace viaduct::mpi::rma {

void Transfer::send(const Payload& data) { watch(isend(*window_.comm, Channel::p2p, rank_, kDataTag, data)); }

void Transfer::receive(const Payload& where, uint32_t tag, uint64_t bytes) {
    receives_ = true;
    expected_ = bytes;
    watch(irecv(*window_.comm, Channel::p2p, rank_, static_cast<int>(tag), where));
}

void Transfer::wait_for(Request* begun, uint64_t bytes) {
    receives_ = true;
    expected_ = bytes;
    watch(begun);
}

void Transfer::receive_staged(std::unique_ptr<StagingBuffer> staging, uint32_t tag) {
    staging_ = std::move(staging);
    receive({staging_->data(), staging_->bytes(), nullptr, 0}, tag, staging_->bytes());
}

// Modules tell of the end of requests that ask for it; one that has ended already is taken as it is.
void Transfer::watch(Request* message) {
    window_.member(rank_).outstanding++;
    if (message->is_done()) return done(message);
    message->watcher = this;
    message->r_flags |= MPIP_REQ_NOTIFY;
}

void Transfer::done(Request* message) {
    const bool whole = !receives_ || static_cast<uint64_t>(message->r_length) == expected_;
    int error = finish(message);
    if (error == MPI_SUCCESS && !whole) error = MPI_ERR_RMA_RANGE;
    if (error == MPI_SUCCESS && receives_ && staging_ != nullptr) staging_->unpack();
    Member& member = window_.member(rank_);
    member.outstanding--;
    if (mine_ != nullptr)
        mpi::complete(mine_, error);
    else if (member.error == MPI_SUCCESS)
        member.error = error;
    delete this;
}

Request* new_operation(Window& window) {
    Request* request = new_request(Request::Kind::activity);
    request->not_cancellable = true;
    request->comm = window.comm;
    comm_retain(*window.comm);
    return request;
}

}  // namespace viaduct::mpi::rma
