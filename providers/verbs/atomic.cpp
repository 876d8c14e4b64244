// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/atomic.hpp"

#include "core/copy/copy.hpp"

namespace viaduct::verbs {

namespace {

constexpr uint32_t kWordBytes = 8;

}  // namespace

bool has_atomics(const ibv_device_attr& device) {
    return device.atomic_cap != IBV_ATOMIC_NONE && device.max_qp_rd_atom > 0 &&
           device.max_qp_init_rd_atom > 0;
}

bool make_atomic(const ViCore& vi, const VIP_DESCRIPTOR* d, uint32_t total, uint32_t key, ibv_send_wr* wr) {
    const bool swaps = is_compare_swap(d->CS.Control);
    uint64_t operands[2] = {};
    SegmentCursor from;
    from.begin(d, total, vi.regions, vi.ptag);
    if (wr->num_sge != 1 || total != (swaps ? 2 : 1) * kWordBytes ||
        gather(from, reinterpret_cast<std::byte*>(operands), total) != total)
        return false;
    wr->opcode = swaps ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr->wr.atomic.remote_addr = segments_of(d)->Remote.Data.AddressBits;
    wr->wr.atomic.compare_add = swaps ? operands[1] : operands[0];
    wr->wr.atomic.swap = swaps ? operands[0] : 0;
    wr->wr.atomic.rkey = key;
    wr->sg_list->length = kWordBytes;
    return true;
}

}  // namespace viaduct::verbs
