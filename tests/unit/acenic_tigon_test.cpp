// SPDX-License-Identifier: BSD-2-Clause
// The Tigon-II's host interface: driver and firmware against each other, and the firmware against hosts that
// write what they like.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "providers/acenic/tigon/driver.hpp"
#include "providers/acenic/tigon/firmware.hpp"

namespace viaduct::acenic::tigon {
namespace {

constexpr uint32_t kJumboFrame = 9014;

struct Card {
    Driver driver;
    Firmware firmware;
    const char* why = "";

    explicit Card(uint32_t largest = kJumboFrame) {
        EXPECT_TRUE(driver.start(largest));
        EXPECT_TRUE(firmware.start(driver.segment().data(), driver.segment().size(), &why)) << why;
        driver.ring_mailboxes();
        firmware.publish();
    }
    Window& window() { return *reinterpret_cast<Window*>(driver.segment().data()); }
    GeneralInformation& info() {
        const uint32_t at = window().info_low.load();
        return *reinterpret_cast<GeneralInformation*>(driver.segment().data() + at);
    }
    void send(const std::string& text) {
        std::byte* at = driver.begin_send();
        ASSERT_NE(at, nullptr);
        std::memcpy(at, text.data(), text.size());
        driver.end_send(static_cast<uint32_t>(text.size()));
    }
    Delivery deliver(const std::string& text) {
        const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
        return firmware.deliver({bytes, 14}, {bytes + 14, text.size() - 14});
    }
    std::vector<std::string> received(uint32_t most = UINT32_MAX) {
        std::vector<std::string> all;
        driver.receive(most, [&](std::span<const std::byte> frame) {
            all.emplace_back(reinterpret_cast<const char*>(frame.data()), frame.size());
        });
        return all;
    }
    std::vector<std::string> sent() {
        std::vector<std::string> all;
        std::span<const std::byte> frame;
        while (firmware.next_send(&frame)) {
            all.emplace_back(reinterpret_cast<const char*>(frame.data()), frame.size());
            firmware.send_done(true);
        }
        firmware.publish();
        return all;
    }
};

std::string frame(uint32_t number, size_t bytes) {
    std::string text = "frame " + std::to_string(number) + " ";
    text.resize(bytes, static_cast<char>('a' + number % 26));
    return text;
}

TEST(AcenicTigon, FramesCrossBothWaysInOrderAndWhole) {
    Card card;
    uint32_t out = 0, in = 0;
    for (uint32_t i = 0; i < 5000; ++i) {  // the rings wrap many times
        const size_t bytes = 60 + (i * 7919) % (kJumboFrame - 60);
        card.send(frame(i, bytes));
        card.driver.ring_mailboxes();
        if (i % 100 == 99 || i % 7 == 3)
            for (const std::string& s : card.sent()) {
                EXPECT_EQ(s, frame(out, 60 + (out * 7919) % (kJumboFrame - 60)));
                ++out;
            }
        ASSERT_EQ(card.deliver(frame(i, bytes)), Delivery::done);
        card.firmware.publish();
        if (i % 5 == 1)
            for (const std::string& s : card.received()) {
                EXPECT_EQ(s, frame(in, 60 + (in * 7919) % (kJumboFrame - 60)));
                ++in;
            }
    }
    EXPECT_EQ(out + card.sent().size(), 5000u);
    EXPECT_EQ(in + card.received().size(), 5000u);
}

TEST(AcenicTigon, TheDriverSeesThatTheNicStandsStill) {
    constexpr int64_t kMs = 1'000'000;
    Card card;
    int64_t now = 5000 * kMs;
    const auto after = [&](int64_t ms) { return card.driver.stands_still(now += ms * kMs); };
    EXPECT_FALSE(after(0)) << "nothing waits";
    card.send(frame(1, 60));
    EXPECT_FALSE(after(500)) << "it has not been told of it";
    card.driver.ring_mailboxes();
    EXPECT_FALSE(after(500)) << "it may have been told just now";
    EXPECT_FALSE(after(40));
    EXPECT_TRUE(after(20));
    card.send(frame(2, 60));
    card.driver.ring_mailboxes();
    EXPECT_TRUE(after(20));
    card.sent();
    EXPECT_FALSE(after(20)) << "it has taken all";

    for (uint32_t i = 0; i < 10; ++i) {  // slow, but it moves
        card.send(frame(i, 60));
        card.send(frame(i, 60));
        card.driver.ring_mailboxes();
        EXPECT_FALSE(after(200));
        std::span<const std::byte> one;
        ASSERT_TRUE(card.firmware.next_send(&one));
        card.firmware.send_done(true);
        card.firmware.publish();
    }
    EXPECT_FALSE(after(10));
    EXPECT_TRUE(after(9'000));
    EXPECT_FALSE(after(2'000)) << "it hangs: its silence is no excuse any more";
}

TEST(AcenicTigon, TheSendRingIsFullOneBeforeItsEnd) {
    Card card;
    for (uint32_t i = 0; i + 1 < kSendRing; ++i) card.send(frame(i, 60));
    EXPECT_EQ(card.driver.begin_send(), nullptr);
    EXPECT_TRUE(card.sent().empty()) << "nothing leaves before the mailbox is written";
    card.driver.ring_mailboxes();
    EXPECT_EQ(card.sent().size(), kSendRing - 1);
    EXPECT_NE(card.driver.begin_send(), nullptr);
}

TEST(AcenicTigon, AFrameBegunAndGivenUpIsNotSent) {
    Card card;
    ASSERT_NE(card.driver.begin_send(), nullptr);
    card.driver.end_send(0);
    card.send(frame(1, 60));
    card.driver.ring_mailboxes();
    EXPECT_EQ(card.sent(), std::vector<std::string>{frame(1, 60)});
}

TEST(AcenicTigon, ReceivesThatAreNotThereAreCountedAndHarmNothing) {
    Card card;
    for (uint32_t i = 0; i + 1 < kStandardRing; ++i) ASSERT_EQ(card.deliver(frame(i, 100)), Delivery::done);
    EXPECT_EQ(card.deliver(frame(0, 100)), Delivery::no_descriptor);
    for (uint32_t i = 0; i + 1 < kJumboRing; ++i) ASSERT_EQ(card.deliver(frame(i, 2000)), Delivery::done);
    EXPECT_EQ(card.deliver(frame(0, 2000)), Delivery::no_descriptor);
    card.firmware.publish();
    EXPECT_EQ(card.received().size(), kStandardRing + kJumboRing - 2);
    EXPECT_EQ(card.deliver(frame(0, 100)), Delivery::done);
    card.firmware.update_statistics();
    EXPECT_EQ(card.driver.statistic(kStatNoStandard), 1u);
    EXPECT_EQ(card.driver.statistic(kStatNoJumbo), 1u);
    EXPECT_EQ(card.driver.statistic(static_cast<Statistic>(kStatInFrames + 1)),
              kStandardRing + kJumboRing - 1);
}

TEST(AcenicTigon, WithoutAJumboRingLargeFramesAreRefused) {
    Card card(1514);
    EXPECT_EQ(card.deliver(frame(0, 1514)), Delivery::done);
    EXPECT_EQ(card.deliver(frame(0, 1519)), Delivery::too_long);
}

TEST(AcenicTigon, TheStandardRingTakesFramesUpToItsLimit) {
    Card card;
    EXPECT_EQ(card.deliver(frame(0, kStandardFrame)), Delivery::done);
    EXPECT_EQ(card.deliver(frame(1, kStandardFrame + 1)), Delivery::done);
    card.firmware.publish();
    EXPECT_EQ(card.received(),
              (std::vector<std::string>{frame(0, kStandardFrame), frame(1, kStandardFrame + 1)}));
    card.firmware.update_statistics();
    EXPECT_EQ(card.driver.statistic(kStatStandardConsumer), 1u);
    EXPECT_EQ(card.driver.statistic(kStatJumboConsumer), 1u);
}

TEST(AcenicTigon, OneInterruptForEachTimeThatItIsWanted) {
    Card card;
    card.received();
    Packed event;
    while (card.driver.next_event(&event)) {
    }
    card.deliver(frame(0, 60));
    EXPECT_FALSE(card.firmware.publish()) << "the host has not said that it sleeps";
    EXPECT_FALSE(card.driver.wait_for_interrupt()) << "there is a frame already";
    card.received();
    EXPECT_TRUE(card.driver.wait_for_interrupt());
    card.deliver(frame(1, 60));
    EXPECT_TRUE(card.firmware.publish());
    card.deliver(frame(2, 60));
    EXPECT_FALSE(card.firmware.publish()) << "asserted already";
    EXPECT_FALSE(card.firmware.publish()) << "nothing new";
    EXPECT_EQ(card.received().size(), 2u);
    EXPECT_TRUE(card.driver.wait_for_interrupt());
    card.deliver(frame(3, 60));
    EXPECT_TRUE(card.firmware.publish());
}

TEST(AcenicTigon, TheFirmwareIsRungOnlyWhenItSleeps) {
    Card card;
    Packed command;
    while (card.firmware.next_command(&command)) {
    }
    card.send(frame(0, 60));
    EXPECT_FALSE(card.driver.ring_mailboxes());
    EXPECT_TRUE(card.firmware.has_work());
    card.sent();
    card.firmware.set_asleep(true, false);
    EXPECT_FALSE(card.firmware.has_work());
    EXPECT_FALSE(card.driver.ring_mailboxes()) << "nothing to say";
    card.send(frame(1, 60));
    EXPECT_TRUE(card.driver.ring_mailboxes());
    card.firmware.set_asleep(false, false);
    card.send(frame(2, 60));
    EXPECT_FALSE(card.driver.ring_mailboxes());
}

TEST(AcenicTigon, CommandsComeInOrderHoweverMany) {
    Card card;
    for (uint32_t i = 0; i < 200; ++i) card.driver.command(kAddFilter, i % 3, i);
    Packed c;
    ASSERT_TRUE(card.firmware.next_command(&c));
    EXPECT_EQ(c.id, kHostState);
    EXPECT_EQ(c.code, kUp);
    for (uint32_t i = 0; i < 200; ++i) {
        if (!card.firmware.next_command(&c)) {
            card.driver.ring_mailboxes();
            ASSERT_TRUE(card.firmware.next_command(&c)) << i;
        }
        EXPECT_EQ(c.id, kAddFilter);
        EXPECT_EQ(c.code, i % 3);
        EXPECT_EQ(c.index, i);
    }
    EXPECT_FALSE(card.firmware.next_command(&c));
}

TEST(AcenicTigon, FiltersHavePlacesUntilAllAreTaken) {
    Card card;
    FilterEntry entry;
    entry.local.discriminator_len = 3;
    entry.link = 77;
    std::vector<uint32_t> places;
    Packed c;
    for (uint32_t i = 0; i < kFilters; ++i) {
        places.push_back(card.driver.add_filter(entry));
        ASSERT_LT(places.back(), kFilters);
        card.driver.ring_mailboxes();
        while (card.firmware.next_command(&c)) {
        }
    }
    EXPECT_EQ(card.driver.add_filter(entry), kFilters);
    EXPECT_EQ(card.firmware.filter(places[5]).link, 77u);
    card.driver.delete_filter(places[9], true);
    EXPECT_EQ(card.driver.add_filter(entry), places[9]);
}

TEST(AcenicTigon, EventsBeyondTheRingAreCountedAsLost) {
    Card card;
    Packed e;
    ASSERT_TRUE(card.driver.next_event(&e));
    EXPECT_EQ(e.id, kFirmwareRunning);
    for (uint32_t i = 0; i < kEventRing + 9; ++i) card.firmware.post_event(kError, kInvalidCommand, i);
    card.firmware.publish();
    for (uint32_t i = 0; i < kEventRing - 1; ++i) {
        ASSERT_TRUE(card.driver.next_event(&e));
        EXPECT_EQ(e.index, i);
    }
    EXPECT_FALSE(card.driver.next_event(&e));
    card.firmware.update_statistics();
    EXPECT_EQ(card.driver.statistic(kStatEventsLost), 10u);
}

TEST(AcenicTigon, BringUpRefusesEveryBadInformationBlock) {
    const auto refused = [](auto damage) {
        Driver driver;
        EXPECT_TRUE(driver.start(kJumboFrame));
        auto& window = *reinterpret_cast<Window*>(driver.segment().data());
        auto& info = *reinterpret_cast<GeneralInformation*>(driver.segment().data() + window.info_low.load());
        damage(window, info);
        Firmware firmware;
        const char* why = nullptr;
        return !firmware.start(driver.segment().data(), driver.segment().size(), &why) && why != nullptr;
    };
    EXPECT_FALSE(refused([](Window&, GeneralInformation&) {}));
    EXPECT_TRUE(refused([](Window& w, GeneralInformation&) { w.info_high.store(1); }));
    EXPECT_TRUE(refused([](Window& w, GeneralInformation&) { w.info_low.store(0xFFFFFFF8); }));
    EXPECT_TRUE(refused([](Window& w, GeneralInformation&) { w.info_low.fetch_add(1); }));
    EXPECT_TRUE(refused([](Window&, GeneralInformation& i) { i.event_producer.high = 7; }));
    EXPECT_TRUE(refused([](Window&, GeneralInformation& i) { i.return_producer.low |= 2; }));
    EXPECT_TRUE(refused([](Window&, GeneralInformation& i) { i.rcb[kSendRcb].max_len = 0; }));
    EXPECT_TRUE(refused([](Window&, GeneralInformation& i) { i.rcb[kSendRcb].host.low = 0xFFFFF000; }));
    EXPECT_TRUE(refused([](Window&, GeneralInformation& i) { i.rcb[kReturnRcb].max_len = 3; }));
    EXPECT_TRUE(refused([](Window&, GeneralInformation& i) { i.rcb[kStandardRcb].flags = kRingDisabled; }));
    EXPECT_TRUE(refused([](Window&, GeneralInformation& i) { i.rcb[kJumboRcb].host.high = 1; }));
    Firmware firmware;
    const char* why = nullptr;
    std::vector<std::byte> small(16384);
    EXPECT_FALSE(firmware.start(small.data(), small.size(), &why));
}

TEST(AcenicTigon, BadSendDescriptorsAreSkippedAndCounted) {
    Card card;
    const auto damaged = [&](auto change) {
        card.send(frame(0, 60));
        const Address ring = card.info().rcb[kSendRcb].host;
        auto* d = reinterpret_cast<SendDescriptor*>(card.driver.segment().data() + ring.low);
        change(d[card.window().mailbox[kSendMailbox].low.load()]);
        card.driver.ring_mailboxes();
        return card.sent().empty();
    };
    EXPECT_FALSE(damaged([](SendDescriptor&) {}));
    EXPECT_TRUE(damaged([](SendDescriptor& d) { d.host.high = 1; }));
    EXPECT_TRUE(damaged([](SendDescriptor& d) { d.host.low = 0xFFFFFFFF; }));
    EXPECT_TRUE(damaged(
        [&](SendDescriptor& d) { d.host.low = static_cast<uint32_t>(card.driver.segment().size()) - 59; }));
    EXPECT_TRUE(damaged([](SendDescriptor& d) { d.length = 13; }));
    EXPECT_TRUE(damaged([](SendDescriptor& d) { d.length = 0xFFFF; }));
    EXPECT_TRUE(damaged([](SendDescriptor& d) { d.flags = 0; }));
    EXPECT_FALSE(damaged([](SendDescriptor&) {}));
    card.firmware.update_statistics();
    EXPECT_EQ(card.driver.statistic(kStatOutErrors), 6u);
}

// Whatever lies in the segment, the firmware neither leaves it nor runs for ever, and its neighbours are
// whole.
TEST(AcenicTigon, AHostThatWritesAnythingAnywhereHurtsNoOther) {
    Driver driver;
    ASSERT_TRUE(driver.start(kJumboFrame));
    const size_t bytes = driver.segment().size();
    std::vector<std::byte> memory(bytes + 8192, std::byte{0x5A});  // with a border on both sides
    std::byte* const segment = memory.data() + 4096 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
    std::memcpy(segment, driver.segment().data(), bytes);
    Firmware firmware;
    const char* why = nullptr;
    ASSERT_TRUE(firmware.start(segment, bytes, &why));
    std::mt19937 random(20260117);
    const std::string text = frame(1, 9000);
    const auto* payload = reinterpret_cast<const std::byte*>(text.data());
    const auto& window = *reinterpret_cast<const Window*>(segment);
    const uint32_t info = window.info_low.load();
    const uint32_t rings_end =
        reinterpret_cast<const GeneralInformation*>(segment + info)->rcb[kReturnRcb].host.low +
        kReturnRing * 32;
    uint64_t taken = 0;
    for (int i = 0; i < 200'000; ++i) {
        // Registers mostly, then rings: those are what is read.
        const uint32_t range = random() % 3 != 0 ? 0x800 : rings_end;
        const uint32_t at =
            (random() % 3 != 0 && range == 0x800 ? 0x500 + random() % 0x300 : random() % range) & ~3u;
        const uint32_t value = random() % 2 != 0 ? random() : random() % 512;
        std::memcpy(segment + at, &value, sizeof value);
        std::span<const std::byte> out;
        for (int n = 0; n < 600 && firmware.next_send(&out); ++n) {
            ASSERT_GE(out.data(), segment);
            ASSERT_LE(out.data() + out.size(), segment + bytes);
            firmware.send_done(true);
            ++taken;
        }
        firmware.deliver({payload, 14}, {payload + 14, 46 + random() % 8000});
        Packed c;
        for (int n = 0; n < 70 && firmware.next_command(&c); ++n) taken += firmware.filter(c.index).kind & 1;
        firmware.publish();
        if (i % 1000 == 0) firmware.update_statistics();
    }
    EXPECT_GT(taken, 1000u) << "the test must reach what it is about";
    for (const std::byte* b = memory.data(); b < segment; ++b) ASSERT_EQ(*b, std::byte{0x5A});
    for (const std::byte* b = segment + bytes; b < memory.data() + memory.size(); ++b)
        ASSERT_EQ(*b, std::byte{0x5A});
}

TEST(AcenicTigon, TwoThreadsMoveFramesBothWaysWithoutLoss) {
    Card card;
    constexpr uint32_t kFrames = 20'000;
    std::thread nic([&] {
        uint32_t echoed = 0;
        while (echoed < kFrames) {
            std::span<const std::byte> out;
            bool worked = false;
            while (card.firmware.next_send(&out)) {
                const std::string copy(reinterpret_cast<const char*>(out.data()), out.size());
                if (card.deliver(copy) != Delivery::done) break;
                card.firmware.send_done(true);
                ++echoed;
                worked = true;
            }
            card.firmware.publish();
            if (!worked) std::this_thread::yield();
        }
    });
    uint32_t sent = 0, back = 0;
    while (back < kFrames) {
        bool worked = false;
        while (sent < kFrames) {
            std::byte* at = card.driver.begin_send();
            if (at == nullptr) break;
            const std::string text = frame(sent, 60 + sent % 3000);
            std::memcpy(at, text.data(), text.size());
            card.driver.end_send(static_cast<uint32_t>(text.size()));
            ++sent;
            worked = true;
        }
        card.driver.ring_mailboxes();
        for (const std::string& s : card.received(32)) {
            ASSERT_EQ(s, frame(back, 60 + back % 3000));
            ++back;
            worked = true;
        }
        if (!worked) std::this_thread::yield();
    }
    nic.join();
}

}  // namespace
}  // namespace viaduct::acenic::tigon
