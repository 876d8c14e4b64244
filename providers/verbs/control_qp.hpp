// SPDX-License-Identifier: BSD-2-Clause
// Messages between the two providers of a connection, over its control QP: the key of a region that
// RDMA is meant for, and what one end has found out about the other (docs/verbs.md). Received by the progress
// thread, sent by any thread.
#pragma once

#include <cstdint>

#include "providers/verbs/link.hpp"
#include "providers/verbs/message.hpp"

namespace viaduct::verbs {

bool post_control_receives(Link&);
// False: no room now (so many are under way, or others wait for room already), or the connection is ending.
[[nodiscard]] bool send_message(Link&, const Message&);
// Sends the message now, or as soon as there is room, in the order of the calls: what one end has found out about the
// other is not lost while the connection lasts.
void tell_peer(Link&, const Message&);
inline void tell_peer(Link& link, MessageKind kind) {
    Message m;
    m.kind = kind;
    tell_peer(link, m);
}
bool ask_peer(Link&, uint32_t handle, uint64_t address, uint64_t length, uint32_t flags);

// Room in the control completion queue for one more control QP.
bool reserve_control(NicContext&);
// Progress thread: everything the control QPs have received and finished.
void serve_control_qps(NicContext&);
// Progress thread: says `alive` where it is time to. A host that has vanished is noticed by what it does not
// acknowledge, so an idle connection has to send now and then (spec/verbs e.2 row 28). The next such
// time.
Deadline keep_alive(NicContext&, int64_t now);

}  // namespace viaduct::verbs
