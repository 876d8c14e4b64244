// SPDX-License-Identifier: BSD-2-Clause
// The state machine of a VI as one table (spec/states 3). Functions of their arguments only. Callers hold the locks of
// both work queues of the VI (next_state, may_reshape) or that of the queue of the post (post_rule).
#pragma once

#include <vipl.h>

#include <cstdint>
#include <optional>

namespace viaduct::vipl {

enum class ViEvent : uint8_t {
    attempt_begins,     // ConnectRequest, PeerRequest, Accept
    attempt_fails,      // timeout, reject, no match, mismatch, given up
    attempt_succeeds,   // both ends are bound
    connection_breaks,  // peer or transport lost, descriptor error at a reliable level, full completion queue
    program_errs,       // POST_DESC, VI_OVERRUN
    disconnect,
};

// The state afterwards, or nothing when the event is illegal in that state.
std::optional<VIP_VI_STATE> next_state(VIP_VI_STATE now, ViEvent event);

// What happens to a descriptor that is posted.
enum class PostRule : uint8_t {
    hold,     // stays on the queue until an attempt to connect begins
    hand_on,  // goes to the provider. A receive does so in Connect-Pending too: the peer may be Connected before this
              // end is, and send
    flush,    // completes at once as flushed
};

PostRule post_rule(VIP_VI_STATE now, bool is_receive);

// Whether VipSetViAttributes and VipDestroyVi are allowed in this state (spec/states 3, spec/calls 4.2).
inline bool may_reshape(VIP_VI_STATE now) { return now == VIP_STATE_IDLE; }

}  // namespace viaduct::vipl
