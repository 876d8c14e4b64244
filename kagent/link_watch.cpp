// SPDX-License-Identifier: BSD-2-Clause
// A netlink socket in the groups for links and addresses; see link_watch.hpp.
#include "kagent/link_watch.hpp"

#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <cerrno>

namespace viaduct::kagent {

namespace {
constexpr int kMostAtOnce = 64;  // then clients have their turn
}

void LinkWatch::Free::operator()(nl_sock* s) const { ::nl_socket_free(s); }

std::string LinkWatch::open() {
    socket_.reset(::nl_socket_alloc());
    if (!socket_) return "no memory for a netlink socket";
    int e = ::nl_connect(socket_.get(), NETLINK_ROUTE);
    if (e >= 0)
        e = ::nl_socket_add_memberships(socket_.get(), RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, 0);
    if (e >= 0) e = ::nl_socket_set_nonblocking(socket_.get());
    if (e >= 0) return {};
    socket_.reset();
    return std::string("cannot listen for changes of interfaces: ") + ::nl_geterror(e);
}

int LinkWatch::fd() const { return ::nl_socket_get_fd(socket_.get()); }

void LinkWatch::drain() {
    // ENOBUFS, when the kernel has dropped reports, counts as a report.
    char bytes[8192];
    for (int i = 0; i < kMostAtOnce; ++i) {
        if (::recv(fd(), bytes, sizeof bytes, 0) <= 0 && errno != ENOBUFS && errno != EINTR) return;
    }
}

}  // namespace viaduct::kagent
