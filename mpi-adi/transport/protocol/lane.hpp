// SPDX-License-Identifier: BSD-2-Clause
// What carries frames to one peer, in order. Transports derive their lanes from this; the protocol chooses by
// what a lane can do and never by what it is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi-adi/transport/protocol/frame.hpp"
#include "mpi-adi/transport/protocol/wire.hpp"

namespace viaduct::protocol {

struct Peer;
struct Transfer;
class PieceList;

// Memory of this process that the peer, or a NIC of ours, may reach.
struct Registration {
    uintptr_t base = 0;
    size_t bytes = 0;
    uint32_t handle[kMostHandles] = {};  // 0: not by that NIC
};

// Registers memory with the NICs of a transport.
class Memory {
public:
    // What covers the range; nullptr when it cannot be registered. Given back by release().
    virtual Registration* acquire(void* address, size_t bytes) = 0;
    virtual void release(Registration* registration) = 0;
    // Handles of each registration.
    virtual size_t handles() const { return 1; }

protected:
    ~Memory() = default;
};

class Lane {
public:
    explicit Lane(Peer& of) : peer(of) {}
    virtual ~Lane() = default;
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    // --- frames ---

    // A frame and its payload, everything or nothing. False: no room now; the transport pushes the peer when
    // there is. Never waits, and never fails the peer: that is done from the top of progress. A lane class
    // has besides it
    //     bool put_eager(const void* data, size_t bytes, int tag, int rank, uint64_t context, int mode);
    // for Protocol::send(), which the compiler binds: a short message, or false.
    [[nodiscard]] virtual bool put(const Frame& frame, const Payload& payload) = 0;
    // The longest message that goes without a handshake, and how much of it one frame takes at most.
    virtual size_t eager_limit(bool) const { return piece; }
    virtual size_t eager_part(bool) const { return piece; }
    // How much of what is left of a long message the next frame of data takes.
    virtual size_t data_part(Transfer& t) const;
    // So many bytes are about to come as frames of data.
    virtual void expect(size_t) {}

    // --- memory of the other side, for lanes that reach it ---

    // A remote write or read between both positions, of at most `most` bytes; how many, 0: no room now. When
    // these were all, Protocol::landed(t) follows once all is done.
    [[nodiscard]] virtual size_t transfer(bool /*write*/, const PieceList& /*near*/, const PieceList& /*far*/,
                            size_t /*most*/, Transfer& /*t*/) {
        return 0;
    }
    // Frames may be faster for long messages, too: both methods are measured (transfer_tuner.hpp).
    virtual bool frames_may_be_faster() const { return false; }

    // --- the connection ---

    // A lane that is not ready: begins to connect it, for a message that waits or to see the end of the peer.
    virtual void start_connecting() {}
    // Both ends make the connection now, so that a peer that closes waits for it.
    [[nodiscard]] virtual bool is_being_made() const { return false; }
    // Something new is to be pushed: for lanes whose transport does not check each peer in each pass.
    virtual void request_push() {}
    // Everything that put() took has left this process.
    [[nodiscard]] virtual bool flushed() { return true; }
    // Whether the connection stands, as far as this process can see.
    [[nodiscard]] virtual bool is_connected() { return true; }
    // The peer is lost or closed: frees what the lane holds.
    virtual void cut() = 0;

    Peer& peer;
    size_t piece = 0;  // most payload of one frame: what both ends take
};

}  // namespace viaduct::protocol
