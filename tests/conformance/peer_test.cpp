// SPDX-License-Identifier: BSD-2-Clause
// Peer-to-peer connections: spec/calls 4.4, spec/compat C15.
#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

/// Two ends that name each other.
struct Peers {
    explicit Peers(const EndOptions& left_options = {}, const EndOptions& right_options = {})
        : left(left_options), right(across(right_options)), left_address(left.nic, unique_discriminator()),
          right_address(right.nic, unique_discriminator()) {}

    VIP_RETURN ask_left(VIP_ULONG timeout = kLongWait) {
        return VipConnectPeerRequest(left.vi, left_address.get(), right_address.get(), timeout);
    }
    VIP_RETURN ask_right(VIP_ULONG timeout = kLongWait) {
        return VipConnectPeerRequest(right.vi, right_address.get(), left_address.get(), timeout);
    }

    End left;
    End right;
    Address left_address;
    Address right_address;
};

VIP_RETURN poll_peer(VIP_VI_HANDLE vi, VIP_VI_ATTRIBUTES* attributes) {
    VIP_RETURN result = VIP_NOT_DONE;
    eventually([&] {
        result = VipConnectPeerDone(vi, attributes);
        return result != VIP_NOT_DONE;
    });
    return result;
}

void exchange(End& from, End& to) {
    to.receive(16);
    from.send(from.buffer(16, 'p'), 16);
    EXPECT_EQ(reap_recv(to.vi).code, VIP_SUCCESS);
    EXPECT_EQ(reap_send(from.vi).code, VIP_SUCCESS);
}

TEST(Peer, TwoRequestsThatNameEachOtherConnect) {
    EndOptions no_write;
    no_write.rdma_write = false;
    Peers peers({}, no_write);
    VIP_VI_ATTRIBUTES seen{};
    ASSERT_TRUE(CONFORM_RESULT("VipConnectPeerRequest", VIP_SUCCESS, VS::kIdle, peers.ask_left()));
    EXPECT_EQ(peers.left.state(), VIP_STATE_CONNECT_PENDING);
    CONFORM(VIP_NOT_DONE, kPending, VipConnectPeerDone(peers.left.vi, &seen));
    ASSERT_EQ(peers.ask_right(), VIP_SUCCESS);
    CONFORM_RESULT("VipConnectPeerDone", VIP_SUCCESS, VS::kPending, poll_peer(peers.left.vi, &seen));
    EXPECT_EQ(seen.ReliabilityLevel, peers.right.wanted.level);
    EXPECT_FALSE(seen.EnableRdmaWrite);
    VIP_VI_ATTRIBUTES other{};
    CONFORM(VIP_SUCCESS, kPending, VipConnectPeerWait(peers.right.vi, &other));
    EXPECT_TRUE(other.EnableRdmaWrite);
    EXPECT_EQ(peers.left.state(), VIP_STATE_CONNECTED);
    EXPECT_EQ(peers.right.state(), VIP_STATE_CONNECTED);
    exchange(peers.left, peers.right);
    exchange(peers.right, peers.left);
    CONFORM(VIP_INVALID_STATE, kConnected, VipConnectPeerDone(peers.left.vi, &seen));
}

TEST(Peer, ManyRequestsFirstAndManyWaitsAfterwardsWithEqualDiscriminators) {
    // ARMCI's way: all requests with VIP_INFINITE, then the waits one by one (spec/compat C15, A3).
    constexpr int kConnections = 16;
    End left;
    End right(across());
    const auto side = [](End& own, End& other, const std::vector<std::string>& names) {
        std::vector<VIP_VI_HANDLE> vis;
        for (const std::string& name : names) {
            Address local(own.nic, name);
            Address remote(other.nic, name);
            vis.push_back(own.create_vi());
            require(VipConnectPeerRequest(vis.back(), local.get(), remote.get(), VIP_INFINITE),
                    "VipConnectPeerRequest");
        }
        for (const VIP_VI_HANDLE vi : vis) {
            VIP_VI_ATTRIBUTES attributes{};
            const VIP_RETURN result = VipConnectPeerWait(vi, &attributes);
            EXPECT_EQ(result, VIP_SUCCESS) << code_name(result);
        }
        for (const VIP_VI_HANDLE vi : vis) {
            EXPECT_EQ(End::state_of(vi), VIP_STATE_CONNECTED);
        }
        return 0;
    };
    std::vector<std::string> names;
    for (int i = 0; i < kConnections; ++i) {
        names.push_back(unique_discriminator());
    }
    auto other = in_background([&] { return side(right, left, names); });
    side(left, right, names);
    other.get();
}

TEST(Peer, RequestsThatCrossMakeOneConnection) {
    for (int i = 0; i < 20; ++i) {
        Peers peers;
        auto other = in_background([&] { return peers.ask_right(); });
        ASSERT_EQ(peers.ask_left(), VIP_SUCCESS);
        ASSERT_EQ(other.get(), VIP_SUCCESS);
        VIP_VI_ATTRIBUTES attributes{};
        EXPECT_EQ(VipConnectPeerWait(peers.left.vi, &attributes), VIP_SUCCESS);
        EXPECT_EQ(VipConnectPeerWait(peers.right.vi, &attributes), VIP_SUCCESS);
        exchange(peers.left, peers.right);
    }
}

TEST(Peer, BothEndsMayBelongToOneNicHandle) {
    End end;
    const VIP_VI_HANDLE other = end.create_vi();
    Address one(end.nic, unique_discriminator());
    Address two(end.nic, unique_discriminator());
    VIP_VI_ATTRIBUTES attributes{};
    ASSERT_EQ(VipConnectPeerRequest(end.vi, one.get(), two.get(), kLongWait), VIP_SUCCESS);
    ASSERT_EQ(VipConnectPeerRequest(other, two.get(), one.get(), kLongWait), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(end.vi, &attributes), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(other, &attributes), VIP_SUCCESS);
    retire(other);
}

TEST(Peer, TheTimeoutOfTheRequestEndsTheAttempt) {
    End end;
    VIP_DESCRIPTOR* posted = end.receive(64);
    Address local(end.nic, unique_discriminator());
    Address unused(end.nic, unique_discriminator());
    VIP_VI_ATTRIBUTES attributes{};
    for (const bool waiting : {true, false}) {
        const auto start = Clock::now();
        ASSERT_EQ(VipConnectPeerRequest(end.vi, local.get(), unused.get(), 60), VIP_SUCCESS);
        if (waiting) {
            CONFORM(VIP_TIMEOUT, kPending, VipConnectPeerWait(end.vi, &attributes));
        } else {
            CONFORM_RESULT("VipConnectPeerDone", VIP_TIMEOUT, VS::kPending, poll_peer(end.vi, &attributes));
        }
        EXPECT_GE(since(start), Millis{60});
        EXPECT_EQ(end.state(), VIP_STATE_IDLE);
        CONFORM(VIP_INVALID_STATE, kIdle, VipConnectPeerDone(end.vi, &attributes));
    }
    EXPECT_EQ(posted->CS.Status, 0u) << "a failed attempt never touches the queues";
}

TEST(Peer, ImpossibleArgumentsAreRefused) {
    End end;
    Address local(end.nic, unique_discriminator());
    Address remote(end.nic, unique_discriminator());
    Address long_one(end.nic, std::string(end.limits.MaxDiscriminatorLen + 1u, 'd'));
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectPeerRequest(end.vi, local.get(), remote.get(), 0));
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectPeerRequest(end.vi, nullptr, remote.get(), 100));
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectPeerRequest(end.vi, local.get(), nullptr, 100));
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectPeerRequest(end.vi, long_one.get(), remote.get(), 100));
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipConnectPeerRequest(end.vi, local.get(), long_one.get(), 100));
    EXPECT_EQ(end.state(), VIP_STATE_IDLE);
    ASSERT_EQ(VipConnectPeerRequest(end.vi, local.get(), remote.get(), kLongWait), VIP_SUCCESS);
    CONFORM(VIP_INVALID_PARAMETER, kPending, VipConnectPeerDone(end.vi, nullptr));
    CONFORM(VIP_INVALID_PARAMETER, kPending, VipConnectPeerWait(end.vi, nullptr));
}

/// Both requests are made; then one side polls and the other waits, and both find the mismatch.
void expect_mismatch(const EndOptions& left, const EndOptions& right, VIP_RETURN code) {
    Peers peers(left, right);
    VIP_VI_ATTRIBUTES attributes{};
    ASSERT_EQ(peers.ask_left(), VIP_SUCCESS);
    ASSERT_EQ(peers.ask_right(), VIP_SUCCESS);
    CONFORM_RESULT("VipConnectPeerDone", code, VS::kPending, poll_peer(peers.left.vi, &attributes));
    CONFORM_RESULT("VipConnectPeerWait", code, VS::kPending, VipConnectPeerWait(peers.right.vi, &attributes));
    EXPECT_EQ(peers.left.state(), VIP_STATE_IDLE);
    EXPECT_EQ(peers.right.state(), VIP_STATE_IDLE);
}

TEST(Peer, DifferentReliabilityLevelsAreFoundByBothSides) {
    EndOptions unreliable;
    unreliable.level = VIP_SERVICE_UNRELIABLE;
    expect_mismatch(EndOptions{}, unreliable, VIP_INVALID_RELIABILITY_LEVEL);
}

TEST(Peer, DifferentTransferSizesAreFoundByBothSides) {
    EndOptions small;
    small.max_transfer = 4096;
    expect_mismatch(EndOptions{}, small, VIP_INVALID_MTU);
}

TEST(Peer, ARequestThatNamesOnlyOneDirectionDoesNotMatch) {
    Peers peers;
    Address other(peers.right.nic, unique_discriminator());
    VIP_VI_ATTRIBUTES attributes{};
    ASSERT_EQ(peers.ask_left(200), VIP_SUCCESS);
    // Right names left, but under another local address than the one left asks for.
    ASSERT_EQ(VipConnectPeerRequest(peers.right.vi, other.get(), peers.left_address.get(), 200), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(peers.left.vi, &attributes), VIP_TIMEOUT);
    EXPECT_EQ(VipConnectPeerWait(peers.right.vi, &attributes), VIP_TIMEOUT);
}

TEST(Peer, PeerRequestsAndConnectWaitDoNotMeet) {
    Peers peers;
    VIP_VI_ATTRIBUTES attributes{};
    Address from = Address::blank();
    VIP_CONN_HANDLE connection = nullptr;
    ASSERT_EQ(peers.ask_left(300), VIP_SUCCESS);
    EXPECT_EQ(VipConnectWait(peers.right.nic, peers.right_address.get(), 50, from.get(), &attributes, &connection),
              VIP_TIMEOUT);
    EXPECT_EQ(VipConnectRequest(peers.right.vi, peers.right_address.get(), peers.left_address.get(), kLongWait,
                                &attributes),
              VIP_NO_MATCH)
        << "a peer request is no waiter";
    EXPECT_EQ(VipConnectPeerWait(peers.left.vi, &attributes), VIP_TIMEOUT);
}

TEST(Peer, DisconnectTakesARequestBack) {
    Peers peers;
    VIP_VI_ATTRIBUTES attributes{};
    ASSERT_EQ(peers.ask_left(VIP_INFINITE), VIP_SUCCESS);
    CONFORM(VIP_SUCCESS, kPending, VipDisconnect(peers.left.vi));
    EXPECT_EQ(peers.left.state(), VIP_STATE_IDLE);
    CONFORM(VIP_INVALID_STATE, kIdle, VipConnectPeerDone(peers.left.vi, &attributes));
    ASSERT_EQ(peers.ask_right(100), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(peers.right.vi, &attributes), VIP_TIMEOUT) << "it does not match any more";
    ASSERT_EQ(peers.ask_left(), VIP_SUCCESS);
    ASSERT_EQ(peers.ask_right(), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(peers.left.vi, &attributes), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(peers.right.vi, &attributes), VIP_SUCCESS);
}

TEST(Peer, DisconnectWakesAThreadInPeerWait) {
    Peers peers;
    ASSERT_EQ(peers.ask_left(VIP_INFINITE), VIP_SUCCESS);
    auto waiter = in_background([&] {
        VIP_VI_ATTRIBUTES attributes{};
        return VipConnectPeerWait(peers.left.vi, &attributes);
    });
    EXPECT_FALSE(ready(waiter, kQuietTime));
    EXPECT_EQ(VipDisconnect(peers.left.vi), VIP_SUCCESS);
    ASSERT_TRUE(ready(waiter));
    EXPECT_NE(waiter.get(), VIP_SUCCESS);
}

TEST(Peer, DataSentOnOneSideBeforeTheOtherAskedForTheResultArrives) {
    Peers peers;
    VIP_DESCRIPTOR* posted = peers.right.receive(16);
    VIP_VI_ATTRIBUTES attributes{};
    ASSERT_EQ(peers.ask_right(), VIP_SUCCESS);
    ASSERT_EQ(peers.ask_left(), VIP_SUCCESS);
    ASSERT_EQ(VipConnectPeerWait(peers.left.vi, &attributes), VIP_SUCCESS);
    peers.left.send(peers.left.buffer(16, 'e'), 16);
    EXPECT_EQ(VipConnectPeerWait(peers.right.vi, &attributes), VIP_SUCCESS);
    EXPECT_EQ(reap_recv(peers.right.vi).descriptor, posted);
}

TEST(Peer, AReceiveThatIsPostedBehindTheRequestIsThereForTheFirstMessage) {
    // Its own end may be connected later than the other, which sends at once.
    for (const bool left_first : {false, true}) {
        Peers peers;
        VIP_VI_ATTRIBUTES attributes{};
        ASSERT_EQ(left_first ? peers.ask_left() : peers.ask_right(), VIP_SUCCESS);
        ASSERT_EQ(left_first ? peers.ask_right() : peers.ask_left(), VIP_SUCCESS);
        ASSERT_EQ(VipConnectPeerWait(peers.left.vi, &attributes), VIP_SUCCESS);
        VIP_DESCRIPTOR* posted = peers.right.receive(16);
        peers.left.send(peers.left.buffer(16, 'e'), 16);
        EXPECT_TRUE(never([&] { return peers.left.state() != VIP_STATE_CONNECTED; }));
        ASSERT_EQ(VipConnectPeerWait(peers.right.vi, &attributes), VIP_SUCCESS);
        const Outcome got = reap_recv(peers.right.vi);
        EXPECT_EQ(got.code, VIP_SUCCESS);
        EXPECT_EQ(got.descriptor, posted);
        EXPECT_EQ(reap_send(peers.left.vi).code, VIP_SUCCESS);
    }
}

TEST(Peer, ManyPeersConnectFromManyThreads) {
    std::vector<std::future<int>> workers;
    for (int i = 0; i < 6; ++i) {
        workers.push_back(in_background([] {
            for (int round = 0; round < 3; ++round) {
                Peers peers;
                VIP_VI_ATTRIBUTES attributes{};
                require(peers.ask_left(), "VipConnectPeerRequest");
                require(peers.ask_right(), "VipConnectPeerRequest");
                require(VipConnectPeerWait(peers.left.vi, &attributes), "VipConnectPeerWait");
                require(VipConnectPeerWait(peers.right.vi, &attributes), "VipConnectPeerWait");
                exchange(peers.left, peers.right);
            }
            return 3;
        }));
    }
    for (auto& worker : workers) {
        EXPECT_EQ(worker.get(), 3);
    }
}

}  // namespace
}  // namespace viaduct::conformance
