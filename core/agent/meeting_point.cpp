// SPDX-License-Identifier: BSD-2-Clause
// Both sides of meeting; see meeting_point.hpp.
#include "core/agent/meeting_point.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "core/agent/name_holder.hpp"
#include "core/agent/private_folder.hpp"
#include "core/agent/socket_address.hpp"
#include "core/clock/clock.hpp"

namespace viaduct {

namespace {

// A server of ours is between bind and listen no longer than this; it is looked at again after each pause.
constexpr int64_t kBindingTimeout = 200'000'000;
constexpr int64_t kBindingPause = 1'000'000;

bool is_abstract(const std::string& address) { return !address.empty() && address[0] == '@'; }

std::optional<ucred> peer_of(int socket) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return {};
    return peer;
}

std::string stands_in_the_way(const std::string& address, const std::string& holder) {
    return address + " is held by " + holder + ", which is neither yours nor root's";
}

// Which user has the path: one at which no server listens was left by a killed server. Recognised by
// trying, not by its existence; what is no socket is left alone.
enum class Occupant { listening, removed, foreign };

Occupant try_to_remove(const std::string& path) {
    struct stat s {};
    if (::lstat(path.c_str(), &s) != 0 || !S_ISSOCK(s.st_mode)) return Occupant::foreign;
    Fd probe;
    const int error = try_connect(path, &probe);
    if (error == 0 || error == EAGAIN) return Occupant::listening;
    if (error != ECONNREFUSED) return Occupant::foreign;
    return ::unlink(path.c_str()) == 0 ? Occupant::removed : Occupant::foreign;
}

// 0 | errno
int bind_to(const std::string& address, Fd* out, mode_t mask) {
    sockaddr_un name;
    socklen_t length = 0;
    if (!fill_socket_address(address, &name, &length)) return ENAMETOOLONG;
    Fd fd(above_stdio(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (!fd.valid()) return errno;
    const mode_t before = ::umask(mask);
    const int error = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), length) == 0 ? 0 : errno;
    ::umask(before);
    if (error == 0) *out = std::move(fd);
    return error;
}

Status listen_on(const std::string& address, Fd fd, Fd* out, std::string* error) {
    if (::listen(fd.get(), SOMAXCONN) != 0) {
        *error = "cannot listen at " + address + ": " + std::strerror(errno);
        return Status::denied;
    }
    *out = std::move(fd);
    return Status::ok;
}

Status listen_at_path(const std::string& path, bool for_all, Fd* out, std::string* error) {
    const mode_t mask = for_all ? 0111 : 0177;
    Fd fd;
    int e = bind_to(path, &fd, mask);
    if (e == EADDRINUSE) {
        const Occupant occupant = try_to_remove(path);
        if (occupant == Occupant::listening) return Status::not_done;
        if (occupant == Occupant::removed) e = bind_to(path, &fd, mask);
        if (e == EADDRINUSE && occupant == Occupant::removed) return Status::not_done;
    }
    if (e != 0) {
        *error = "cannot listen at " + path + ": " + std::strerror(e);
        return Status::denied;
    }
    return listen_on(path, std::move(fd), out, error);
}

// Another user has the name. Servers of ours that come at the same time take turns by a lock.
Status listen_instead(const std::string& address, bool for_all, Fd* out, std::string* place, std::string* error) {
    const std::string folder = make_private_folder(error);
    if (folder.empty()) return Status::denied;
    const Fd turn = private_lock(folder, address);
    if (!turn.valid()) return Status::not_done;
    *place = private_path(folder, address);
    return listen_at_path(*place, for_all, out, error);
}

// A server of ours that serves in the folder, because another user had the name when it started.
bool served_instead(const std::string& address, uid_t user, Fd* out, int* error) {
    for (const std::string& folder : private_folders(user)) {
        const int e = try_connect(private_path(folder, address), out);
        const auto peer = e == 0 ? peer_of(out->get()) : std::nullopt;
        if (peer && !is_other_user(peer->uid)) return true;
        out->reset();
        if (e == EAGAIN) *error = e;
    }
    return false;
}

// EADDRINUSE of an abstract name: which user has it? `ours` also where that is unknown.
enum class Bound { ours, other_users, freed };

Bound whose_name(const std::string& address, std::string* holder_name) {
    Fd probe;
    const int e = try_connect(address, &probe);
    if (e == 0) {
        const auto peer = peer_of(probe.get());
        if (!peer || !is_other_user(peer->uid)) return Bound::ours;
        *holder_name = name_of_other_user(peer->uid, peer->pid);
        return Bound::other_users;
    }
    const auto holder = holder_of(address, SOCK_SEQPACKET);
    if (holder && is_other_user(*holder)) {
        *holder_name = name_of_other_user(*holder, 0);
        return Bound::other_users;
    }
    return holder || e == EAGAIN ? Bound::ours : Bound::freed;
}

}  // namespace

int try_connect(const std::string& address, Fd* out) {
    sockaddr_un name;
    socklen_t length = 0;
    if (!fill_socket_address(address, &name, &length)) return ENAMETOOLONG;
    Fd fd(above_stdio(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (!fd.valid()) return errno;
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) return errno;
    *out = std::move(fd);
    return 0;
}

int meet(const std::string& address, uid_t user, Fd* out, std::string* in_the_way) {
    Fd fd;
    int error = try_connect(address, &fd);
    if (error == 0) {
        const auto peer = peer_of(fd.get());
        if (!peer) return errno;
        if (!is_other_user(peer->uid)) {
            *out = std::move(fd);
            return 0;
        }
        *in_the_way = stands_in_the_way(address, name_of_other_user(peer->uid, peer->pid));
        if (!is_abstract(address)) return EPERM;
        error = ECONNREFUSED;
    } else if (!is_abstract(address)) {
        return error;
    } else if (error == EAGAIN) {
        const auto holder = holder_of(address, SOCK_SEQPACKET);
        if (!holder || !is_other_user(*holder)) return error;
        *in_the_way = stands_in_the_way(address, name_of_other_user(*holder, 0));
        error = ECONNREFUSED;
    }
    if (error == ECONNREFUSED && served_instead(address, user, out, &error)) return 0;
    return error;
}

Status listen_at(const std::string& address, bool for_all, Fd* out, std::string* place, std::string* error) {
    *place = address;
    if (!is_abstract(address)) return listen_at_path(address, for_all, out, error);
    std::string holder_name;
    for (const int64_t end = now_ns() + kBindingTimeout;;) {
        Fd fd;
        const int e = bind_to(address, &fd, 0177);
        if (e == 0) {
            Fd other;
            int unused = 0;
            if (served_instead(address, ::geteuid(), &other, &unused)) return Status::not_done;
            return listen_on(address, std::move(fd), out, error);
        }
        if (e != EADDRINUSE) {
            *error = "cannot listen at " + address + ": " + std::strerror(e);
            return e == ENAMETOOLONG ? Status::invalid : Status::denied;
        }
        const Bound bound = whose_name(address, &holder_name);
        if (bound == Bound::other_users) return listen_instead(address, for_all, out, place, error);
        if (bound == Bound::ours) return Status::not_done;
        // Its user is unknown, and no server listens.
        if (now_ns() >= end) return listen_instead(address, for_all, out, place, error);
        const timespec pause{0, kBindingPause};
        ::nanosleep(&pause, nullptr);
    }
}

}  // namespace viaduct
