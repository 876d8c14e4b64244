// SPDX-License-Identifier: BSD-2-Clause
// Two processes of different users that share one agent: whether they meet, and if so what they can do with
// each other.
#include <limits.h>
#include <unistd.h>

#include <cstring>
#include <iostream>

#include "roles.hpp"

namespace viaduct::integration {

namespace {

constexpr VIP_ULONG kTimeout = 1500;  // of those that do not meet
constexpr std::uint32_t kBytes = 30'000;

/// Sends where the other one may write.
void tell(End& end, const Window& window) {
    char* message = end.buffer(sizeof window);
    std::memcpy(message, &window, sizeof window);
    end.send(message, sizeof window);
    require(conformance::reap_send(end.vi).code, "VipSendDone");
}

}  // namespace

/// Own arguments: user, "wait" or "ask", discriminator, "meet" or "apart": those that are to meet wait for as long as
/// it takes.
int play_user(const Arguments& arguments) {
    const auto own = [&](std::size_t i) { return arguments.at(kFirstOwnArgument + i); };
    const auto user = static_cast<uid_t>(std::stoul(own(0)));
    char path[PATH_MAX] = {};
    require(readlink("/proc/self/exe", path, sizeof path - 1) > 0, "readlink");
    if (user != 0) require(setgid(user) == 0 && setuid(user) == 0, "setuid");
    if (access(path, R_OK | X_OK) != 0) {
        say("closed");  // the build folder is not for all users
        return 0;
    }
    End end;
    VIP_DESCRIPTOR* receive = end.receive(kBytes);  // posted before connecting, as all programs do
    VIP_DESCRIPTOR* tells = end.receive(sizeof(Window));
    const bool waits = own(1) == "wait", meets = own(3) == "meet";
    const VIP_ULONG timeout = meets ? conformance::kLongWait : kTimeout;
    Address local(end.nic, own(2)), remote(end.nic, own(2));
    VIP_VI_ATTRIBUTES attributes{};
    if (waits) {
        say("ready");
        Address from = Address::blank();
        VIP_CONN_HANDLE connection = nullptr;
        const VIP_RETURN met =
            VipConnectWait(end.nic, local.get(), timeout, from.get(), &attributes, &connection);
        if (met != VIP_SUCCESS) {
            say(met == VIP_TIMEOUT ? "no client came" : "VipConnectWait " + std::to_string(met));
            return 0;
        }
        require(VipConnectAccept(connection, end.vi), "VipConnectAccept");
    } else {
        const auto ask = meets ? conformance::request : VipConnectRequest;
        const VIP_RETURN asked = ask(end.vi, local.get(), remote.get(), timeout, &attributes);
        if (asked != VIP_SUCCESS) {
            say(asked == VIP_NO_MATCH ? "no match" : "VipConnectRequest " + std::to_string(asked));
            return 0;
        }
    }
    const char mine = waits ? 's' : 'c', other = waits ? 'c' : 's';
    end.send(end.buffer(kBytes, mine), kBytes);
    require(conformance::reap_recv(end.vi).code, "VipRecvDone");
    const char* data = static_cast<const char*>(receive->DS[0].Local.Data.Address);
    require(receive->CS.Length == kBytes && std::string(data, kBytes) == std::string(kBytes, other),
            "the data");
    require(conformance::reap_send(end.vi).code, "VipSendDone");
    // RDMA, by whatever way the system lets this pair of users have.
    char* target = end.buffer(kBytes, '-');
    const Window window{reinterpret_cast<std::uint64_t>(target), kBytes, end.region, 0};
    tell(end, window);
    require(conformance::reap_recv(end.vi).code, "VipRecvDone");
    Window its;
    std::memcpy(&its, tells->DS[0].Local.Data.Address, sizeof its);
    VIP_DESCRIPTOR* write = end.descriptor();
    conformance::fill(write, VIP_CONTROL_OP_RDMAWRITE, {end.piece(end.buffer(kBytes, mine), kBytes)},
                      conformance::Target{reinterpret_cast<void*>(its.address), its.handle});
    require(end.post_send(write), "VipPostSend");
    require(conformance::reap_send(end.vi).code, "VipSendDone");
    require(eventually([&] { return conformance::peek_count(target, kBytes, other) == kBytes; }),
            "the RDMA write");
    say("exchanged");
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) < 0) {
    }
    return 0;
}

}  // namespace viaduct::integration
