// SPDX-License-Identifier: BSD-2-Clause
// Programs that watch the Status of their descriptors in memory, as hardware let them, and call nothing until
// DONE is there: spec/descriptors 2.6.
#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

// A descriptor that a device writes back is its driver's; whose driver works within calls only, cannot do
// this.
#define NEEDS_STATUS_IN_MEMORY()                                   \
    if (std::string(nic_attributes().Name).rfind("verbs", 0) == 0) \
    GTEST_SKIP() << "a verbs NIC completes descriptors within calls only"

class Watching : public AtEachLevel {};

bool turns_done(const VIP_DESCRIPTOR* d) {
    return eventually([&] { return peek_done(d); });
}

TEST_P(Watching, MessagesOfEverySizeAreSeenWithoutACall) {
    NEEDS_LEVEL(GetParam());
    NEEDS_STATUS_IN_MEMORY();
    EndOptions chosen = at_level();
    chosen.memory = 4 << 20;
    Pair pair(chosen);
    for (const std::size_t bytes : {0UL, 8UL, 200UL, 4096UL, 65472UL, 1000000UL}) {
        const std::size_t largest = pair.server.limits.MaxTransferSize;
        if (bytes > largest) continue;
        VIP_DESCRIPTOR* receive = pair.server.receive(bytes);
        VIP_DESCRIPTOR* send = pair.client.send(pair.client.buffer(bytes, 'w'), bytes);
        ASSERT_TRUE(turns_done(receive)) << bytes << " bytes were not received";
        ASSERT_TRUE(turns_done(send)) << bytes << " bytes were not sent";
        EXPECT_EQ(receive->CS.Length, bytes);
        const auto* data = static_cast<const char*>(receive->DS[0].Local.Data.Address);
        EXPECT_EQ(peek_count(data, bytes, 'w'), bytes);
        // Seen, but not handed out yet.
        EXPECT_EQ(reap_recv(pair.server.vi).descriptor, receive);
        EXPECT_EQ(reap_send(pair.client.vi).descriptor, send);
    }
}

TEST_P(Watching, ADialogueGoesOnWithoutCallsOfDone) {
    NEEDS_LEVEL(GetParam());
    NEEDS_STATUS_IN_MEMORY();
    Pair pair(at_level());
    constexpr std::size_t kRounds = 20;
    std::vector<VIP_DESCRIPTOR*> questions, answers;
    for (std::size_t i = 0; i < kRounds; ++i) {
        questions.push_back(pair.server.receive(64));
        answers.push_back(pair.client.receive(64));
    }
    char* out = pair.client.buffer(64);
    char* back = pair.server.buffer(64);
    for (std::size_t i = 0; i < kRounds; ++i) {
        pair.client.send(out, i);
        ASSERT_TRUE(turns_done(questions[i])) << "question " << i;
        pair.server.send(back, 2 * i);
        ASSERT_TRUE(turns_done(answers[i])) << "answer " << i;
        EXPECT_EQ(answers[i]->CS.Length, 2 * i);
    }
    for (std::size_t i = 0; i < kRounds; ++i) {
        EXPECT_EQ(reap_recv(pair.server.vi).descriptor, questions[i]);
        EXPECT_EQ(reap_recv(pair.client.vi).descriptor, answers[i]);
    }
}

TEST_P(Watching, RdmaIsSeenToBeDoneByItsInitiator) {
    NEEDS_LEVEL(GetParam());
    NEEDS_STATUS_IN_MEMORY();
    Pair pair(at_level());
    char* window = pair.server.buffer(5000, 0);
    VIP_DESCRIPTOR* write =
        pair.client.write(pair.client.buffer(5000, 'x'), 5000, pair.server.target(window));
    ASSERT_TRUE(turns_done(write));
    EXPECT_TRUE(eventually([&] { return peek_count(window, 5000, 'x') == 5000; }));
    EXPECT_EQ(reap_send(pair.client.vi).descriptor, write);
    NEEDS_RDMA_READ(GetParam());
    char* copy = pair.client.buffer(5000, 0);
    VIP_DESCRIPTOR* read = pair.client.read(copy, 5000, pair.server.target(window));
    ASSERT_TRUE(turns_done(read));
    EXPECT_EQ(peek_count(copy, 5000, 'x'), 5000U);
}

INSTANTIATE_TEST_SUITE_P(EachLevel, Watching, VIADUCT_ALL_LEVELS, level_test_name);

}  // namespace
}  // namespace viaduct::conformance
