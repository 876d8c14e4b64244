// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/daemon/server.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "providers/packet/message.hpp"
#include "providers/udp/address.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/version_answer.hpp"

namespace viaduct::udp {

using packet::send_message;
using packet::take_message;

namespace {

constexpr int64_t kRefuseFor = 200'000'000;
constexpr size_t kMostSessions = 4096;
constexpr size_t kSilentOfOneUser = 32;  // connections without a first message
constexpr size_t kSilentInAll = 128;
constexpr size_t kMostFilters = size_t{1} << 17;
constexpr int kLongestSleepMs = 1000;
constexpr int kRestMs = static_cast<int>(fair::Acceptor::kRest / 1'000'000);
constexpr int kEventsPerLook = 1024;
constexpr int64_t kServed = 1'000'000;  // then new connections and requests are looked for
constexpr int kMessagesPerTurn = 4;     // of one session, then others have theirs
constexpr int kFramesPerLook = 64;
constexpr int kPortBuffer = 4 << 20;

bool is_request(std::span<const std::byte> frame) {
    if (frame.size() < wire::kHeaderBytes) return false;
    const wire::Kind kind{wire::load8(frame.data() + wire::kKindAt)};
    return kind == wire::Kind::request || kind == wire::Kind::peer_request;
}

// A session takes two descriptors. Some are left for connections that say nothing, and files that wait to be closed.
size_t sessions_by_descriptors() {
    constexpr size_t kOthers = 2 * kSilentInAll + Closers::kMostWaiting + DeadPorts::kMost, kFewest = 16;
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < kOthers) return kFewest;
    return std::clamp<size_t>((static_cast<size_t>(files.rlim_cur) - kOthers) / 2, kFewest, kMostSessions);
}

}  // namespace

RequestServer::RequestServer(Options options, Fd listener)
    : options_(options),
      epoll_(above_stdio(::epoll_create1(EPOLL_CLOEXEC))),
      admission_(std::move(listener), epoll_.get(), epoll_data_t{this},
                 {"udpd", kSilentOfOneUser, kSilentInAll, limit_ns(TimeLimit::udpd_greeting), options.flaws}, closers_),
      dead_ports_(options.address, epoll_.get(), &dead_ports_),
      greeted_(sessions_by_descriptors()),
      filters_(kMostFilters),
      receive_buffer_(1 << 16),
      forward_buffer_(1 << 16),
      idle_end_(options.linger_ns, now_ns()) {}

bool RequestServer::open_port(std::string* why, std::string* cure) {
    const std::string name = text_of(options_.address);
    Fd port(above_stdio(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    const sockaddr_in own = to_socket_address(options_.address);
    if (!port.valid() || ::bind(port.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
        *why = "UDP port " + name + " cannot be had: " + std::strerror(errno);
        *cure = errno == EADDRINUSE
                    ? "another user's viaduct-udpd or another program has it: let root run viaduct-udpd for all users, "
                      "or set udp.port to another port, the same at all hosts"
                    : "see udp.interfaces and udp.port";
        return false;
    }
    ::setsockopt(port.get(), SOL_SOCKET, SO_RCVBUF, &kPortBuffer, sizeof kPortBuffer);
    epoll_event readable{};
    readable.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, port.get(), &readable) != 0) {
        *why = "no memory";
        return false;
    }
    port_ = std::move(port);
    return true;
}

void RequestServer::refuse(const std::string& why, const std::string& cure) {
    refusal_ = why;
    cure_ = cure;
    idle_end_.set_linger(kRefuseFor);  // the next request may succeed
}

void RequestServer::run() {
    while (stop_ == 0) {
        int timeout = kLongestSleepMs;
        if (sessions_.empty())
            timeout = static_cast<int>(std::min<int64_t>(idle_end_.left(now_ns()) / 1'000'000 + 1, kLongestSleepMs));
        if (admission_.rests()) timeout = std::min(timeout, kRestMs);
        if (dead_ports_.is_trying()) timeout = std::min(timeout, DeadPorts::kTryEveryMs);
        look(timeout);
        if (!sessions_.empty() || !idle_end_.is_due(now_ns())) continue;
        look(0);  // a program may have connected just now
        if (sessions_.empty()) return;
    }
}

void RequestServer::look(int timeout_ms) {
    epoll_event events[kEventsPerLook];
    const int n = ::epoll_wait(epoll_.get(), events, kEventsPerLook, turns_.empty() ? timeout_ms : 0);
    bool callers = false, frames = false, dead = false;
    for (int i = 0; i < n; ++i) {
        void* const subject = events[i].data.ptr;
        if (subject == this) {
            callers = true;
        } else if (subject == &dead_ports_) {
            dead = true;
        } else if (subject == nullptr) {
            frames = true;
        } else {
            const Session& s = *static_cast<Session*>(subject);
            turns_.ready(s.user, s.number, events[i].events);
        }
    }
    serve_in_turns();
    if (callers) admission_.accept(*this);
    const int64_t now = now_ns();
    for (const auto& s : sessions_)
        if (!s->greeted && admission_.is_late(*s, now)) s->over = true;
    close_over();
    if (closers_.busy()) closers_.look(now);
    admission_.look(now);
    dead ? dead_ports_.take_frames(now) : dead_ports_.look(now);
    if (frames) take_frames();
}

// What programs say comes before the requests that are for them, as far as the time of a look goes.
void RequestServer::serve_in_turns() {
    int64_t now = now_ns();
    const int64_t until = now + kServed;
    while (now < until) {
        const auto turn = turns_.next();
        if (!turn) return;
        if (Session* s = session_numbered(turn->item)) take_messages(*s);
        const int64_t after = now_ns();
        turns_.charge(turn->user, after - now);
        now = after;
    }
}

void RequestServer::evict(uint64_t number) {
    Session& s = *session_numbered(number);
    take_messages(s);
    if (!s.greeted) s.over = true;
    close_over();
}

bool RequestServer::enter(daemon::Program& p) {
    auto s = std::make_unique<Session>(std::move(p));
    if (!admission_.watch(*s, s.get())) {
        p = std::move(*s);
        return false;
    }
    sessions_.push_back(std::move(s));
    return true;
}

// ---- what programs say

void RequestServer::take_messages(Session& s) {
    if (s.over) return;
    // Other processes may hold the socket of a program that has ended.
    pollfd p{s.process.get(), POLLIN, 0};
    const bool has_ended = s.process.valid() && ::poll(&p, 1, 0) > 0;
    const bool speaks_first = !s.greeted && !s.refused;
    if (speaks_first) on_hello(s);  // its port is taken also if the program ended right after its first message
    s.over = s.over || has_ended;
    if (s.over || speaks_first) return;
    for (int i = 0; i < kMessagesPerTurn; ++i) {
        if (sends_files(s)) return;
        FilterMessage message;
        std::vector<Fd> files;
        const Status got = take_message(s.socket.get(), &message, sizeof message, &files);
        if (got == Status::not_done) return;
        const bool sane = got == Status::ok && files.empty() && message.local.discriminator_len <= kMaxDiscriminator &&
                          message.remote.discriminator_len <= kMaxDiscriminator;
        closers_.close(s.user, std::move(files));
        const bool ends = sane && message.what == FilterMessage::end;
        if (ends) end_for(s);
        if (!sane || ends || s.refused) {
            s.over = true;
            return;
        }
        on_filter(s, message);
    }
}

// For a program that starts a daemon of better limits. The other programs open their sessions there.
void RequestServer::end_for(const Session& s) {
    if (options_.flaws == 0 || !daemon::may_replace(s.user)) return;
    VIADUCT_LOG(info, "udpd", "process %d of user %u starts a daemon of better limits", s.pid, s.user);
    stop();
}

// No program sends files. They are taken and closed as long as the user has few that wait for it.
bool RequestServer::sends_files(Session& s) {
    if (closers_.must_stay(s.user, s.socket.get())) s.over = true;
    return s.over;
}

// not_done: the program has sent none. broken: the message is another one, or the connection has ended.
Status RequestServer::take_hello(const daemon::Program& p, Hello* hello) {
    std::vector<Fd> files;
    const Status got = take_message(p.socket.get(), hello, sizeof *hello, &files);
    if (got == Status::not_done) return got;
    const bool sane = got == Status::ok && files.empty() && hello->magic == kDaemonMagic;
    closers_.close(p.user, std::move(files));
    return sane ? Status::ok : Status::broken;
}

// A program that has ended before the daemon accepted its connection may have had connections to peers.
void RequestServer::turn_away(const daemon::Program& p) {
    Hello hello;
    if (p.refusal != daemon::Refusal::ended || closers_.must_stay(p.user, p.socket.get()) || !port_.valid()) return;
    if (take_hello(p, &hello) == Status::ok && hello.version == kDaemonVersion)
        dead_ports_.add(p.user, hello.data, now_ns());
}

void RequestServer::on_hello(Session& s) {
    if (sends_files(s)) return;
    Hello hello;
    const Status got = take_hello(s, &hello);
    if (got == Status::not_done) return;
    if (got != Status::ok) {
        s.over = true;
        return;
    }
    Welcome w;
    if (hello.version != kDaemonVersion) {
        w.status = static_cast<int32_t>(Status::version);
        packet::put_text(w.why, "viaduct-udpd is of another version");
        packet::put_text(w.cure, "end it");
    } else if (!port_.valid()) {
        w.status = static_cast<int32_t>(Status::out_of_resources);
        packet::put_text(w.why, refusal_);
        packet::put_text(w.cure, cure_);
    } else if (s.refusal != daemon::Refusal::none) {
        w.status = static_cast<int32_t>(Status::out_of_resources);
        packet::put_text(w.why, "viaduct-udpd has no descriptor left");
        packet::put_text(w.cure, "see ulimit -n");
    } else if (!greeted_.has_room(s.user)) {
        w.status = static_cast<int32_t>(Status::out_of_resources);
        packet::put_text(w.why, "viaduct-udpd has no place for another program");
        packet::put_text(w.cure,
                         "end programs that have connections or wait for requests: a user that is not the "
                         "daemon's may have as many as there are places free");
    } else {
        s.greeted = true;
        admission_.settle(s);
        greeted_.change(s.user, 1);
        s.slot = ++last_slot_;
        s.token = hello.token;
        s.data = hello.data;
    }
    if (daemon::may_replace(s.user)) w.flaws = options_.flaws;
    s.refused = w.status != 0 && w.flaws != 0;
    if (!send_message(s.socket.get(), &w, sizeof w) || (w.status != 0 && !s.refused)) s.over = true;
}

void RequestServer::on_filter(Session& s, const FilterMessage& message) {
    const size_t before = requests_.count_places_of(s.slot);
    const bool adds = message.what == FilterMessage::add && filters_.has_room(s.user);
    packet::Held held;
    if (message.what != FilterMessage::add)
        requests_.remove(s.slot, message.number, message.what == FilterMessage::remove_matches);
    else if (adds)
        requests_.add(s.slot,
                      {message.number, message.peer != 0, message.link, message.local, message.remote, s.data, s.user,
                       message.every != 0},
                      now_ns(), &held);
    update_filter_count(s, before);
    if (!adds) return;  // one too many: no request comes for it
    if (!held.frame.empty()) route(held.frame, held.from);
    Envelope known;
    known.what = Envelope::known;
    known.number = message.number;
    pass_to(s, known, {});
}

// The filters of its user, after those of this session have changed.
void RequestServer::update_filter_count(const Session& s, size_t before) {
    filters_.change(s.user, static_cast<ptrdiff_t>(requests_.count_places_of(s.slot) - before));
}

void RequestServer::close_over() {
    for (size_t i = 0; i < sessions_.size();) {
        Session& s = *sessions_[i];
        if (!s.over) {
            ++i;
            continue;
        }
        if (s.greeted) {
            const size_t before = requests_.count_places_of(s.slot);
            requests_.drop(s.slot);
            update_filter_count(s, before);
            greeted_.change(s.user, -1);
            dead_ports_.add(s.user, s.data, now_ns());
        }
        admission_.release(s);
        sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(i));
        idle_end_.note_use(now_ns());
    }
}

// They are in the order in which they have come.
RequestServer::Session* RequestServer::session_numbered(uint64_t number) {
    const auto found = std::lower_bound(sessions_.begin(), sessions_.end(), number,
                                        [](const auto& s, uint64_t n) { return s->number < n; });
    return found != sessions_.end() && (*found)->number == number ? found->get() : nullptr;
}

RequestServer::Session* RequestServer::session_of(uint32_t slot) {
    const auto found =
        std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& s) { return s->greeted && s->slot == slot; });
    return found != sessions_.end() ? found->get() : nullptr;
}

// ---- frames

void RequestServer::take_frames() {
    for (int i = 0; i < kFramesPerLook; ++i) {
        sockaddr_in from{};
        socklen_t bytes = sizeof from;
        const ssize_t n = ::recvfrom(port_.get(), receive_buffer_.data(), receive_buffer_.size(), 0,
                                     reinterpret_cast<sockaddr*>(&from), &bytes);
        if (n < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK) return;
            continue;  // what an earlier datagram met on its way
        }
        route({receive_buffer_.data(), static_cast<size_t>(n)}, from_socket_address(from));
    }
}

void RequestServer::route(std::span<const std::byte> frame, const NicAddress& from) {
    if (frame.empty()) return;
    const int64_t now = now_ns();
    if (wire::load8(frame.data()) != wire::kVersion) {
        if (!wire::asks_for_version(frame) || !answers_.allows(now)) return;
        std::byte answer[wire::kVersionAnswerBytes];
        wire::make_version_answer(frame, answer);
        return send(answer, from);
    }
    const bool needs_user = !options_.cross_user && is_request(frame);
    const packet::Requester requester = needs_user ? socket_owner_.user_of(from) : std::nullopt;
    const packet::Target target = requests_.incoming(frame, from, now, requester);
    if (target.slot != packet::kNoSlot) {
        Envelope e;
        e.what = Envelope::request;
        e.from = from;
        if (Session* s = session_of(target.slot)) pass_to(*s, e, frame);
    } else if (target.answer == wire::Kind::no_match) {
        std::byte answer[packet::kNoMatchBytes];
        if (packet::make_no_match(frame, target.nonce, answer)) send(answer, from);
    }
}

// Lost when the program does not read its socket: the requester asks again.
void RequestServer::pass_to(Session& s, Envelope e, std::span<const std::byte> frame) {
    if (sizeof e + frame.size() > forward_buffer_.size()) return;
    e.token = s.token;
    std::memcpy(forward_buffer_.data(), &e, sizeof e);
    if (!frame.empty()) std::memcpy(forward_buffer_.data() + sizeof e, frame.data(), frame.size());
    send({forward_buffer_.data(), sizeof e + frame.size()}, s.data);
}

void RequestServer::send(std::span<const std::byte> bytes, const NicAddress& to) {
    const sockaddr_in address = to_socket_address(to);
    ::sendto(port_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address),
             sizeof address);
}

}  // namespace viaduct::udp
