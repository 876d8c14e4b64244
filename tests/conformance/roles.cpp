// SPDX-License-Identifier: BSD-2-Clause
// The roles. A role holds no gtest assertions: it says on stdout what it did and its parent checks.
#include "roles.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>

namespace viaduct::conformance {
namespace {

void say(const char* text) {
    std::cout << text << std::endl;
}

void wait_for_go() {
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
    }
}

/// Connects, posts receives, and stays until told; then ends without any clean-up, as many programs of old
/// did (spec/compat L5).
int role_client(const std::vector<std::string>& arguments) {
    const std::unique_ptr<End> end = connected_to_parent(arguments);
    for (int i = 0; i < 8; ++i) {
        end->receive(64);
    }
    say("connected");
    wait_for_go();
    _exit(0);
}

/// Connects, sends three messages, and ends without any clean-up as soon as they have left it.
int role_send_and_end(const std::vector<std::string>& arguments) {
    const std::unique_ptr<End> end = connected_to_parent(arguments);
    char* data = end->buffer(64, 'm');
    for (int i = 0; i < 3; ++i) {
        end->send(data, 64);
    }
    for (int i = 0; i < 3; ++i) {
        require(reap_send(end->vi).code, "a send");
    }
    never([] { return false; });  // of a network nothing says when an unreliable message has crossed it
    say("sent");
    _exit(0);
}

/// Connects, waits for one message in a blocking call, sends it back twice as long, and ends by exit().
int role_echo(const std::vector<std::string>& arguments) {
    const std::unique_ptr<End> end = connected_to_parent(arguments);
    VIP_DESCRIPTOR* receive = end->receive(64);
    say("connected");
    VIP_DESCRIPTOR* got = nullptr;
    require(VipRecvWait(end->vi, kLongWait, &got), "VipRecvWait");
    require(got == receive && got->CS.Length == 8, "the message is not the one sent");
    char* answer = end->buffer(16);
    std::memcpy(answer, reinterpret_cast<void*>(got->DS[0].Local.Data.AddressBits), 8);
    std::memcpy(answer + 8, answer, 8);
    end->send(answer, 16);
    require(VipSendWait(end->vi, kLongWait, &got), "VipSendWait");
    say("answered");
    wait_for_go();
    return 0;
}

/// A well-behaved program within one process: whatever it prints was printed by the library.
int role_quiet(const std::vector<std::string>&) {
    Pair pair;
    for (int i = 0; i < 100; ++i) {
        pair.server.receive(64);
        pair.client.send(pair.client.buffer(64), 64);
        const Outcome received = reap_recv(pair.server.vi);
        const Outcome sent = reap_send(pair.client.vi);
        if (received.code != VIP_SUCCESS || sent.code != VIP_SUCCESS) {
            return 1;
        }
    }
    return 0;
}

/// main() returns while another thread sits in VipCQWait (spec/compat L4).
int role_return_with_waiter(const std::vector<std::string>&) {
    VIP_NIC_HANDLE nic = nullptr;
    VIP_CQ_HANDLE cq = nullptr;
    require(VipOpenNic(options().nic.c_str(), &nic), "VipOpenNic");
    require(VipCreateCQ(nic, 4, &cq), "VipCreateCQ");
    std::atomic<bool> started{false};
    std::thread([&started, cq] {
        started = true;
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN recv = VIP_FALSE;
        VipCQWait(cq, VIP_INFINITE, &vi, &recv);
        pause();
    }).detach();
    eventually([&] { return started.load(); });
    never([] { return false; });
    exit(0);
}

/// exit() inside the error callback, on the library's own thread (spec/compat L3).
int role_exit_in_callback(const std::vector<std::string>& arguments) {
    const std::unique_ptr<End> end = connected_to_parent(arguments);
    require(VipErrorCallback(end->nic, nullptr, [](VIP_PVOID, VIP_ERROR_DESCRIPTOR*) { exit(7); }),
            "VipErrorCallback");
    say("connected");
    wait_for_go();
    never([] { return false; }, kTimeout);
    return 1;
}

std::atomic<bool> leaving{false};

/// Ends by exit(), slowly, while the end of its peer becomes known (spec/compat Q14).
int role_slow_exit(const std::vector<std::string>& arguments) {
    // Registered before the library is first used, so that it runs after whatever the library does at exit.
    atexit([] {
        leaving = true;
        say("leaving");
        wait_for_go();
    });
    static End* const end = connected_to_parent(arguments).release();  // nothing is cleaned up
    require(VipErrorCallback(end->nic, nullptr,
                             [](VIP_PVOID, VIP_ERROR_DESCRIPTOR*) { say(leaving ? "called back" : "too early"); }),
            "VipErrorCallback");
    say("connected");
    exit(0);
}

/// main() ends by pthread_exit() while a thread of the program goes on until it is told. The NIC is left open, closed,
/// or a notification waits on it.
int role_main_ends(const std::vector<std::string>& arguments) {
    VIP_NIC_HANDLE nic = nullptr;
    require(VipOpenNic(options().nic.c_str(), &nic), "VipOpenNic");
    if (arguments.at(0) == "closed") {
        require(VipCloseNic(nic), "VipCloseNic");
    } else if (arguments.at(0) == "armed") {
        VIP_CQ_HANDLE cq = nullptr;
        require(VipCreateCQ(nic, 4, &cq), "VipCreateCQ");
        require(VipCQNotify(cq, nullptr, [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {}),
                "VipCQNotify");
    }
    atexit([] { say("exit handler"); });
    std::thread([] {
        say("started");
        wait_for_go();
    }).detach();
    pthread_exit(nullptr);
}

struct RoleEntry {
    const char* name;
    int (*play)(const std::vector<std::string>&);
};

constexpr RoleEntry kRoles[] = {
    {"client", role_client},
    {"send-and-end", role_send_and_end},
    {"echo", role_echo},
    {"quiet", role_quiet},
    {"return-with-waiter", role_return_with_waiter},
    {"exit-in-callback", role_exit_in_callback},
    {"slow-exit", role_slow_exit},
    {"main-ends", role_main_ends},
};

}  // namespace

int play_role(const std::string& role, const std::vector<std::string>& arguments) {
    // The suite may be killed; its roles must not stay.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        for (const RoleEntry& entry : kRoles) {
            if (role == entry.name) {
                return entry.play(arguments);
            }
        }
        std::cout << "unknown role " << role << std::endl;
    } catch (const std::exception& error) {
        std::cout << error.what() << std::endl;
    }
    return 1;
}

}  // namespace viaduct::conformance
