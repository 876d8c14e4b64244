// SPDX-License-Identifier: BSD-2-Clause
// Processes: what a forked child may do, how processes end, and silence (spec/calls 4.1, spec/compat 3, 11).
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "child.hpp"
#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

/// Runs the function in a forked child; its exit code is the function's result, 128 + signal after a crash.
int in_forked_child(const std::function<int()>& function, pid_t (*make)() = fork) {
    const pid_t child = make();
    if (child == 0) {
        alarm(30);
        int code = 99;
        try {
            code = function();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "child: %s\n", error.what());
        }
        _exit(code);
    }
    int status = 0;
    const bool ended = eventually([&] { return waitpid(child, &status, WNOHANG) == child; }, Millis{40000});
    if (!ended) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void exchange(Pair& pair) {
    pair.server.receive(16);
    pair.client.send(pair.client.buffer(16, 'f'), 16);
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
}

TEST(Fork, InheritedHandlesGiveErrorsAndNoCrash) {
    Pair pair;
    End& end = pair.client;
    VIP_CQ_HANDLE cq = nullptr;
    require(VipCreateCQ(end.nic, 4, &cq), "VipCreateCQ");
    end.receive(16);
    VIP_DESCRIPTOR* d = end.message(end.buffer(16), 16);
    const int code = in_forked_child([&]() -> int {
        VIP_VI_STATE state = VIP_STATE_IDLE;
        VIP_VI_ATTRIBUTES attributes{};
        VIP_NIC_ATTRIBUTES nic{};
        VIP_BOOLEAN one = VIP_FALSE;
        VIP_BOOLEAN two = VIP_FALSE;
        VIP_VI_HANDLE vi = nullptr;
        VIP_DESCRIPTOR* got = nullptr;
        VIP_MEM_HANDLE region = 0;
        const VIP_RETURN results[] = {
            VipQueryNic(end.nic, &nic),
            VipQueryVi(end.vi, &state, &attributes, &one, &two),
            VipPostSend(end.vi, d, end.region),
            VipPostRecv(end.vi, d, end.region),
            VipSendDone(end.vi, &got),
            VipRecvDone(end.vi, &got),
            VipRecvWait(end.vi, 1000, &got),
            VipCQDone(cq, &vi, &one),
            VipCQWait(cq, 1000, &vi, &one),
            VipRegisterMem(end.nic, end.memory, 64, nullptr, &region),
            VipDeregisterMem(end.nic, end.memory, end.region),
            VipDisconnect(end.vi),
            VipDestroyVi(end.vi),
            VipDestroyCQ(cq),
            VipCloseNic(end.nic),
        };
        int position = 0;
        for (const VIP_RETURN result : results) {
            ++position;
            if (result != VIP_INVALID_PARAMETER) {
                return position;
            }
        }
        return 0;
    });
    EXPECT_EQ(code, 0) << "the number of the first call in the child that did not answer INVALID_PARAMETER";
    EXPECT_EQ(end.state(), VIP_STATE_CONNECTED) << "the child's calls do nothing to the parent";
    require(VipDestroyCQ(cq), "VipDestroyCQ");
    exchange(pair);
}

void let_a_child_connect(pid_t (*make)()) {
    End server;
    const std::string name = unique_discriminator();
    Address remote(server.nic, name);
    auto accepted = in_background([&] { return accept_from(server, name), 0; });
    server.receive(16);
    const int code = in_forked_child([&]() -> int {
        options().nic = options().elsewhere();
        End client;
        Address local(client.nic, name);
        VIP_VI_ATTRIBUTES attributes{};
        if (request(client.vi, local.get(), remote.get(), kLongWait, &attributes) != VIP_SUCCESS) {
            return 1;
        }
        client.send(client.buffer(16, 'F'), 16);
        return reap_send(client.vi).code == VIP_SUCCESS ? 0 : 2;
    }, make);
    EXPECT_EQ(code, 0);
    ASSERT_TRUE(ready(accepted));
    accepted.get();
    EXPECT_EQ(reap_recv(server.vi).code, VIP_SUCCESS);
}

TEST(Fork, AChildOpensANicOfItsOwnAndConnectsToItsParent) { let_a_child_connect(fork); }

// _Fork() runs no handlers of pthread_atfork.
TEST(Fork, ABareChildOpensANicOfItsOwnAndConnectsToItsParent) { let_a_child_connect(_Fork); }

TEST(Fork, TheEndOfAChildDoesNotDisturbItsParent) {
    Pair pair;
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(in_forked_child([] { return 0; }), 0);
        exchange(pair);
    }
    EXPECT_TRUE(never([&] { return pair.client.errors.size() + pair.server.errors.size() != 0; }, Millis{400}));
}

TEST(Fork, SystemInTheMiddleOfTheStartUpIsHarmless) {
    End client;
    ASSERT_EQ(system("true"), 0);
    End server(across());
    ASSERT_EQ(system("true"), 0);
    connect(client.nic, client.vi, server.nic, server.vi);
    ASSERT_EQ(system("true"), 0);
    EXPECT_EQ(client.state(), VIP_STATE_CONNECTED);
}

TEST(Processes, TwoOfThemTalkInBlockingCalls) {
    End server;
    const std::string name = unique_discriminator();
    Child client("echo", client_arguments(server, name));
    VIP_DESCRIPTOR* receive = server.receive(64);
    accept_from(server, name);
    ASSERT_EQ(client.line(), "connected");
    char* data = server.buffer(8);
    std::copy_n("12345678", 8, data);
    server.send(data, 8);
    VIP_DESCRIPTOR* got = nullptr;
    ASSERT_EQ(VipRecvWait(server.vi, kLongWait, &got), VIP_SUCCESS);
    EXPECT_EQ(got, receive);
    EXPECT_EQ(got->CS.Length, 16u);
    EXPECT_EQ(std::memcmp(got->DS[0].Local.Data.Address, "1234567812345678", 16), 0);
    EXPECT_EQ(reap_send(server.vi).code, VIP_SUCCESS);
    EXPECT_EQ(client.line(), "answered");
    client.go();
    EXPECT_EQ(client.wait(), 0);
}

TEST(Processes, APeerThatEndsWithoutCleanUpIsNoticedWithinASecond) {
    End server;
    const std::string name = unique_discriminator();
    Child client("client", client_arguments(server, name));
    accept_from(server, name);
    ASSERT_EQ(client.line(), "connected");
    VIP_DESCRIPTOR* receive = server.receive(64);
    VIP_DESCRIPTOR* got = nullptr;
    auto waiter = in_background([&] { return VipRecvWait(server.vi, VIP_INFINITE, &got); });
    client.go();
    ASSERT_EQ(client.wait(), 0);
    const Stopwatch start;
    ASSERT_TRUE(ready(waiter, kOneSecond)) << "a blocked waiter wakes up";
    EXPECT_EQ(waiter.get(), VIP_DESCRIPTOR_ERROR) << "spec/compat Q15";
    EXPECT_EQ(got, receive);
    EXPECT_EQ(server.state(), VIP_STATE_ERROR);
    EXPECT_TRUE(server.errors.wait_for(VIP_ERROR_CONN_LOST));
    EXPECT_TRUE(in_time(start, kOneSecond));
}

TEST(Processes, EndWhileAnotherThreadOfTheirsWaits) {
    Child child("return-with-waiter", {});
    EXPECT_EQ(child.wait(), 0) << "the end of a process never waits for blocked callers (spec/compat L4)";
}

TEST(Processes, EndWithTheLastThreadOfTheProgramThoughMainHasEndedBefore) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the leak check reports memory of the C library after pthread_exit in main; without that check the "
                    "process ends well";
#endif
    for (const char* nic : {"open", "closed"}) {
        SCOPED_TRACE(nic);
        Child child("main-ends", {nic});
        ASSERT_EQ(child.line(), "started");
        EXPECT_EQ(child.line(Millis{1500}), "") << "a thread of the program is still there";
        child.go();
        EXPECT_EQ(child.line(), "exit handler") << "as the end of the last thread of a C program calls exit(0)";
        EXPECT_EQ(child.wait(), 0);
    }
}

TEST(Processes, AreEndedBySigtermThoughNoThreadOfTheProgramIsLeft) {
    Child child("main-ends", {"armed"});
    ASSERT_EQ(child.line(), "started");
    child.go();
    EXPECT_EQ(child.line(Millis{1500}), "") << "the program waits for a call of the library";
    ::kill(child.pid(), SIGTERM);
    EXPECT_EQ(child.wait(), 128 + SIGTERM);
}

TEST(Processes, MayExitInsideTheErrorCallback) {
    End server;
    const std::string name = unique_discriminator();
    Child client("exit-in-callback", client_arguments(server, name));
    accept_from(server, name);
    ASSERT_EQ(client.line(), "connected");
    require(VipDisconnect(server.vi), "VipDisconnect");
    client.go();
    EXPECT_EQ(client.wait(), 7) << "spec/compat L3";
}

TEST(Processes, ThatAreExitingAreNotToldThatTheirPeerHasEnded) {
    End server;
    const std::string name = unique_discriminator();
    Child client("slow-exit", client_arguments(server, name));
    accept_from(server, name);
    ASSERT_EQ(client.line(), "connected");
    ASSERT_EQ(client.line(), "leaving");
    require(VipDisconnect(server.vi), "VipDisconnect");
    EXPECT_EQ(client.line(Millis{700}), "") << "an error callback would end the run as failed (spec/compat Q14)";
    client.go();
    EXPECT_EQ(client.wait(), 0);
}

TEST(Processes, AProgramThatRunsWellSeesNoOutputButItsOwn) {
    Child child("quiet", {});
    EXPECT_EQ(child.everything(), "");
    EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace viaduct::conformance
