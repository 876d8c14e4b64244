// SPDX-License-Identifier: BSD-2-Clause
// The event loop of vipkad; see server.hpp.
#include "kagent/server.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/shm/foreign_files.hpp"
#include "kagent/service.hpp"

namespace viaduct::kagent {

namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kHelloPatience = 10'000 * kMillisecond;  // a connection that says nothing is closed
constexpr int64_t kFirstPatience = 3'000 * kMillisecond;
constexpr int64_t kLook = 500 * kMillisecond;
constexpr int64_t kLinkPause = 20 * kMillisecond;  // interfaces change in bursts: one look for all of it
constexpr size_t kMaxSilent = 4096;
constexpr int kMessagesPerTurn = 32;  // of one client, then the others have theirs
constexpr int64_t kFlushPatience = 500 * kMillisecond;
// Two watched descriptors per client share its key; the lowest bit tells them apart.
constexpr uint64_t kProcessBit = 1;

bool is_abstract(int listener) {
    sockaddr_un address{};
    socklen_t length = sizeof address;
    return ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
           address.sun_path[0] == '\0';
}

}  // namespace

sigset_t hold_end_signals() {
    sigset_t mask;
    ::sigemptyset(&mask);
    for (const int s : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&mask, s);
    ::sigprocmask(SIG_BLOCK, &mask, nullptr);
    return mask;
}

Server::Server(Options options, AgentSettings settings, Providers& providers, Fd listener)
    : options_(std::move(options)),
      linger_ns_(settings.linger_ms * kMillisecond),
      deaf_ns_(settings.deaf_ms * kMillisecond),
      epoll_(above_stdio(::epoll_create1(EPOLL_CLOEXEC))),
      listener_(std::move(listener)),
      reserve_(above_stdio(::open("/dev/null", O_RDONLY | O_CLOEXEC))),
      own_users_only_(is_abstract(listener_.get())),
      agent_(std::move(settings), providers, *this),
      idle_since_(now_ns()) {
    if (linger_ns_ < 0) options_.forever = true;
    const sigset_t mask = hold_end_signals();
    signals_ = Fd(above_stdio(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK)));
    watch(listener_.get(), EPOLLIN, static_cast<uint64_t>(Watch::listener));
    watch(signals_.get(), EPOLLIN, static_cast<uint64_t>(Watch::signals));
    watch_links();
}

Server::~Server() = default;

void Server::watch(int fd, uint32_t events, uint64_t data) {
    epoll_event e{};
    e.events = events;
    e.data.u64 = data;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e) != 0)
        spdlog::error("cannot watch a descriptor: {}", std::strerror(errno));
}

void Server::adjust(Client& c) {
    const uint32_t wanted = (c.wants_to_read() ? EPOLLIN : 0u) | (c.wants_to_write() ? EPOLLOUT : 0u);
    if (wanted == c.interest) return;
    c.interest = wanted;
    epoll_event e{};
    e.events = wanted;
    e.data.u64 = c.key;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, c.socket(), &e);
}

// ---- clients come

void Server::accept_clients() {
    for (int i = 0; i < kMessagesPerTurn && accept_one(); ++i) {
    }
}

// False when nobody else is at the door.
bool Server::accept_one() {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid() && (errno == EMFILE || errno == ENFILE)) {
        // Without this the connection would stay at the door and wake us for ever.
        spdlog::error("no descriptors left: a client is turned away (raise the limit, ulimit -n)");
        reserve_.reset();
        fd = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        fd.reset();
        reserve_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        return true;
    }
    if (!fd.valid()) return errno == EINTR || errno == ECONNABORTED;
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return true;
    const Credentials who{peer.pid, peer.uid};
    if (own_users_only_ && who.uid != 0 && who.uid != ::geteuid()) {
        spdlog::warn("user {} (process {}) asked for an agent that serves user {} only", who.uid, who.pid,
                     ::geteuid());
        return true;
    }
    Fd process = peer_process(fd.get(), who);
    if (!process.valid()) {
        spdlog::info("process {} has gone before it was served", who.pid);
        return true;
    }
    if (silent_ >= kMaxSilent) return true;
    // Agent keeps one descriptor of the process to hand out; the loop watches another.
    Fd to_hand_out(::fcntl(process.get(), F_DUPFD_CLOEXEC, 3));
    if (!to_hand_out.valid()) return true;
    auto client = std::make_unique<Client>(std::move(fd), std::move(process), who);
    client->key = next_key_;
    next_key_ += 2;
    client->since = now_ns();
    client->interest = EPOLLIN;
    client->session = agent_.arrive(who, std::move(to_hand_out), client->since);
    if (client->session == 0) {
        spdlog::info("user {} has too many connections to the agent: process {} is turned away", who.uid,
                     who.pid);
        return true;
    }
    ++silent_;
    watch(client->socket(), EPOLLIN, client->key);
    watch(client->pidfd(), EPOLLIN, client->key | kProcessBit);
    by_session_[client->session] = client.get();
    clients_[client->key] = std::move(client);
    return true;
}

// ---- clients speak

void Server::serve(uint64_t key, uint32_t events) {
    const auto it = clients_.find(key & ~kProcessBit);
    if (it == clients_.end()) return;
    Client& c = *it->second;
    if ((key & kProcessBit) != 0) {
        // Dead, even if a child of it still holds the socket. What it sent before is still served.
        read_from(c);
        lose(c, "its process has ended");
        return;
    }
    if ((events & EPOLLOUT) != 0) {
        const Status s = c.flush();
        if (s != Status::ok && s != Status::not_done) {
            lose(c, "it has closed the connection");
            return;
        }
        if (s == Status::ok && c.closing()) {
            lose(c, "done");
            return;
        }
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_from(c);
    if ((events & (EPOLLHUP | EPOLLERR)) != 0 && !c.wants_to_read()) lose(c, "it has closed the connection");
    adjust(c);
}

void Server::read_from(Client& c) {
    for (int i = 0; i < kMessagesPerTurn && c.wants_to_read(); ++i) {
        Mail mail;
        const Status received = receive_mail(c.socket(), &mail);
        if (!std::all_of(mail.descriptors.begin(), mail.descriptors.end(), closes_at_once)) {
            close_elsewhere(std::move(mail.descriptors));
            lose(c, "it sent a file that is no memory");
            return;
        }
        switch (received) {
            case Status::ok: {
                const auto& sessions = agent_.sessions();
                const auto before = sessions.find(c.session);
                const bool silent = before != sessions.end() && !before->second.greeted;
                agent_.handle(c.session, std::move(mail), now_ns());
                const auto after = sessions.find(c.session);
                if (silent && after != sessions.end() && after->second.greeted) {
                    --silent_;
                    note_company(now_ns());
                    spdlog::info("process {} of user {}: {} has come", c.who().pid, c.who().uid,
                                 after->second.program);
                }
                continue;
            }
            case Status::not_done:
                return;
            case Status::invalid:
                lose(c, "it sent something that is no message");
                return;
            default:
                lose(c, "it has closed the connection");
                return;
        }
    }
}

void Server::send(uint64_t session, Mail mail) {
    const auto it = by_session_.find(session);
    if (it == by_session_.end()) return;
    Client& c = *it->second;
    switch (c.send(std::move(mail))) {
        case Status::ok:
            return;
        case Status::not_done:
            adjust(c);
            return;
        case Status::out_of_resources:
            lose(c, "it does not take its messages");
            return;
        default:
            lose(c, "it has closed the connection");
            return;
    }
}

void Server::drop(uint64_t session, const char* why) {
    const auto it = by_session_.find(session);
    if (it == by_session_.end()) return;
    if (it->second->wants_to_write()) {
        it->second->close_when_flushed();
        adjust(*it->second);
    } else {
        lose(*it->second, why);
    }
}

// ---- clients go

// May be called from within Agent (through send), so the session ends later, in bury().
void Server::lose(Client& c, const char* why) {
    if (by_session_.erase(c.session) == 0) return;  // lost already
    dead_.push_back(c.key);
    c.close_when_flushed();
    spdlog::info("process {} of user {} has gone: {}", c.who().pid, c.who().uid, why);
}

void Server::bury() {
    while (!dead_.empty()) {
        std::vector<uint64_t> keys;
        keys.swap(dead_);
        for (const uint64_t key : keys) {
            const auto it = clients_.find(key);
            if (it == clients_.end()) continue;
            const uint64_t session = it->second->session;
            it->second->session = 0;
            const auto s = agent_.sessions().find(session);
            if (s != agent_.sessions().end() && !s->second.greeted) --silent_;
            // The watched descriptors leave epoll with their last copy; the process' one has none elsewhere.
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second->socket(), nullptr);
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second->pidfd(), nullptr);
            // With the socket go the files in messages that nobody has read.
            if (it->second->who().uid != ::geteuid()) {
                std::vector<Fd> socket;
                socket.push_back(it->second->give_up_socket());
                close_elsewhere(std::move(socket));
            }
            clients_.erase(it);
            agent_.leave(session, now_ns());
        }
    }
}

// Those that say nothing, and those that do not take what they are told.
void Server::look_at_clients(int64_t now) {
    if (now < next_look_) return;
    next_look_ = now + kLook;
    for (auto& [key, c] : clients_) {
        const auto s = agent_.sessions().find(c->session);
        if (s != agent_.sessions().end() && !s->second.greeted && now - c->since > kHelloPatience)
            lose(*c, "it said nothing");
        if (!c->wants_to_write() || c->taken() != c->taken_seen) {
            c->deaf_since = 0;
            c->taken_seen = c->taken();
        } else if (c->deaf_since == 0) {
            c->deaf_since = now;
        } else if (now - c->deaf_since > deaf_ns_) {
            lose(*c, "it does not take its messages");
        }
    }
}

// ---- the host's interfaces

void Server::watch_links() {
    agent_.note_links(Devices::look());
    if (!agent_.depends_on_links()) return;  // NICs of this host alone need none
    if (const std::string why = links_.open(); !why.empty()) {
        spdlog::warn("{}: nobody will hear of interfaces that go down", why);
        return;
    }
    watch(links_.fd(), EPOLLIN, static_cast<uint64_t>(Watch::links));
    links_due_ = now_ns();  // what has happened between the look and the watch
}

void Server::look_at_links(int64_t now) {
    if (now < links_due_) return;
    links_due_ = kNever;
    agent_.note_links(Devices::look());
}

// ---- the loop

int Server::timeout_ms(int64_t now) const {
    int64_t next = std::min(agent_.next_deadline(), links_due_);
    if (silent_ != 0) {
        next = std::min(next, now + kLook);
    } else if (!options_.forever && agent_.keepers() == 0) {
        next = std::min(next, leaving_at());
    }
    for (const auto& [session, c] : by_session_) {
        // A send refused for too many descriptors in flight has no event that says when it may be tried
        // again.
        if (c->wants_to_write()) next = std::min(next, now + 50 * kMillisecond);
    }
    if (next == kNever) return -1;
    if (next <= now) return 0;
    return static_cast<int>(std::min<int64_t>((next - now + kMillisecond - 1) / kMillisecond, 60'000));
}

void Server::note_company(int64_t now) {
    if (agent_.keepers() == 0) return;
    idle_since_ = now;
    had_company_ = true;
}

// Whoever started us needs a moment to connect, however short the linger is.
int64_t Server::leaving_at() const {
    return idle_since_ + (had_company_ ? linger_ns_ : std::max(linger_ns_, kFirstPatience));
}

bool Server::time_to_leave(int64_t now) {
    if (stop_ || agent_.shutdown_asked()) return true;
    if (agent_.keepers() != 0 || options_.forever || now < leaving_at()) return false;
    // Whoever has been connecting in this very moment is taken in and keeps us.
    const size_t before = clients_.size();
    accept_clients();
    if (clients_.size() != before) return false;
    // A client that has connected but not yet said hello gets its chance, too.
    return silent_ == 0;
}

void Server::run() {
    while (true) {
        int64_t now = now_ns();
        agent_.tick(now);
        bury();
        if (time_to_leave(now)) break;
        epoll_event events[64];
        const int n = ::epoll_wait(epoll_.get(), events, 64, timeout_ms(now));
        now = now_ns();
        note_company(now);  // up to this very moment, before anybody goes
        for (int i = 0; i < n; ++i) {
            const uint64_t data = events[i].data.u64;
            if (data == static_cast<uint64_t>(Watch::listener)) {
                accept_clients();
            } else if (data == static_cast<uint64_t>(Watch::signals)) {
                stop_ = true;
            } else if (data == static_cast<uint64_t>(Watch::links)) {
                links_.drain();
                links_due_ = std::min(links_due_, now + kLinkPause);
            } else {
                serve(data, events[i].events);
            }
            bury();
        }
        if (n == 0) {
            for (auto& [key, c] : clients_) {
                if (c->wants_to_write() && c->session != 0) serve(key, EPOLLOUT);
            }
            bury();
        }
        look_at_links(now);
        look_at_clients(now);
        bury();
        note_company(now_ns());
    }
    finish();
}

// New clients from now on find nobody and start, or wait for, the next agent.
void Server::finish() {
    spdlog::info("leaving");
    notify_manager("STOPPING=1");
    if (!options_.keep_socket) {
        if (!options_.address.empty() && options_.address[0] != '@') ::unlink(options_.address.c_str());
        listener_.reset();
    }
    agent_.say_goodbye();
    const int64_t deadline = now_ns() + kFlushPatience;
    for (auto& [key, c] : clients_) {
        while (c->flush() == Status::not_done && now_ns() < deadline) {
            const timespec nap{0, 1'000'000};
            ::nanosleep(&nap, nullptr);
        }
    }
}

}  // namespace viaduct::kagent
