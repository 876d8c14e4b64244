// SPDX-License-Identifier: BSD-2-Clause
// Atomic operations of viaduct/ext.h by the device's own: words of eight bytes, at reliable levels. What they
// have in common with RDMA (the question for the key, refusals) is with RDMA; here is the rest.
#pragma once

#include <infiniband/verbs.h>
#include <vipl.h>

#include <cstdint>

#include "core/vi/vi_core.hpp"

namespace viaduct::verbs {

// Whether the device has them: they are answered as reads are, and take the same resources.
bool has_atomics(const ibv_device_attr&);

// What a region, or a queue pair, needs besides being open to both write and read by the peer.
inline uint32_t atomic_access(bool device_has, uint32_t access) {
    constexpr uint32_t kBoth = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    return device_has && (access & kBoth) == kBoth ? uint32_t{IBV_ACCESS_REMOTE_ATOMIC} : 0;
}

// Makes an atomic operation of the request for a descriptor that check_send has found in order: the operands,
// `total` bytes, go into the request itself, and of its list of pieces remains where the old value comes.
// False: the descriptor or its memory has changed since.
bool make_atomic(const ViCore&, const VIP_DESCRIPTOR*, uint32_t total, uint32_t key, ibv_send_wr*);

}  // namespace viaduct::verbs
