// SPDX-License-Identifier: BSD-2-Clause
// What waits in the engine process for a host's receive descriptors: nothing is lost and nothing overtakes
// while there is memory, and each host has its share of that.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "providers/acenic/daemon/receive_fifo.hpp"
#include "providers/acenic/tigon/driver.hpp"

namespace viaduct::acenic {
namespace {

using tigon::kJumboRing;
using tigon::kStandardRing;

// An application's rings and the engine's side of them.
struct Rings {
    tigon::Driver driver;
    tigon::Firmware firmware;
    ReceiveFifo fifo;

    explicit Rings(CardMemory& memory) : fifo(memory) {
        const char* why = "";
        EXPECT_TRUE(driver.start(9014));
        EXPECT_TRUE(firmware.start(driver.segment().data(), driver.segment().size(), &why)) << why;
        driver.ring_mailboxes();
        firmware.publish();
    }
    // A frame that says its number.
    void come(uint32_t number, size_t bytes) {
        std::vector<std::byte> frame(bytes, static_cast<std::byte>(number * 7));
        std::memcpy(frame.data(), &number, sizeof number);
        const std::span<const std::byte> all(frame);
        fifo.deliver(firmware, all.first(46), all.subspan(46));
    }
    // Takes what has been delivered; the numbers.
    std::vector<uint32_t> take(uint32_t most = UINT32_MAX) {
        std::vector<uint32_t> numbers;
        firmware.publish();
        driver.receive(most, [&](std::span<const std::byte> frame) {
            uint32_t number = 0;
            std::memcpy(&number, frame.data(), sizeof number);
            for (const std::byte b : frame.subspan(4)) ASSERT_EQ(b, static_cast<std::byte>(number * 7));
            numbers.push_back(number);
        });
        return numbers;
    }
    // The same until nothing comes any more.
    std::vector<uint32_t> take_all() {
        std::vector<uint32_t> all;
        do {
            const std::vector<uint32_t> some = take(32);
            all.insert(all.end(), some.begin(), some.end());
        } while (fifo.drain(firmware) || !take_nothing(&all));
        return all;
    }
    uint32_t dropped() { return firmware.dropped(); }

private:
    bool take_nothing(std::vector<uint32_t>* all) {
        const std::vector<uint32_t> some = take();
        all->insert(all->end(), some.begin(), some.end());
        return some.empty();
    }
};

std::vector<uint32_t> up_to(uint32_t n) {
    std::vector<uint32_t> numbers(n);
    for (uint32_t i = 0; i < n; ++i) numbers[i] = i;
    return numbers;
}

TEST(AcenicReceiveFifo, AsManyFramesAsTheLargestMessageHasWaitForDescriptors) {
    CardMemory memory(16 << 20);
    Rings host(memory);
    constexpr uint32_t kFrames = 470;  // 4 MiB, and there are 255 descriptors
    for (uint32_t i = 0; i < kFrames; ++i) host.come(i, 9000);
    EXPECT_EQ(host.fifo.waited(), kFrames - (kJumboRing - 1));
    EXPECT_FALSE(host.fifo.may_drain(host.firmware));
    EXPECT_EQ(host.take_all(), up_to(kFrames));
    EXPECT_EQ(host.dropped(), 0u);
    EXPECT_TRUE(host.fifo.empty());
}

TEST(AcenicReceiveFifo, NoFrameOvertakesOneThatWaits) {
    CardMemory memory(16 << 20);
    Rings host(memory);
    uint32_t next = 0;
    while (next < kJumboRing + 20) host.come(next++, 9000);
    // There are descriptors for small ones, but their turn has not come.
    while (next < kJumboRing + 40) host.come(next++, 100);
    EXPECT_EQ(host.take(10), up_to(10));
    host.come(next++, 9000);  // nor may it take one that was just given back
    EXPECT_TRUE(host.fifo.may_drain(host.firmware));
    const std::vector<uint32_t> rest = host.take_all();
    ASSERT_EQ(rest.size(), next - 10);
    for (uint32_t i = 0; i < rest.size(); ++i) ASSERT_EQ(rest[i], i + 10);
}

TEST(AcenicReceiveFifo, AHostThatIsBehindAgainAndAgainLosesNothing) {
    CardMemory memory(4 << 20);
    Rings host(memory);
    uint32_t come = 0, expected = 0;
    for (int round = 0; round < 30; ++round) {
        for (int i = 0; i < 400; ++i, ++come) host.come(come, 60 + come * 7919 % 8900);
        for (const uint32_t number : host.take_all()) ASSERT_EQ(number, expected++);
    }
    EXPECT_EQ(expected, come);
    EXPECT_GT(host.fifo.waited(), 30u * 40);
    EXPECT_EQ(host.dropped(), 0u);
}

TEST(AcenicReceiveFifo, BeyondItsShareFramesAreDroppedAndCountedAndTheOthersHaveTheirs) {
    constexpr uint32_t kBytes = 8192, kAll = 300;
    CardMemory memory(size_t{kBytes} * kAll);
    Rings greedy(memory);
    auto modest = std::make_unique<Rings>(memory);
    for (uint32_t i = 0; i < 2 * kAll + kJumboRing - 1; ++i) greedy.come(i, kBytes);
    EXPECT_EQ(greedy.fifo.waited(), kAll / 2);
    EXPECT_EQ(greedy.dropped(), 2 * kAll - kAll / 2);
    for (uint32_t i = 0; i < kAll + kJumboRing - 1; ++i) modest->come(i, kBytes);
    EXPECT_EQ(modest->fifo.waited(), kAll / 4) << "half of what is left";
    // It goes, and what it had is the others' again.
    modest.reset();
    EXPECT_EQ(greedy.take_all(), up_to(kAll / 2 + kJumboRing - 1)) << "what was not dropped is in order";
    for (uint32_t i = 0; i < kAll / 2 + kJumboRing - 1; ++i) greedy.come(i, kBytes);
    EXPECT_EQ(greedy.fifo.waited(), kAll);
}

TEST(AcenicReceiveFifo, AHostRingsForItsReceiveBuffersOnlyWhenFramesWaitForThem) {
    CardMemory memory(16 << 20);
    Rings host(memory);
    for (uint32_t i = 0; i < kJumboRing + 5; ++i) host.come(i, 9000);
    host.firmware.set_asleep(true, false);
    host.take(4);
    EXPECT_FALSE(host.driver.ring_mailboxes());
    host.firmware.set_asleep(true, true);
    EXPECT_FALSE(host.driver.ring_mailboxes()) << "nothing was given back since";
    host.take(4);
    EXPECT_TRUE(host.driver.ring_mailboxes());
    EXPECT_FALSE(host.driver.ring_mailboxes()) << "once is enough";
    host.firmware.set_asleep(false, false);
    host.take(4);
    EXPECT_FALSE(host.driver.ring_mailboxes());
}

}  // namespace
}  // namespace viaduct::acenic
