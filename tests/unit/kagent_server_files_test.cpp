// SPDX-License-Identifier: BSD-2-Clause
// vipkad and the files that clients send or do not take: none stays with it, none keeps it waiting.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "core/shm/foreign_files.hpp"
#include "lingering_socket.hpp"
#include "tests/eventually.hpp"
#include "tests/thread_sleeps.hpp"
#include "vipkad_testing.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

constexpr int kHalfAMinute = 30;

TEST_F(VipkadTest, AFileThatTakesLongToCloseDelaysNoClient) {
    const Fd witness = join();
    Fd far_end;
    for (const Type type : {Type::kOpenNic, Type::kListNics, Type::kHello}) {
        Fd fd = join();
        kagent::OpenNic open;
        std::strcpy(open.device, "fake0");
        open.context_id = 77;
        Mail mail = type == Type::kOpenNic ? Mail::of(type, open, 3) : Mail(type, 3);
        if (type == Type::kHello) mail.header.version = 0;  // no message at all
        mail.descriptors.push_back(lingering_socket(&far_end, kHalfAMinute));
        // The process that closes it last has to wait; stopped, the agent cannot be the first.
        ASSERT_EQ(::kill(daemon.pid, SIGSTOP), 0);
        const Status sent = send_mail(fd.get(), mail);
        mail.descriptors.clear();
        ASSERT_EQ(::kill(daemon.pid, SIGCONT), 0);
        ASSERT_EQ(sent, Status::ok);
        EXPECT_TRUE(is_closed(fd.get())) << "a sender of such a file is no client";
        tests::RunningTime time(kAnyProcess);
        EXPECT_EQ(ask(witness.get(), Mail(Type::kStatus, 5)).type(), Type::kStatusText);
        EXPECT_LT(time.running_ns(), 5'000 * kMs);
    }
    expect_well();
}

TEST_F(VipkadTest, ManyFilesThatTakeLongToCloseTakeFewThreads) {
    const Fd witness = join();
    const auto threads = [this] {
        const std::filesystem::directory_iterator all("/proc/" + std::to_string(daemon.pid) + "/task");
        return static_cast<size_t>(std::distance(begin(all), end(all)));
    };
    const size_t before = threads();  // a sanitizer has one of its own
    std::vector<Fd> far_ends(100), clients;
    ASSERT_EQ(::kill(daemon.pid, SIGSTOP), 0);
    for (Fd& far : far_ends) {
        clients.push_back(connect_to(place.address, false));
        Mail mail(Type::kListNics, 3);
        mail.descriptors.push_back(lingering_socket(&far, kHalfAMinute));
        ASSERT_EQ(send_mail(clients.back().get(), mail), Status::ok);
    }
    ASSERT_EQ(::kill(daemon.pid, SIGCONT), 0);
    size_t most = 0;
    EXPECT_TRUE(eventually(
        "all of them are turned away",
        [&] {
            most = std::max(most, threads());
            Mail m;
            return std::all_of(clients.begin(), clients.end(),
                               [&](const Fd& fd) { return receive_mail(fd.get(), &m) == Status::closed; });
        },
        std::chrono::seconds(20)));
    // One that is done may not have ended yet when the next begins. The files are 100.
    EXPECT_LE(most, before + 2 * Closers::kThreads);
    EXPECT_EQ(ask(witness.get(), Mail(Type::kStatus, 5)).type(), Type::kStatusText);
    expect_well();
}

// Answers with files that are not taken are in flight: the system lets the agent have so many of them at a
// time.
TEST_F(VipkadTest, FilesThatAClientDoesNotTakeAreCounted) {
    std::vector<Fd> clients;
    for (int i = 0; i < 120; ++i) clients.push_back(join());  // their status is longer than a message
    const Fd stalled = connect_to(place.address, false);
    ASSERT_EQ(send_mail(stalled.get(), Mail::of(Type::kHello, kagent::Hello{}, 1)), Status::ok);
    const auto used = [&] {
        Mail m = ask(clients[0].get(), Mail(Type::kStatus, 5));
        const std::string text(reinterpret_cast<const char*>(m.payload.data()), m.payload.size());
        const size_t at = text.find("\"descriptors\":{");
        const size_t number = text.find("\"used\":", at);
        return at == std::string::npos ? 0 : std::atol(text.c_str() + number + 7);
    };
    const long before = used();
    for (uint32_t i = 0; i < 10; ++i) ASSERT_EQ(send_mail(stalled.get(), Mail(Type::kStatus, 2 + i)), Status::ok);
    EXPECT_TRUE(eventually("ten files are counted", [&] { return used() >= before + 10; })) << before << " " << used();
    Mail m;
    EXPECT_TRUE(eventually("none is counted",
                           [&] {
                               while (receive_mail(stalled.get(), &m) == Status::ok) {
                               }
                               return used() <= before + 1;
                           }))
        << before << " " << used();
}

TEST_F(VipkadTest, DescriptorsNeverStayWithTheAgent) {
    const Fd witness = join();
    const size_t before = open_files(daemon.pid);
    MailHeader h;
    h.type = static_cast<uint16_t>(Type::kListNics);
    h.ticket = 9;
    {
        const Fd fd = join();
        for (int i = 0; i < 10; ++i) {  // few: refused, and the client stays
            ASSERT_TRUE(send_raw(fd.get(), &h, sizeof h, 3));
            Mail m;
            ASSERT_EQ(receive_mail(fd.get(), &m), Status::ok);
            EXPECT_EQ(status_of(m), Status::invalid);
        }
    }
    for (const int n : {9, 60, 250}) {  // more than a message may carry: dropped
        const Fd fd = join();
        ASSERT_TRUE(send_raw(fd.get(), &h, sizeof h, n));
        EXPECT_TRUE(is_closed(fd.get()));
    }
    EXPECT_TRUE(eventually("no file is left", [&] { return open_files(daemon.pid) == before; }))
        << open_files(daemon.pid) << " not " << before;
    expect_well();
}

TEST(VipkadLifeTest, OneUserCannotTakeAllDescriptors) {
    Place place;
    place.set("VIADUCT_AGENT_MAX_DESCRIPTORS", "30");
    Daemon daemon(place.address, {"--linger-ms", "-1"});
    ASSERT_TRUE(daemon.up);
    std::vector<Fd> silent;
    for (int i = 0; i < 15; ++i) silent.push_back(connect_to(place.address, false));
    const auto open = [&silent] {
        return std::count_if(silent.begin(), silent.end(), [](const Fd& fd) {
            Mail m;
            return fd.valid() && receive_mail(fd.get(), &m) == Status::not_done;
        });
    };
    EXPECT_TRUE(eventually("ten clients are left", [&] { return open() == 10; })) << open();
    EXPECT_TRUE(eventually("the agent sleeps", [&] { return tests::sleeps_now(daemon.pid); }));
    EXPECT_EQ(open(), 10) << "these stay";
    silent.clear();
    EXPECT_TRUE(eventually("a client is taken", [&] {
        const Fd fd = connect_to(place.address);
        return hello(fd.get()).type() == Type::kWelcome;
    })) << "and when they have left there is room again";
}

}  // namespace
}  // namespace viaduct
