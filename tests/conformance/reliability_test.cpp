// SPDX-License-Identifier: BSD-2-Clause
// The rows of the reliability table, spec/reliability 6.2, at all three levels: what the sender's descriptor
// gets, what the receiver's gets, the states and the asynchronous errors of both sides. Those on refused RDMA
// are in rdma_refusal_test.cpp.
#include <algorithm>
#include <cstring>

#include "child.hpp"
#include "fixture.hpp"
#include "reliability.hpp"

namespace viaduct::conformance {
namespace {

// --------------------------------------------------------------------------------------------------- receives

TEST_P(Reliability, NoReceiveDescriptorPosted) {
    const Row row("6.2 No receive descriptor posted", GetParam());
    const Row code("8 RECVQ_EMPTY", GetParam());
    std::optional<Row> bit;
    if (reception()) {
        bit.emplace("2.3 REMOTE_DESC_ERROR", GetParam());
    }
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    pair.client.send(pair.client.buffer(16), 16);
    const Outcome sent = reap_send(pair.client.vi);
    heard(pair.server, VIP_ERROR_RECVQ_EMPTY);
    if (unreliable()) {
        EXPECT_EQ(sent.code, VIP_SUCCESS);
        still_connected(pair);
        EXPECT_EQ(pair.client.errors.size(), 0u);
    } else {
        after_break(sent, VIP_STATUS_REMOTE_DESC_ERROR);
        broken(pair);
        EXPECT_EQ(pair.server.errors.count(VIP_ERROR_CONN_LOST), 0u) << "the specific code, once per entry";
        if (!reception()) {
            heard(pair.client, VIP_ERROR_CONN_LOST);
        }
    }
    EXPECT_EQ(pair.server.errors.size(), 1u);
    EXPECT_LE(pair.client.errors.size(), 1u);
}

TEST_P(Reliability, MessageLargerThanReceiveDescriptor) {
    const Row row("6.2 Message larger than receive descriptor", GetParam());
    const Row bit("2.3 LENGTH_ERROR", GetParam());
    NEEDS_LEVEL(GetParam());
    for (const std::size_t size : {65, 300, 20000}) {
        SCOPED_TRACE(size);
        Pair pair(at_level());
        char* in = pair.server.buffer(64 + 8, '-');
        VIP_DESCRIPTOR* receive = pair.server.message(in, 64);
        require(pair.server.post_recv(receive), "VipPostRecv");
        pair.client.send(pair.client.buffer(size, 'L'), size);
        const Outcome sent = reap_send(pair.client.vi);
        const Outcome got = reap_recv(pair.server.vi);
        EXPECT_EQ(got.code, VIP_DESCRIPTOR_ERROR);
        ASSERT_EQ(got.descriptor, receive);
        EXPECT_TRUE(got.errors() & VIP_STATUS_LENGTH_ERROR) << std::hex << got.status();
        EXPECT_EQ(got.operation(), static_cast<VIP_UINT32>(VIP_STATUS_OP_RECEIVE));
        EXPECT_EQ(in[64], '-') << "nothing is written beyond the receive's memory";
        if (unreliable()) {
            EXPECT_EQ(sent.code, VIP_SUCCESS);
            still_connected(pair);
        } else {
            after_break(sent, VIP_STATUS_REMOTE_DESC_ERROR);
            broken(pair);
            if (!reception()) {
                heard(pair.client, VIP_ERROR_CONN_LOST);
            }
        }
        EXPECT_LE(pair.server.errors.size(), 1u);
        EXPECT_LE(pair.client.errors.size(), 1u);
    }
}

// Behind the receive that is too short lies one that is not: the message must not be taken a second time while the
// connection is being broken. The sender's polls look at every queue of the process, and its long message has set a
// thread of the library to look as well.
TEST_P(Reliability, ARefusedMessageIsTakenOnce) {
    const Row row("6.2 Message larger than receive descriptor", GetParam());
    NEEDS_LEVEL(GetParam());
    constexpr std::size_t kLong = 70000;
    EndOptions with_cq = at_level();
    with_cq.recv_cq = 16;
    for (const EndOptions& server : {at_level(), with_cq}) {
        SCOPED_TRACE(server.recv_cq);
        Pair pair(at_level(), server);
        for (const std::size_t capacity : {63, 8, 0}) {
            SCOPED_TRACE(capacity);
            pair.server.receive(kLong);
            pair.client.send(pair.client.buffer(kLong, 'l'), kLong);
            ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
            ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
            VIP_DESCRIPTOR* shorter = pair.server.receive(capacity);
            VIP_DESCRIPTOR* longer = pair.server.receive(256);
            pair.client.send(pair.client.buffer(64, 'x'), 64);
            const Outcome sent = reap_send(pair.client.vi);
            const Outcome refused = reap_recv(pair.server.vi);
            ASSERT_EQ(refused.descriptor, shorter);
            EXPECT_EQ(refused.errors(), static_cast<VIP_UINT32>(VIP_STATUS_LENGTH_ERROR));
            if (unreliable()) {
                EXPECT_EQ(reap_recv(pair.server.vi, kQuietTime).code, VIP_NOT_DONE);
            } else {
                after_break(sent, VIP_STATUS_REMOTE_DESC_ERROR);
                broken(pair);
            }
            VipDisconnect(pair.client.vi);
            VipDisconnect(pair.server.vi);
            const Outcome flushed = reap_recv(pair.server.vi);
            ASSERT_EQ(flushed.descriptor, longer);
            EXPECT_EQ(flushed.errors(), static_cast<VIP_UINT32>(VIP_STATUS_DESC_FLUSHED_ERROR)) << longer->CS.Length;
            connect(pair.client.nic, pair.client.vi, pair.server.nic, pair.server.vi);
        }
    }
}

TEST_P(Reliability, ReceiveDescriptorFormatError) {
    const Row row("6.2 Receive descriptor format error", GetParam());
    const Row bit("2.3 FORMAT_ERROR", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    VIP_DESCRIPTOR* receive = pair.server.message(pair.server.buffer(64), 64, 0x4000);
    require(pair.server.post_recv(receive), "VipPostRecv");
    pair.client.send(pair.client.buffer(16), 16);
    const Outcome sent = reap_send(pair.client.vi);
    const Outcome got = reap_recv(pair.server.vi);
    ASSERT_EQ(got.descriptor, receive);
    EXPECT_EQ(got.code, VIP_DESCRIPTOR_ERROR);
    EXPECT_TRUE(got.errors() & VIP_STATUS_FORMAT_ERROR) << std::hex << got.status();
    if (unreliable()) {
        EXPECT_EQ(sent.code, VIP_SUCCESS);
        still_connected(pair);
    } else {
        after_break(sent, VIP_STATUS_REMOTE_DESC_ERROR);
        broken(pair);
    }
}

TEST_P(Reliability, ReceiveDescriptorProtectionError) {
    const Row row("6.2 Receive descriptor protection error", GetParam());
    const Row bit("2.3 PROTECTION_ERROR", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    char* data = pair.server.buffer(64, 'k');
    VIP_DESCRIPTOR* receive = pair.server.descriptor();
    fill(receive, 0, {{data, pair.server.region ^ 0x5A5A0000u, 64}});
    require(pair.server.post_recv(receive), "VipPostRecv");
    pair.client.send(pair.client.buffer(16), 16);
    const Outcome sent = reap_send(pair.client.vi);
    const Outcome got = reap_recv(pair.server.vi);
    ASSERT_EQ(got.descriptor, receive);
    EXPECT_EQ(got.code, VIP_DESCRIPTOR_ERROR);
    EXPECT_TRUE(got.errors() & VIP_STATUS_PROTECTION_ERROR) << std::hex << got.status();
    EXPECT_EQ(data[0], 'k');
    if (unreliable()) {
        EXPECT_EQ(sent.code, VIP_SUCCESS);
        still_connected(pair);
    } else {
        after_break(sent, VIP_STATUS_REMOTE_DESC_ERROR);
        broken(pair);
    }
}

TEST_P(Reliability, LaterDescriptorsOfABrokenConnectionAreFlushedInOrder) {
    const Row row("2.3 DESC_FLUSHED_ERROR", GetParam());
    NEEDS_LEVEL(GetParam());
    if (unreliable()) {
        Pair pair(at_level());
        VIP_DESCRIPTOR* receive = pair.server.receive(64);
        require(VipDisconnect(pair.client.vi), "VipDisconnect");
        EXPECT_EQ(reap_recv(pair.server.vi).descriptor, receive);
        EXPECT_TRUE(receive->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
        return;
    }
    Pair pair(at_level());
    std::vector<VIP_DESCRIPTOR*> receives;
    receives.reserve(3);
    for (int i = 0; i < 3; ++i) {
        receives.push_back(pair.client.receive(64));
    }
    pair.client.send(pair.client.buffer(16), 16);  // no receive there: breaks the connection
    ASSERT_TRUE(pair.client.reaches(VIP_STATE_ERROR));
    std::vector<VIP_DESCRIPTOR*> sends;
    sends.reserve(3);
    for (int i = 0; i < 3; ++i) {
        sends.push_back(pair.client.send(pair.client.buffer(16), 16));
    }
    reap_send(pair.client.vi);
    for (VIP_DESCRIPTOR* d : sends) {
        const Outcome flushed = reap_send(pair.client.vi);
        EXPECT_EQ(flushed.descriptor, d);
        EXPECT_TRUE(flushed.errors() & VIP_STATUS_DESC_FLUSHED_ERROR);
    }
    for (VIP_DESCRIPTOR* d : receives) {
        const Outcome flushed = reap_recv(pair.client.vi);
        EXPECT_EQ(flushed.descriptor, d);
        EXPECT_TRUE(flushed.errors() & VIP_STATUS_DESC_FLUSHED_ERROR);
    }
}

// --------------------------------------------------------------------------------------------------- processes

TEST_P(Reliability, RemoteProcessKilled) {
    const Row row("6.2 Remote process killed", GetParam());
    NEEDS_LEVEL(GetParam());
    End server(across(at_level()));
    const std::string name = unique_discriminator();
    Child client("client", client_arguments(server, name));
    accept_from(server, name);
    ASSERT_EQ(client.line(), "connected");
    VIP_DESCRIPTOR* receive = server.receive(64);
    const Stopwatch start;
    client.kill();
    EXPECT_TRUE(server.reaches(VIP_STATE_ERROR, kOneSecond));
    const Outcome flushed = reap_recv(server.vi, kOneSecond);
    EXPECT_EQ(flushed.descriptor, receive);
    EXPECT_TRUE(flushed.errors() & VIP_STATUS_DESC_FLUSHED_ERROR);
    EXPECT_TRUE(server.errors.wait_for(VIP_ERROR_CONN_LOST));
    EXPECT_TRUE(in_time(start, kOneSecond));
    EXPECT_EQ(server.errors.size(), 1u);
}

TEST_P(Reliability, SenderFasterThanReceiver) {
    const Row row("6.2 Sender faster than receiver", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    constexpr int kReceives = 3;
    constexpr int kSends = 10;
    for (int i = 0; i < kReceives; ++i) {
        pair.server.receive(64);
    }
    for (int i = 0; i < kSends; ++i) {
        pair.client.send(pair.client.buffer(16, static_cast<char>(i)), 16);
    }
    // There is no flow control in VIA: the first three arrive, the others find no receive.
    for (int i = 0; i < kReceives; ++i) {
        const Outcome got = reap_recv(pair.server.vi);
        ASSERT_EQ(got.code, VIP_SUCCESS);
        EXPECT_EQ(*static_cast<char*>(got.descriptor->DS[0].Local.Data.Address), i);
    }
    heard(pair.server, VIP_ERROR_RECVQ_EMPTY);
    int failed = 0;
    for (int i = 0; i < kSends; ++i) {
        failed += reap_send(pair.client.vi).code != VIP_SUCCESS;
    }
    if (unreliable()) {
        EXPECT_EQ(failed, 0);
        still_connected(pair);
    } else {
        broken(pair);
        EXPECT_EQ(pair.server.errors.size(), 1u);
        if (reception()) {
            EXPECT_EQ(failed, kSends - kReceives) << "every message is accounted for";
        }
    }
}

// --------------------------------------------------------------------------------------------------- the wire

TEST_P(Reliability, MessageLostInTheNetwork) {
    const Row row("6.2 Message lost in the network", GetParam());
    std::optional<Row> bit;
    if (!unreliable()) {
        bit.emplace("2.3 TRANSPORT_ERROR", GetParam());
    }
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    const FaultControl faults;
    VIP_DESCRIPTOR* receive = pair.server.receive(64);
    NEEDS_FAULTS(faults, pair.client.vi, "seed=1,drop=1.0");
    pair.client.send(pair.client.buffer(16, 'x'), 16);
    const Outcome sent = reap_send(pair.client.vi);
    if (unreliable()) {
        EXPECT_EQ(sent.code, VIP_SUCCESS);
        EXPECT_EQ(reap_recv(pair.server.vi, kQuietTime).code, VIP_NOT_DONE);
        ASSERT_TRUE(faults.set(pair.client.vi, "drop=0"));
        pair.client.send(pair.client.buffer(8, 'y'), 8);
        EXPECT_EQ(reap_recv(pair.server.vi).descriptor, receive) << "the loss took no receive";
        EXPECT_EQ(pair.server.errors.size() + pair.client.errors.size(), 0u);
        return;
    }
    if (reception() || sent.code != VIP_SUCCESS) {
        EXPECT_EQ(sent.code, VIP_DESCRIPTOR_ERROR);
        EXPECT_TRUE(sent.errors() & VIP_STATUS_TRANSPORT_ERROR) << std::hex << sent.status();
    }
    broken(pair, kTimeout);
    EXPECT_TRUE(reap_recv(pair.server.vi).errors() & VIP_STATUS_DESC_FLUSHED_ERROR);
    EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_CONN_LOST, kOneSecond));
}

TEST_P(Reliability, SomeMessagesLostOrRepeatedInTheNetwork) {
    const Row once("6.1 Delivered at most once", GetParam());
    std::optional<Row> exactly;
    if (!unreliable()) {
        exactly.emplace("6.1 Delivered exactly once", GetParam());
    }
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    chosen.memory = 4 << 20;
    Pair pair(chosen);
    const FaultControl faults;
    NEEDS_FAULTS(faults, pair.client.vi, "seed=7,drop=0.2,duplicate=0.3");
    constexpr int kMessages = 300;
    for (int i = 0; i < kMessages; ++i) {
        pair.server.receive(64);
    }
    for (std::uint32_t i = 0; i < kMessages; ++i) {
        char* data = pair.client.buffer(16);
        std::memcpy(data, &i, sizeof i);
        pair.client.send(data, 16);
        ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    }
    std::vector<std::uint32_t> numbers;
    for (;;) {
        const bool all = numbers.size() == kMessages;
        const Outcome got = reap_recv(pair.server.vi, unreliable() || all ? kQuietTime : kTimeout);
        if (got.code != VIP_SUCCESS) {
            break;
        }
        std::uint32_t number = 0;
        std::memcpy(&number, got.descriptor->DS[0].Local.Data.Address, sizeof number);
        numbers.push_back(number);
    }
    std::vector<std::uint32_t> distinct = numbers;
    std::sort(distinct.begin(), distinct.end());
    EXPECT_EQ(std::adjacent_find(distinct.begin(), distinct.end()), distinct.end()) << "a message came twice";
    if (unreliable()) {
        EXPECT_LT(numbers.size(), static_cast<std::size_t>(kMessages)) << "the plan loses every fifth";
        EXPECT_GT(numbers.size(), static_cast<std::size_t>(kMessages / 2));
    } else {
        EXPECT_EQ(numbers.size(), static_cast<std::size_t>(kMessages));
        EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
    }
}

TEST_P(Reliability, MessageCorruptedInTheNetwork) {
    const Row row("6.2 Message corrupted in the network", GetParam());
    const Row detected("6.1 Corrupt data detected", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    const FaultControl faults;
    pair.server.receive(64);
    NEEDS_FAULTS(faults, pair.client.vi, "seed=3,corrupt=1.0");
    pair.client.send(pair.client.buffer(48, 'x'), 48);
    const Outcome sent = reap_send(pair.client.vi);
    if (unreliable()) {
        EXPECT_EQ(sent.code, VIP_SUCCESS);
        EXPECT_NE(reap_recv(pair.server.vi, kQuietTime).code, VIP_SUCCESS) << "damaged data was delivered as good";
        EXPECT_EQ(pair.server.state(), VIP_STATE_CONNECTED);
        return;
    }
    if (reception() || sent.code != VIP_SUCCESS) {
        EXPECT_TRUE(sent.errors() & VIP_STATUS_TRANSPORT_ERROR) << std::hex << sent.status();
    }
    broken(pair, kTimeout);
    const Outcome got = reap_recv(pair.server.vi);
    EXPECT_EQ(got.code, VIP_DESCRIPTOR_ERROR);
}

TEST_P(Reliability, LinkDown) {
    const Row row("6.2 Link down", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    const FaultControl faults;
    pair.server.receive(64);
    NEEDS_FAULTS(faults, pair.client.vi, "linkdown=1");
    VIP_DESCRIPTOR* d = pair.client.message(pair.client.buffer(16, 'x'), 16);
    ASSERT_EQ(pair.client.post_send(d), VIP_SUCCESS);
    const Outcome sent = reap_send(pair.client.vi);
    if (unreliable()) {
        // The notice itself may be lost: then the VI stays Connected and messages drop.
        EXPECT_TRUE(sent.code == VIP_SUCCESS || (sent.errors() & kBroken) != 0) << std::hex << sent.status();
        EXPECT_NE(reap_recv(pair.server.vi, kQuietTime).code, VIP_SUCCESS);
        return;
    }
    EXPECT_EQ(sent.code, VIP_DESCRIPTOR_ERROR);
    EXPECT_TRUE(sent.errors() & kBroken) << std::hex << sent.status();
    broken(pair, kTimeout);
    EXPECT_TRUE(reap_recv(pair.server.vi).errors() & VIP_STATUS_DESC_FLUSHED_ERROR);
    heard(pair.client, VIP_ERROR_CONN_LOST);
    heard(pair.server, VIP_ERROR_CONN_LOST);
}

TEST(ReliabilityUnreliable, AnRdmaWriteThatArrivesDamagedIsAnAsynchronousError) {
    const Row row("8 RDMAW_DATA", VIP_SERVICE_UNRELIABLE);
    EndOptions chosen;
    chosen.level = VIP_SERVICE_UNRELIABLE;
    Pair pair(chosen);
    const FaultControl faults;
    NEEDS_FAULTS(faults, pair.client.vi, "seed=5,corrupt=1.0");
    char* window = pair.server.buffer(64, 'k');
    pair.client.write(pair.client.buffer(64, 'W'), 64, pair.server.target(window));
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_RDMAW_DATA, kOneSecond));
    EXPECT_EQ(pair.server.state(), VIP_STATE_CONNECTED);
}

INSTANTIATE_TEST_SUITE_P(EachLevel, Reliability, VIADUCT_ALL_LEVELS, level_test_name);

}  // namespace
}  // namespace viaduct::conformance
