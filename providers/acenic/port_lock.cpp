// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/port_lock.hpp"

#include <cerrno>
#include <cstdio>

#include "core/agent/socket_address.hpp"

namespace viaduct::acenic {

std::string short_name(const PortSpec& spec) {
    if (!spec.interface.empty()) return spec.interface;
    uint64_t sum = 0xCBF29CE484222325;  // FNV-1a
    for (const char c : spec.text) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001B3;
    char text[24];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum));
    return text;
}

namespace {

std::string lock_address(const PortSpec& spec) { return "@viaduct-acenic-" + short_name(spec); }

}  // namespace

Fd acquire_port_lock(const PortSpec& spec) {
    Fd socket(above_stdio(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
    sockaddr_un name;
    socklen_t bytes = 0;
    if (!socket.valid()) return {};
    if (!fill_socket_address(lock_address(spec), &name, &bytes)) {
        errno = ENAMETOOLONG;
        return {};
    }
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), bytes) == 0) return socket;
    const int error = errno;
    socket.reset();
    errno = error;
    return {};
}

PortLockView::PortLockView(const PortSpec& spec) : address_(lock_address(spec)), holder_(look()) {}

// Invalid: no process has the lock.
Fd PortLockView::look() const {
    Fd socket(above_stdio(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
    sockaddr_un name;
    socklen_t bytes = 0;
    if (!fill_socket_address(address_, &name, &bytes) || !socket.valid() ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), bytes) != 0)
        socket.reset();
    return socket;
}

// No process reads from the lock. The kernel takes an empty message for it, or says that its queue is full, as long as
// the socket is open, and refuses the message afterwards.
bool PortLockView::has_new_holder() {
    const bool same = ::send(holder_.get(), "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) == 0 || errno == EAGAIN;
    return !same && look().valid();
}

}  // namespace viaduct::acenic
