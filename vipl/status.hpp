// SPDX-License-Identifier: BSD-2-Clause
// From our own Status to the VIP_RETURN of a call: each call answers only what its manual page lists.
#pragma once

#include <vipl.h>

#include "viaduct/types.hpp"

namespace viaduct::vipl {

// Kinds of calls that map alike.
enum class CallKind : uint8_t {
    open_nic,
    create,        // VI, CQ, region: limits and arguments
    connect_wait,  // VipConnectWait
    accept,
    request,  // VipConnectRequest
    peer,     // VipConnectPeerDone and VipConnectPeerWait
    names,
    extension,
};

VIP_RETURN to_return(CallKind kind, Status status);

// Why two ends do not fit together; ok when they do (spec/calls 4.3: level, size, QoS).
Status compare_traits(const ViTraits& mine, const ViTraits& other);

}  // namespace viaduct::vipl
