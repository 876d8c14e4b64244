// SPDX-License-Identifier: BSD-2-Clause
// Files of clients that take long to close: few threads wait for them, and no others.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "agent_testing.hpp"
#include "core/shm/foreign_files.hpp"
#include "lingering_socket.hpp"
#include "tests/eventually.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

constexpr int kTenMinutes = 600;
// Forty files that hang, closed by two threads: each may take a second.
constexpr std::chrono::seconds kLongEnough{20};

Fd memory(off_t bytes) {
    Fd fd(::memfd_create("closers-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (::fallocate(fd.get(), 0, 0, bytes) != 0) return {};
    return fd;
}

// Sends a file over one end of a pair, which keeps it unread in the other.
void put_into(const Fd& socket, Fd file) {
    Mail mail(kagent::Type::kListNics, 1);
    mail.descriptors.push_back(std::move(file));
    ASSERT_EQ(send_mail(socket.get(), mail), Status::ok);
}

std::pair<Fd, Fd> pair_of_sockets() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    return {Fd(ends[0]), Fd(ends[1])};
}

TEST(Closers, WhatClosesAtOnceIsMemoryAndEventsWithoutMuchInThem) {
    EXPECT_TRUE(closes_at_once(memory(4096)));
    EXPECT_TRUE(closes_at_once(Fd(::eventfd(0, EFD_CLOEXEC))));
    const Fd much = memory(64 << 20);
    ASSERT_TRUE(much.valid());
    EXPECT_TRUE(is_memory_or_event(much));
    EXPECT_FALSE(closes_at_once(much)) << "its pages are given back one by one";
    EXPECT_FALSE(is_memory_or_event(pair_of_sockets().first));
}

TEST(Closers, LingeringSocketsKeepNeitherTheirThreadsNorEachOther) {
    Closers closers;
    std::vector<Fd> far_ends(40), files;
    for (Fd& far : far_ends) files.push_back(lingering_socket(&far, kTenMinutes));
    tests::RunningTime time;
    closers.close(1000, std::move(files));
    EXPECT_LT(time.running_ns(), 5'000 * kMs);
    EXPECT_LE(closers.threads(), Closers::kThreads);
    EXPECT_TRUE(eventually(
        "all are closed",
        [&] {
            closers.look(now_ns() + 2'000 * kMs);  // as if each had taken two seconds so far
            return closers.waiting(1000) == 0 && closers.threads() == 0;
        },
        kLongEnough))
        << closers.waiting(1000);
    EXPECT_FALSE(closers.busy());
}

TEST(Closers, ASocketWithoutFilesIsClosedHereAndOneWithFilesElsewhere) {
    Closers closers;
    auto [near, far] = pair_of_sockets();
    ASSERT_EQ(::send(far.get(), "x", 1, 0), 1);
    EXPECT_FALSE(brings_files(near.get()));
    closers.close_socket(1000, std::move(near));
    char byte = 0;
    EXPECT_EQ(::recv(far.get(), &byte, 1, 0), 0) << "the far end is told at once";

    auto [mine, his] = pair_of_sockets();
    Fd far_end;
    put_into(his, lingering_socket(&far_end, kTenMinutes));
    EXPECT_TRUE(brings_files(mine.get()));
    EXPECT_TRUE(brings_files(mine.get())) << "looking takes nothing";
    tests::RunningTime time;
    closers.close_socket(1000, std::move(mine));
    EXPECT_LT(time.running_ns(), 5'000 * kMs);
    EXPECT_TRUE(eventually(
        "all are closed",
        [&] {
            closers.look(now_ns() + 2'000 * kMs);  // as if each had taken two seconds so far
            return !closers.busy();
        },
        kLongEnough));
}

// A socket in a socket, as the kernel lets them be sent, and a message of no bytes that carries it.
TEST(Closers, SocketsInSocketsAreEmptiedToo) {
    Closers closers;
    auto [inner, inner_far] = pair_of_sockets();
    Fd far_end;
    put_into(inner_far, lingering_socket(&far_end, kTenMinutes));
    auto [outer, outer_far] = pair_of_sockets();
    {
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        const int fd = inner.get();
        std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
        ASSERT_EQ(::sendmsg(outer_far.get(), &message, 0), 0);
    }
    inner.reset();
    inner_far.reset();
    tests::RunningTime time;
    closers.close_socket(1000, std::move(outer));
    EXPECT_LT(time.running_ns(), 5'000 * kMs) << "it was not taken for an empty one";
    EXPECT_TRUE(eventually(
        "all are closed",
        [&] {
            closers.look(now_ns() + 2'000 * kMs);  // as if each had taken two seconds so far
            return !closers.busy();
        },
        kLongEnough));
}

}  // namespace
}  // namespace viaduct
