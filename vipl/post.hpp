// SPDX-License-Identifier: BSD-2-Clause
// Posting (hot path).
#pragma once

#include <vipl.h>

namespace viaduct::vipl {

VIP_RETURN post_send(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory);
VIP_RETURN post_recv(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory);

}  // namespace viaduct::vipl
