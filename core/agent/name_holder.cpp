// SPDX-License-Identifier: BSD-2-Clause
// Queries the kernel by netlink (NETLINK_SOCK_DIAG), which also reports sockets that accept no connection; see
// name_holder.hpp.
#include "core/agent/name_holder.hpp"

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "core/agent/meeting_point.hpp"
#include "core/text/printable.hpp"

#ifndef UDIAG_SHOW_UID
#define UDIAG_SHOW_UID 0x40  // Linux 5.3
#define UNIX_DIAG_UID 7
#endif

namespace viaduct {

namespace {

constexpr uint8_t kEstablished = 1;  // TCP_ESTABLISHED of the kernel: Unix sockets use the states of TCP

struct Question {
    nlmsghdr head;
    unix_diag_req body;
};

bool ask(int socket) {
    Question q{};
    q.head.nlmsg_len = sizeof q;
    q.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    q.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    q.body.sdiag_family = AF_UNIX;
    q.body.udiag_states = ~(1u << kEstablished);  // all but accepted sockets, which have their listener's name
    q.body.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID;
    return ::send(socket, &q, sizeof q, 0) == static_cast<ssize_t>(sizeof q);
}

// The user of the socket in this entry; nothing unless the entry has that name and type.
std::optional<uid_t> read_entry(const nlmsghdr* entry, const std::string& name, int type) {
    const auto* body = static_cast<const unix_diag_msg*>(NLMSG_DATA(entry));
    if (body->udiag_type != type) return {};
    std::optional<uid_t> user;
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
            user = uid;
        }
        const size_t step = NLA_ALIGN(a.nla_len);
        if (step >= left) break;
        at += step;
        left -= step;
    }
    return named ? user : std::nullopt;
}

}  // namespace

bool is_other_user(uid_t user) { return user != 0 && user != ::geteuid(); }

std::optional<uid_t> holder_of(const std::string& name, int type) {
    if (name.size() < 2 || name[0] != '@') return {};
    const Fd socket(above_stdio(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)));
    const timeval limit{0, 500'000};
    if (!socket.valid() ||
        ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 || !ask(socket.get()))
        return {};
    alignas(nlmsghdr) char room[16384];
    for (;;) {
        const ssize_t got = ::recv(socket.get(), room, sizeof room, 0);
        if (got <= 0) return {};
        auto left = static_cast<size_t>(got);
        for (const auto* m = reinterpret_cast<const nlmsghdr*>(room); NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
            if (m->nlmsg_type != SOCK_DIAG_BY_FAMILY || m->nlmsg_len < NLMSG_LENGTH(sizeof(unix_diag_msg))) return {};
            if (const auto user = read_entry(m, name, type)) return user;
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
            return is_other_user(peer.uid) ? name_of_other_user(peer.uid, peer.pid) : std::string();
    }
    const auto user = holder_of(name, SOCK_SEQPACKET);
    return user && is_other_user(*user) ? name_of_other_user(*user, 0) : std::string();
}

}  // namespace viaduct
