// SPDX-License-Identifier: BSD-2-Clause
// One-sided access to memory of other processes: pt_expose, pt_conceal, pt_access. An access is a long message of which
// both sides' memory is known beforehand, so that it begins where others get after their handshake (move.cpp). It waits
// in the same queue as these, which keeps the order of accesses. Only single lanes: where several NICs serve a process
// (rules_.reports_parts) the order of their writes and reads is not known.
#include <algorithm>
#include <iterator>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/protocol/move.hpp"

namespace viaduct::protocol {

void* Protocol::expose(void* memory, size_t bytes, mpip_region* region) {
    if (!reaches_memory() || bytes == 0) return nullptr;
    Registration* held = rules_.memory->acquire(memory, bytes);
    if (held == nullptr) return nullptr;
    *region = {reinterpret_cast<uintptr_t>(memory), bytes, {}};
    std::copy(std::begin(held->handle), std::end(held->handle), region->rg_handle);
    return held;
}

void Protocol::conceal(void* exposed) { rules_.memory->release(static_cast<Registration*>(exposed)); }

// Behind all that was begun before.
void Protocol::start_access(Transfer& t, const mpip_piece* far, size_t pieces, const mpip_region& region) {
    mpip_req_t* req = t.request;
    t.one_sided = true;
    t.method = (req->r_flags & MPIP_REQ_SEND) != 0 ? Method::put : Method::get;
    t.length = t.end = t.message = req->r_bytes;
    t.theirs = PieceList::of_region(far, pieces, region);
    start_moving(t);
    push(*t.peer);
}

int Protocol::access(mpip_req_t* req, const mpip_region& region, const mpip_piece* far, size_t pieces) {
    // Below it a copy costs less than a registration; it fits into every buffer of a lane.
    constexpr size_t kCopied = 8192;
    Peer& p = *peer_of(req->r_proc);
    const bool put = (req->r_flags & MPIP_REQ_SEND) != 0;
    if (!reaches_memory() || (!put && !rules_.get) || pieces == 0 || pieces > kMostPieces) return MPIP_ERR_NO_MEM;
    PieceListPtr own = PieceList::of(req, req->r_bytes, 1);
    const bool copied = req->r_bytes <= kCopied && pieces == 1 && own != nullptr && own->count() == 1;
    if (own == nullptr || (!copied && !own->register_with(*rules_.memory))) return MPIP_ERR_NO_MEM;
    req->r_state = MPIP_REQ_STARTED;
    if (p.lost()) {
        adi::end_request(req, MPIP_ERR_PROC_FAILED);
        return MPIP_SUCCESS;
    }
    Transfer* t = new_transfer(req, p);
    t->own = std::move(own);
    t->copied = copied;
    ++(put ? counters_->mc_puts : counters_->mc_gets);
    start_access(*t, far, pieces, region);
    return MPIP_SUCCESS;
}

int Protocol::change(mpip_req_t* req, const mpip_region& region, const mpip_change& change) {
    Peer& p = *peer_of(req->r_proc);
    if (!reaches_memory()) return MPIP_ERR_NO_MEM;
    req->r_state = MPIP_REQ_STARTED;
    if (p.lost()) {
        adi::end_request(req, MPIP_ERR_PROC_FAILED);
        return MPIP_SUCCESS;
    }
    Transfer* t = new_transfer(req, p);
    t->own = PieceList::of(req, req->r_bytes, 1);
    t->copied = true;
    t->change = change;
    ++counters_->mc_changes;
    const mpip_piece word = {reinterpret_cast<void*>(change.ch_address), change.ch_bytes};
    start_access(*t, &word, 1, region);
    return MPIP_SUCCESS;
}

}  // namespace viaduct::protocol
