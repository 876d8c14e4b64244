// SPDX-License-Identifier: BSD-2-Clause
// What tests of vipkad as a process share: one that runs and its clients, and packets that are no messages.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "agent_testing.hpp"

namespace viaduct::agent_testing {

using kagent::MailHeader;
using kagent::Type;

// Sends raw bytes as one packet, with descriptors.
inline bool send_raw(int fd, const void* bytes, size_t size, int descriptors = 0) {
    iovec piece{const_cast<void*>(bytes), size};
    std::vector<char> control(CMSG_SPACE(sizeof(int) * static_cast<size_t>(descriptors)) + 1);
    msghdr m{};
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    std::vector<Fd> sent;
    if (descriptors > 0) {
        m.msg_control = control.data();
        m.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<size_t>(descriptors));
        cmsghdr* c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<size_t>(descriptors));
        for (int i = 0; i < descriptors; ++i) {
            sent.emplace_back(::eventfd(0, EFD_CLOEXEC));
            const int n = sent.back().get();
            std::memcpy(CMSG_DATA(c) + static_cast<size_t>(i) * sizeof n, &n, sizeof n);
        }
    }
    return ::sendmsg(fd, &m, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

inline bool is_closed(int fd) {
    Mail m;
    return receive_mail(fd, &m) == Status::closed;
}

inline size_t open_files(pid_t pid) {
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
}

class VipkadTest : public ::testing::Test {
protected:
    VipkadTest() : daemon(place.address, {"--linger-ms", "-1"}) {}
    void SetUp() override { ASSERT_TRUE(daemon.up); }
    Fd join(uint32_t flags = 0) {
        Fd fd = connect_to(place.address);
        EXPECT_EQ(hello(fd.get(), flags).type(), Type::kWelcome);
        return fd;
    }
    Mail ask(int fd, const Mail& request) {
        EXPECT_EQ(send_mail(fd, request), Status::ok);
        Mail m;
        EXPECT_EQ(receive_mail(fd, &m), Status::ok);
        return m;
    }
    void expect_well() {
        const Fd fd = join();
        kagent::NameText n;
        std::strcpy(n.name, "fake1");
        EXPECT_EQ(ask(fd.get(), Mail::of(Type::kResolveName, n, 7)).type(), Type::kNicEntry);
    }
    Place place;
    Daemon daemon;
};

}  // namespace viaduct::agent_testing
