// SPDX-License-Identifier: BSD-2-Clause
// RDMA write and read that succeed: spec/descriptors 2.4, 2.5, spec/completion 5, spec/reliability 7,
// spec/compat T9-T13. Refusals are in reliability_test.
#include <algorithm>
#include <cstring>
#include <thread>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

constexpr VIP_UINT32 kWritten = VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE;
constexpr VIP_UINT32 kRead = VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ;

using RdmaWrite = AtEachLevel;

TEST_P(RdmaWrite, PutsTheBytesWhereAskedAndLeavesNoOtherTrace) {
    const Row row("6.1 RDMA Write supported", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    VIP_DESCRIPTOR* waiting = pair.server.receive(64);
    for (const std::size_t size : {1, 4, 8, 63, 64, 100, 4096, 10001, 65480}) {
        SCOPED_TRACE(size);
        char* window = pair.server.buffer(size + 2, '.', 1);
        char* data = pair.client.buffer(size, 'W', 1);
        VIP_DESCRIPTOR* d = pair.client.write(data, size, pair.server.target(window + 1));
        const Outcome sent = reap_send(pair.client.vi);
        EXPECT_EQ(sent.code, VIP_SUCCESS);
        ASSERT_EQ(sent.descriptor, d);
        EXPECT_EQ(sent.status(), kWritten);
        EXPECT_EQ(d->CS.Length, size);
        ASSERT_TRUE(eventually([&] { return peek(window + size) == 'W'; }));
        EXPECT_TRUE(std::all_of(window + 1, window + 1 + size, [](char byte) { return byte == 'W'; }));
        EXPECT_EQ(window[0], '.');
        EXPECT_EQ(window[size + 1], '.');
    }
    EXPECT_EQ(waiting->CS.Status, 0u) << "without immediate data no receive is taken";
    EXPECT_EQ(pair.server.errors.size(), 0u);
}

TEST_P(RdmaWrite, WithImmediateDataTakesAReceiveWithoutTouchingItsBuffers) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    char* window = pair.server.buffer(300, '.');
    char* untouched = pair.server.buffer(64, 'k');
    VIP_DESCRIPTOR* first = pair.server.message(untouched, 64);
    require(pair.server.post_recv(first), "VipPostRecv");
    VIP_DESCRIPTOR* second = pair.server.receive(64);
    VIP_DESCRIPTOR* d = pair.client.write(pair.client.buffer(300, 'W'), 300, pair.server.target(window),
                                          VIP_CONTROL_IMMEDIATE, 0xABCD1234u);
    pair.client.send(pair.client.buffer(10, 's'), 10);
    const Outcome got = reap_recv(pair.server.vi);
    EXPECT_EQ(got.code, VIP_SUCCESS);
    ASSERT_EQ(got.descriptor, first);
    EXPECT_EQ(got.status(), static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE |
                                                    VIP_STATUS_IMMEDIATE));
    EXPECT_EQ(got.descriptor->CS.ImmediateData, 0xABCD1234u);
    EXPECT_EQ(got.descriptor->CS.Length, 300u) << "bytes written";
    EXPECT_TRUE(std::all_of(window, window + 300, [](char byte) { return byte == 'W'; }));
    EXPECT_EQ(untouched[0], 'k');
    EXPECT_EQ(reap_send(pair.client.vi).descriptor, d);
    EXPECT_EQ(d->CS.Status, kWritten) << "the immediate bit belongs to the receiving side";
    const Outcome next = reap_recv(pair.server.vi);
    EXPECT_EQ(next.descriptor, second) << "receives behind it follow in order (spec/compat T9)";
    EXPECT_EQ(next.descriptor->CS.Length, 10u);
}

TEST_P(RdmaWrite, OfNoBytesWithImmediateDataIsASignal) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    VIP_DESCRIPTOR* receive = pair.server.receive(16);
    VIP_DESCRIPTOR* d = pair.client.descriptor();
    fill(d, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, {}, pair.server.target(pair.server.buffer(8)), 7);
    ASSERT_EQ(d->CS.SegCount, 1) << "the address segment counts";
    require(pair.client.post_send(d), "VipPostSend");
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    const Outcome got = reap_recv(pair.server.vi);
    EXPECT_EQ(got.descriptor, receive);
    EXPECT_EQ(got.descriptor->CS.ImmediateData, 7u);
    EXPECT_EQ(got.descriptor->CS.Length, 0u);
}

TEST_P(RdmaWrite, GathersFromSeveralSegments) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    char* window = pair.server.buffer(600, '.');
    VIP_DESCRIPTOR* d = pair.client.descriptor(8);
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < 7; ++i) {
        pieces.push_back(pair.client.piece(pair.client.buffer(50 + i, static_cast<char>('a' + i), 1), 50 + i));
    }
    fill(d, VIP_CONTROL_OP_RDMAWRITE, pieces, pair.server.target(window));
    require(pair.client.post_send(d), "VipPostSend");
    ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    const std::size_t total = d->CS.Length;
    ASSERT_TRUE(eventually([&] { return peek(&window[total - 1]) == 'g'; }));
    EXPECT_EQ(window[0], 'a');
    EXPECT_EQ(window[49], 'a');
    EXPECT_EQ(window[50], 'b');
    EXPECT_EQ(window[total], '.');
}

TEST_P(RdmaWrite, NeedsNoPermissionAtTheInitiator) {
    NEEDS_LEVEL(GetParam());
    EndOptions closed = at_level();
    closed.rdma_write = false;
    Pair pair(closed, at_level());
    char* window = pair.server.buffer(64);
    pair.client.write(pair.client.buffer(64, 'W'), 64, pair.server.target(window));
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_TRUE(eventually([&] { return peek(&window[63]) == 'W'; }));
}

TEST_P(RdmaWrite, IsVisibleWhenALaterSendIsReceived) {
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    chosen.memory = 2 << 20;
    Pair pair(chosen);
    constexpr std::size_t kBytes = 50000;
    char* window = pair.server.buffer(kBytes, 0, 64);
    char* data = pair.client.buffer(kBytes, 0, 64);
    VIP_DESCRIPTOR* write = pair.client.descriptor();
    VIP_DESCRIPTOR* send = pair.client.descriptor();
    for (int round = 1; round <= 50; ++round) {
        pair.server.receive(16);
        std::fill_n(data, kBytes, static_cast<char>(round));
        fill(write, VIP_CONTROL_OP_RDMAWRITE, {pair.client.piece(data, kBytes)}, pair.server.target(window));
        fill(send, VIP_CONTROL_OP_SENDRECV, {pair.client.piece(data, 16)});
        require(pair.client.post_send(write), "VipPostSend");
        require(pair.client.post_send(send), "VipPostSend");
        ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
        ASSERT_TRUE(
            std::all_of(window, window + kBytes, [round](char byte) { return byte == static_cast<char>(round); }));
        ASSERT_EQ(reap_send(pair.client.vi).descriptor, write);
        ASSERT_EQ(reap_send(pair.client.vi).descriptor, send);
    }
}

TEST_P(RdmaWrite, ReachesATargetThatOnlyWatchesItsMemoryWithTheLastBytesLast) {
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    chosen.memory = 2 << 20;
    Pair pair(chosen);
    for (const std::size_t size : {4, 8, 68, 1000, 4100, 30001}) {
        for (int round = 1; round <= 10; ++round) {
            char* window = pair.server.buffer(size, 0, 1);
            auto watcher = in_background([&] {
                // A thread that calls nothing of the library (spec/compat T10, T11).
                const auto end = Clock::now() + kTimeout;
                while (peek(&window[size - 1]) == 0 && Clock::now() < end) {
                }
                return peek_count(window, size, static_cast<char>(round));
            });
            pair.client.write(pair.client.buffer(size, static_cast<char>(round), 1), size,
                              pair.server.target(window));
            ASSERT_EQ(watcher.get(), size) << "the last byte came before another";
            ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        }
    }
}

TEST_P(RdmaWrite, ThreeHundredOutstandingCompleteInOrder) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    constexpr int kWrites = 300;
    std::vector<VIP_DESCRIPTOR*> posted;
    posted.reserve(kWrites);
    char* window = pair.server.buffer(kWrites, 0);
    for (int i = 0; i < kWrites; ++i) {
        posted.push_back(pair.client.write(pair.client.buffer(1, 'x', 1), 1, pair.server.target(window + i)));
    }
    for (VIP_DESCRIPTOR* d : posted) {
        const Outcome sent = reap_send(pair.client.vi);
        ASSERT_EQ(sent.code, VIP_SUCCESS);
        ASSERT_EQ(sent.descriptor, d);
    }
    EXPECT_TRUE(eventually([&] { return peek(&window[kWrites - 1]) == 'x'; }));
    EXPECT_EQ(std::count(window, window + kWrites, 'x'), kWrites);
}

TEST_P(RdmaWrite, GoesBothWaysOverOneConnection) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    char* here = pair.client.buffer(64);
    char* there = pair.server.buffer(64);
    pair.client.write(pair.client.buffer(64, '1'), 64, pair.server.target(there));
    pair.server.write(pair.server.buffer(64, '2'), 64, pair.client.target(here));
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(reap_send(pair.server.vi).code, VIP_SUCCESS);
    EXPECT_TRUE(eventually([&] { return peek(&here[63]) == '2' && peek(&there[63]) == '1'; }));
}

INSTANTIATE_TEST_SUITE_P(EachLevel, RdmaWrite, VIADUCT_ALL_LEVELS, level_test_name);

using RdmaRead = AtEachLevel;

TEST_P(RdmaRead, FetchesTheBytesWithoutTheTargetsHelp) {
    const Row row("6.1 RDMA Read supported", GetParam());
    NEEDS_LEVEL(GetParam());
    if (unreliable()) {
        EXPECT_EQ(nic_attributes().RDMAReadSupport & VIP_SERVICE_UNRELIABLE, 0) << "there is none at this level";
        return;
    }
    NEEDS_RDMA_READ(GetParam());
    Pair pair(at_level());
    VIP_DESCRIPTOR* waiting = pair.server.receive(64);
    for (const std::size_t size : {1, 4, 64, 100, 5000, 65480}) {
        SCOPED_TRACE(size);
        char* source = pair.server.buffer(size, 'R', 1);
        char* into = pair.client.buffer(size + 1, '.', 1);
        VIP_DESCRIPTOR* d = pair.client.read(into, size, pair.server.target(source));
        const Outcome done = reap_send(pair.client.vi);
        ASSERT_EQ(done.code, VIP_SUCCESS);
        EXPECT_EQ(done.descriptor, d);
        EXPECT_EQ(done.status(), kRead);
        EXPECT_EQ(d->CS.Length, size);
        EXPECT_TRUE(std::all_of(into, into + size, [](char byte) { return byte == 'R'; }));
        EXPECT_EQ(into[size], '.');
    }
    EXPECT_EQ(waiting->CS.Status, 0u);
}

using ReliableRdmaRead = AtEachLevel;

TEST_P(ReliableRdmaRead, ScattersIntoSeveralSegments) {
    NEEDS_LEVEL(GetParam());
    NEEDS_RDMA_READ(GetParam());
    Pair pair(at_level());
    char* source = pair.server.buffer(30);
    std::fill_n(source, 10, 'a');
    std::fill_n(source + 10, 20, 'b');
    char* one = pair.client.buffer(10);
    char* two = pair.client.buffer(20);
    VIP_DESCRIPTOR* d = pair.client.descriptor(3);
    fill(d, VIP_CONTROL_OP_RDMAREAD, {pair.client.piece(one, 10), pair.client.piece(two, 20)},
         pair.server.target(source));
    require(pair.client.post_send(d), "VipPostSend");
    ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(std::string(one, 10), "aaaaaaaaaa");
    EXPECT_EQ(std::string(two, 20), "bbbbbbbbbbbbbbbbbbbb");
}

TEST_P(ReliableRdmaRead, NeedsNoPermissionAtTheInitiator) {
    NEEDS_LEVEL(GetParam());
    NEEDS_RDMA_READ(GetParam());
    EndOptions closed = at_level();
    closed.rdma_read = false;
    closed.rdma_write = false;
    Pair pair(closed, at_level());
    char* into = pair.client.buffer(8);
    pair.client.read(into, 8, pair.server.target(pair.server.buffer(8, 'R')));
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(into[7], 'R');
}

TEST_P(ReliableRdmaRead, ManyOutstandingBetweenOtherWorkCompleteInPostingOrder) {
    NEEDS_LEVEL(GetParam());
    NEEDS_RDMA_READ(GetParam());
    Pair pair(at_level());
    char* source = pair.server.buffer(4096, 'R');
    std::vector<VIP_DESCRIPTOR*> posted;
    for (int i = 0; i < 30; ++i) {
        pair.server.receive(64);
        posted.push_back(pair.client.read(pair.client.buffer(4096), 4096, pair.server.target(source)));
        posted.push_back(pair.client.send(pair.client.buffer(16), 16));
        posted.push_back(
            pair.client.write(pair.client.buffer(16, 'w'), 16, pair.server.target(pair.server.buffer(16))));
    }
    for (VIP_DESCRIPTOR* d : posted) {
        const Outcome done = reap_send(pair.client.vi);
        ASSERT_EQ(done.code, VIP_SUCCESS);
        ASSERT_EQ(done.descriptor, d);
    }
}

TEST_P(ReliableRdmaRead, AFencedSendStartsAfterTheReadsBeforeIt) {
    NEEDS_LEVEL(GetParam());
    NEEDS_RDMA_READ(GetParam());
    Pair pair(at_level());
    constexpr std::size_t kBytes = 8192;
    for (int round = 0; round < 20; ++round) {
        char* source = pair.server.buffer(kBytes, static_cast<char>('A' + round));
        char* through = pair.client.buffer(kBytes, '.');
        char* back = pair.server.buffer(kBytes, '.');
        pair.client.read(through, kBytes, pair.server.target(source));
        // What was read is written back: without the fence the write could start before the read ended.
        pair.client.write(through, kBytes, pair.server.target(back), VIP_CONTROL_QFENCE);
        ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        ASSERT_TRUE(eventually([&] { return peek(&back[kBytes - 1]) == static_cast<char>('A' + round); }));
        ASSERT_EQ(std::memcmp(source, back, kBytes), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(EachLevel, RdmaRead, VIADUCT_ALL_LEVELS, level_test_name);
INSTANTIATE_TEST_SUITE_P(EachLevel, ReliableRdmaRead, VIADUCT_RELIABLE_LEVELS, level_test_name);

TEST(Fence, IsAcceptedOnEveryOperation) {
    Pair pair;
    pair.server.receive(16);
    pair.client.send(pair.client.buffer(16), 16, VIP_CONTROL_QFENCE);
    pair.client.write(pair.client.buffer(16, 'f'), 16, pair.server.target(pair.server.buffer(16)), VIP_CONTROL_QFENCE);
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
}

}  // namespace
}  // namespace viaduct::conformance
