// SPDX-License-Identifier: BSD-2-Clause
// Receives that are longer than the memory they name. What counts is where the bytes of a message go; with vipl.strict
// (VIADUCT_VIPL_STRICT in the environment of the suite) no message may use such a receive.
#include <cstdlib>
#include <cstring>

#include "reliability.hpp"

namespace viaduct::conformance {
namespace {

bool strict() {
    static const char* const text = std::getenv("VIADUCT_VIPL_STRICT");
    static const bool set = text != nullptr && (std::strcmp(text, "1") == 0 || std::strcmp(text, "true") == 0);
    return set;
}

class PastTheRegion : public Reliability {
protected:
    /// A receive of so many bytes of which the region holds only the first ones.
    static VIP_DESCRIPTOR* receive_at_the_end(End& end, std::uint32_t held, std::uint32_t posted) {
        char* data = end.memory + end.wanted.memory - held;
        VIP_DESCRIPTOR* d = end.descriptor();
        fill(d, VIP_CONTROL_OP_SENDRECV, {Piece{data, end.region, posted}});
        require(end.post_recv(d), "VipPostRecv");
        return d;
    }

    void expect_message(Pair& pair, const VIP_DESCRIPTOR* posted, std::uint32_t bytes) const {
        const Outcome got = reap_recv(pair.server.vi);
        ASSERT_EQ(got.descriptor, posted);
        EXPECT_EQ(got.code, VIP_SUCCESS) << std::hex << got.status();
        EXPECT_EQ(got.descriptor->CS.Length, bytes);
    }

    /// What a message that its receive may not take does to both ends (spec/reliability 6.2).
    void expect_refused(Pair& pair, const VIP_DESCRIPTOR* posted) const {
        const Outcome got = reap_recv(pair.server.vi);
        ASSERT_EQ(got.descriptor, posted);
        EXPECT_EQ(got.code, VIP_DESCRIPTOR_ERROR);
        EXPECT_TRUE(got.errors() & VIP_STATUS_PROTECTION_ERROR) << std::hex << got.status();
        const Outcome sent = reap_send(pair.client.vi);
        if (unreliable()) {
            EXPECT_EQ(sent.code, VIP_SUCCESS);
            still_connected(pair);
        } else {
            broken(pair);
            after_break(sent, VIP_STATUS_REMOTE_DESC_ERROR);
        }
    }
};

constexpr std::uint32_t kLongReceive = 65472;

TEST_P(PastTheRegion, AMessageThatFitsTheRegionIsReceived) {
    NEEDS_LEVEL(GetParam());
    for (const std::uint32_t bytes : {0U, 1U, 8U, 112U, 3000U, 40000U}) {
        Pair pair(at_level());
        char* data = pair.client.buffer(bytes, 'p');
        if (strict() && bytes != 0) {
            const VIP_DESCRIPTOR* posted = receive_at_the_end(pair.server, bytes, kLongReceive);
            pair.client.send(data, bytes);
            expect_refused(pair, posted);
            continue;
        }
        if (strict()) {
            continue;  // whether a device looks at the memory of a message without bytes is its own affair
        }
        // The first one goes the general way, those behind it the short ones.
        for (int i = 0; i < 24; ++i) {
            const VIP_DESCRIPTOR* posted = receive_at_the_end(pair.server, bytes, kLongReceive);
            pair.client.send(data, bytes);
            ASSERT_NO_FATAL_FAILURE(expect_message(pair, posted, bytes)) << bytes;
            EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        }
        EXPECT_EQ(peek_count(pair.server.memory + pair.server.wanted.memory - bytes, bytes, 'p'), bytes);
    }
}

TEST_P(PastTheRegion, AMessageThatDoesNotFitTheRegionIsAProtectionError) {
    const Row row("6.2 Receive descriptor protection error", GetParam());
    NEEDS_LEVEL(GetParam());
    for (const std::uint32_t held : {1U, 100U, 3000U, 40000U}) {
        Pair pair(at_level());
        char* data = pair.client.buffer(held + 1, 'p');
        if (!strict()) {  // also where the short ways were open before
            for (int i = 0; i < 24; ++i) {
                const VIP_DESCRIPTOR* good = receive_at_the_end(pair.server, held, kLongReceive);
                pair.client.send(data, held);
                ASSERT_NO_FATAL_FAILURE(expect_message(pair, good, held));
                EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
            }
        }
        const VIP_DESCRIPTOR* posted = receive_at_the_end(pair.server, held, kLongReceive);
        pair.client.send(data, held + 1);
        ASSERT_NO_FATAL_FAILURE(expect_refused(pair, posted)) << held;
    }
}

TEST_P(PastTheRegion, SegmentsBehindTheMessageAreNotLookedAt) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    char* inside = pair.server.buffer(50);
    const auto post = [&] {
        VIP_DESCRIPTOR* d = pair.server.descriptor();
        fill(d, VIP_CONTROL_OP_SENDRECV,
             {pair.server.piece(inside, 50), Piece{inside, pair.server.region + 77, 50}});
        require(pair.server.post_recv(d), "VipPostRecv");
        return d;
    };
    char* data = pair.client.buffer(51, 's');
    const VIP_DESCRIPTOR* posted = post();
    pair.client.send(data, 50);
    if (strict()) {
        expect_refused(pair, posted);
        return;
    }
    ASSERT_NO_FATAL_FAILURE(expect_message(pair, posted, 50));
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    posted = post();
    pair.client.send(data, 51);
    expect_refused(pair, posted);
}

TEST_P(PastTheRegion, AWriteWithImmediateDataLeavesTheReceiveAlone) {
    NEEDS_LEVEL(GetParam());
    if (strict()) {
        GTEST_SKIP() << "with vipl.strict a device may refuse the receive";
    }
    Pair pair(at_level());
    char* window = pair.server.buffer(64);
    const VIP_DESCRIPTOR* posted = receive_at_the_end(pair.server, 8, kLongReceive);
    pair.client.write(pair.client.buffer(64, 'w'), 64, pair.server.target(window), VIP_CONTROL_IMMEDIATE, 4711);
    ASSERT_NO_FATAL_FAILURE(expect_message(pair, posted, 64));
    EXPECT_EQ(posted->CS.ImmediateData, 4711u);
    EXPECT_EQ(window[63], 'w');
}

// RDMA is checked by what it touches.
TEST_P(PastTheRegion, AWriteUpToTheEndOfTheRegionIsPermittedAndOneByteMoreIsNot) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    char* window = pair.server.memory + pair.server.wanted.memory - 100;
    char* data = pair.client.buffer(101, 'e');
    pair.client.write(data, 100, pair.server.target(window));
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_TRUE(eventually([&] { return peek(&window[99]) == 'e'; }));
    pair.client.write(data, 101, pair.server.target(window));
    reap_send(pair.client.vi);
    EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_RDMAW_PROT));
}

INSTANTIATE_TEST_SUITE_P(EachLevel, PastTheRegion, VIADUCT_ALL_LEVELS, level_test_name);

}  // namespace
}  // namespace viaduct::conformance
