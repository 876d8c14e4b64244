// SPDX-License-Identifier: BSD-2-Clause
// Zero-copy transmission: external buffers of DPDK with the payload, chained behind the frame that has the
// headers. Only for drivers whose transmit call copies before it returns: after Port::transmit no memory of a
// program is referred to, so taking memory back needs the lock and nothing else. Used by Port,
// under its lock.
#pragma once

#include <rte_mbuf.h>

#include <memory>
#include <span>
#include <string>

#include "providers/wire/format.hpp"

namespace viaduct::acenic {

class ZeroCopyTx {
public:
    // For so many frames at once; `name` is that of the pool. Null: no memory.
    static std::unique_ptr<ZeroCopyTx> make(const std::string& name, uint32_t frames);
    ~ZeroCopyTx();
    ZeroCopyTx(const ZeroCopyTx&) = delete;
    ZeroCopyTx& operator=(const ZeroCopyTx&) = delete;

    // The pieces follow what the frame has. False: there are no buffers; the frame is as it was.
    bool append(rte_mbuf* frame, std::span<const wire::Piece> pieces);
    // Copies into the frame what is chained behind it, for a frame that has to wait. It has room for it.
    static void take_in(rte_mbuf* frame);
    // Takes off what is chained behind it: it has been sent.
    static void give_back(rte_mbuf* frame);
    // No driver refers to program memory.
    bool all_back() const { return ::rte_mbuf_ext_refcnt_read(&pieces_) == 1; }

private:
    ZeroCopyTx();

    rte_mempool* pool_ = nullptr;  // of headers without room for data
    // One for all pieces: its count is one, our own, and one for each that a driver has.
    rte_mbuf_ext_shared_info pieces_;
};

}  // namespace viaduct::acenic
