// SPDX-License-Identifier: BSD-2-Clause
// A program on a host that is configured to have two NICs. It runs with an agent of its own.
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <iostream>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

VIP_NIC_HANDLE open(const char* name) {
    VIP_NIC_HANDLE nic = nullptr;
    require(VipOpenNic(name, &nic), std::string("VipOpenNic of ") + name);
    return nic;
}

std::string address_of(const char* name) {
    const VIP_NIC_HANDLE nic = open(name);
    std::string address = Address(nic, "").host_bytes();
    require(VipCloseNic(nic), "VipCloseNic");
    return address;
}

void names_count_up_to_two() {
    for (const char* family : {"VINIC", "nic", "/dev/via_eth", "/dev/clanvi"}) {
        const std::string first = std::string(family) + "0", second = std::string(family) + "1",
                          third = std::string(family) + "2";
        require(address_of(first.c_str()) != address_of(second.c_str()),
                std::string(first).append(" and ").append(second).append(" are one"));
        VIP_NIC_HANDLE nic = nullptr;
        require(VipOpenNic(third.c_str(), &nic) == VIP_INVALID_PARAMETER, third + " can be opened");
    }
    require(address_of("nic0") == address_of("nic0"), "an address that changes");
    require(address_of("nic1") == address_of("VINIC1"), "two addresses of one NIC");
}

End on(const char* name) {
    conformance::options().nic = name;
    return End();
}

void both_carry_messages() {
    for (const char* client : {"nic0", "nic1"}) {
        for (const char* server : {"nic0", "nic1"}) {
            End from = on(client), to = on(server);
            conformance::connect(from.nic, from.vi, to.nic, to.vi);
            VIP_DESCRIPTOR* receive = to.receive(64);
            from.send(from.buffer(64, 'n'), 64);
            const Outcome got = conformance::reap_recv(to.vi);
            require(got.code, "VipRecvDone");
            require(got.descriptor == receive, "another receive");
            require(std::memcmp(receive->DS[0].Local.Data.Address, "nnnnnnnn", 8) == 0, "the data");
            require(conformance::reap_send(from.vi).code, "VipSendDone");
        }
    }
}

void waiters_are_told_apart_by_their_nic() {
    End client = on("nic0"), server = on("nic1");
    const std::string discriminator = conformance::unique_discriminator();
    std::atomic<pid_t> waiter{0};
    auto waiting = conformance::in_background([&] {
        waiter = ::gettid();
        Address at(server.nic, discriminator);
        Address from = Address::blank();
        VIP_VI_ATTRIBUTES attributes{};
        VIP_CONN_HANDLE connection = nullptr;
        return VipConnectWait(server.nic, at.get(), 1000, from.get(), &attributes, &connection);
    });
    require(eventually([&] { return waiter != 0; }), "the waiter begins");
    require(conformance::falls_asleep(waiter), "the waiter falls asleep");
    Address local(client.nic, discriminator);
    Address other_nic(client.nic, discriminator);
    VIP_VI_ATTRIBUTES attributes{};
    const VIP_RETURN code =
        VipConnectRequest(client.vi, local.get(), other_nic.get(), conformance::kLongWait, &attributes);
    require(code == VIP_NO_MATCH, "a request to the address of one NIC found a waiter on the other");
    require(waiting.get() == VIP_TIMEOUT, "the waiter was woken");
}

}  // namespace

int play_two_nics(const Arguments&) {
    names_count_up_to_two();
    both_carry_messages();
    waiters_are_told_apart_by_their_nic();
    std::cout << "done" << std::endl;
    return 0;
}

}  // namespace viaduct::integration
