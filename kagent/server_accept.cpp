// SPDX-License-Identifier: BSD-2-Clause
// How clients come to the event loop of vipkad, and which of them it refuses; see server.hpp.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kagent/server.hpp"

namespace viaduct::kagent {

namespace {

constexpr const char* kNoDescriptors = "it has no descriptors left (raise its limit, ulimit -n)";

// Says why in words, before the client is closed. The message is there before the client has said anything; it goes
// into an empty socket.
void say_refused(int client, Status why, const std::string& text) {
    Error e;
    e.status = static_cast<int32_t>(why);
    e.version_min = kVersionMin;
    e.version_max = kVersionMax;
    std::strncpy(e.text, text.c_str(), sizeof(e.text) - 1);
    Mail mail = Mail::of(Type::kError, e, kHelloTicket);
    mail.header.version = kVersionMin;
    (void)send_mail(client, mail);
}

// For the client; empty: it is not refused.
std::string words_of(const daemon::Program& p) {
    if (p.refusal == daemon::Refusal::descriptors) return kNoDescriptors;
    if (p.refusal != daemon::Refusal::places) return {};
    return "user " + std::to_string(p.user) + " has too many connections (agent.max_sessions, agent.max_descriptors)";
}

}  // namespace

// The user's number may stand for many users: no user namespace has a number for each.
bool Server::serves(daemon::Program& p) {
    p.known = users_.knows(p.socket.get(), p.user);
    if (!own_users_only_ || (p.known && daemon::may_replace(p.user))) return true;
    const uid_t own = ::geteuid();
    if (p.known) {
        spdlog::warn("user {} (process {}) asked for an agent that serves user {} only", p.user, p.pid, own);
    } else {
        spdlog::warn(
            "a user without a number in this user namespace (process {}) asked for an agent that serves "
            "user {} only",
            p.pid, own);
    }
    say_refused(p.socket.get(), Status::denied, "it serves user " + std::to_string(own) + " and root only");
    return false;
}

void Server::turn_away(const daemon::Program& p) {
    if (p.refusal == daemon::Refusal::ended) {
        spdlog::info("process {} has ended before it was served", p.pid);
        return;
    }
    if (p.refusal == daemon::Refusal::places)
        spdlog::info("user {} has too many connections to the agent: process {} is turned away", p.user, p.pid);
    say_refused(p.socket.get(), Status::out_of_resources, words_of(p));
}

void Server::log_shortage(const char*) {
    spdlog::error(
        "no descriptors left: clients without a hello make room, others are turned away (raise the limit, "
        "ulimit -n)");
}

// Its messages are read first: a hello may be among them.
void Server::evict(uint64_t number) {
    Client& c = *clients_.at(key_of(number));
    read_from(c, 1);
    const auto s = agent_.sessions().find(c.session);
    if (s != agent_.sessions().end() && !s->second.refusal.empty() && !s->second.refused)
        say_refused(c.socket(), Status::out_of_resources, s->second.refusal);
    if (s == agent_.sessions().end() || !s->second.greeted) lose(c, "it said nothing, and others have come");
    reap();
}

bool Server::enter(daemon::Program& p) {
    std::string refusal = words_of(p);
    // Agent keeps one descriptor of the process to hand out; the loop watches another.
    Fd to_hand_out;
    if (refusal.empty() && p.process.valid()) {
        to_hand_out = Fd(::fcntl(p.process.get(), F_DUPFD_CLOEXEC, 3));
        if (!to_hand_out.valid()) {
            refusal = errno == EMFILE || errno == ENFILE
                          ? std::string(kNoDescriptors)
                          : std::string("it cannot copy a descriptor (fcntl): ") + std::strerror(errno);
            spdlog::error("process {} is turned away: {}", p.pid, refusal);
            if (!agent_.may_be_replaced_by({p.pid, p.user, p.known})) {
                say_refused(p.socket.get(), Status::out_of_resources, refusal);
                return false;
            }
        }
    }
    add_client(p, std::move(to_hand_out), refusal);
    return true;
}

// With a refusal, the agent refuses its hello for that.
void Server::add_client(daemon::Program& p, Fd to_hand_out, const std::string& refusal) {
    const Credentials credentials{p.pid, p.user, p.known};
    auto client = std::make_unique<Client>(std::move(p.socket), std::move(p.process), credentials);
    client->key = key_of(p.number);
    client->since = p.since;
    client->interest = EPOLLIN;
    client->session = refusal.empty() ? agent_.arrive(credentials, std::move(to_hand_out), p.since)
                                      : agent_.arrive_without_room(credentials, {}, p.since, refusal);
    watch(client->socket(), EPOLLIN, client->key);
    // Without one its end is seen by its socket alone, which a child of it may hold for longer.
    if (client->pidfd() >= 0) watch(client->pidfd(), EPOLLIN, client->key | kProcessBit);
    by_session_[client->session] = client.get();
    clients_[client->key] = std::move(client);
}

}  // namespace viaduct::kagent
