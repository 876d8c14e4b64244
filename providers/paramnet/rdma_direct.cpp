// SPDX-License-Identifier: BSD-2-Clause
// The fast path of RDMA writes, by plain stores: into a region of the target's arena that a write by descriptor has
// reached before (rdma.cpp). What that write was permitted is kept in RemoteTarget; here only the handle and the range
// are compared, and whether the target has left.
#include "core/sync/atomic_equals.hpp"
#include "providers/paramnet/rdma.hpp"

namespace viaduct::paramnet {

bool write_direct(Endpoint& ep, ViCore& vi) {
    Tx& tx = ep.tx;
    WorkQueue& q = vi.send;
    const uint32_t position = q.taken;
    if (q.posted - position != 1) return false;
    VIP_DESCRIPTOR* d = q.next_untaken();
    if (read_form(d) != kFormOfWrite) return false;
    const SegmentValue target = read_segment(d->DS[0].Local);  // the address segment has the same layout
    const SegmentValue s = read_segment(d->DS[1].Local);
    if (s.length == 0 || !may_send(q.buffers, d, s, vi.max_transfer)) return false;
    // As Access does it, for memory of the arena and where no fence is needed (Tx::fast).
    tx.own->busy_send.store(target.handle, std::memory_order_relaxed);
    free_barrier();
    bool done = false;
    if (atomic_equals_acquire(tx.peer->closed, 0u) &&
        tx.rdma.target.region.covers(target.handle, target.address, s.length)) {
        copy_rising(tx.rdma.target.at + (target.address - tx.rdma.target.region.base), s.bytes(), s.length);
        done = atomic_equals_acquire(tx.peer->closed, 0u);  // if it has left meanwhile, its disconnect decides
    }
    tx.own->busy_send.store(0, std::memory_order_release);
    if (!done) return false;
    q.taken = position + 1;
    if (q.completed != position) {
        finish(ep, position, VIP_STATUS_OP_RDMA_WRITE, s.length, After::nothing);
    } else {
        publish_status(d, VIP_STATUS_OP_RDMA_WRITE, s.length);
        tell_completion(q, free_barrier);
    }
    return true;
}

Status write_now(ViCore& vi, const VIPX_WRITE& write) {
    constexpr uint64_t kMostLast = 128;
    constexpr uint64_t kWord = sizeof(uint64_t);
    Tx& tx = vi.endpoint->tx;
    const uint32_t handle = write.RemoteHandle;
    const uint64_t address = write.RemoteAddress, first = write.FirstBytes, last = write.LastBytes;
    uint64_t total;
    if (!tx.fast || __builtin_add_overflow(first, last, &total) || total > vi.max_transfer || last > kMostLast ||
        ((address + first) | last) % kWord != 0) [[unlikely]]
        return Status::not_done;
    tx.own->busy_send.store(handle, std::memory_order_relaxed);
    free_barrier();
    bool done = false;
    if (atomic_equals_acquire(tx.peer->closed, 0u) && tx.rdma.target.region.covers(handle, address, total)) [[likely]] {
        std::byte* to = tx.rdma.target.at + (address - tx.rdma.target.region.base);
        if (first != 0) {
            copy_before(to, static_cast<const std::byte*>(write.First), first);
            to += first;
        }
        copy_words(to, static_cast<const uint64_t*>(write.Last), last / kWord);
        done = atomic_equals_acquire(tx.peer->closed, 0u);  // if it has left meanwhile, its disconnect decides
    }
    tx.own->busy_send.store(0, std::memory_order_release);
    return done ? Status::ok : Status::not_done;
}

}  // namespace viaduct::paramnet
