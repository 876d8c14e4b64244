// SPDX-License-Identifier: BSD-2-Clause
// Sends a NETLINK_SOCK_DIAG dump request, which also lists bound sockets that do not listen; see name_holder.hpp.
#include "core/agent/name_holder.hpp"

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/agent/meeting_point.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/shm/fd.hpp"
#include "core/text/printable.hpp"

#ifndef UDIAG_SHOW_UID
#define UDIAG_SHOW_UID 0x40  // Linux 5.3
#define UNIX_DIAG_UID 7
#endif

namespace viaduct {

namespace {

constexpr uint8_t kEstablished = 1;  // TCP_ESTABLISHED of the kernel: Unix sockets use the states of TCP

struct DumpRequest {
    nlmsghdr head;
    unix_diag_req body;
};

bool send_dump_request(int socket) {
    DumpRequest q{};
    q.head.nlmsg_len = sizeof q;
    q.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    q.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    q.body.sdiag_family = AF_UNIX;
    q.body.udiag_states = ~0u;  // a bound socket may be connected
    q.body.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID;
    return ::send(socket, &q, sizeof q, 0) == static_cast<ssize_t>(sizeof q);
}

// What the kernel has sent; not more than 0: the answer is not complete by the deadline.
ssize_t receive(int socket, char* buffer, size_t size, int64_t deadline) {
    for (;;) {
        const int64_t left = deadline - now_ns();
        if (left <= 0) return -1;
        const ssize_t got = ::recv(socket, buffer, size, MSG_DONTWAIT);
        if (got >= 0 || (errno != EAGAIN && errno != EINTR)) return got;
        pollfd answer{socket, POLLIN, 0};
        ::poll(&answer, 1, static_cast<int>(left / 1'000'000) + 1);
    }
}

struct Entry {
    bool connected = false;
    std::optional<uid_t> user;
};

// Nothing unless the entry has that name and type.
std::optional<Entry> read_entry(const nlmsghdr* entry, const std::string& name, int type) {
    const auto* body = static_cast<const unix_diag_msg*>(NLMSG_DATA(entry));
    if (body->udiag_type != type) return {};
    Entry found;
    found.connected = body->udiag_state == kEstablished;
    bool named = false;
    size_t left = entry->nlmsg_len - NLMSG_LENGTH(sizeof *body);
    const auto* at = reinterpret_cast<const char*>(body + 1);
    while (left >= sizeof(nlattr)) {
        nlattr a;
        std::memcpy(&a, at, sizeof a);
        if (a.nla_len < sizeof a || a.nla_len > left) break;
        const size_t bytes = a.nla_len - NLA_HDRLEN;
        if (a.nla_type == UNIX_DIAG_NAME)
            named = bytes == name.size() && at[NLA_HDRLEN] == '\0' &&
                    std::memcmp(at + NLA_HDRLEN + 1, name.data() + 1, bytes - 1) == 0;
        uint32_t uid = 0;
        if (a.nla_type == UNIX_DIAG_UID && bytes == sizeof uid) {
            std::memcpy(&uid, at + NLA_HDRLEN, sizeof uid);
            found.user = uid;
        }
        const size_t step = NLA_ALIGN(a.nla_len);
        if (step >= left) break;
        at += step;
        left -= step;
    }
    return named ? std::optional(found) : std::nullopt;
}

}  // namespace

bool is_untrusted_user(uid_t user) { return user != 0 && user != ::geteuid(); }

std::optional<uid_t> holder_of(const std::string& name, int type) {
    if (name.size() < 2 || name[0] != '@') return {};
    const Fd socket(above_stdio(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)));
    // Other users decide how many sockets there are, and so how long the answer is.
    const int64_t deadline = now_ns() + limit_ns(TimeLimit::name_holder);
    if (!socket.valid() || !send_dump_request(socket.get())) return {};
    std::optional<uid_t> connected;
    alignas(nlmsghdr) char buffer[16384];
    for (;;) {
        const ssize_t got = receive(socket.get(), buffer, sizeof buffer, deadline);
        if (got <= 0) return {};
        auto left = static_cast<size_t>(got);
        for (const auto* m = reinterpret_cast<const nlmsghdr*>(buffer); NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
            if (m->nlmsg_type == NLMSG_DONE) return connected;
            if (m->nlmsg_type != SOCK_DIAG_BY_FAMILY || m->nlmsg_len < NLMSG_LENGTH(sizeof(unix_diag_msg))) return {};
            const auto found = read_entry(m, name, type);
            if (!found) continue;
            // Only one datagram socket has a name. SOCK_SEQPACKET: what a listener has accepted, or has in its queue
            // (with user 0), has the listener's name and looks like a socket that is bound and connected.
            if (type == SOCK_DGRAM || !found->connected) return found->user;
            if (found->user && is_untrusted_user(*found->user)) connected = found->user;
        }
    }
}

std::string name_of_other_user(uid_t user, pid_t process) {
    std::string text = "user " + std::to_string(user);
    if (process <= 0) return text;
    text += " (process " + std::to_string(process);
    char name[32] = {};
    if (FILE* f = std::fopen(("/proc/" + std::to_string(process) + "/comm").c_str(), "re")) {
        if (std::fgets(name, sizeof name, f) != nullptr) name[std::strcspn(name, "\n")] = '\0';
        std::fclose(f);
    }
    if (name[0] != '\0') text += ", " + printable(name);
    return text + ")";
}

std::string other_user_at(const std::string& name) {
    if (name.empty() || name[0] != '@') return {};
    Fd socket;
    if (try_connect(name, &socket) == 0) {
        ucred peer{};
        socklen_t length = sizeof peer;
        if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0)
            return is_untrusted_user(peer.uid) ? name_of_other_user(peer.uid, peer.pid) : std::string();
    }
    const auto user = holder_of(name, SOCK_SEQPACKET);
    return user && is_untrusted_user(*user) ? name_of_other_user(*user, 0) : std::string();
}

}  // namespace viaduct
