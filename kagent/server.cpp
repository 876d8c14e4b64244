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
#include "core/process/peer_process.hpp"
#include "kagent/service.hpp"

namespace viaduct::kagent {

namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kHelloTimeout = 10'000 * kMillisecond;  // a connection that says nothing is closed
constexpr int64_t kFirstTimeout = 3'000 * kMillisecond;
constexpr int64_t kLook = 500 * kMillisecond;
constexpr int64_t kLinkPause = 20 * kMillisecond;  // interfaces change in bursts: one look for all of it
constexpr int64_t kRetry = 50 * kMillisecond;
constexpr int64_t kTaking = 2 * kMillisecond;  // between two looks whether files have been taken
constexpr size_t kSilentInAll = 4096;
constexpr int kMessagesPerTurn = 32;         // of one client, then the others have theirs
constexpr int64_t kTurn = kMillisecond / 4;  // of one client
constexpr int64_t kServed = kMillisecond;    // then new connections are looked for
constexpr int64_t kAccepted = 2 * kMillisecond;  // then the connected clients are served
constexpr int64_t kFlushTimeout = 500 * kMillisecond;
constexpr const char* kNoDescriptors = "it has no descriptors left (raise its limit, ulimit -n)";
// Two watched descriptors per client share its key; the lowest bit tells them apart.
constexpr uint64_t kProcessBit = 1;
constexpr auto kNoUser = static_cast<uid_t>(-1);

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
      client_stall_ns_(settings.client_stall_ms * kMillisecond),
      epoll_(above_stdio(::epoll_create1(EPOLL_CLOEXEC))),
      listener_(std::move(listener)),
      reserve_(above_stdio(::open("/dev/null", O_RDONLY | O_CLOEXEC))),
      own_users_only_(options_.own_user_only || is_abstract(listener_.get())),
      agent_(std::move(settings), providers, *this),
      takers_(agent_.limits(), [this](uid_t user) { return count_flying(user); }),
      silent_(kSilentOfOneUser, kSilentInAll),
      idle_since_(now_ns()) {
    if (linger_ns_ < 0) options_.forever = true;
    agent_.limits().recount_by([this](uid_t user) { count_flying(user); });
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
    const uint32_t wanted = (listens_to(c) ? EPOLLIN : 0u) | (c.wants_to_write() ? EPOLLOUT : 0u);
    if (wanted == c.interest) return;
    c.interest = wanted;
    epoll_event e{};
    e.events = wanted;
    e.data.u64 = c.key;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, c.socket(), &e);
}

// A client that does not take its answers is not listened to: at once when its user has many such answers.
bool Server::listens_to(const Client& c) const {
    return c.wants_to_read() && !c.held_back && !c.waits &&
           (!c.wants_to_write() || agent_.limits().left(c.who().uid, Quota::unread) != 0);
}

uint64_t Server::count_flying(uid_t user) {
    uint64_t flying = 0;
    for (const auto& [key, c] : clients_) {
        if (c->who().uid != user || c->charged_files == 0) continue;
        agent_.limits().correct(user, Quota::descriptors, &c->charged_files, c->flying());
        flying += c->charged_files;
    }
    return flying;
}

void Server::settle_account(Client& c) {
    Limits& limits = agent_.limits();
    limits.correct(c.who().uid, Quota::unread, &c.charged_bytes, c.unread_bytes());
    limits.correct(c.who().uid, Quota::descriptors, &c.charged_files, c.flying());
    if (c.wants_to_write()) {
        writers_.insert(c.key);
    } else {
        writers_.erase(c.key);
    }
}

// ---- clients come

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

namespace {

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
    if (client.valid()) (void)!static_cast<int>(send_mail(client.get(), mail));
}

}  // namespace

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

// ---- clients speak

void Server::serve(uint64_t key, uint32_t events) {
    const auto it = clients_.find(key & ~kProcessBit);
    if (it == clients_.end()) return;
    Client& c = *it->second;
    if ((key & kProcessBit) != 0) return serve_ended(c);
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
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_from(c, kMessagesPerTurn);
    if ((events & (EPOLLHUP | EPOLLERR)) != 0 && !listens_to(c)) lose(c, "it has closed the connection");
    settle_account(c);
    adjust(c);
}

// Dead, even if a child of it still holds the socket. What it sent before is still served; its end is told
// again until it is lost.
void Server::serve_ended(Client& c) {
    if (read_from(c, kMessagesPerTurn) == Heard::more && --c.last_turns > 0) return;
    lose(c, "its process has ended");
}

Server::Heard Server::read_from(Client& c, int most) {
    const int64_t until = now_ns() + kTurn;
    for (int i = 0; i < most; ++i) {
        if (!listens_to(c)) return Heard::all;
        if (closers_.full(c.who().uid) && brings_files(c.socket())) {
            c.held_back = holds_back_ = true;
            return Heard::all;
        }
        if (takers_.are_waited_for(c.who().uid, now_ns())) {
            c.waits = true;
            waiting_.insert(c.key);
            return Heard::all;
        }
        Mail mail;
        const Status received = receive_mail(c.socket(), &mail);
        if (!std::all_of(mail.descriptors.begin(), mail.descriptors.end(), is_memory_or_event)) {
            discard(c.who().uid, std::move(mail.descriptors));
            lose(c, "it sent a file that is no memory");
            return Heard::closed;
        }
        switch (received) {
            case Status::ok: {
                const auto& sessions = agent_.sessions();
                const auto before = sessions.find(c.session);
                const bool silent = before != sessions.end() && !before->second.greeted;
                const int64_t now = now_ns();
                agent_.handle(c.session, std::move(mail), now);
                const auto after = sessions.find(c.session);
                if (silent && after != sessions.end() && after->second.greeted) {
                    silent_.remove(c.who().uid, c.key);
                    note_company(now);
                    spdlog::info("process {} of user {}: {} has come", c.who().pid, c.who().uid,
                                 after->second.program);
                }
                if (now_ns() >= until) return Heard::more;
                continue;
            }
            case Status::not_done:
                return Heard::all;
            case Status::invalid:
                discard(c.who().uid, std::move(mail.descriptors));
                lose(c, "it sent something that is no message");
                return Heard::closed;
            default:
                discard(c.who().uid, std::move(mail.descriptors));
                lose(c, "it has closed the connection");
                return Heard::closed;
        }
    }
    return Heard::more;
}

void Server::send(uint64_t session, Mail mail) {
    const auto it = by_session_.find(session);
    if (it == by_session_.end()) return;
    Client& c = *it->second;
    switch (c.send(std::move(mail))) {
        case Status::ok:
            settle_account(c);
            return;
        case Status::not_done:
            settle_account(c);
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
    spdlog::info("process {} of user {} has left: {}", c.who().pid, c.who().uid, why);
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
            Client& c = *it->second;
            const uid_t user = c.who().uid;
            silent_.remove(user, key);
            writers_.erase(key);
            waiting_.erase(key);
            // The watched descriptors leave epoll with their last copy; the process' one has none elsewhere.
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, c.socket(), nullptr);
            if (c.pidfd() >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, c.pidfd(), nullptr);
            agent_.limits().correct(user, Quota::unread, &c.charged_bytes, 0);
            agent_.limits().correct(user, Quota::descriptors, &c.charged_files, 0);
            discard(user, c.give_up_files());
            closers_.close_socket(user, c.give_up_socket());
            clients_.erase(it);
            agent_.leave(session, now_ns());
        }
    }
}

// Those that say nothing, and those that do not take what they are told.
void Server::look_at_clients(int64_t now) {
    if (now < next_look_) return;
    next_look_ = now + kLook;
    holds_back_ = false;
    closers_.look(now);
    for (auto& [key, c] : clients_) {
        c->held_back = false;
        settle_account(*c);
        adjust(*c);
        const auto s = agent_.sessions().find(c->session);
        if (s != agent_.sessions().end() && !s->second.greeted && now - c->since > kHelloTimeout)
            lose(*c, "it said nothing");
        if (!c->wants_to_write() || c->taken() != c->taken_seen) {
            c->stalled_since = 0;
            c->taken_seen = c->taken();
        } else if (c->stalled_since == 0) {
            c->stalled_since = now;
        } else if (now - c->stalled_since > client_stall_ns_) {
            lose(*c, "it does not take its messages");
        }
    }
}

void Server::look_at_waiting(int64_t now) {
    if (waiting_.empty() || now < next_taking_) return;
    next_taking_ = now + kTaking;
    std::erase_if(waiting_, [&](uint64_t key) {
        Client& c = *clients_.at(key);
        c.waits = takers_.are_waited_for(c.who().uid, now);
        if (!c.waits) adjust(c);
        return !c.waits;
    });
}

// ---- the host's interfaces

void Server::watch_links() {
    agent_.note_links(Devices::look());
    if (!agent_.depends_on_links()) return;  // NICs of this host alone need none
    if (const std::string why = links_.open(); !why.empty()) {
        spdlog::warn("{}: interfaces that go down will not be reported", why);
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
    if (silent_.size() != 0 || holds_back_ || closers_.busy()) {
        next = std::min(next, now + kLook);
    } else if (!options_.forever && agent_.keepers() == 0) {
        next = std::min(next, leaving_at());
    }
    // A send refused for too many descriptors in flight has no event that says when it may be tried again.
    if (!writers_.empty()) next = std::min(next, now + kRetry);
    if (!waiting_.empty()) next = std::min(next, now + kTaking);
    if (next == kNever) return -1;
    if (next <= now) return 0;
    return static_cast<int>(std::min<int64_t>((next - now + kMillisecond - 1) / kMillisecond, 60'000));
}

void Server::note_company(int64_t now) {
    if (agent_.keepers() == 0) return;
    idle_since_ = now;
    had_company_ = true;
}

// The process that started the agent needs a moment to connect, even when the linger is short.
int64_t Server::leaving_at() const {
    return idle_since_ + (had_company_ ? linger_ns_ : std::max(linger_ns_, kFirstTimeout));
}

bool Server::time_to_leave(int64_t now) {
    if (stop_ || agent_.shutdown_asked()) return true;
    if (agent_.keepers() != 0 || options_.forever || now < leaving_at()) return false;
    // A client that connects at this moment is accepted, and the agent stays.
    const size_t before = clients_.size();
    accept_clients();
    if (clients_.size() != before) return false;
    // A client that has connected but not yet said hello gets its chance, too.
    return silent_.size() == 0;
}

// Clients that have sent something or can be sent something.
void Server::gather(int timeout_ms, int64_t* now) {
    epoll_event events[256];
    const int n = ::epoll_wait(epoll_.get(), events, 256, timeout_ms);
    *now = now_ns();
    note_company(*now);  // up to this moment, before any client leaves
    bool callers = false;
    for (int i = 0; i < n; ++i) {
        const uint64_t data = events[i].data.u64;
        if (data == static_cast<uint64_t>(Watch::listener)) {
            callers = true;
        } else if (data == static_cast<uint64_t>(Watch::signals)) {
            stop_ = true;
        } else if (data == static_cast<uint64_t>(Watch::links)) {
            links_.drain();
            links_due_ = std::min(links_due_, *now + kLinkPause);
        } else if (const auto c = clients_.find(data & ~kProcessBit); c != clients_.end()) {
            turns_.ready(c->second->who().uid, data, events[i].events);
        }
    }
    if (callers) accept_clients();
    if (*now < next_retry_) return;
    next_retry_ = *now + kRetry;
    for (const uint64_t key : writers_) turns_.ready(clients_.at(key)->who().uid, key, EPOLLOUT);
}

void Server::serve_in_turns() {
    int64_t now = now_ns();
    const int64_t until = now + kServed;
    while (now < until) {
        const auto turn = turns_.next();
        if (!turn) return;
        serve(turn->item, turn->events);
        bury();
        const int64_t after = now_ns();
        turns_.charge(turn->user, after - now);
        now = after;
    }
}

void Server::run() {
    while (true) {
        int64_t now = now_ns();
        agent_.tick(now);
        bury();
        if (time_to_leave(now)) break;
        gather(turns_.empty() ? timeout_ms(now) : 0, &now);
        serve_in_turns();
        look_at_links(now);
        look_at_waiting(now);
        look_at_clients(now);
        bury();
        note_company(now_ns());
    }
    finish();
}

// New clients from now on find no agent and start, or wait for, the next agent.
void Server::finish() {
    spdlog::info("leaving");
    notify_manager("STOPPING=1");
    if (!options_.keep_socket) {
        if (!options_.address.empty() && options_.address[0] != '@') ::unlink(options_.address.c_str());
        listener_.reset();
    }
    agent_.announce_leaving();
    const int64_t deadline = now_ns() + kFlushTimeout;
    for (auto& [key, c] : clients_) {
        while (c->flush() == Status::not_done && now_ns() < deadline) {
            const timespec nap{0, 1'000'000};
            ::nanosleep(&nap, nullptr);
        }
    }
}

}  // namespace viaduct::kagent
