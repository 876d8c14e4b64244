// SPDX-License-Identifier: BSD-2-Clause
// A program that leaves at SIGINT: its handler closes the NIC while its thread sleeps in a call (spec/completion 10).
#include <pthread.h>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

/// What the handler ends, and what came of it. It is the process' own, as a signal handler is.
std::atomic<VIP_NIC_HANDLE> leaving{nullptr};
std::atomic<VIP_VI_HANDLE> disconnecting{nullptr};
std::atomic<int> handled{-1};

void leave(int) {
    const VIP_VI_HANDLE vi = disconnecting.exchange(nullptr);
    handled = vi != nullptr ? VipDisconnect(vi) : VipCloseNic(leaving);
}

class SignalHandler : public testing::Test {
protected:
    SignalHandler() {
        struct sigaction action {};
        action.sa_handler = leave;
        sigaction(SIGUSR2, &action, &before_);
        handled = -1;
    }
    ~SignalHandler() override { sigaction(SIGUSR2, &before_, nullptr); }

    /// Runs `sleep` on a thread that gets the signal once it sleeps. False: the handler has not come back, and the
    /// thread is left alone.
    template <class Sleep>
    static testing::AssertionResult interrupt(Sleep sleep, VIP_RETURN* answer) {
        struct State {
            Sleep sleep;
            std::atomic<pid_t> thread{0};
            std::atomic<int> answer{-1};
            explicit State(Sleep s) : sleep(std::move(s)) {}
        };
        const auto state = std::make_shared<State>(std::move(sleep));
        std::thread runner([state] {
            state->thread = gettid();
            state->answer = state->sleep();
        });
        // The signal finds it in the sleep of the call, and not between two sleeps.
        if (!eventually([&] { return state->thread != 0; }) || !falls_asleep(state->thread)) {
            std::fputs("the call does not sleep, and its thread cannot be ended\n", stderr);
            std::abort();
        }
        pthread_kill(runner.native_handle(), SIGUSR2);
        const bool ended = eventually([&] { return state->answer.load() != -1; });
        if (!ended) {
            runner.detach();
            return testing::AssertionFailure()
                   << "the call still runs; the handler has " << (handled == -1 ? "not come back" : "ended");
        }
        runner.join();
        *answer = static_cast<VIP_RETURN>(state->answer.load());
        return testing::AssertionSuccess();
    }

private:
    struct sigaction before_ {};
};

/// Closes the NIC of `end` under `sleep`.
#define EXPECT_CLOSED_UNDER(end, name, sleep)                                  \
    do {                                                                       \
        leaving = (end).nic;                                                   \
        VIP_RETURN answer = VIP_SUCCESS;                                       \
        const testing::AssertionResult came_back = interrupt(sleep, &answer);  \
        if (!came_back) std::_Exit((ADD_FAILURE() << came_back.message(), 1)); \
        (end).nic = nullptr;                                                   \
        EXPECT_EQ(handled, VIP_SUCCESS);                                       \
        CONFORM_RESULT(name, VIP_INVALID_PARAMETER, VS::kNone, answer);        \
    } while (0)

TEST_F(SignalHandler, ClosesTheNicUnderAWaitForAReceive) {
    End end;
    end.receive(64);
    EXPECT_CLOSED_UNDER(end, "VipRecvWait", ([vi = end.vi] {
                            VIP_DESCRIPTOR* d = nullptr;
                            return VipRecvWait(vi, VIP_INFINITE, &d);
                        }));
}

TEST_F(SignalHandler, ClosesTheNicUnderAWaitForACompletionQueue) {
    End end;
    VIP_CQ_HANDLE cq = nullptr;
    require(VipCreateCQ(end.nic, 4, &cq), "VipCreateCQ");
    EXPECT_CLOSED_UNDER(end, "VipCQWait", ([cq] {
                            VIP_VI_HANDLE vi = nullptr;
                            VIP_BOOLEAN recv = VIP_FALSE;
                            return VipCQWait(cq, VIP_INFINITE, &vi, &recv);
                        }));
}

TEST_F(SignalHandler, ClosesTheNicUnderAWaitForARequest) {
    End end;
    EXPECT_CLOSED_UNDER(end, "VipConnectWait", ([nic = end.nic] {
                            Address local(nic, unique_discriminator());
                            Address from = Address::blank();
                            VIP_VI_ATTRIBUTES attributes{};
                            VIP_CONN_HANDLE connection = nullptr;
                            return VipConnectWait(nic, local.get(), VIP_INFINITE, from.get(), &attributes, &connection);
                        }));
}

TEST_F(SignalHandler, ClosesTheNicUnderAWaitForAPeer) {
    End end;
    Address local(end.nic, unique_discriminator());
    Address unused(end.nic, unique_discriminator());
    require(VipConnectPeerRequest(end.vi, local.get(), unused.get(), VIP_INFINITE), "VipConnectPeerRequest");
    EXPECT_CLOSED_UNDER(end, "VipConnectPeerWait", ([vi = end.vi] {
                            VIP_VI_ATTRIBUTES attributes{};
                            return VipConnectPeerWait(vi, &attributes);
                        }));
}

TEST_F(SignalHandler, ClosesTheNicOfAConnectedViAndItsPeerLearnsOfIt) {
    Pair pair;
    pair.server.receive(64);
    EXPECT_CLOSED_UNDER(pair.server, "VipRecvWait", ([vi = pair.server.vi] {
                            VIP_DESCRIPTOR* d = nullptr;
                            return VipRecvWait(vi, VIP_INFINITE, &d);
                        }));
    EXPECT_TRUE(pair.client.reaches(VIP_STATE_ERROR));
}

TEST_F(SignalHandler, GivesUpTheAttemptThatItInterrupts) {
    End end;
    Address local(end.nic, unique_discriminator());
    Address unused(end.nic, unique_discriminator());
    require(VipConnectPeerRequest(end.vi, local.get(), unused.get(), VIP_INFINITE), "VipConnectPeerRequest");
    disconnecting = end.vi;
    VIP_RETURN answer = VIP_SUCCESS;
    const testing::AssertionResult came_back = interrupt(
        [vi = end.vi] {
            VIP_VI_ATTRIBUTES attributes{};
            return VipConnectPeerWait(vi, &attributes);
        },
        &answer);
    if (!came_back) std::_Exit((ADD_FAILURE() << came_back.message(), 1));
    EXPECT_EQ(handled, VIP_SUCCESS);
    EXPECT_NE(answer, VIP_SUCCESS);
    EXPECT_EQ(end.state(), VIP_STATE_IDLE);
}

}  // namespace
}  // namespace viaduct::conformance
