// SPDX-License-Identifier: BSD-2-Clause
// A notify handler with its arguments, ready to be called.
#pragma once

#include <vipl.h>

namespace viaduct::vipl {

struct NotifyCall {
    VIP_VI_CALLBACK vi_handler = nullptr;  // this one,
    VIP_CQ_CALLBACK cq_handler = nullptr;  // or this one
    VIP_PVOID context = nullptr;
    VIP_NIC_HANDLE nic = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    VIP_CQ_HANDLE cq = nullptr;  // of cq_handler
    VIP_DESCRIPTOR* descriptor = nullptr;
    VIP_BOOLEAN recv_queue = VIP_FALSE;
};

}  // namespace viaduct::vipl
