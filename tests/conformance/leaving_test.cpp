// SPDX-License-Identifier: BSD-2-Clause
// What becomes of messages when a connection ends: those that had arrived complete their receives, and those that were
// sent before the end arrive (VipDisconnect(3), docs/decisions.md).
#include <cstring>
#include <optional>
#include <thread>

#include "child.hpp"
#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

constexpr std::uint32_t kSizes[] = {0, 8, 100, 3000, 40000};
constexpr int kTries = 20;

/// Whether the call that ended a connection, begun then, has waited for the other end as long as it may. What an end
/// that had no processor for a second has not taken by then is lost, and whether all arrives is not to be seen.
bool given_up(const Stopwatch& start) { return since(start) >= kOneSecond && starved(start); }

class Leaving : public AtEachLevel {
protected:
    /// Room for all sizes and some messages of each.
    EndOptions roomy() const {
        EndOptions chosen = at_level();
        chosen.memory = 4 << 20;
        return chosen;
    }

    static std::vector<VIP_DESCRIPTOR*> post_receives(End& end, std::size_t count, std::size_t bytes) {
        std::vector<VIP_DESCRIPTOR*> posted;
        for (std::size_t i = 0; i < count; ++i) {
            posted.push_back(end.receive(bytes));
        }
        return posted;
    }

    /// How many of them have their messages, in order; the others are flushed.
    static std::size_t arrived(VIP_VI_HANDLE vi, const std::vector<VIP_DESCRIPTOR*>& posted, std::uint32_t bytes) {
        std::size_t good = 0;
        for (std::size_t i = 0; i < posted.size(); ++i) {
            VIP_DESCRIPTOR* got = nullptr;
            const VIP_RETURN code = VipRecvDone(vi, &got);
            EXPECT_EQ(got, posted[i]);
            if (got == nullptr) {
                break;
            }
            if (code == VIP_SUCCESS) {
                EXPECT_EQ(good, i) << "a message behind one that was flushed";
                EXPECT_EQ(got->CS.Length, bytes);
                ++good;
            } else {
                EXPECT_TRUE(got->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR) << std::hex << got->CS.Status;
            }
        }
        return good;
    }

    /// The attempt, which says how many messages have arrived, comes to that number. A network may be late with
    /// unreliable messages where others want its processors, or lose them: acenic's receive ring holds 512 frames, and
    /// the kernel drops what comes on top while the receiver has no processor. Then it has some more attempts, as it
    /// has when it says nothing.
    template <typename Attempt>
    void expect_all(std::size_t wanted, Attempt&& attempt) const {
        std::optional<std::size_t> good;
        for (int tries = kTries; tries > 0 && (!good || (unreliable() && *good != wanted)); --tries) {
            good = attempt();
        }
        EXPECT_EQ(good, std::optional(wanted)) << "messages that have arrived";
    }

    /// Messages that have left their sender, without a poll at the receiver's side. How many are complete.
    static void send_all(End& end, std::size_t count, std::uint32_t bytes) {
        char* data = end.buffer(bytes, 'm');
        for (std::size_t i = 0; i < count; ++i) {
            end.send(data, bytes);
        }
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(reap_send(end.vi).code, VIP_SUCCESS) << i;
        }
        // Of a network nothing says when an unreliable message has crossed it.
        never([] { return false; });
    }
};

TEST_P(Leaving, WhatHasArrivedCompletesItsReceivesWhenThisEndDisconnects) {
    NEEDS_LEVEL(GetParam());
    for (const std::uint32_t bytes : kSizes) {
        expect_all(3, [&] {
            Pair pair(roomy());
            const auto posted = post_receives(pair.server, 5, bytes);
            send_all(pair.client, 3, bytes);
            CONFORM(VIP_SUCCESS, kConnected, VipDisconnect(pair.server.vi));
            return arrived(pair.server.vi, posted, bytes);
        });
    }
}

TEST_P(Leaving, ACompletionQueueHasOneEntryForEachMessageThatHadArrived) {
    NEEDS_LEVEL(GetParam());
    EndOptions server = roomy();
    server.recv_cq = 16;
    expect_all(3, [&] {
        Pair pair(roomy(), server);
        const auto posted = post_receives(pair.server, 4, 64);
        send_all(pair.client, 3, 64);
        require(VipDisconnect(pair.server.vi), "VipDisconnect");
        for (std::size_t i = 0; i < posted.size(); ++i) {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN recv = VIP_FALSE;
            CONFORM(VIP_SUCCESS, kNone, VipCQDone(pair.server.recv_cq, &vi, &recv));
            EXPECT_EQ(vi, pair.server.vi);
            EXPECT_EQ(recv, VIP_TRUE);
        }
        return arrived(pair.server.vi, posted, 64);
    });
}

TEST_P(Leaving, WhatHasArrivedCompletesItsReceivesWhenThisEndErrs) {
    NEEDS_LEVEL(GetParam());
    expect_all(3, [&] {
        Pair pair(roomy());
        const auto posted = post_receives(pair.server, 5, 64);
        send_all(pair.client, 3, 64);
        // A descriptor outside of registered memory breaks the connection (spec/descriptors 2.3).
        alignas(64) static VIP_DESCRIPTOR outside{};
        EXPECT_EQ(VipPostSend(pair.server.vi, &outside, pair.server.region), VIP_SUCCESS);
        EXPECT_TRUE(pair.server.reaches(VIP_STATE_ERROR));
        return arrived(pair.server.vi, posted, 64);
    });
}

TEST_P(Leaving, WhatWasSentBeforeThePeerDisconnectedComesFirst) {
    NEEDS_LEVEL(GetParam());
    for (const std::uint32_t bytes : kSizes) {
        expect_all(3, [&]() -> std::optional<std::size_t> {
            Pair pair(roomy());
            const auto posted = post_receives(pair.server, 5, bytes);
            char* data = pair.client.buffer(bytes, 'm');
            for (int i = 0; i < 3; ++i) {
                pair.client.send(data, bytes);
            }
            const Stopwatch start;
            CONFORM(VIP_SUCCESS, kConnected, VipDisconnect(pair.client.vi));
            const bool gave_up = given_up(start);
            int sent = 0;
            for (int i = 0; i < 3; ++i) {
                sent += reap_send(pair.client.vi).code == VIP_SUCCESS;
            }
            EXPECT_TRUE(pair.server.reaches(VIP_STATE_ERROR));
            const std::size_t good = arrived(pair.server.vi, posted, bytes);
            if (gave_up && (sent != 3 || good != 3)) {
                return std::nullopt;
            }
            EXPECT_EQ(sent, 3) << "sends that are complete";
            return good;
        });
    }
}

TEST_P(Leaving, MoreThanThePathHoldsArrivesThoughItsSenderLeavesAtOnce) {
    NEEDS_LEVEL(GetParam());
    constexpr std::size_t kMany = 900;
    expect_all(kMany, [&]() -> std::optional<std::size_t> {
        Pair pair(roomy());
        const auto posted = post_receives(pair.server, kMany, 1000);
        char* data = pair.client.buffer(1000, 'm');
        for (std::size_t i = 0; i < kMany; ++i) {
            pair.client.send(data, 1000);
        }
        const Stopwatch start;
        require(VipDisconnect(pair.client.vi), "VipDisconnect");
        const bool gave_up = given_up(start);
        EXPECT_TRUE(pair.server.reaches(VIP_STATE_ERROR));
        const std::size_t good = arrived(pair.server.vi, posted, 1000);
        if (gave_up && good != kMany) {
            return std::nullopt;
        }
        return good;
    });
}

TEST_P(Leaving, BothEndsGetWhatTheOtherSentThoughBothLeaveAtOnce) {
    NEEDS_LEVEL(GetParam());
    // The end that disconnects last may find that its peer has left: what it sends then arrives nowhere. So both
    // have sent all before either leaves, and only what has left its sender counts.
    constexpr std::size_t kMany = 100;
    expect_all(2 * kMany, [&] {
        Pair pair(roomy());
        const auto at_client = post_receives(pair.client, kMany, 100);
        const auto at_server = post_receives(pair.server, kMany, 100);
        char* to_server = pair.client.buffer(100, 's');
        char* to_client = pair.server.buffer(100, 'c');
        for (std::size_t i = 0; i < kMany; ++i) {
            pair.client.send(to_server, 100);
            pair.server.send(to_client, 100);
        }
        for (std::size_t i = 0; i < kMany; ++i) {
            EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
            EXPECT_EQ(reap_send(pair.server.vi).code, VIP_SUCCESS);
        }
        never([] { return false; });
        auto other = in_background([&] { return VipDisconnect(pair.server.vi); });
        EXPECT_EQ(VipDisconnect(pair.client.vi), VIP_SUCCESS);
        EXPECT_EQ(other.get(), VIP_SUCCESS);
        return arrived(pair.client.vi, at_client, 100) + arrived(pair.server.vi, at_server, 100);
    });
}

// ---------------------------------------------------------------------------------- sent right after the request

enum class Leaves { by_disconnect, by_closing };

/// The requester sends as soon as it is connected and leaves at once, while the acceptor is still in VipConnectAccept.
/// False: it has given up before the acceptor had taken all, which says nothing.
bool try_to_send_and_leave(const EndOptions& chosen, Leaves leaves, std::uint32_t bytes) {
    constexpr std::size_t kMessages = 4;
    End server(across(chosen));
    End client(chosen);
    std::vector<VIP_DESCRIPTOR*> posted;
    for (std::size_t i = 0; i < kMessages + 2; ++i) {
        posted.push_back(server.receive(bytes));
    }
    char* data = client.buffer(bytes, 'm');
    PendingRequest pending = pending_request(client, server);
    auto accept = in_background([&] { return VipConnectAccept(pending.connection, server.vi); });
    require(pending.requester.get(), "VipConnectRequest");
    for (std::size_t i = 0; i < kMessages; ++i) {
        EXPECT_EQ(client.post_send(client.message(data, bytes)), VIP_SUCCESS);
    }
    const Stopwatch start;
    if (leaves == Leaves::by_disconnect) {
        EXPECT_EQ(VipDisconnect(client.vi), VIP_SUCCESS);
    } else {
        EXPECT_EQ(VipCloseNic(client.nic), VIP_SUCCESS);
        client.nic = nullptr;
    }
    const bool gave_up = given_up(start);
    EXPECT_EQ(accept.get(), VIP_SUCCESS);
    EXPECT_TRUE(server.reaches(VIP_STATE_ERROR));
    for (std::size_t i = 0; i < posted.size(); ++i) {
        VIP_DESCRIPTOR* got = nullptr;
        const VIP_RETURN code = VipRecvDone(server.vi, &got);
        EXPECT_EQ(got, posted[i]);
        if (i < kMessages && code == VIP_DESCRIPTOR_ERROR && gave_up) {
            return false;
        }
        EXPECT_EQ(code, i < kMessages ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR) << i;
    }
    return true;
}

void send_and_leave(const EndOptions& chosen, Leaves leaves, std::uint32_t bytes) {
    bool seen = false;
    for (int tries = kTries; tries > 0 && !seen; --tries) {
        seen = try_to_send_and_leave(chosen, leaves, bytes);
    }
    EXPECT_TRUE(seen) << "each time the requester has given up";
}

TEST_P(Leaving, WhatIsSentRightAfterTheRequestArrivesThoughItsSenderDisconnectsAtOnce) {
    NEEDS_LEVEL(GetParam());
    for (int round = 0; round < 10; ++round) {
        for (const std::uint32_t bytes : {8U, 3000U}) {
            send_and_leave(at_level(), Leaves::by_disconnect, bytes);
        }
    }
}

TEST_P(Leaving, WhatIsSentRightAfterTheRequestArrivesThoughItsSenderClosesItsNicAtOnce) {
    NEEDS_LEVEL(GetParam());
    for (int round = 0; round < 5; ++round) {
        send_and_leave(at_level(), Leaves::by_closing, 8);
    }
}

TEST_P(Leaving, WhatItsProcessHasSentArrivesThoughItEndsWithoutAWord) {
    NEEDS_LEVEL(GetParam());
    End server(at_level());
    const auto posted = post_receives(server, 5, 64);
    const std::string discriminator = unique_discriminator();
    Child child("send-and-end", client_arguments(server, discriminator));
    accept_from(server, discriminator);
    ASSERT_EQ(child.line(), "sent");
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(server.reaches(VIP_STATE_ERROR));
    EXPECT_EQ(arrived(server.vi, posted, 64), 3u);
}

INSTANTIATE_TEST_SUITE_P(EachLevel, Leaving, VIADUCT_ALL_LEVELS, level_test_name);

// A peer that takes nothing holds no end up for longer than a second.
TEST(LeavingBehind, APeerThatStandsStillHoldsUpADisconnectForASecondAtMost) {
    End server;
    const std::string discriminator = unique_discriminator();
    Child child("client", client_arguments(server, discriminator));
    accept_from(server, discriminator);
    ASSERT_EQ(child.line(), "connected");
    child.stop();
    char* data = server.buffer(64);
    for (int i = 0; i < 8; ++i) {
        server.send(data, 64);
    }
    const Stopwatch start;
    CONFORM(VIP_SUCCESS, kConnected, VipDisconnect(server.vi));
    EXPECT_TRUE(in_time(start, Millis{5000}));
    child.resume();
    child.go();
    child.wait();
}

}  // namespace
}  // namespace viaduct::conformance
