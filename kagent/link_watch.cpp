// SPDX-License-Identifier: BSD-2-Clause
// A netlink socket in the group of link news; see link_watch.hpp.
#include "kagent/link_watch.hpp"

#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <cerrno>

namespace viaduct::kagent {

void LinkWatch::Free::operator()(nl_sock* s) const { ::nl_socket_free(s); }

std::string LinkWatch::open() {
    socket_.reset(::nl_socket_alloc());
    if (!socket_) return "no memory for a netlink socket";
    int e = ::nl_connect(socket_.get(), NETLINK_ROUTE);
    if (e >= 0) e = ::nl_socket_add_memberships(socket_.get(), RTNLGRP_LINK, 0);
    if (e >= 0) e = ::nl_socket_set_nonblocking(socket_.get());
    if (e >= 0) return {};
    socket_.reset();
    return std::string("cannot listen for changes of interfaces: ") + ::nl_geterror(e);
}

int LinkWatch::fd() const { return ::nl_socket_get_fd(socket_.get()); }

void LinkWatch::drain() {
    // Too much news for its buffer (ENOBUFS) is news as well.
    char bytes[8192];
    while (::recv(fd(), bytes, sizeof bytes, 0) > 0 || errno == ENOBUFS || errno == EINTR) {
    }
}

}  // namespace viaduct::kagent
