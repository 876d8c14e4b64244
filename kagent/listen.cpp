// SPDX-License-Identifier: BSD-2-Clause
// Who gets the address when several agents want it, and what becomes of a dead one's path; see listen.hpp.
#include "kagent/listen.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/agent/socket_address.hpp"

namespace viaduct::kagent {

namespace {

enum class Occupant { listening, removed, foreign };

// Who has the path we want: a path that nobody listens at is what a killed agent left behind. Recognised by
// trying, not by its existence; what is no socket is left alone.
Occupant try_to_remove(const sockaddr_un& address, socklen_t length) {
    struct stat s {};
    if (::lstat(address.sun_path, &s) != 0 || !S_ISSOCK(s.st_mode)) return Occupant::foreign;
    const Fd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int result = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), length);
    if (result == 0 || errno == EAGAIN) return Occupant::listening;
    if (errno != ECONNREFUSED) return Occupant::foreign;
    return ::unlink(address.sun_path) == 0 ? Occupant::removed : Occupant::foreign;
}

}  // namespace

Status listen_at(const std::string& text, Fd* out, std::string* error) {
    sockaddr_un address;
    socklen_t length = 0;
    if (!fill_socket_address(text, &address, &length)) {
        *error = "the socket address " + text + " is too short or too long";
        return Status::invalid;
    }
    Fd fd(above_stdio(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    const auto* where = reinterpret_cast<const sockaddr*>(&address);
    // Whoever can reach a path of root's may ask: this is how the agent serves every user. Another user's
    // path is his own.
    const mode_t before = ::umask(::geteuid() == 0 ? 0111 : 0177);
    int bind_error = ::bind(fd.get(), where, length) == 0 ? 0 : errno;
    Occupant occupant = Occupant::listening;  // an abstract name lives and dies with its listener
    if (bind_error == EADDRINUSE && text[0] != '@') {
        occupant = try_to_remove(address, length);
        if (occupant == Occupant::removed) bind_error = ::bind(fd.get(), where, length) == 0 ? 0 : errno;
    }
    ::umask(before);
    if (bind_error == EADDRINUSE && occupant != Occupant::foreign) return Status::not_done;
    if (bind_error != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
        *error = "cannot listen at " + text + ": " + std::strerror(bind_error != 0 ? bind_error : errno);
        return Status::denied;
    }
    *out = std::move(fd);
    return Status::ok;
}

}  // namespace viaduct::kagent
