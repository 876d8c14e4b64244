// SPDX-License-Identifier: BSD-2-Clause
// A program that uses everything, does it well, and prints nothing. It runs with an agent of its own, which
// it starts.
#include <cstdlib>
#include <cstring>

#include "roles.hpp"

namespace viaduct::integration {
namespace {

void use_names(End& end) {
    Address address(end.nic, "");
    VIP_CHAR name[] = "localhost";
    require(VipNSInit(end.nic, nullptr), "VipNSInit");
    require(VipNSGetHostByName(end.nic, name, address.get(), 0), "VipNSGetHostByName");
    VIP_CHAR unknown[] = "no-such-host.invalid";
    require(VipNSGetHostByName(end.nic, unknown, address.get(), 0) == VIP_ERROR_NAMESERVICE,
            "an unknown name");
    require(VipNSShutdown(end.nic), "VipNSShutdown");
}

void be_turned_away(End& end) {
    Address local(end.nic, conformance::unique_discriminator());
    Address unused(end.nic, conformance::unique_discriminator());
    VIP_VI_ATTRIBUTES attributes{};
    const VIP_RETURN code =
        VipConnectRequest(end.vi, local.get(), unused.get(), conformance::kLongWait, &attributes);
    require(code == VIP_NO_MATCH, "no waiter");
    VIP_NIC_HANDLE none = nullptr;
    require(VipOpenNic("VINIC93", &none) == VIP_INVALID_PARAMETER, "a NIC that does not exist");
}

void send_all_sizes(conformance::Pair& pair) {
    constexpr std::size_t kLargest = 1 << 20;
    char* out = pair.client.buffer(kLargest, 'o');
    char* in = pair.server.buffer(kLargest);
    VIP_DESCRIPTOR* send = pair.client.descriptor();
    VIP_DESCRIPTOR* receive = pair.server.descriptor();
    for (const std::size_t bytes : {0, 8, 48, 49, 4096, 65472, 1 << 20}) {
        if (bytes > pair.client.limits.MaxTransferSize) continue;
        conformance::fill(receive, VIP_CONTROL_OP_SENDRECV, {pair.server.piece(in, bytes)});
        require(pair.server.post_recv(receive), "VipPostRecv");
        conformance::fill(send, VIP_CONTROL_IMMEDIATE, {pair.client.piece(out, bytes)}, std::nullopt, 7);
        require(pair.client.post_send(send), "VipPostSend");
        require(conformance::reap_recv(pair.server.vi).code, "VipRecvDone");
        require(conformance::reap_send(pair.client.vi).code, "VipSendDone");
        require(std::memcmp(in, out, bytes) == 0, "the data");
    }
    pair.client.write(out, 65536, pair.server.target(in));
    require(conformance::reap_send(pair.client.vi).code, "an RDMA write");
    if (pair.client.wanted.rdma_read) {
        pair.client.read(out, 65536, pair.server.target(in));
        require(conformance::reap_send(pair.client.vi).code, "an RDMA read");
    }
}

void wait_and_notify(conformance::Pair& pair) {
    VIP_DESCRIPTOR* done = nullptr;
    pair.server.receive(64);
    require(VipRecvWait(pair.server.vi, 20, &done) == VIP_TIMEOUT, "a wait that ends");
    std::atomic<bool> called{false};
    const auto handler = [](VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {
        *static_cast<std::atomic<bool>*>(context) = true;
    };
    require(VipRecvNotify(pair.server.vi, &called, handler), "VipRecvNotify");
    pair.client.send(pair.client.buffer(64), 64);
    require(VipSendWait(pair.client.vi, conformance::kLongWait, &done), "VipSendWait");
    require(eventually([&] { return called.load(); }), "the handler");
}

}  // namespace

/// Own arguments (no parent to connect to): "tidy" or "untidy".
int play_busy(const Arguments& arguments) {
    // Never destroyed, and not lost either: a leak checker would have something to say.
    static auto& kept = *new std::vector<std::unique_ptr<conformance::Pair>>;
    for (const VIP_RELIABILITY_LEVEL level :
         {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION}) {
        EndOptions chosen;
        chosen.level = level;
        chosen.memory = 4 << 20;
        auto pair = std::make_unique<conformance::Pair>(chosen);
        send_all_sizes(*pair);
        wait_and_notify(*pair);
        if (arguments.at(0) == "untidy") kept.push_back(std::move(pair));
    }
    auto end = std::make_unique<End>();
    use_names(*end);
    be_turned_away(*end);
    if (arguments.at(0) == "untidy") std::exit(0);
    return 0;
}

}  // namespace viaduct::integration
