// SPDX-License-Identifier: BSD-2-Clause
// VipSendWait, VipRecvWait and VipCQWait (spec/calls 4.6, 4.7; spec/completion 10): spin a little, then sleep on the
// NIC until a completion, the end of the object or the deadline. Any thread, without locks; they take the lock of the
// queue to look at it, and not while they sleep.
#pragma once

#include <vipl.h>

#include "viaduct/provider.hpp"

namespace viaduct::vipl {

VIP_RETURN send_wait(VIP_VI_HANDLE handle, Deadline deadline, VIP_DESCRIPTOR** out);
VIP_RETURN recv_wait(VIP_VI_HANDLE handle, Deadline deadline, VIP_DESCRIPTOR** out);
VIP_RETURN cq_wait(VIP_CQ_HANDLE handle, Deadline deadline, VIP_VI_HANDLE* vi, VIP_BOOLEAN* recv_queue);

}  // namespace viaduct::vipl
