// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/via/vbuf.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/via/post.hpp"

namespace viaduct::via {

bool VbufPool::grow(size_t count) {
    const size_t most = static_cast<size_t>(adi::param_number(adi::Param::vbuf_max));
    if (total_ >= most) return false;
    count = std::min(count, most - total_);
    const size_t bytes = count * sizeof(vbuf);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    VIP_MEM_ATTRIBUTES attributes = {nic_.ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle = 0;
    if (VipRegisterMem(nic_.handle, memory, bytes, &attributes, &handle) != VIP_SUCCESS) {
        ::munmap(memory, bytes);
        return false;
    }
    regions_.push_back({memory, bytes, handle});
    vbuf* all = static_cast<vbuf*>(memory);
    // Backwards, so that they are handed out in ascending order.
    for (size_t i = count; i-- > 0;) {
        all[i].handle = handle;
        all[i].pool = this;
        put(&all[i]);
    }
    total_ += count;
    return true;
}

void VbufPool::free_all() {
    for (const Region& region : regions_) {
        adi::ignore_result(VipDeregisterMem(nic_.handle, region.memory, region.handle));
        ::munmap(region.memory, region.bytes);
    }
    regions_.clear();
    free_head_ = nullptr;
    total_ = 0;
}

vbuf* VbufPool::get_slowly() {
    collect_finished_sends(nic_);
    if (free_head_ == nullptr) {
        if (!grow(static_cast<size_t>(adi::param_number(adi::Param::vbuf_spares)))) return nullptr;
        ++adi::counters[MPIP_PROTO_VIA].mc_vbufs_grown;
    }
    return get();
}

uint32_t vbuf_init_pieces(vbuf* v, unsigned control, const protocol::PieceList& near, const protocol::PieceList& far,
                          size_t most, size_t segments, size_t nic) {
    VIP_DESCRIPTOR& d = *long_descriptor_of(v);
    const size_t room = std::min(segments, kMostSegments) - 1;
    auto* data = reinterpret_cast<VIP_DESCRIPTOR_SEGMENT*>(v->buffer + sizeof(VIP_CONTROL_SEGMENT)) + 1;
    size_t used = 0;
    const auto bytes = static_cast<uint32_t>(
        near.visit(room, std::min<uint64_t>(most, far.left()),
                   [&](uint64_t address, uint64_t now, const protocol::PieceList::Row& row) {
                       data[used].Local.Data.AddressBits = address;
                       data[used].Local.Handle = row.handle[nic];
                       data[used++].Local.Length = static_cast<VIP_UINT32>(now);
                   }));
    d.CS.SegCount = static_cast<VIP_UINT16>(used + 1);
    d.CS.Control = static_cast<VIP_UINT16>(control);
    d.CS.Reserved = 0;
    d.CS.Length = bytes;
    d.CS.Status = 0;
    d.DS[0].Remote.Data.AddressBits = far.address();
    d.DS[0].Remote.Handle = far.row().handle[nic];
    d.DS[0].Remote.Reserved = 0;
    v->transfer = nullptr;
    return bytes;
}

}  // namespace viaduct::via
