// SPDX-License-Identifier: BSD-2-Clause
// Exported calls that make and end connections.
#include "core/clock/clock.hpp"
#include "vipl/c_api.hpp"
#include "vipl/connection.hpp"
#include "vipl/vi.hpp"

using namespace viaduct::vipl;
using viaduct::deadline_from_timeout;

namespace {

VIP_RETURN zero_timeout() {
    return refuse(VIP_INVALID_PARAMETER, "give the other end time, in milliseconds, or VIP_INFINITE",
                  "Timeout is 0: a request cannot be answered at once");
}

}  // namespace

VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS* RemoteAddr, VIP_VI_ATTRIBUTES* RemoteViAttributes,
                          VIP_CONN_HANDLE* ConnHandle) {
    return recorded(
        What::connect_wait, nullptr, 0,
        [&] {
            return with_nic("VipConnectWait", NicHandle,
                            {{LocalAddr, "LocalAddr"},
                             {RemoteAddr, "RemoteAddr"},
                             {RemoteViAttributes, "RemoteViAttributes"},
                             {ConnHandle, "ConnHandle"}},
                            [&](Nic& nic) {
                                return connect_wait(nic, *LocalAddr, deadline_from_timeout(Timeout), RemoteAddr,
                                                    RemoteViAttributes, ConnHandle);
                            });
        },
        [&](VIP_RETURN r) {
            return r == VIP_SUCCESS ? handle_if(true, ConnHandle, marks_of(LocalAddr, RemoteAddr))
                                    : handle_if(false, ConnHandle);
        });
}

VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle) {
    return recorded(What::connect_accept, ViHandle, reinterpret_cast<uintptr_t>(ConnHandle), [&] {
        return guarded("VipConnectAccept", ViHandle, {}, [&] { return connect_accept(ConnHandle, ViHandle); });
    });
}

VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle) {
    return recorded(What::connect_reject, ConnHandle, 0, [&] {
        return guarded("VipConnectReject", ConnHandle, {}, [&] { return connect_reject(ConnHandle); });
    });
}

VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr, VIP_NET_ADDRESS* RemoteAddr,
                             VIP_ULONG Timeout, VIP_VI_ATTRIBUTES* RemoteViAttributes) {
    return recorded(What::connect_request, ViHandle, given_marks(LocalAddr, RemoteAddr), [&] {
        return with_vi(
            "VipConnectRequest", ViHandle,
            {{LocalAddr, "LocalAddr"}, {RemoteAddr, "RemoteAddr"}, {RemoteViAttributes, "RemoteViAttributes"}},
            [&](Vi& vi) {
                if (Timeout == 0) return zero_timeout();
                return connect_request(vi, ViHandle, *LocalAddr, *RemoteAddr, deadline_from_timeout(Timeout),
                                       RemoteViAttributes);
            });
    });
}

VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle) {
    return recorded(What::disconnect, ViHandle, 0, [&] {
        return with_vi("VipDisconnect", ViHandle, {}, [&](Vi& vi) { return disconnect_vi(vi, ViHandle); });
    });
}

VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr, VIP_NET_ADDRESS* RemoteAddr,
                                 VIP_ULONG Timeout) {
    return recorded(What::peer_request, ViHandle, given_marks(LocalAddr, RemoteAddr), [&] {
        return with_vi("VipConnectPeerRequest", ViHandle, {{LocalAddr, "LocalAddr"}, {RemoteAddr, "RemoteAddr"}},
                       [&](Vi& vi) {
                           if (Timeout == 0) return zero_timeout();
                           return peer_request(vi, ViHandle, *LocalAddr, *RemoteAddr, deadline_from_timeout(Timeout));
                       });
    });
}

VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttributes) {
    const VIP_RETURN result = with_vi("VipConnectPeerDone", ViHandle, {{RemoteViAttributes, "RemoteViAttributes"}},
                                      [&](Vi& vi) { return peer_result(vi, ViHandle, false, RemoteViAttributes); });
    if (result != VIP_NOT_DONE && is_recorded())
        viaduct::trace::add(What::peer_done, Phase::instant, ViHandle, 0, static_cast<uint32_t>(result));
    return result;
}

VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttributes) {
    return recorded(What::peer_wait, ViHandle, 0, [&] {
        return with_vi("VipConnectPeerWait", ViHandle, {{RemoteViAttributes, "RemoteViAttributes"}},
                       [&](Vi& vi) { return peer_result(vi, ViHandle, true, RemoteViAttributes); });
    });
}
