// SPDX-License-Identifier: BSD-2-Clause
// Exported calls that make and end connections.
#include "core/clock/clock.hpp"
#include "vipl/c_api.hpp"
#include "vipl/connection.hpp"
#include "vipl/vi.hpp"

using namespace viaduct::vipl;
using viaduct::deadline_from_timeout;

VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS* RemoteAddr, VIP_VI_ATTRIBUTES* RemoteViAttributes,
                          VIP_CONN_HANDLE* ConnHandle) {
    if (LocalAddr == nullptr || RemoteAddr == nullptr || RemoteViAttributes == nullptr ||
        ConnHandle == nullptr)
        return VIP_INVALID_PARAMETER;
    return with_nic(NicHandle, [&](Nic& nic) {
        return connect_wait(nic, *LocalAddr, deadline_from_timeout(Timeout), RemoteAddr, RemoteViAttributes,
                            ConnHandle);
    });
}

VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle) {
    return guarded([&] { return connect_accept(ConnHandle, ViHandle); });
}

VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle) {
    return guarded([&] { return connect_reject(ConnHandle); });
}

VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr, VIP_NET_ADDRESS* RemoteAddr,
                             VIP_ULONG Timeout, VIP_VI_ATTRIBUTES* RemoteViAttributes) {
    Vi* vi = find_vi(ViHandle);
    if (vi == nullptr || LocalAddr == nullptr || RemoteAddr == nullptr || RemoteViAttributes == nullptr ||
        Timeout == 0)
        return VIP_INVALID_PARAMETER;
    return guarded([&] {
        return connect_request(*vi, ViHandle, *LocalAddr, *RemoteAddr, deadline_from_timeout(Timeout),
                               RemoteViAttributes);
    });
}

VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle) {
    Vi* vi = find_vi(ViHandle);
    if (vi == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&] { return disconnect_vi(*vi, ViHandle); });
}

VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                                 VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG Timeout) {
    Vi* vi = find_vi(ViHandle);
    if (vi == nullptr || LocalAddr == nullptr || RemoteAddr == nullptr || Timeout == 0)
        return VIP_INVALID_PARAMETER;
    return guarded(
        [&] { return peer_request(*vi, ViHandle, *LocalAddr, *RemoteAddr, deadline_from_timeout(Timeout)); });
}

VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttributes) {
    Vi* vi = find_vi(ViHandle);
    if (vi == nullptr || RemoteViAttributes == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&] { return peer_result(*vi, ViHandle, false, RemoteViAttributes); });
}

VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttributes) {
    Vi* vi = find_vi(ViHandle);
    if (vi == nullptr || RemoteViAttributes == nullptr) return VIP_INVALID_PARAMETER;
    return guarded([&] { return peer_result(*vi, ViHandle, true, RemoteViAttributes); });
}
