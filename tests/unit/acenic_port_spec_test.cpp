// SPDX-License-Identifier: BSD-2-Clause
// What acenic.ports and acenic.faults may say, and what is made of it.
#include <gtest/gtest.h>

#include "providers/acenic/port_spec.hpp"

namespace viaduct::acenic {
namespace {

TEST(AcenicPorts, AreSeparatedBySemicolons) {
    EXPECT_EQ(split_ports(""), std::vector<std::string>());
    EXPECT_EQ(split_ports("net_a,x=1; net_b ;"), (std::vector<std::string>{"net_a,x=1", "net_b"}));
}

TEST(AcenicPorts, EndsOfAMemifKnowTheirAddressesFromTheSocket) {
    PortSpec server, client, other;
    Rejection why;
    ASSERT_TRUE(read_port("net_memif,socket=/run/pair,role=server", &server, &why));
    ASSERT_TRUE(read_port("net_memif,role=client,socket=/run/pair,mtu=1500", &client, &why));
    ASSERT_TRUE(read_port("net_memif,role=client,socket=/run/else,mac=02:00:00:00:00:09", &other, &why));
    EXPECT_TRUE(server.listens);
    EXPECT_FALSE(client.listens);
    EXPECT_EQ(server.socket, "/run/pair");
    EXPECT_EQ(server.mtu, 9000u);
    EXPECT_EQ(client.mtu, 1500u);
    EXPECT_EQ(server.address.bytes[0], 2);
    EXPECT_EQ(server.address.bytes[4], client.address.bytes[4]);
    EXPECT_FALSE(server.address == client.address);
    EXPECT_EQ(other.address.bytes[5], 9);
    EXPECT_EQ(client.arguments, "role=client,socket=/run/pair,socket-abstract=no,id=0");
}

TEST(AcenicPorts, ZeroCopyIsOnlyForDriversThatCopyWhileTheySend) {
    Rejection why;
    const std::pair<const char*, bool> all[] = {
        {"net_memif,socket=/run/pair,role=client", true},
        {"net_memif,socket=/run/pair,role=client,zero-copy=yes", false},
        {"net_af_packet,iface=lo", true},
        {"net_vhost,iface=/run/pair", true},
        {"net_virtio_user,path=/run/pair", false},
        {"net_x,mac=02:00:00:00:00:01", false}};
    for (const auto& [text, zero_copy] : all) {
        PortSpec port;
        read_port(text, &port, &why);  // lo is no Ethernet interface, which is found later
        EXPECT_EQ(port.zero_copy, zero_copy) << text;
    }
}

TEST(AcenicPorts, OurOwnArgumentsAreTakenOutWhereverTheyAre) {
    Rejection why;
    const std::pair<const char*, const char*> all[] = {
        {"net_x,mtu=1500,mac=02:00:00:00:00:01", "mac=02:00:00:00:00:01"},
        {"net_x,mac=02:00:00:00:00:01,mtu=1500", "mac=02:00:00:00:00:01"},
        {"net_x,mac=02:00:00:00:00:01,mtu=1500,y=2", "mac=02:00:00:00:00:01,y=2"},
        {"net_x,mac=02:00:00:00:00:01,umtu=7", "mac=02:00:00:00:00:01,umtu=7"}};
    for (const auto& [text, arguments] : all) {
        PortSpec port;
        ASSERT_TRUE(read_port(text, &port, &why)) << text;
        EXPECT_EQ(port.arguments, arguments);
    }
}

TEST(AcenicPorts, HaveAnMtuOf576To16000) {
    Rejection why;
    for (const uint32_t mtu : {576u, 9000u, 16000u}) {
        PortSpec port;
        ASSERT_TRUE(read_port("net_x,mac=02:00:00:00:00:01,mtu=" + std::to_string(mtu), &port, &why));
        EXPECT_EQ(port.mtu, mtu);
    }
}

TEST(AcenicPorts, ThatCannotBeAreRefusedWithACure) {
    for (const char* text :
         {"eth1", "net_af_packet", "net_af_packet,iface=no-such-interface", "net_memif",
          "net_memif,socket=/run/x", "net_memif,socket=/run/x,role=both", "net_memif,socket=x,role=server",
          "net_x", "net_x,mac=1", "net_x,mac=01:00:00:00:00:01",
          "net_memif,socket=/run/x,role=server,mac=ff:ff:ff:ff:ff:ff", "net_x,mac=02:00:00:00:00:01,mtu=575",
          "net_x,mac=02:00:00:00:00:01,mtu=16001", "net_x,mac=02:00:00:00:00:01,mtu=large",
          "net_x,mac=02:00:00:00:00:01,mtu=1500x", "net_memif,socket=/run/x,role=server,mtu=-1",
          "net_vhost,iface=/run/x,mtu=0"}) {
        PortSpec port;
        Rejection why;
        EXPECT_FALSE(read_port(text, &port, &why)) << text;
        EXPECT_STRNE(why.reason, "") << text;
        EXPECT_STRNE(why.cure, "") << text;
    }
}

TEST(AcenicPorts, HaveTheirFaultPlansInTheSameOrder) {
    const char* const ports = "net_x,mac=02:00:00:00:00:01;net_memif,socket=/run/x,role=client";
    PortSpec first, second, third;
    Rejection why;
    ASSERT_TRUE(read_port(ports, "seed=3,drop=0.5", 0, &first, &why));
    ASSERT_TRUE(read_port(ports, "seed=3,drop=0.5", 1, &second, &why));
    EXPECT_EQ(first.faults.drop, 0.5);
    EXPECT_FALSE(second.faults.active());
    EXPECT_TRUE(first.needs_channel && second.needs_channel) << "one of the ports is memif";
    EXPECT_FALSE(read_port(ports, "drop=2", 0, &third, &why));
    EXPECT_FALSE(read_port(ports, "", 2, &third, &why));
}

TEST(AcenicPorts, APortIsFoundByItsAddressAndHasTheFaultsOfItsPlace) {
    const char* const ports = "net_af_packet,iface=absent;net_x,mac=02:00:00:00:00:01;net_x,mac=02:00:00:00:00:02";
    const char* const faults = "drop=0;drop=0;seed=3,drop=0.5";
    Rejection why;
    PortSpec second, third, other;
    ASSERT_TRUE(find_port(ports, faults, NicAddress{{2, 0, 0, 0, 0, 1}}, &second, &why)) << why.reason;
    EXPECT_EQ(second.text, "net_x,mac=02:00:00:00:00:01");
    EXPECT_EQ(second.faults.drop, 0);
    ASSERT_TRUE(find_port(ports, faults, NicAddress{{2, 0, 0, 0, 0, 2}}, &third, &why)) << why.reason;
    EXPECT_EQ(third.text, "net_x,mac=02:00:00:00:00:02");
    EXPECT_EQ(third.faults.drop, 0.5);
    EXPECT_FALSE(find_port(ports, faults, NicAddress{{2, 0, 0, 0, 0, 3}}, &other, &why));
    EXPECT_STREQ(why.reason, "there is no Ethernet interface absent in this network namespace");
    EXPECT_FALSE(find_port("net_x,mac=02:00:00:00:00:01", "", NicAddress{{2, 0, 0, 0, 0, 3}}, &other, &why));
    EXPECT_STREQ(why.reason, "no port has the address of this NIC");
}

}  // namespace
}  // namespace viaduct::acenic
