// SPDX-License-Identifier: BSD-2-Clause
// Calls that connect or make a VI, where their provider finds no memory (spec/calls 4.2, 4.3).
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>
#include <thread>

#include "vipl/vi.hpp"
#include "vipl_nic_testing.hpp"

namespace viaduct::vipl {
namespace {

// The provider of a NIC, some of whose calls find no memory.
class ShortOfMemory {
public:
    explicit ShortOfMemory(End& end) : nic_(*find_vi(end.vi)->nic), usual_(nic_.ops), short_(*usual_) {
        nic_.ops = &short_;
    }
    ~ShortOfMemory() { nic_.ops = usual_; }

    DataOps& operator*() { return short_; }

private:
    Nic& nic_;
    const DataOps* usual_;
    DataOps short_;
};

struct ShortAddress {
    VIP_NET_ADDRESS address;
    char rest[16];

    ShortAddress(const End& end, char discriminator) : address(), rest() {
        address.HostAddressLen = end.limits.NicAddressLen;
        address.DiscriminatorLen = 1;
        char* const bytes = reinterpret_cast<char*>(this) + offsetof(VIP_NET_ADDRESS, HostAddress);
        std::memcpy(bytes, end.limits.LocalNicAddress, end.limits.NicAddressLen);
        bytes[end.limits.NicAddressLen] = discriminator;
    }
};

TEST(ViMemoryTest, WithoutMemoryForItsEndpointNoViIsLeftBehind) {
    End end;
    const Nic& nic = *find_vi(end.vi)->nic;
    const uint32_t before = nic.vi_count;
    VIP_VI_ATTRIBUTES attributes{};
    VIP_VI_STATE state;
    VIP_BOOLEAN sends_empty, receives_empty;
    ASSERT_EQ(VipQueryVi(end.vi, &state, &attributes, &sends_empty, &receives_empty), VIP_SUCCESS);
    VIP_VI_HANDLE vi = nullptr;
    {
        ShortOfMemory provider(end);
        (*provider).endpoint_create = [](NicContext*, const EndpointArgs&, Endpoint**) -> Status {
            throw std::bad_alloc();
        };
        EXPECT_EQ(VipCreateVi(end.nic, &attributes, nullptr, nullptr, &vi), VIP_ERROR_RESOURCE);
    }
    EXPECT_EQ(nic.vi_count, before);
    ASSERT_EQ(VipCreateVi(end.nic, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
    EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
}

TEST(AttemptTest, WithoutMemoryNoneIsLeftBehind) {
    End end;
    ShortAddress here(end, 'h'), there(end, 't');
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
    ShortAddress from(end, 'f');
    const auto request = [&] { return VipConnectRequest(end.vi, &here.address, &there.address, 50, &attributes); };
    {
        ShortOfMemory provider(end);
        (*provider).request = [](NicContext*, ViCore&, const EndAddress&, const EndAddress&, const ViTraits&, Deadline,
                                 ConnectOp**) -> Status { throw std::bad_alloc(); };
        (*provider).peer_request = (*provider).request;
        (*provider).listen = [](NicContext*, const EndAddress&, Deadline, ConnectOp**) -> Status {
            throw std::bad_alloc();
        };
        EXPECT_EQ(request(), VIP_ERROR_RESOURCE);
        EXPECT_EQ(end.state(), VIP_STATE_IDLE);
        EXPECT_EQ(VipConnectPeerRequest(end.vi, &here.address, &there.address, 50), VIP_ERROR_RESOURCE);
        EXPECT_EQ(end.state(), VIP_STATE_IDLE);
        EXPECT_EQ(VipConnectWait(end.nic, &there.address, 10, &from.address, &attributes, &connection),
                  VIP_ERROR_RESOURCE);
    }
    {
        ShortOfMemory provider(end);
        (*provider).connect_await = [](ConnectOp*, Deadline, ConnectResult*) -> Status { throw std::bad_alloc(); };
        EXPECT_EQ(request(), VIP_ERROR_RESOURCE);
        EXPECT_EQ(end.state(), VIP_STATE_IDLE);
        EXPECT_EQ(VipConnectWait(end.nic, &there.address, 10, &from.address, &attributes, &connection),
                  VIP_ERROR_RESOURCE);
        EXPECT_EQ(VipConnectPeerRequest(end.vi, &here.address, &there.address, 50), VIP_SUCCESS);
        EXPECT_EQ(VipConnectPeerDone(end.vi, &attributes), VIP_NOT_DONE);
        EXPECT_EQ(VipConnectPeerWait(end.vi, &attributes), VIP_TIMEOUT);
        EXPECT_EQ(end.state(), VIP_STATE_IDLE);
    }
    EXPECT_EQ(request(), VIP_NO_MATCH) << "no waiter is left behind";
    EXPECT_EQ(VipDisconnect(end.vi), VIP_SUCCESS);
}

TEST(AttemptTest, AnAcceptWithoutMemoryLeavesTheRequestWaiting) {
    End client, server;
    ShortAddress here(client, 'h'), there(server, 't'), from(server, 'f');
    VIP_VI_ATTRIBUTES attributes{}, other{};
    VIP_CONN_HANDLE connection = nullptr;
    std::atomic<VIP_RETURN> asked{VIP_NOT_DONE};
    std::thread requester([&] { asked = VipConnectRequest(client.vi, &here.address, &there.address, 10000, &other); });
    EXPECT_EQ(VipConnectWait(server.nic, &there.address, 10000, &from.address, &attributes, &connection), VIP_SUCCESS);
    {
        ShortOfMemory provider(server);
        (*provider).accept = [](NicContext*, uint64_t, ViCore&, const ViTraits&, ConnectOp**) -> Status {
            throw std::bad_alloc();
        };
        EXPECT_EQ(VipConnectAccept(connection, server.vi), VIP_ERROR_RESOURCE);
        EXPECT_EQ(server.state(), VIP_STATE_IDLE);
    }
    EXPECT_EQ(VipConnectAccept(connection, server.vi), VIP_SUCCESS);
    requester.join();
    EXPECT_EQ(asked.load(), VIP_SUCCESS);
}

}  // namespace
}  // namespace viaduct::vipl
