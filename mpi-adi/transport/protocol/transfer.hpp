// SPDX-License-Identifier: BSD-2-Clause
// One message that takes more than one frame while it is under way.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi-adi/transport/protocol/pieces.hpp"
#include "mpi-adi/transport/protocol/transfer_tuner.hpp"

namespace viaduct::protocol {

struct Peer;

// What an unexpected message holds (um_data) begins with this.
struct Held {
    enum class Kind : uint8_t { series, start };
    Kind kind;
    Peer* peer;
};

// A message of several eager frames while it arrives, or until it is received.
struct Series : Held {
    mpip_req_t* request = nullptr;  // nullptr: unexpected so far
    size_t total = 0, got = 0;
    std::vector<char> data;  // what waits for a receive
    bool abandoned = false;  // it was cancelled or freed: the rest is dropped
};

// What the request of a long message said, while that waits for its receive.
struct Start : Held {
    size_t length = 0;
    reqaddr_t sreq = 0;
    Method wanted = Method::frames;
    PieceListPtr theirs;  // where the data lies, when the sender tells
};

// A long message, on either side (spec/adi C52), or one-sided access to the other side's memory (access.cpp), which
// is moved in the same way and of which the other side is told nothing.
struct Transfer {
    Transfer* next = nullptr;  // in the queue of its peer, or of those that have landed
    mpip_req_t* request = nullptr;
    Peer* peer = nullptr;
    Method method = Method::frames;
    bool replied = false;          // sender: the reply is here
    bool cancelling = false;       // sender: asked for it back
    bool one_sided = false;
    bool copied = false;           // one-sided and short: through a buffer of the lane
    mpip_change change = {};       // one-sided: an atomic operation, if it has bytes
    bool fetching = false;         // the list of the other side's pieces is on its way
    bool own_part_done = false;    // both: what this side moves is moved
    bool their_part_done = false;  // both: what the other side moves is moved
    uint32_t part = 0;             // of a lane: bytes of a frame of data
    reqaddr_t peer_request = 0;
    size_t length = 0;   // to be moved
    size_t offset = 0;   // handed out by this side; receiver of frames and writes: arrived
    size_t first = 0;    // where the part begins that this side moves
    size_t end = 0;      // where the part ends that this side moves
    size_t message = 0;  // receiver: length of the whole message
    size_t placed = 0;   // receiver of both: of what the other side writes, how much is here
    bool each = false;   // of a lane: Protocol::landed() for each part, not for the last one alone
    size_t waited = 0;   // of a lane: what it has handed out and is not known to be there
    int writes = 0;      // of a lane: with NICs, which read the memory
    PieceListPtr own, theirs;
    TransferTuner::Choice choice;  // receiver
    uint64_t began = 0;            // when it was requested, ns

    bool sends() const { return (request->r_flags & MPIP_REQ_SEND) != 0; }
};

inline Transfer* transfer_of(const mpip_req_t* req) { return static_cast<Transfer*>(req->r_data); }

}  // namespace viaduct::protocol
