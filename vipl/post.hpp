// SPDX-License-Identifier: BSD-2-Clause
// Posting (hot path).
#pragma once

#include <viaduct/ext.h>

namespace viaduct::vipl {

VIP_RETURN post_send(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory);
VIP_RETURN post_recv(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory);
// Where VipxWriteNow would store; see viaduct/ext.h.
VIP_RETURN query_mapped(VIP_VI_HANDLE handle, VIP_UINT64 address, VIP_MEM_HANDLE memory, VIP_ULONG bytes, void** here);
// Several, with one visit to the VI and its provider; see viaduct/ext.h.
VIP_RETURN post_send_batch(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* const* descriptors, VIP_ULONG count,
                           VIP_MEM_HANDLE memory);
VIP_RETURN post_recv_batch(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* const* descriptors, VIP_ULONG count,
                           VIP_MEM_HANDLE memory);

}  // namespace viaduct::vipl
