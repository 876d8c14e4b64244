// SPDX-License-Identifier: BSD-2-Clause
// The table of states and events, spec/states 3; see vi_state.hpp.
#include "vipl/vi_state.hpp"

namespace viaduct::vipl {
namespace {

constexpr int kIllegal = -1;

// Rows: states in the order of VIP_VI_STATE. Columns: events in the order of ViEvent.
constexpr int kNext[4][6] = {
    // begins, fails, succeeds, breaks, program errs, disconnect
    {VIP_STATE_CONNECT_PENDING, kIllegal, kIllegal, kIllegal, VIP_STATE_ERROR, VIP_STATE_IDLE},  // Idle
    {kIllegal, kIllegal, kIllegal, VIP_STATE_ERROR, VIP_STATE_ERROR, VIP_STATE_IDLE},            // Connected
    {kIllegal, VIP_STATE_IDLE, VIP_STATE_CONNECTED, kIllegal, kIllegal, VIP_STATE_IDLE},         // Pending
    {kIllegal, kIllegal, kIllegal, kIllegal, kIllegal, VIP_STATE_IDLE},                          // Error
};
static_assert(VIP_STATE_IDLE == 0 && VIP_STATE_CONNECTED == 1 && VIP_STATE_CONNECT_PENDING == 2 &&
              VIP_STATE_ERROR == 3);

}  // namespace

std::optional<VIP_VI_STATE> next_state(VIP_VI_STATE now, ViEvent event) {
    const int next = kNext[now][static_cast<int>(event)];
    if (next == kIllegal) return std::nullopt;
    return static_cast<VIP_VI_STATE>(next);
}

PostRule post_rule(VIP_VI_STATE now, bool is_receive) {
    switch (now) {
        case VIP_STATE_CONNECTED:
            return PostRule::hand_on;
        case VIP_STATE_CONNECT_PENDING:
            return is_receive ? PostRule::hand_on : PostRule::flush;
        case VIP_STATE_IDLE:
            return is_receive ? PostRule::hold : PostRule::flush;
        case VIP_STATE_ERROR:
            return PostRule::flush;
    }
    return PostRule::flush;
}

}  // namespace viaduct::vipl
