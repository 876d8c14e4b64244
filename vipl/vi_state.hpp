// SPDX-License-Identifier: BSD-2-Clause
// The state machine of a VI as one table, without any I/O (spec/states 3). Asked with both queue locks
// held.
#pragma once

#include <vipl.h>

#include <cstdint>
#include <optional>

namespace viaduct::vipl {

enum class ViEvent : uint8_t {
    attempt_begins,     // ConnectRequest, PeerRequest, Accept
    attempt_fails,      // timeout, reject, no match, mismatch, given up
    attempt_succeeds,   // both ends are bound
    connection_breaks,  // peer or transport gone, descriptor error at a reliable level
    program_errs,       // POST_DESC, VI_OVERRUN, overflow of a completion queue
    disconnect,
};

// The state afterwards, or nothing when the event is illegal in that state.
std::optional<VIP_VI_STATE> next_state(VIP_VI_STATE now, ViEvent event);

// What happens to a descriptor that is posted.
enum class PostRule : uint8_t {
    hold,     // stays on the queue until an attempt to connect begins
    hand_on,  // the provider gets it; a receive already while we connect, as the peer may send before we are
    flush,    // completes at once as flushed
};

PostRule post_rule(VIP_VI_STATE now, bool is_receive);

// Attributes may be replaced and the VI may be destroyed in this state.
inline bool may_reshape(VIP_VI_STATE now) { return now == VIP_STATE_IDLE; }

}  // namespace viaduct::vipl
