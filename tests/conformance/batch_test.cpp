// SPDX-License-Identifier: BSD-2-Clause
// Posting in batches (viaduct/ext.h): the same as one call after the other.
#include <viaduct/ext.h>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

using Batches = AtEachLevel;

TEST_P(Batches, ArriveInTheOrderOfTheArray) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    constexpr std::size_t kCount = 20;
    std::vector<VIP_DESCRIPTOR*> sends, receives;
    for (std::size_t i = 0; i < kCount; ++i) {
        char* in = pair.server.buffer(40);
        receives.push_back(pair.server.descriptor());
        fill(receives.back(), VIP_CONTROL_OP_SENDRECV, {pair.server.piece(in, 40)});
        char* out = pair.client.buffer(i + 1, static_cast<char>('a' + i));
        sends.push_back(pair.client.descriptor());
        fill(sends.back(), VIP_CONTROL_OP_SENDRECV, {pair.client.piece(out, i + 1)});
    }
    require(VipxPostRecvBatch(pair.server.vi, receives.data(), kCount, pair.server.region), "VipxPostRecvBatch");
    require(VipxPostSendBatch(pair.client.vi, sends.data(), kCount, pair.client.region), "VipxPostSendBatch");
    for (std::size_t i = 0; i < kCount; ++i) {
        const Outcome got = reap_recv(pair.server.vi);
        ASSERT_EQ(got.code, VIP_SUCCESS);
        EXPECT_EQ(got.descriptor, receives[i]);
        EXPECT_EQ(got.descriptor->CS.Length, i + 1);
        EXPECT_EQ(*static_cast<char*>(got.descriptor->DS[0].Local.Data.Address), static_cast<char>('a' + i));
        EXPECT_EQ(reap_send(pair.client.vi).descriptor, sends[i]);
    }
}

TEST_P(Batches, MayMixSendsAndWrites) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    char* window = pair.server.buffer(64, 0);
    VIP_DESCRIPTOR* receive = pair.server.receive(16);
    VIP_DESCRIPTOR* list[2] = {pair.client.descriptor(), pair.client.descriptor()};
    fill(list[0], VIP_CONTROL_OP_RDMAWRITE, {pair.client.piece(pair.client.buffer(64, 'W'), 64)},
         pair.server.target(window));
    fill(list[1], VIP_CONTROL_OP_SENDRECV, {pair.client.piece(pair.client.buffer(16, 's'), 16)});
    require(VipxPostSendBatch(pair.client.vi, list, 2, pair.client.region), "VipxPostSendBatch");
    EXPECT_EQ(reap_recv(pair.server.vi).descriptor, receive);
    EXPECT_EQ(window[0], 'W');
    EXPECT_EQ(window[63], 'W');
    EXPECT_EQ(reap_send(pair.client.vi).descriptor, list[0]);
    EXPECT_EQ(reap_send(pair.client.vi).descriptor, list[1]);
}

INSTANTIATE_TEST_SUITE_P(EachLevel, Batches, VIADUCT_ALL_LEVELS, level_test_name);

TEST(BatchMistakes, PostNothing) {
    Pair pair;
    VIP_DESCRIPTOR* list[2] = {pair.client.descriptor(), nullptr};
    fill(list[0], VIP_CONTROL_OP_SENDRECV, {pair.client.piece(pair.client.buffer(8), 8)});
    EXPECT_EQ(VipxPostSendBatch(pair.client.vi, list, 2, pair.client.region), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxPostSendBatch(pair.client.vi, nullptr, 1, pair.client.region), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxPostRecvBatch(nullptr, list, 1, pair.client.region), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxPostSendBatch(pair.client.vi, nullptr, 0, pair.client.region), VIP_SUCCESS);
    // Had any of them posted something, this would not be the first to be done.
    VIP_DESCRIPTOR* receive = pair.server.receive(8);
    VIP_DESCRIPTOR* sent = pair.client.send(pair.client.buffer(8), 8);
    EXPECT_EQ(reap_recv(pair.server.vi).descriptor, receive);
    EXPECT_EQ(reap_send(pair.client.vi).descriptor, sent);
}

TEST(BatchMistakes, FlushWhatIsPostedToAnUnconnectedSendQueue) {
    End end;
    VIP_DESCRIPTOR* list[2] = {end.descriptor(), end.descriptor()};
    for (VIP_DESCRIPTOR* d : list) fill(d, VIP_CONTROL_OP_SENDRECV, {end.piece(end.buffer(8), 8)});
    require(VipxPostSendBatch(end.vi, list, 2, end.region), "VipxPostSendBatch");
    for (VIP_DESCRIPTOR* d : list) {
        const Outcome flushed = reap_send(end.vi);
        EXPECT_EQ(flushed.descriptor, d);
        EXPECT_NE(flushed.status() & VIP_STATUS_DESC_FLUSHED_ERROR, 0u);
    }
}

}  // namespace
}  // namespace viaduct::conformance
