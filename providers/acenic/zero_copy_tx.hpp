// SPDX-License-Identifier: BSD-2-Clause
// Zero-copy transmission: external buffers of DPDK with the payload, chained behind the frame that has the
// headers. Only for drivers whose transmit call copies before it returns: after Port::transmit no memory of a
// program is referred to, so deregistering memory needs the lock of the engine (packet::Engine::mutex) and nothing
// else. VipDisconnect does not take that lock (docs/acenic.md, "Zero-copy transmission"). Used by Port, under the
// engine's lock.
#pragma once

#include <rte_mbuf.h>

#include <memory>
#include <span>
#include <string>

#include "providers/wire/format.hpp"

namespace viaduct::acenic {

class ZeroCopyTx {
public:
    // For at most `frames` frames at once; `name` is that of the pool. Null: no memory.
    static std::unique_ptr<ZeroCopyTx> make(const std::string& name, uint32_t frames);
    ~ZeroCopyTx();
    ZeroCopyTx(const ZeroCopyTx&) = delete;
    ZeroCopyTx& operator=(const ZeroCopyTx&) = delete;

    // The pieces follow what the frame has. False: there are no buffers; the frame is as it was.
    bool append(rte_mbuf* frame, std::span<const wire::Piece> pieces);
    // Copies into the frame what is chained behind it, for a frame that has to wait. It has room for it.
    static void copy_in(rte_mbuf* frame);
    // Frees what is chained behind it: it has been sent. pkt_len is not changed.
    static void free_tail(rte_mbuf* frame);
    // No driver refers to program memory.
    bool all_back() const { return ::rte_mbuf_ext_refcnt_read(&pieces_) == 1; }

private:
    ZeroCopyTx();

    rte_mempool* pool_ = nullptr;  // of headers without room for data
    // One for all pieces. Reference count: 1, plus one for each piece that a driver holds.
    rte_mbuf_ext_shared_info pieces_;
};

}  // namespace viaduct::acenic
