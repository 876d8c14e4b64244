// SPDX-License-Identifier: BSD-2-Clause
// How clients come to the event loop of vipkad, and which of them it refuses; see server.hpp.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/process/peer_process.hpp"
#include "kagent/server.hpp"

namespace viaduct::kagent {

namespace {

constexpr int64_t kAccepted = 2 * kMillisecond;  // then the connected clients are served
constexpr const char* kNoDescriptors = "it has no descriptors left (raise its limit, ulimit -n)";
constexpr auto kNoUser = static_cast<uid_t>(-1);

// Says why in words, before the client is closed. The message is there before the client has said anything; it goes
// into an empty socket.
void turn_away(int client, Status why, const std::string& text) {
    Error e;
    e.status = static_cast<int32_t>(why);
    e.version_min = kVersionMin;
    e.version_max = kVersionMax;
    std::strncpy(e.text, text.c_str(), sizeof(e.text) - 1);
    Mail mail = Mail::of(Type::kError, e, kHelloTicket);
    mail.header.version = kVersionMin;
    (void)send_mail(client, mail);
}

}  // namespace

void Server::accept_clients() {
    const int64_t until = now_ns() + kAccepted;
    while (accept_one() && now_ns() < until) {
    }
}

// Closes connections that have not said hello, the oldest first, until the user may have one more. False: the agent has
// no room for the user, and none of the user's can be closed.
bool Server::make_room(uid_t user) {
    while (const uint64_t key = pending_.to_evict_for(user)) evict(key);
    while (!agent_.has_room(user)) {
        const uint64_t key = pending_.oldest_of(user);
        if (key == 0) return false;
        evict(key);
    }
    return true;
}

// Its messages are read first: a hello may be among them.
void Server::evict(uint64_t key) {
    Client& c = *clients_.at(key);
    read_from(c, 1);
    const auto s = agent_.sessions().find(c.session);
    if (s != agent_.sessions().end() && !s->second.refusal.empty() && !s->second.refused)
        turn_away(c.socket(), Status::out_of_resources, s->second.refusal);
    if (s == agent_.sessions().end() || !s->second.greeted) lose(c, "it said nothing, and others have come");
    reap();
}

// False when no other connection waits.
bool Server::accept_one() {
    const int64_t now = now_ns();
    Fd fd;
    uint64_t oldest = 0;
    const fair::Acceptor::Next next = acceptor_.next(pending_, now, &fd, &oldest);
    if (next == fair::Acceptor::Next::none) return false;
    if (next != fair::Acceptor::Next::connection && acceptor_.may_tell(now))
        spdlog::error(
            "no descriptors left: clients without a hello make room, others are turned away (raise the limit, "
            "ulimit -n)");
    if (next == fair::Acceptor::Next::evict) {
        evict(oldest);
        return true;
    }
    ucred peer{};
    socklen_t length = sizeof peer;
    const bool known = ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
    const Credentials credentials{peer.pid, known ? peer.uid : kNoUser, known && users_.knows(fd.get(), peer.uid)};
    const char* const shortage = next == fair::Acceptor::Next::turn_away ? kNoDescriptors : "";
    if (!known && *shortage != '\0') turn_away(fd.get(), Status::out_of_resources, shortage);
    if (!known || !admit(fd, credentials, shortage)) closers_.close_socket(credentials.uid, std::move(fd));
    return true;
}

// Takes the socket if it is welcome. It is not where there is a shortage, whose text is for the client. A process that
// may have the agent replaced is let in all the same, and its hello is refused.
bool Server::admit(Fd& fd, const Credentials& credentials, std::string shortage) {
    if (own_users_only_ && !credentials.known) {
        spdlog::warn(
            "a user without a number in this user namespace (process {}) asked for an agent that serves "
            "user {} only",
            credentials.pid, ::geteuid());
        turn_away(fd.get(), Status::denied, "it serves user " + std::to_string(::geteuid()) + " and root only");
        return false;
    }
    if (own_users_only_ && credentials.uid != 0 && credentials.uid != ::geteuid()) {
        spdlog::warn("user {} (process {}) asked for an agent that serves user {} only", credentials.uid,
                     credentials.pid, ::geteuid());
        turn_away(fd.get(), Status::denied, "it serves user " + std::to_string(::geteuid()) + " and root only");
        return false;
    }
    // A process that has ended while it waited in the queue, without a message, costs no more than this.
    char first = 0;
    bool ended = ::recv(fd.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
    Fd process;
    if (!ended) process = peer_process(fd.get(), credentials.pid, &ended);
    if (ended) {
        spdlog::info("process {} has ended before it was served", credentials.pid);
        return false;
    }
    if (shortage.empty() && !make_room(credentials.uid)) {
        spdlog::info("user {} has too many connections to the agent: process {} is turned away", credentials.uid,
                     credentials.pid);
        shortage = "user " + std::to_string(credentials.uid) +
                   " has too many connections (agent.max_sessions, agent.max_descriptors)";
    }
    // Agent keeps one descriptor of the process to hand out; the loop watches another.
    Fd to_hand_out;
    if (shortage.empty() && process.valid()) {
        to_hand_out = Fd(::fcntl(process.get(), F_DUPFD_CLOEXEC, 3));
        if (!to_hand_out.valid()) {
            shortage = errno == EMFILE || errno == ENFILE
                           ? std::string(kNoDescriptors)
                           : std::string("it cannot copy a descriptor (fcntl): ") + std::strerror(errno);
            spdlog::error("process {} is turned away: {}", credentials.pid, shortage);
        }
    }
    if (!shortage.empty() && !agent_.may_be_replaced_by(credentials)) {
        turn_away(fd.get(), Status::out_of_resources, shortage);
        return false;
    }
    auto client = std::make_unique<Client>(std::move(fd), std::move(process), credentials);
    client->key = next_key_;
    next_key_ += 2;
    client->since = now_ns();
    client->interest = EPOLLIN;
    client->session = shortage.empty() ? agent_.arrive(credentials, std::move(to_hand_out), client->since)
                                       : agent_.arrive_without_room(credentials, {}, client->since, shortage);
    pending_.add(credentials.uid, client->key);
    watch(client->socket(), EPOLLIN, client->key);
    // Without one its end is seen by its socket alone, which a child of it may hold for longer.
    if (client->pidfd() >= 0) watch(client->pidfd(), EPOLLIN, client->key | kProcessBit);
    by_session_[client->session] = client.get();
    clients_[client->key] = std::move(client);
    return true;
}

}  // namespace viaduct::kagent
