// SPDX-License-Identifier: BSD-2-Clause
// The name service: spec/calls 4.9, spec/compat 6 A9-A14.
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

std::string own_host_name() {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    return name;
}

std::string local_address(const End& end) {
    return {reinterpret_cast<const char*>(end.limits.LocalNicAddress), end.limits.NicAddressLen};
}

/// Names go in as non-const characters, as programs of C pass them.
VIP_RETURN lookup(VIP_NIC_HANDLE nic, std::string name, VIP_NET_ADDRESS* out, VIP_ULONG index = 0) {
    return VipNSGetHostByName(nic, name.data(), out, index);
}

class Names : public testing::Test {
protected:
    void SetUp() override { require(VipNSInit(end.nic, nullptr), "VipNSInit"); }
    End end;
};

TEST(NameService, AnswersNothingBeforeInitAndAfterShutdown) {
    End end;
    char name[256] = "localhost";
    VIP_ULONG length = sizeof name;
    Address out = Address::blank();
    Address own(end.nic, "");
    CONFORM(VIP_ERROR_NAMESERVICE, kNone, VipNSGetHostByName(end.nic, name, out.get(), 0));
    CONFORM(VIP_ERROR_NAMESERVICE, kNone, VipNSGetHostByAddr(end.nic, own.get(), name, &length));
    CONFORM(VIP_ERROR_NAMESERVICE, kNone, VipNSShutdown(end.nic));
    CONFORM(VIP_SUCCESS, kNone, VipNSInit(end.nic, nullptr));
    CONFORM(VIP_SUCCESS, kNone, VipNSInit(end.nic, nullptr));
    CONFORM(VIP_SUCCESS, kNone, VipNSShutdown(end.nic));
    CONFORM(VIP_ERROR_NAMESERVICE, kNone, VipNSGetHostByName(end.nic, name, out.get(), 0));
    CONFORM(VIP_SUCCESS, kNone, VipNSInit(end.nic, nullptr));
}

TEST(NameService, IsNotNeededForConnections) {
    End client;
    End server(across());
    require(VipNSInit(client.nic, nullptr), "VipNSInit");
    require(VipNSShutdown(client.nic), "VipNSShutdown");
    connect(client.nic, client.vi, server.nic, server.vi);
    EXPECT_EQ(client.state(), VIP_STATE_CONNECTED);
}

TEST_F(Names, TheOwnHostIsFoundByAllItsNames) {
    for (std::string name : {own_host_name(), own_host_name().substr(0, own_host_name().find('.')),
                             std::string("localhost"), std::string("127.0.0.1")}) {
        Address out = Address::blank();
        out.get()->HostAddressLen = 0;
        EXPECT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipNSGetHostByName(end.nic, name.data(), out.get(), 0))) << name;
        EXPECT_EQ(out.host_bytes(), local_address(end)) << name;
    }
}

TEST_F(Names, OnlyTheHostPartOfTheRecordIsWritten) {
    for (const VIP_UINT16 before : {VIP_UINT16{0}, VIP_UINT16{6}, VIP_UINT16{0xA5A5}}) {
        Address out = Address::blank();
        out.get()->HostAddressLen = before;
        out.get()->DiscriminatorLen = 4711;
        ASSERT_EQ(lookup(end.nic, "localhost", out.get()), VIP_SUCCESS);
        EXPECT_EQ(out.get()->HostAddressLen, end.limits.NicAddressLen);
        EXPECT_EQ(out.get()->DiscriminatorLen, 4711) << "the program set it before the lookup (spec/compat A9)";
        EXPECT_TRUE(out.untouched_from(4u + end.limits.NicAddressLen));
    }
}

TEST_F(Names, TheNameIsOnlyReadAndNotKept) {
    char name[64] = "localhost";
    Address out = Address::blank();
    ASSERT_EQ(VipNSGetHostByName(end.nic, name, out.get(), 0), VIP_SUCCESS);
    EXPECT_STREQ(name, "localhost");
    std::memset(name, 'x', sizeof name);
    EXPECT_EQ(lookup(end.nic, "localhost", out.get()), VIP_SUCCESS);
}

TEST_F(Names, UnknownNamesAndIndicesPastTheEndAreNameServiceErrors) {
    Address out = Address::blank();
    char unknown[] = "no-such-host.invalid";
    char known[] = "localhost";
    CONFORM(VIP_ERROR_NAMESERVICE, kNone, VipNSGetHostByName(end.nic, unknown, out.get(), 0));
    CONFORM(VIP_ERROR_NAMESERVICE, kNone, VipNSGetHostByName(end.nic, known, out.get(), 10000));
    CONFORM(VIP_ERROR_NAMESERVICE, kNone, VipNSGetHostByName(end.nic, known, out.get(), VIP_ULONG{1} << 32));
    const std::string endless(5000, 'n');
    EXPECT_EQ(lookup(end.nic, endless, out.get()), VIP_ERROR_NAMESERVICE);
    EXPECT_EQ(lookup(end.nic, "", out.get()), VIP_ERROR_NAMESERVICE);
    EXPECT_TRUE(out.untouched_from(0)) << "a failed lookup writes nothing";
}

TEST_F(Names, NullArgumentsAreRefused) {
    Address out = Address::blank();
    Address own(end.nic, "");
    char name[64] = "localhost";
    VIP_ULONG length = sizeof name;
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipNSGetHostByName(end.nic, nullptr, out.get(), 0));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipNSGetHostByName(end.nic, name, nullptr, 0));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipNSGetHostByAddr(end.nic, nullptr, name, &length));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipNSGetHostByAddr(end.nic, own.get(), nullptr, &length));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipNSGetHostByAddr(end.nic, own.get(), name, nullptr));
}

TEST_F(Names, TheOwnAddressHasANameThatLeadsBackToIt) {
    Address own(end.nic, "");
    char name[256];
    VIP_ULONG length = sizeof name;
    ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipNSGetHostByAddr(end.nic, own.get(), name, &length)));
    EXPECT_EQ(length, std::strlen(name) + 1) << "bytes used, the zero included";
    Address out = Address::blank();
    EXPECT_EQ(lookup(end.nic, name, out.get()), VIP_SUCCESS);
    EXPECT_EQ(out.host_bytes(), local_address(end));

    VIP_ULONG small = 1;
    char one = '#';
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipNSGetHostByAddr(end.nic, own.get(), &one, &small));
    EXPECT_EQ(small, length) << "the length needed comes back";
}

TEST_F(Names, AnUnusedAddressIsANameServiceError) {
    Address unused(std::string(end.limits.NicAddressLen, '\x03'), "");
    char name[256];
    VIP_ULONG length = sizeof name;
    CONFORM(VIP_ERROR_NAMESERVICE, kNone, VipNSGetHostByAddr(end.nic, unused.get(), name, &length));
}

TEST_F(Names, AHostsFileGivesAHostAnyNumberOfNames) {
    char path[] = "/tmp/viaduct-conformance-hosts-XXXXXX";
    const int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    std::string address;
    for (const char byte : local_address(end)) {
        char text[4];
        std::snprintf(text, sizeof text, "%s%02x", address.empty() ? "" : ":", static_cast<unsigned char>(byte));
        address += text;
    }
    std::ofstream(path) << "# hosts of a test\nvirtual-node-1 virtual-node-2.cluster " << address << "\n";
    setenv("VIADUCT_HOSTS", path, 1);
    for (const char* name : {"virtual-node-1", "virtual-node-2.cluster"}) {
        Address out = Address::blank();
        EXPECT_EQ(lookup(end.nic, name, out.get()), VIP_SUCCESS) << name << " (spec/compat A12)";
        EXPECT_EQ(out.host_bytes(), local_address(end));
    }
    Address past = Address::blank();
    EXPECT_EQ(lookup(end.nic, "virtual-node-1", past.get(), 1), VIP_ERROR_NAMESERVICE);
    unsetenv("VIADUCT_HOSTS");
    unlink(path);
}

TEST_F(Names, AFoundAddressCanBeConnectedTo) {
    End server;  // on the same NIC: it is looked up as "localhost"
    Address found = Address::blank();
    ASSERT_EQ(lookup(end.nic, "localhost", found.get()), VIP_SUCCESS);
    const std::string name = unique_discriminator(12);
    std::memcpy(found.host() + found.get()->HostAddressLen, name.data(), name.size());
    found.get()->DiscriminatorLen = static_cast<VIP_UINT16>(name.size());
    auto accepted = in_background([&] {
        Address local(server.nic, name);
        Address from = Address::blank();
        VIP_VI_ATTRIBUTES attributes{};
        VIP_CONN_HANDLE connection = nullptr;
        require(VipConnectWait(server.nic, local.get(), kLongWait, from.get(), &attributes, &connection),
                "VipConnectWait");
        return VipConnectAccept(connection, server.vi);
    });
    Address local(end.nic, name);
    VIP_VI_ATTRIBUTES attributes{};
    EXPECT_EQ(request(end.vi, local.get(), found.get(), kLongWait, &attributes), VIP_SUCCESS);
    EXPECT_EQ(accepted.get(), VIP_SUCCESS);
}

}  // namespace
}  // namespace viaduct::conformance
