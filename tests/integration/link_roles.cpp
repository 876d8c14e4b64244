// SPDX-License-Identifier: BSD-2-Clause
// A program in a network namespace of its own, whose NIC depends on an interface there: the interface is
// switched off under it.
#include <sched.h>

#include <cstdlib>
#include <iostream>

#include "roles.hpp"

namespace viaduct::integration {

namespace {

bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

/// An interface with the NIC's address, of whatever kind this kernel has.
bool make_interface(const std::string& address) {
    for (const char* kind : {"dummy", "bridge", "veth"}) {
        if (run("ip link add port address " + address + " type " + kind)) return run("ip link set port up");
    }
    return false;
}

void expect_failed(End& end, VIP_DESCRIPTOR* receive) {
    require(end.errors.wait_for(VIP_ERROR_CATASTROPHIC, conformance::kOneSecond), "the handler was not called");
    const auto error = end.errors.first(VIP_ERROR_CATASTROPHIC);
    require(error->ResourceCode == VIP_RESOURCE_NIC && error->NicHandle == end.nic, "told of something else");
    require(end.reaches(VIP_STATE_ERROR, conformance::kOneSecond), "the VI is not in Error");
    VIP_DESCRIPTOR* done = nullptr;
    require(VipRecvDone(end.vi, &done) == VIP_DESCRIPTOR_ERROR && done == receive,
            "the receive did not come back");
    require((done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0, "the receive was not flushed");
    require(end.errors.size() == 1, "told more than once");
}

}  // namespace

/// Own argument: the NIC's address as interfaces have it.
int play_link(const Arguments& arguments) {
    if (unshare(CLONE_NEWNET) != 0) {
        say("no network namespaces here");
        return 0;
    }
    if (!make_interface(arguments.at(kFirstOwnArgument))) {
        say("no interface can be made here");
        return 0;
    }
    {
        conformance::Pair pair;
        VIP_DESCRIPTOR* first = pair.server.receive(64);
        pair.client.send(pair.client.buffer(64), 64);
        require(conformance::reap_recv(pair.server.vi).descriptor == first, "no message came");
        VIP_DESCRIPTOR* one = pair.client.receive(64);
        VIP_DESCRIPTOR* two = pair.server.receive(64);
        require(run("ip link set port down"), "ip link set down");
        expect_failed(pair.client, one);
        expect_failed(pair.server, two);
    }
    require(run("ip link set port up"), "ip link set up");
    // sleeps: the agent looks at the interfaces a while after each change; it reports none that lasted for less
    std::this_thread::sleep_for(Millis(100));
    conformance::Pair again;  // what is opened afterwards works
    again.server.receive(64);
    again.client.send(again.client.buffer(64), 64);
    require(conformance::reap_recv(again.server.vi).code, "VipRecvDone");
    require(run("ip link del port"), "ip link del");
    require(again.client.errors.wait_for(VIP_ERROR_CATASTROPHIC, conformance::kOneSecond),
            "it vanished unnoticed");
    say("done");
    return 0;
}

}  // namespace viaduct::integration
