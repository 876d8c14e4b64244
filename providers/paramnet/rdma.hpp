// SPDX-License-Identifier: BSD-2-Clause
// RDMA and atomic operations: by the initiator alone (rdma.cpp, and rdma_direct.cpp for its fast path), or with the
// target's help (rdma_served.cpp). [S]: vi.send.lock is held, [R]: vi.recv.lock.
#pragma once

#include <viaduct/ext.h>

#include "providers/paramnet/send.hpp"

namespace viaduct::paramnet {

// rdma.cpp [S]: the descriptor at the head, checked, `total` bytes
Step begin_write(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);
Step begin_read(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);
// Fetch-add and compare-swap (viaduct/ext.h): by the initiator alone where it has the word mapped.
Step begin_atomic(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);
Status mapped_at(ViCore&, uint32_t handle, uint64_t address, uint64_t bytes, void** here);
// What the initiator of a refused write or read sees, and what the target is told (spec/reliability 6.2, 7).
void finish_refused_write(Endpoint&, uint32_t position, uint32_t total, bool told_by_line);

// rdma_direct.cpp [S]
// The only new descriptor writes one segment into the region of the peer's arena that the last write used. False: it is
// another case, and the descriptor has not been taken (bytes may have been written: they are written again). Only while
// Tx::fast.
bool write_direct(Endpoint&, ViCore&);
// The same without a descriptor. not_done: it is another case.
Status write_now(ViCore&, const VIPX_WRITE&);

// rdma_served.cpp
Step begin_served_write(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);  // [S]
Step begin_served_read(Endpoint&, VIP_DESCRIPTOR*, uint32_t total);   // [S]
Step begin_served_atomic(Endpoint&, VIP_DESCRIPTOR*, uint32_t total, uint32_t width);  // [S]
Step push_reply(Endpoint&);                                           // [S]
bool take_served_write(Endpoint&, const Line&, uint32_t meta);        // [R]
bool place_served(Endpoint&, const std::byte* from, uint32_t n);      // [R]
bool finish_served_write(Endpoint&);                                  // [R]
bool take_read_request(Endpoint&, const Line&);                       // [R]
bool take_atomic_request(Endpoint&, const Line&);                     // [R]
bool take_read_data(Endpoint&, const Line&, uint32_t meta);           // [R]

}  // namespace viaduct::paramnet
