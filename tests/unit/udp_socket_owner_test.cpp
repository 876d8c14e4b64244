// SPDX-License-Identifier: BSD-2-Clause
// Which user has the socket from which a datagram came: one that is bound to that address of this host alone.
#include "providers/udp/daemon/socket_owner.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "providers/udp/address.hpp"
#include "udp_bound_socket.hpp"

namespace viaduct::udp {
namespace {

// An address of this process alone.
const in_addr_t kOwnLoopback = 0x7F600000 | (static_cast<in_addr_t>(::getpid()) & 0x0FFFFF);
constexpr in_addr_t kForeign = 0xC0000263;  // 192.0.2.99, which no host has

class UdpSocketOwner : public testing::Test {
protected:
    SocketOwner owner_;
    sockaddr_in at_{};
};

TEST_F(UdpSocketOwner, ASocketNamesItsUserUntilItIsClosed) {
    Fd socket = tests::bound_socket(kOwnLoopback, &at_);
    EXPECT_EQ(owner_.user_of(from_socket_address(at_)), ::geteuid());
    EXPECT_EQ(owner_.user_of(from_socket_address(at_)), ::geteuid());
    socket.reset();
    EXPECT_EQ(owner_.user_of(from_socket_address(at_)), std::nullopt);
}

TEST_F(UdpSocketOwner, ASocketThatIsBoundToAllAddressesNamesNoUser) {
    const Fd socket = tests::bound_socket(INADDR_ANY, &at_);
    at_.sin_addr.s_addr = htonl(kOwnLoopback);
    EXPECT_EQ(owner_.user_of(from_socket_address(at_)), std::nullopt);
}

TEST_F(UdpSocketOwner, ASocketThatIsBoundToAnAddressOfAnotherHostNamesNoUser) {
    const Fd socket = tests::bound_socket(kForeign, &at_);
    EXPECT_EQ(owner_.user_of(from_socket_address(at_)), std::nullopt);
}

// A thief who has taken the daemon's descriptors gets no requests by it.
TEST_F(UdpSocketOwner, ASocketNamesItsUserWhereNoDescriptorIsLeft) {
    const Fd socket = tests::bound_socket(kOwnLoopback, &at_);
    rlimit files{}, few{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
    few.rlim_max = files.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const std::optional<uid_t> user = owner_.user_of(from_socket_address(at_));
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
    EXPECT_EQ(user, ::geteuid());
}

}  // namespace
}  // namespace viaduct::udp
