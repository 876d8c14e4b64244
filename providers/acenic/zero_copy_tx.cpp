// SPDX-License-Identifier: BSD-2-Clause
// See zero_copy_tx.hpp; docs/acenic.md, "Zero-copy transmission".
#include "providers/acenic/zero_copy_tx.hpp"

#include <cstring>

namespace viaduct::acenic {

std::unique_ptr<ZeroCopyTx> ZeroCopyTx::make(const std::string& name, uint32_t frames) {
    std::unique_ptr<ZeroCopyTx> tx(new ZeroCopyTx);
    tx->pool_ = ::rte_pktmbuf_pool_create(name.c_str(), frames * wire::kMostPieces, 0, 0, 0, SOCKET_ID_ANY);
    return tx->pool_ != nullptr ? std::move(tx) : nullptr;
}

ZeroCopyTx::ZeroCopyTx() {
    pieces_.free_cb = [](void*, void*) {};  // the last reference is ours
    pieces_.fcb_opaque = nullptr;
    ::rte_mbuf_ext_refcnt_set(&pieces_, 1);
}

ZeroCopyTx::~ZeroCopyTx() {
    if (pool_ != nullptr) ::rte_mempool_free(pool_);
}

bool ZeroCopyTx::append(rte_mbuf* frame, std::span<const wire::Piece> pieces) {
    rte_mbuf* parts[wire::kMostPieces];
    const auto n = static_cast<unsigned>(pieces.size());
    if (::rte_pktmbuf_alloc_bulk(pool_, parts, n) != 0) return false;
    rte_mbuf* last = frame;
    for (unsigned i = 0; i < n; ++i) {
        void* const at = const_cast<std::byte*>(pieces[i].at);
        const auto bytes = static_cast<uint16_t>(pieces[i].bytes);
        ::rte_mbuf_ext_refcnt_update(&pieces_, 1);
        // The address stands in for the physical one: only for drivers that copy with the CPU, so the IOVA is not used.
        ::rte_pktmbuf_attach_extbuf(parts[i], at, reinterpret_cast<rte_iova_t>(at), bytes, &pieces_);
        parts[i]->data_len = bytes;
        frame->pkt_len += bytes;
        last->next = parts[i];
        last = parts[i];
    }
    frame->nb_segs = static_cast<uint16_t>(frame->nb_segs + n);
    return true;
}

void ZeroCopyTx::copy_in(rte_mbuf* frame) {
    if (frame->nb_segs == 1) return;
    for (const rte_mbuf* part = frame->next; part != nullptr; part = part->next) {
        std::memcpy(rte_pktmbuf_mtod_offset(frame, std::byte*, frame->data_len),
                    rte_pktmbuf_mtod(part, const std::byte*), part->data_len);
        frame->data_len = static_cast<uint16_t>(frame->data_len + part->data_len);
    }
    free_tail(frame);
}

void ZeroCopyTx::free_tail(rte_mbuf* frame) {
    if (frame->nb_segs == 1) return;
    ::rte_pktmbuf_free(frame->next);
    frame->next = nullptr;
    frame->nb_segs = 1;
}

}  // namespace viaduct::acenic
