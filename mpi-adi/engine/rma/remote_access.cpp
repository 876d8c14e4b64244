// SPDX-License-Identifier: BSD-2-Clause
// See remote_access.hpp.
//
// What the completion of a put says depends on the level of the connection (spec/reliability 6.1). At Reliable
// Reception the data is in the memory of the target. At Reliable Delivery the buffer may be used again, no more; but a
// connection does its work in order, so that a read behind the write is answered after it. A flush there reads a byte
// of the window behind the puts. Messages come behind them in any case (spec/completion): `complete` and `unlock` need
// no read.
#include "mpi-adi/engine/rma/remote_access.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/rma/layout.hpp"
#include "mpi-adi/engine/rma/transfer.hpp"

namespace viaduct::mpi::rma {
namespace {

// A module takes no more pieces at once.
constexpr size_t kMostPieces = 3072;

// One operation, as accesses of so many pieces at most. They are done in the order in which they begin: the last one
// has the program's request, and the staging buffer, whose data it puts into the program's buffer.
class Operation {
public:
    // `staging`: the data of the origin in one piece, where it has gaps in the program's buffer.
    Operation(Window& window, bool put, int rank, char* data, Request** request, std::unique_ptr<StagingBuffer> staging)
        : window_(window), put_(put), rank_(rank), data_(data), request_(request), staging_(std::move(staging)) {
        pieces->clear();
    }

    void add(char* at, uint64_t bytes) {
        if (!pieces->empty() && static_cast<char*>(pieces->back().pc_at) + pieces->back().pc_bytes == at) {
            pieces->back().pc_bytes += bytes;
        } else {
            if (pieces->size() == kMostPieces) begin(false);
            pieces->push_back({at, bytes});
        }
        bytes_ += bytes;
    }
    // False: nothing has begun.
    bool end() {
        begin(true);
        return begun_;
    }

private:
    void begin(bool last) {
        if (refused_) return;
        Request* const access = new_request(put_ ? Request::Kind::send : Request::Kind::receive);
        const Payload buffer{data_, bytes_, nullptr, 0};
        if (put_)
            set_up_send(*access, *window_.comm, Channel::p2p, rank_, kDataTag, buffer, 0);
        else
            set_up_receive(*access, *window_.comm, Channel::p2p, rank_, kDataTag, buffer);
        const struct protocol& module = *access->r_proc->p_proto;
        const Remote& remote = *window_.member(rank_).remote;
        const int error = module.pt_access(access, &remote.memory, pieces->data(), pieces->size());
        if (error != MPIP_SUCCESS && !begun_) {
            refused_ = true;
            return free_request(access);
        }
        begun_ = true;
        if (error != MPIP_SUCCESS) {
            access->r_error = error;
            access->r_state = MPIP_REQ_DONE;
        }
        Request* mine = nullptr;
        if (last && request_ != nullptr) mine = *request_ = new_operation(window_);
        auto* const transfer = new Transfer(window_, rank_, mine);
        if (last) transfer->keep(std::move(staging_));
        put_ ? transfer->wait_for(access) : transfer->wait_for(access, bytes_);
        data_ += bytes_;
        bytes_ = 0;
        pieces->clear();
    }

    static NeverDestroyed<std::vector<mpip_piece>> pieces;
    Window& window_;
    const bool put_;
    const int rank_;
    char* data_;
    Request** const request_;
    std::unique_ptr<StagingBuffer> staging_;
    uint64_t bytes_ = 0;
    bool begun_ = false, refused_ = false;
};
NeverDestroyed<std::vector<mpip_piece>> Operation::pieces;

bool operate_remotely(Window& window, bool put, const Items& origin, const Place& target, uint64_t address,
                      Request** request) {
    const uint64_t bytes = std::min(origin.bytes(), target.bytes());
    const auto count = static_cast<uint64_t>(origin.count);
    char* data = static_cast<char*>(origin.base) + origin.type->true_lb;
    std::unique_ptr<StagingBuffer> staging;
    if (!origin.type->contiguous) {
        staging = std::make_unique<StagingBuffer>(origin.base, count, TypeRef::share(*origin.type), bytes);
        data = staging->data();
        if (put) origin.type->pack(origin.base, count, 0, bytes, data);
    }
    Operation operation(window, put, target.rank, data, request, std::move(staging));
    for_each_piece(*target.type, reinterpret_cast<char*>(address), target.count, bytes,
                   [&](char* at, uint64_t length) { operation.add(at, length); });
    return operation.end();
}

}  // namespace

bool remote_put(Window& window, const Items& origin, const Place& target, uint64_t address, Request** request) {
    if (!operate_remotely(window, true, origin, target, address, request)) return false;
    window.member(target.rank).remote->written = true;
    return true;
}

bool remote_get(Window& window, const Items& origin, const Place& target, uint64_t address, Request** request) {
    return operate_remotely(window, false, origin, target, address, request);
}

void settle_puts(Window& window, int rank) {
    Remote& remote = *window.member(rank).remote;
    if (!std::exchange(remote.written, false) || remote.placed) return;
    static char last;
    const mpip_piece first{reinterpret_cast<void*>(remote.memory.rg_address), 1};
    Request* const access = new_request(Request::Kind::receive);
    set_up_receive(*access, *window.comm, Channel::p2p, rank, kDataTag, {&last, 1, nullptr, 0});
    const struct protocol& module = *access->r_proc->p_proto;
    if (const int error = module.pt_access(access, &remote.memory, &first, 1); error != MPIP_SUCCESS) {
        access->r_error = error;
        access->r_state = MPIP_REQ_DONE;
    }
    (new Transfer(window, rank, nullptr))->wait_for(access, 1);
}

}  // namespace viaduct::mpi::rma
