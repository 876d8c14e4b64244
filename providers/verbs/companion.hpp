// SPDX-License-Identifier: BSD-2-Clause
// Messages between the two providers of a connection, over its companion queue pair: the key of a region that
// RDMA is meant for, and what one end has found out about the other (docs/verbs.md). Received by the progress
// thread, sent by anybody.
#pragma once

#include <cstdint>

#include "providers/verbs/link.hpp"

namespace viaduct::verbs {

enum class MessageKind : uint8_t {
    ask = 1,            // for the key of a region
    answer = 2,         // key 0: refused
    no_receive = 3,     // a message of mine met no receive of yours
    write_refused = 4,  // your memory refused an RDMA write of mine
    read_refused = 5,
    reset = 6,  // Unreliable: my data queue pair starts anew (recover.hpp)
    ready = 7,  // Unreliable: it has
    alive = 8,  // nothing: what counts is whether it is acknowledged
};

struct Message {
    MessageKind kind = MessageKind::ask;
    uint32_t handle = 0;
    uint64_t address = 0;  // answer: base of the region
    uint64_t length = 0;
    uint32_t key = 0;  // write_refused: the immediate data, if there were any
    uint32_t flags = 0;  // kRegionRdmaWrite, kRegionRdmaRead; write_refused: kWithImmediate
};

inline constexpr uint32_t kWithImmediate = 1;

void write_message(const Message&, std::byte* out);
bool read_message(const std::byte* in, uint32_t bytes, Message* out);

bool post_companion_receives(Link&);
// False: no room now (so many are under way), or the connection is ending.
bool send_message(Link&, const Message&);
inline void tell_peer(Link& link, MessageKind kind, uint32_t flags = 0) {
    Message m;
    m.kind = kind;
    m.flags = flags;
    send_message(link, m);
}
bool ask_peer(Link&, uint32_t handle, uint64_t address, uint64_t length, uint32_t flags);

// Room in the control completion queue for one more companion.
bool reserve_control(NicContext&);
// Progress thread: everything the companions have received and finished.
void serve_companions(NicContext&);
// Progress thread: says `alive` where it is time to. A host that has vanished is noticed by what it does not
// acknowledge, so an idle connection has to send now and then (hardware-facts e.2 row 28). The next such
// time.
Deadline keep_alive(NicContext&, int64_t now);

}  // namespace viaduct::verbs
