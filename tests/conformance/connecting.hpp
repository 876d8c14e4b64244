// SPDX-License-Identifier: BSD-2-Clause
// Client/server connections: what the tests of both sides share.
#pragma once

#include <future>
#include <string>

#include "fixture.hpp"

namespace viaduct::conformance {

/// One VipConnectWait with its outputs.
struct Waited {
    VIP_RETURN code = VIP_NOT_DONE;
    Address remote = Address::blank();
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
};

inline Waited wait_at(VIP_NIC_HANDLE nic, Address local, VIP_ULONG timeout = kLongWait) {
    Waited result;
    result.code =
        VipConnectWait(nic, local.get(), timeout, result.remote.get(), &result.attributes, &result.connection);
    return result;
}

/// A request from an end to a discriminator of another, on a thread.
inline std::future<VIP_RETURN> request_from(End& client, VIP_VI_HANDLE vi, VIP_NIC_HANDLE server_nic,
                                            const std::string& own, const std::string& wanted,
                                            VIP_ULONG timeout = kLongWait) {
    return in_background([&client, vi, server_nic, own, wanted, timeout] {
        Address local(client.nic, own);
        Address remote(server_nic, wanted);
        VIP_VI_ATTRIBUTES attributes{};
        return request(vi, local.get(), remote.get(), timeout, &attributes);
    });
}

inline void exchange(End& from, VIP_VI_HANDLE from_vi, End& to, VIP_VI_HANDLE to_vi, char mark) {
    VIP_DESCRIPTOR* receive = to.message(to.buffer(16), 16);
    VIP_DESCRIPTOR* send = from.message(from.buffer(16, mark), 16);
    require(VipPostRecv(to_vi, receive, to.region), "VipPostRecv");
    require(VipPostSend(from_vi, send, from.region), "VipPostSend");
    const Outcome got = reap_recv(to_vi);
    EXPECT_EQ(got.code, VIP_SUCCESS);
    EXPECT_EQ(got.descriptor, receive);
    EXPECT_EQ(*static_cast<char*>(receive->DS[0].Local.Data.Address), mark);
    EXPECT_EQ(reap_send(from_vi).code, VIP_SUCCESS);
}

}  // namespace viaduct::conformance
