// SPDX-License-Identifier: BSD-2-Clause
// Receiving on a NIC, and the making and failing of a lane's connection.
#pragma once

#include "mpi-adi/transport/via/post.hpp"

namespace viaduct::via {

int poll_packets(Nic& nic);
void drain_before_failure(Lane* c);
// Makes the VI and posts its receives. MPIP_SUCCESS, or an error.
[[nodiscard]] int prepare_vi(Lane* c);
// Resets a lane that was cut, to connect it again.
void renew(Lane* c);
// The peer has said hello: from here on packets may go out.
void connected(Lane* c);
// The connection broke before the peer said hello: it may never have had it. The VI is as new.
void start_again(Lane* c);
// Disconnects one connection and collects all its descriptors.
void disconnect(Lane* c);
int take_completion(VIP_VI_HANDLE vi);
// A packet in its slot: in one piece (head 0), or its data first and a header of `head` bytes elsewhere.
struct RingPacket {
    const char* first;
    const char* header;
    size_t length, head;
};
void take_ring_packet(Lane* c, const RingPacket& packet);

inline void fail_connection(Lane* c, const char* why) { c->peer.protocol->fail(c->peer, why); }
// The same in handle_events(): for callers inside a send or a loop over lanes.
inline void fail_later(Lane* c, const char* why) {
    c->failure = why;
    c->nic.note_event();
}

}  // namespace viaduct::via
