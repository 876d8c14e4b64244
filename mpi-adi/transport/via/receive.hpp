// SPDX-License-Identifier: BSD-2-Clause
// What comes in on a NIC, and the end of a lane that was not agreed upon.
#pragma once

#include "mpi-adi/transport/via/post.hpp"

namespace viaduct::via {

int MPID_VIA_DeviceCheck(Nic& nic);
void take_what_came_before_the_end(Lane* c);
// A VI with its receives posted. MPIP_SUCCESS, or why not.
[[nodiscard]] int equip(Lane* c);
// A lane that was cut is to be connected again.
void renew(Lane* c);
// The peer has said hello: from here on packets may go out.
void connected(Lane* c);
// The connection broke before the peer said hello: it may never have had it. The VI is as new.
void start_again(Lane* c);
// Disconnects one connection and collects all its descriptors.
void disconnect(Lane* c);
int take_completion(VIP_VI_HANDLE vi);
// A packet as it lies in a slot: in one piece (head 0), or its data first and its header elsewhere.
struct SlotPacket {
    const char* first;
    const char* header;
    size_t length, head;
};
void take_slot_packet(Lane* c, const SlotPacket& packet);

inline void fail_connection(Lane* c, const char* why) { c->peer.protocol->fail(c->peer, why); }
// The same from the top of a pass to come.
inline void doom_connection(Lane* c, const char* why) {
    c->doomed = why;
    c->nic.note_event();
}

}  // namespace viaduct::via
