// SPDX-License-Identifier: BSD-2-Clause
// The calls of VIPL that these modules make, declared so that no answer of one is dropped by oversight: each
// is looked at, or given to ignore_result().
#pragma once

#include <viaduct/ext.h>
#include <vipl.h>

extern "C" {
[[nodiscard]] decltype(VipOpenNic) VipOpenNic;
[[nodiscard]] decltype(VipCloseNic) VipCloseNic;
[[nodiscard]] decltype(VipQueryNic) VipQueryNic;
[[nodiscard]] decltype(VipErrorCallback) VipErrorCallback;
[[nodiscard]] decltype(VipCreateVi) VipCreateVi;
[[nodiscard]] decltype(VipDestroyVi) VipDestroyVi;
[[nodiscard]] decltype(VipQueryVi) VipQueryVi;
[[nodiscard]] decltype(VipCreatePtag) VipCreatePtag;
[[nodiscard]] decltype(VipDestroyPtag) VipDestroyPtag;
[[nodiscard]] decltype(VipRegisterMem) VipRegisterMem;
[[nodiscard]] decltype(VipDeregisterMem) VipDeregisterMem;
[[nodiscard]] decltype(VipxAllocMemory) VipxAllocMemory;
[[nodiscard]] decltype(VipxFreeMemory) VipxFreeMemory;
[[nodiscard]] decltype(VipxQueryPinned) VipxQueryPinned;
[[nodiscard]] decltype(VipxQueryAtomicScope) VipxQueryAtomicScope;
[[nodiscard]] decltype(VipxQueryAtomics) VipxQueryAtomics;
[[nodiscard]] decltype(VipxSetGiveWay) VipxSetGiveWay;
[[nodiscard]] decltype(VipxQueryMapped) VipxQueryMapped;
[[nodiscard]] decltype(VipxWriteNow) VipxWriteNow;
[[nodiscard]] decltype(VipCreateCQ) VipCreateCQ;
[[nodiscard]] decltype(VipDestroyCQ) VipDestroyCQ;
[[nodiscard]] decltype(VipResizeCQ) VipResizeCQ;
[[nodiscard]] decltype(VipCQDone) VipCQDone;
[[nodiscard]] decltype(VipCQWait) VipCQWait;
[[nodiscard]] decltype(VipConnectRequest) VipConnectRequest;
[[nodiscard]] decltype(VipConnectWait) VipConnectWait;
[[nodiscard]] decltype(VipConnectAccept) VipConnectAccept;
[[nodiscard]] decltype(VipConnectReject) VipConnectReject;
[[nodiscard]] decltype(VipConnectPeerRequest) VipConnectPeerRequest;
[[nodiscard]] decltype(VipConnectPeerWait) VipConnectPeerWait;
[[nodiscard]] decltype(VipConnectPeerDone) VipConnectPeerDone;
[[nodiscard]] decltype(VipDisconnect) VipDisconnect;
[[nodiscard]] decltype(VipPostSend) VipPostSend;
[[nodiscard]] decltype(VipPostRecv) VipPostRecv;
[[nodiscard]] decltype(VipSendDone) VipSendDone;
[[nodiscard]] decltype(VipRecvDone) VipRecvDone;
[[nodiscard]] decltype(VipQuerySystemManagementInfo) VipQuerySystemManagementInfo;
[[nodiscard]] decltype(VipNSInit) VipNSInit;
[[nodiscard]] decltype(VipNSGetHostByName) VipNSGetHostByName;
[[nodiscard]] decltype(VipNSShutdown) VipNSShutdown;
[[nodiscard]] decltype(VipxLastError) VipxLastError;
[[nodiscard]] decltype(VipxErrorString) VipxErrorString;
}

namespace viaduct::adi {

// For calls that let go of something, at its end or after a failure. What the library does not take back it
// keeps until the NIC is closed, or the process ends: there is nothing to be done about it, and what follows
// must happen all the same.
inline void ignore_result(VIP_RETURN) {}

}  // namespace viaduct::adi
