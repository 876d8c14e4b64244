// SPDX-License-Identifier: BSD-2-Clause
// The blocking calls: spin a little, then sleep on the NIC until a completion, the end of the object or the
// deadline.
#pragma once

#include <vipl.h>

#include "viaduct/provider.hpp"

namespace viaduct::vipl {

VIP_RETURN send_wait(VIP_VI_HANDLE handle, Deadline deadline, VIP_DESCRIPTOR** out);
VIP_RETURN recv_wait(VIP_VI_HANDLE handle, Deadline deadline, VIP_DESCRIPTOR** out);
VIP_RETURN cq_wait(VIP_CQ_HANDLE handle, Deadline deadline, VIP_VI_HANDLE* vi, VIP_BOOLEAN* recv_queue);

}  // namespace viaduct::vipl
