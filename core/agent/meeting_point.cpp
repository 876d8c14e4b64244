// SPDX-License-Identifier: BSD-2-Clause
// Both sides of meeting; see meeting_point.hpp.
#include "core/agent/meeting_point.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "core/agent/name_holder.hpp"
#include "core/agent/private_folder.hpp"
#include "core/agent/socket_address.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/shm/fd.hpp"

namespace viaduct {

namespace {

// A server of ours is between bind and listen no longer than TimeLimit::agent_binding, and its queue is not full for so
// long; it is looked at again after each pause.
constexpr int64_t kBindingPause = 1'000'000;
constexpr int kLooksForTurn = 20;
// A place in a queue is waited for no longer at a time. Then it is looked at again whose queue it is: when a server
// ends, the kernel lets its clients wait for the next holder of the name.
constexpr int64_t kInTurn = 1'000'000'000;

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

// As try_connect, but waits for a place in a full queue until the deadline or kInTurn: the result is EAGAIN then.
int connect_in_turn(const std::string& address, Fd* out, Deadline deadline) {
    const int error = try_connect(address, out);
    if (error != EAGAIN || remaining_ns(deadline) == 0) return error;
    const int64_t left = deadline == kNever ? kInTurn : std::min(remaining_ns(deadline), kInTurn);
    sockaddr_un name;
    socklen_t length = 0;
    if (!fill_socket_address(address, &name, &length)) return ENAMETOOLONG;
    Fd fd(above_stdio(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
    if (!fd.valid()) return errno;
    const timespec t = timespec_of(left);
    const timeval most{t.tv_sec, static_cast<suseconds_t>(std::min(t.tv_nsec / 1000 + 1, 999'999L))};  // 0 is for ever
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) != 0) return errno;
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) return errno;
    if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) return errno;
    *out = std::move(fd);
    return 0;
}

// A server of ours that serves in a folder, because another user had the name when it started. 0, or EAGAIN: its queue
// is full, or ECONNREFUSED: there is none.
int connect_instead(const std::string& address, uid_t user, Fd* out, Deadline deadline) {
    int error = ECONNREFUSED;
    for (const std::string& folder : private_folders(user)) {
        Fd fd;
        const int e = connect_in_turn(private_path(folder, address), &fd, deadline);
        const auto peer = e == 0 ? peer_of(fd.get()) : std::nullopt;
        if (peer && !is_untrusted_user(peer->uid)) {
            *out = std::move(fd);
            return 0;
        }
        if (e == EAGAIN) error = e;
    }
    return error;
}

bool served_instead(const std::string& address) {
    Fd unused;
    return connect_instead(address, ::geteuid(), &unused, 0) != ECONNREFUSED;
}

// EADDRINUSE of an abstract name: which user has it? unknown: it has been freed, or the kernel does not say.
enum class Bound { ours, other_users, unknown };

Bound whose_name(const std::string& address) {
    Fd probe;
    std::optional<uid_t> holder;
    if (try_connect(address, &probe) == 0) {
        if (const auto peer = peer_of(probe.get())) holder = peer->uid;
    } else {
        holder = holder_of(address, SOCK_SEQPACKET);
    }
    if (!holder) return Bound::unknown;
    return is_untrusted_user(*holder) ? Bound::other_users : Bound::ours;
}

// Another user has the name. Servers of ours that come at the same time take turns by locks. Other users can change
// from one moment to the next which folder is the first that can be made. So the locks of all folders are taken, always
// in the same order, after the own folder is made: of two servers with different folders at least one sees the other's.
Status listen_instead(const std::string& address, bool for_all, Fd* out, std::string* place, std::string* error) {
    const std::string own = make_private_folder(error);
    if (own.empty()) return Status::denied;
    std::vector<Fd> turns;
    for (const std::string& folder : private_folders(::geteuid())) {
        int e = 0;
        Fd turn = private_lock(folder, private_path(folder, address), &e);
        // A program that removes abandoned sockets has it for a moment.
        for (int looks = 0; e == EAGAIN && looks < kLooksForTurn; ++looks) {
            const timespec pause{0, kBindingPause};
            ::nanosleep(&pause, nullptr);
            turn = private_lock(folder, private_path(folder, address), &e);
        }
        turns.push_back(std::move(turn));
        if (e == EAGAIN) return Status::not_done;
        if (e != 0 && folder == own) {
            *error = "cannot lock " + folder + "/locks: " + std::strerror(e);
            return Status::denied;
        }
    }
    if (served_instead(address)) return Status::not_done;
    *place = private_path(own, address);
    const Status s = listen_at_path(*place, for_all, out, error);
    // The other user may have freed the name, and a server of ours bound it and looked here before there was one.
    if (s != Status::ok || whose_name(address) != Bound::ours) return s;
    ::unlink(place->c_str());
    out->reset();
    *place = address;
    return Status::not_done;
}

// Removes the sockets that killed servers of this user have left, of whatever name and network namespace. A server has
// the lock of its path from before it binds until it listens: none is removed that is being made.
void remove_abandoned() {
    constexpr size_t kMost = 256;  // at one start
    size_t looked = 0;
    for (const std::string& folder : private_folders(::geteuid())) {
        for (const std::string& path : private_sockets(folder)) {
            if (++looked > kMost) return;
            Fd unused;
            if (try_connect(path, &unused) != ECONNREFUSED) continue;
            int taken = 0;
            const Fd turn = private_lock(folder, path, &taken);
            if (taken == 0) (void)try_to_remove(path);
        }
    }
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

int meet(const std::string& address, uid_t user, Fd* out, std::string* in_the_way, Deadline deadline) {
    Fd fd;
    int error = is_abstract(address) ? try_connect(address, &fd) : connect_in_turn(address, &fd, deadline);
    if (error == EAGAIN && is_abstract(address)) {
        const auto holder = holder_of(address, SOCK_SEQPACKET);
        if (holder && !is_untrusted_user(*holder)) {
            error = connect_in_turn(address, &fd, deadline);
            if (error == EAGAIN) return error;
        } else {
            if (holder) *in_the_way = stands_in_the_way(address, name_of_other_user(*holder, 0));
            error = holder ? ECONNREFUSED : EBUSY;
        }
    }
    if (error == 0) {
        const auto peer = peer_of(fd.get());
        if (!peer) return errno;
        if (!is_untrusted_user(peer->uid)) {
            *out = std::move(fd);
            return 0;
        }
        *in_the_way = stands_in_the_way(address, name_of_other_user(peer->uid, peer->pid));
        if (!is_abstract(address)) return EPERM;
        error = ECONNREFUSED;
    } else if (!is_abstract(address)) {
        return error;
    }
    if (error != ECONNREFUSED && error != EBUSY) return error;
    const int instead = connect_instead(address, user, out, deadline);
    return instead == ECONNREFUSED ? error : instead;
}

Status listen_at(const std::string& address, bool for_all, Fd* out, std::string* place, std::string* error) {
    *place = address;
    if (!is_abstract(address)) return listen_at_path(address, for_all, out, error);
    for (const int64_t end = now_ns() + limit_ns(TimeLimit::agent_binding);;) {
        Fd fd;
        const int e = bind_to(address, &fd, 0177);
        if (e == 0) {
            if (served_instead(address)) return Status::not_done;
            const Status listening = listen_on(address, std::move(fd), out, error);
            if (listening == Status::ok) remove_abandoned();
            return listening;
        }
        if (e != EADDRINUSE) {
            *error = "cannot listen at " + address + ": " + std::strerror(e);
            return e == ENAMETOOLONG ? Status::invalid : Status::denied;
        }
        const Bound bound = whose_name(address);
        if (bound == Bound::ours) return Status::not_done;
        // Where its user is unknown, no server has taken a connection.
        if (bound == Bound::other_users || now_ns() >= end) {
            remove_abandoned();
            return listen_instead(address, for_all, out, place, error);
        }
        const timespec pause{0, kBindingPause};
        ::nanosleep(&pause, nullptr);
    }
}

}  // namespace viaduct
