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
void turn_away(const Fd& client, Status why, const std::string& text) {
    Error e;
    e.status = static_cast<int32_t>(why);
    e.version_min = kVersionMin;
    e.version_max = kVersionMax;
    std::strncpy(e.text, text.c_str(), sizeof(e.text) - 1);
    Mail mail = Mail::of(Type::kError, e, kHelloTicket);
    mail.header.version = kVersionMin;
    if (client.valid()) (void)send_mail(client.get(), mail);
}

}  // namespace

void Server::accept_clients() {
    const int64_t until = now_ns() + kAccepted;
    while (accept_one() && now_ns() < until) {
    }
}

// Silent connections make room for later ones.
bool Server::make_room(uid_t user) {
    while (const uint64_t key = silent_.in_the_way_of(user)) evict(key);
    while (!agent_.has_room(user)) {
        const uint64_t key = silent_.oldest_of(user);
        if (key == 0) return false;
        evict(key);
    }
    return true;
}

// What it has just said is heard first: it may be silent no more.
void Server::evict(uint64_t key) {
    Client& c = *clients_.at(key);
    read_from(c, 1);
    const auto s = agent_.sessions().find(c.session);
    if (s == agent_.sessions().end() || !s->second.greeted) lose(c, "it said nothing, and others have come");
    bury();
}

// False when no other connection waits.
bool Server::accept_one() {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid() && (errno == EMFILE || errno == ENFILE)) {
        // Without this the connection would stay at the door and wake us for ever.
        spdlog::error("no descriptors left: a client is turned away (raise the limit, ulimit -n)");
        if (const uint64_t key = silent_.oldest_of_most()) {
            evict(key);
            return true;
        }
        reserve_.reset();
        fd = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        turn_away(fd, Status::out_of_resources, kNoDescriptors);
        closers_.close_socket(kNoUser, std::move(fd));
        reserve_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        return true;
    }
    if (!fd.valid()) return errno == EINTR || errno == ECONNABORTED;
    ucred peer{};
    socklen_t length = sizeof peer;
    const bool known = ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
    const Credentials who{peer.pid, known ? peer.uid : kNoUser,
                          known && users_.knows(fd.get(), peer.uid)};
    if (!known || !admit(fd, who)) closers_.close_socket(who.uid, std::move(fd));
    return true;
}

// Takes the socket if it is welcome.
bool Server::admit(Fd& fd, const Credentials& who) {
    if (own_users_only_ && !who.known) {
        spdlog::warn("a user without a number in this user namespace (process {}) asked for an agent that serves "
                     "user {} only",
                     who.pid, ::geteuid());
        turn_away(fd, Status::denied, "it serves user " + std::to_string(::geteuid()) + " and root only");
        return false;
    }
    if (own_users_only_ && who.uid != 0 && who.uid != ::geteuid()) {
        spdlog::warn("user {} (process {}) asked for an agent that serves user {} only", who.uid, who.pid,
                     ::geteuid());
        turn_away(fd, Status::denied, "it serves user " + std::to_string(::geteuid()) + " and root only");
        return false;
    }
    // A process that has ended while it waited in the queue, without a message, costs no more than this.
    char first = 0;
    bool ended = ::recv(fd.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
    Fd process;
    if (!ended) process = peer_process(fd.get(), who.pid, &ended);
    if (ended) {
        spdlog::info("process {} has ended before it was served", who.pid);
        return false;
    }
    if (!make_room(who.uid)) {
        spdlog::info("user {} has too many connections to the agent: process {} is turned away", who.uid,
                     who.pid);
        turn_away(fd, Status::out_of_resources,
                  "user " + std::to_string(who.uid) +
                      " has too many connections (agent.max_sessions, agent.max_descriptors)");
        return false;
    }
    // Agent keeps one descriptor of the process to hand out; the loop watches another.
    Fd to_hand_out;
    if (process.valid()) to_hand_out = Fd(::fcntl(process.get(), F_DUPFD_CLOEXEC, 3));
    if (process.valid() && !to_hand_out.valid()) {
        const std::string why = errno == EMFILE || errno == ENFILE
                                    ? std::string(kNoDescriptors)
                                    : std::string("it cannot copy a descriptor (fcntl): ") + std::strerror(errno);
        spdlog::error("process {} is turned away: {}", who.pid, why);
        turn_away(fd, Status::out_of_resources, why);
        return false;
    }
    auto client = std::make_unique<Client>(std::move(fd), std::move(process), who);
    client->key = next_key_;
    next_key_ += 2;
    client->since = now_ns();
    client->interest = EPOLLIN;
    client->session = agent_.arrive(who, std::move(to_hand_out), client->since);
    silent_.add(who.uid, client->key);
    watch(client->socket(), EPOLLIN, client->key);
    // Without one its end is seen by its socket alone, which a child of it may hold for longer.
    if (client->pidfd() >= 0) watch(client->pidfd(), EPOLLIN, client->key | kProcessBit);
    by_session_[client->session] = client.get();
    clients_[client->key] = std::move(client);
    return true;
}

}  // namespace viaduct::kagent
