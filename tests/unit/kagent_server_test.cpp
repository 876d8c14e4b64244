// SPDX-License-Identifier: BSD-2-Clause
// vipkad and its clients: malformed packets, clients that neither send nor read, and many clients at once.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <random>

#include "kagent/limits.hpp"
#include "tests/eventually.hpp"
#include "tests/thread_sleeps.hpp"
#include "vipkad_testing.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

TEST_F(VipkadTest, PacketsThatAreNoMessagesEndTheirSender) {
    MailHeader good;
    good.type = static_cast<uint16_t>(Type::kListNics);
    good.ticket = 5;
    std::vector<std::vector<uint8_t>> packets;
    const auto add = [&](const MailHeader& h, size_t payload, size_t cut = 0) {
        std::vector<uint8_t> p(sizeof h + payload);
        std::memcpy(p.data(), &h, sizeof h);
        p.resize(p.size() - cut);
        packets.push_back(p);
    };
    add(good, 0, 1);   // truncated header
    add(good, 0, 15);  // one byte
    MailHeader h = good;
    h.magic ^= 1;
    add(h, 0);
    h = good;
    h.version = 99;
    add(h, 0);
    h = good;
    h.bytes = 10;
    add(h, 9);  // shorter than it says
    add(h, 11);
    h.bytes = 0xFFFFFFFF;
    add(h, 0);
    h.bytes = kagent::kMaxMessage + 1;
    add(h, kagent::kMaxMessage + 1);  // longer than allowed
    for (const auto& p : packets) {
        const Fd fd = join();
        ASSERT_TRUE(send_raw(fd.get(), p.data(), p.size()));
        EXPECT_TRUE(is_closed(fd.get())) << p.size();
    }
    expect_well();
}

TEST_F(VipkadTest, UnknownAndMisshapenRequestsAreAnsweredAndTheClientStays) {
    const Fd fd = join();
    for (const uint16_t type : {0, 19, 60, 99, 101, 65535}) {
        EXPECT_EQ(status_of(ask(fd.get(), Mail(static_cast<Type>(type), 3))), Status::invalid) << type;
    }
    EXPECT_EQ(status_of(ask(fd.get(), Mail(Type::kOpenNic, 4))), Status::invalid);
    EXPECT_EQ(ask(fd.get(), Mail(Type::kStatus, 5)).type(), Type::kStatusText);
}

TEST_F(VipkadTest, OfOneUsersSilentSocketsTheOldestGoFirstButNoneThatHasSpoken) {
    const Fd early = join();
    std::vector<Fd> silent;
    for (uint64_t i = 0; i < kagent::kSilentOfOneUser + 20; ++i) silent.push_back(connect_to(place.address, false));
    const auto lives = [](const Fd& fd) {
        Mail m;
        return fd.valid() && receive_mail(fd.get(), &m) == Status::not_done;
    };
    const auto are_closed = [&] { return std::none_of(silent.begin(), silent.begin() + 20, lives); };
    EXPECT_TRUE(eventually("the oldest twenty are closed", are_closed));
    EXPECT_TRUE(std::all_of(silent.begin() + 20, silent.end(), lives));
    EXPECT_EQ(ask(early.get(), Mail(Type::kStatus, 5)).type(), Type::kStatusText);
    expect_well();  // and a new client with a hello is served
}

TEST_F(VipkadTest, RandomBytesDoNoHarm) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        const Fd fd = connect_to(place.address);
        ASSERT_TRUE(fd.valid());
        if (round % 2 == 0) hello(fd.get());
        std::array<uint8_t, 600> bytes;
        for (auto& b : bytes) b = static_cast<uint8_t>(random());
        if (round % 3 == 0) {  // a good frame around it
            MailHeader h;
            h.type = static_cast<uint16_t>(random() % 20);
            h.ticket = 1;
            h.bytes = static_cast<uint32_t>(bytes.size() - sizeof h);
            std::memcpy(bytes.data(), &h, sizeof h);
        }
        if (round % 7 == 0) {  // never ask it to leave, though
            bytes[6] = 1;
        }
        MailHeader h;
        std::memcpy(&h, bytes.data(), sizeof h);
        if (h.type == static_cast<uint16_t>(Type::kShutdown)) continue;
        send_raw(fd.get(), bytes.data(), 1 + random() % bytes.size());
    }
    expect_well();
    EXPECT_EQ(daemon.wait_now(), -1);
}

TEST_F(VipkadTest, VersionIsNegotiated) {
    const Fd old = connect_to(place.address);
    const Mail refused = hello(old.get(), 0, 77, 78);
    EXPECT_EQ(status_of(refused), Status::version);
    EXPECT_TRUE(is_closed(old.get()));
    const Fd wide = connect_to(place.address);
    const Mail m = hello(wide.get(), 0, 1, 1000);
    kagent::Welcome w;
    ASSERT_TRUE(m.get(&w));
    EXPECT_EQ(w.version, kagent::kVersionMax);
    EXPECT_EQ(static_cast<pid_t>(w.agent_pid), daemon.pid);
}

TEST_F(VipkadTest, ClientThatDoesNotReadIsPausedAndLaterDropped) {
    const Fd stalled = connect_to(place.address, false);
    Mail m;
    kagent::Hello h;
    ASSERT_EQ(send_mail(stalled.get(), Mail::of(Type::kHello, h, 1)), Status::ok);
    // It asks and asks; the agent stops listening to it, so its own sends begin to fail: no other client suffers.
    Status s = Status::ok;
    EXPECT_TRUE(eventually("its sends fail", [&] {
        for (int i = 0; i < 1000 && s == Status::ok; ++i) s = send_mail(stalled.get(), Mail(Type::kListNics, 2));
        return s != Status::ok;
    }));
    EXPECT_EQ(s, Status::not_done);
    expect_well();
    // When it reads at last, everything is there.
    int answers = 0;
    EXPECT_TRUE(eventually("a hundred answers come", [&] {
        while (receive_mail(stalled.get(), &m) == Status::ok) ++answers;
        return answers > 100;
    }));
}

TEST(VipkadLifeTest, ClientThatNeverReadsIsDropped) {
    Place place;
    place.set("VIADUCT_AGENT_DEAF_MS", "200");
    Daemon daemon(place.address, {"--linger-ms", "-1"});
    ASSERT_TRUE(daemon.up);
    const Fd witness = connect_to(place.address);
    ASSERT_EQ(hello(witness.get()).type(), Type::kWelcome);
    const size_t before = open_files(daemon.pid);
    const auto fill_up = [&daemon](const Fd& fd) {
        ASSERT_EQ(send_mail(fd.get(), Mail::of(Type::kHello, kagent::Hello{}, 1)), Status::ok);
        Status s = Status::ok;
        EXPECT_TRUE(eventually("its queue is full", [&] {
            while (s == Status::ok) s = send_mail(fd.get(), Mail(Type::kListNics, 2));
            // An agent that is only slow to take them does not sleep.
            const bool takes_none = tests::sleeps_now(daemon.pid);
            s = send_mail(fd.get(), Mail(Type::kListNics, 2));
            return takes_none && s == Status::not_done;
        }));
    };
    // The agent looks every 500 ms whether a client has taken something. Where the machine keeps this test from reading
    // for almost so long, nothing is known of a client that reads: once more, with others.
    constexpr int64_t kReadsInTime = 400 * kMs;
    for (int turn = 0; turn < 10; ++turn) {
        const Fd slow = connect_to(place.address, false);
        const tests::RunningTime time(kAnyProcess);
        int64_t read_at = 0, longest = 0;
        fill_up(slow);
        // It takes a little now and then, and requests as much again.
        const auto read_one = [&] {
            Mail m;
            const bool done = receive_mail(slow.get(), &m) == Status::ok;
            longest = std::max(longest, time.wall_ns() - read_at);
            if (done) read_at = time.wall_ns();
            (void)send_mail(slow.get(), Mail(Type::kListNics, 2));
            return done;
        };
        // Two that take nothing at all, one after the other: the agent has looked for the slow one as often.
        for (int others = 0; others < 2; ++others) {
            const Fd stalled = connect_to(place.address, false);
            const int64_t begun = time.wall_ns();
            fill_up(stalled);
            EXPECT_TRUE(eventually("the stalled client is closed", [&] {
                read_one();
                return send_mail(stalled.get(), Mail(Type::kListNics, 2)) == Status::closed;
            }));
            EXPECT_GE(time.wall_ns() - begun, 500 * kMs)
                << "one look finds that it has stalled, another that it still has";
        }
        const bool stays = read_one();
        if (longest > kReadsInTime) continue;
        EXPECT_TRUE(stays) << "a client that reads, however slowly, stays";
        EXPECT_TRUE(eventually("three files are left", [&] { return open_files(daemon.pid) == before + 3; }))
            << "the agent holds nothing of the other any more";
        return;
    }
    FAIL() << "the machine never lets this test read in time";
}

TEST_F(VipkadTest, ManyClientsAreServed) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    const rlimit before = files;
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    std::vector<Fd> clients;
    for (int i = 0; i < 400; ++i) clients.push_back(join());
    for (const Fd& c : clients) {
        kagent::OpenNic o;
        std::strcpy(o.device, "fake0");
        o.context_id = static_cast<uint64_t>(c.get()) + 1000;
        EXPECT_EQ(ask(c.get(), Mail::of(Type::kOpenNic, o, 2)).type(), Type::kOpened);
    }
    const size_t with_them = open_files(daemon.pid);
    clients.clear();
    EXPECT_TRUE(eventually("the files are closed", [&] { return open_files(daemon.pid) + 800 < with_them; }));
    ::setrlimit(RLIMIT_NOFILE, &before);
    expect_well();
}

}  // namespace
}  // namespace viaduct
