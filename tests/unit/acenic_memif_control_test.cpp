// SPDX-License-Identifier: BSD-2-Clause
// The control socket of a memif link, between a driver that waits for its events with epoll and the port that keeps it.
#include "providers/acenic/memif_control.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace viaduct::acenic {
namespace {

ino_t file_under(int fd) {
    struct stat file {};
    return ::fstat(fd, &file) == 0 ? file.st_ino : 0;
}

class AcenicMemifControl : public testing::Test {
protected:
    void SetUp() override {
        int pair[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        driver_ = Fd(pair[0]);
        peer_ = Fd(pair[1]);
        epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
        watch();
    }
    void watch() {
        epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.fd = driver_.get()}};
        ASSERT_EQ(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, driver_.get(), &event), 0);
    }
    bool driver_has_event() const {
        epoll_event event{};
        return ::epoll_wait(epoll_.get(), &event, 1, 0) != 0;
    }
    void say_something() const { ASSERT_EQ(::send(peer_.get(), "x", 1, 0), 1); }

    Fd driver_, peer_, epoll_;
    MemifControl control_;
};

TEST_F(AcenicMemifControl, TheEndOfThePeerIsAnEventOfThePortAndNotOfTheDriver) {
    ASSERT_TRUE(control_.take(driver_.get()));
    EXPECT_FALSE(control_.is_over());
    peer_.reset();
    EXPECT_TRUE(control_.is_over());
    EXPECT_FALSE(driver_has_event());
}

TEST_F(AcenicMemifControl, ADriverThatBuildsItsEpollSetAnewSeesNoEventEither) {
    ASSERT_TRUE(control_.take(driver_.get()));
    epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    watch();
    peer_.reset();
    EXPECT_FALSE(driver_has_event());
}

TEST_F(AcenicMemifControl, AMessageOfThePeerEndsTheLink) {
    ASSERT_TRUE(control_.take(driver_.get()));
    say_something();
    EXPECT_TRUE(control_.is_over());
}

TEST_F(AcenicMemifControl, ASocketWithAnEventStaysWithTheDriver) {
    say_something();
    EXPECT_FALSE(control_.take(driver_.get()));
    EXPECT_FALSE(control_.is_held());
    EXPECT_TRUE(driver_has_event());
}

TEST_F(AcenicMemifControl, ASocketThatNoEpollSetHasIsNotTaken) {
    ASSERT_EQ(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, driver_.get(), nullptr), 0);
    EXPECT_FALSE(control_.take(driver_.get()));
    EXPECT_FALSE(control_.take(-1));
}

TEST_F(AcenicMemifControl, TheDriverGetsItsSocketBackUnderItsNumber) {
    const ino_t before = file_under(driver_.get());
    ASSERT_TRUE(control_.take(driver_.get()));
    EXPECT_NE(file_under(driver_.get()), before);
    control_.give_back();
    EXPECT_FALSE(control_.is_held());
    EXPECT_EQ(file_under(driver_.get()), before);
    driver_.reset();
    char byte = 0;
    EXPECT_EQ(::recv(peer_.get(), &byte, 1, MSG_DONTWAIT), 0);  // the driver's number was the last of the socket
}

}  // namespace
}  // namespace viaduct::acenic
