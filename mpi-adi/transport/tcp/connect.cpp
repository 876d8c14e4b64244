// SPDX-License-Identifier: BSD-2-Clause
// From cards to connections. Either side may call; when both do at once the call of the lower rank goes
// first: the higher one drops its own, the lower one lays the other's aside until its own is through, so that
// neither misses the death of the other meanwhile.
// Any process may connect to a port. A caller that has not proved with its first bytes that it has the key of a pair is
// pending: pending callers are few, the oldest one is closed first, and an invalid Hello closes a caller. A caller
// whose connection is closed before the answer tries again, until CMPI_CONNECT_TIMEOUT: its first bytes may have been
// late.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/tcp/tcp.hpp"

namespace viaduct::tcp {

namespace {

constexpr auto kHelloTimeout = std::chrono::seconds(5);
constexpr auto kConnectTimeout = std::chrono::seconds(10);
constexpr size_t kMostPendingCallers = 256;
constexpr auto kFirstPause = std::chrono::milliseconds(5);
constexpr auto kLongestPause = std::chrono::milliseconds(500);
constexpr size_t kMostNonces = 4096;

// A peer whose host vanishes is found after some 15 s of silence.
void prepare(int fd) {
    const int on = 1, idle = 5, interval = 2, count = 5;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

// More of what is `bytes` long. 1: it is whole, 0: more is to come, -1: the connection has ended.
int read_more(int fd, void* to, size_t bytes, size_t* had) {
    const ssize_t n = ::recv(fd, static_cast<char*>(to) + *had, bytes - *had, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0) return -1;
    *had += static_cast<size_t>(n);
    return *had == bytes ? 1 : 0;
}

bool can_write(int fd) {
    pollfd watched = {fd, POLLOUT, 0};
    return ::poll(&watched, 1, 0) > 0;
}

}  // namespace

void Tcp::watch(int fd, uint64_t tag, uint32_t events, bool known) {
    epoll_event event = {};
    event.events = events;
    event.data.u64 = tag;
    ::epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
}

bool Tcp::listen_on(Address& address) {
    sockaddr_storage name;
    address.port = 0;
    socklen_t length = to_sockaddr(address, &name);
    Fd fd(above_stdio(::socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
    if (!fd.valid()) return false;
    const int on = 1;
    if (name.ss_family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), length) != 0 || ::listen(fd.get(), 4096) != 0)
        return false;
    length = sizeof name;
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0) return false;
    address.port = ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                                    : reinterpret_cast<sockaddr_in&>(name).sin_port);
    watch(fd.get(), tag(Watched::listener, listeners_.size()), EPOLLIN, false);
    listeners_.push_back(std::move(fd));
    return true;
}

int Tcp::open(const taskinfo_t* task, Card* card, Card* outer_card) {
    finalize();
    me_ = static_cast<uint32_t>(task->ti_index);
    epoll_ = Fd(above_stdio(::epoll_create1(EPOLL_CLOEXEC)));
    if (!epoll_.valid()) return adi::fail(MPIP_ERR_OTHER, "epoll_create1: %s", std::strerror(errno));
    card_ = {};
    card_.magic = kMagic;
    card_.host = adi::host_number("net");
    card_.piece = static_cast<uint32_t>(piece_);
    if (!ready_to_prove()) return adi::fail(MPIP_ERR_OTHER, "libsodium cannot be used");
    if (!make_random(card_.secret.data(), card_.secret.size()) || !make_random(mark_.data(), mark_.size()))
        return adi::fail(MPIP_ERR_OTHER, "getrandom: %s", std::strerror(errno));
    job_ = task->ti_job;
    const std::string names = adi::param_text(adi::Param::tcp_interfaces);
    // Which processes share the network of this one is known when all cards are here: see drop_needless_listeners.
    for (Address& address : own_addresses(names, task->ti_nprocs > 1)) {
        if (listen_on(address)) card_.addresses[card_.count++] = address;
    }
    if (card_.count == 0) {
        return adi::fail(MPIP_ERR_OTHER, "no address to listen on%s%s",
                         names.empty() ? "" : ", CMPI_TCP_INTERFACES=", names.c_str());
    }
    *card = *outer_card = card_;
    outer_card->secret = mark_;
    return MPIP_SUCCESS;
}

// Where all processes share a loopback interface, whatever the launcher calls a host, no other interface has to be
// listened on.
void Tcp::drop_needless_listeners(const taskinfo_t* task) {
    if (*adi::param_text(adi::Param::tcp_interfaces) != '\0') return;
    for (int rank = 0; rank < task->ti_nprocs; ++rank) {
        const Card card = card_of(task, rank);
        if (card.count != 0 && card.host != card_.host) return;
    }
    for (size_t i = 0; i < listeners_.size(); ++i)
        if (card_.addresses[i].loopback == 0) close_socket(listeners_[i]);
}

bool Tcp::reaches(const taskinfo_t* task, int rank) const {
    return rank != task->ti_index && !call_addresses(card_of(task, task->ti_index), card_of(task, rank)).empty();
}

protocol::Peer& Tcp::make_lane(const taskinfo_t* task, int rank, process_t* proc, protocol::UpperLayer* upper) {
    peers_.resize(std::max(peers_.size(), static_cast<size_t>(task->ti_nprocs)));
    const Card theirs = card_of(task, rank);
    protocol::Peer& peer = add_peer(static_cast<size_t>(rank), proc, upper);
    auto made = std::make_unique<Lane>(peer, *this);
    made->addresses = call_addresses(card_, theirs);
    const procinfo& info = task->ti_procs[rank];
    if (info.pi_secret != nullptr) {
        Secret agreed;
        std::memcpy(agreed.data(), info.pi_secret, agreed.size());
        made->name = static_cast<uint32_t>(info.pi_jobrank);
        made->ours_first = mark_ < theirs.secret;
        const Secret& first = made->ours_first ? mark_ : theirs.secret;
        const Secret& second = made->ours_first ? theirs.secret : mark_;
        made->key = key_of({reinterpret_cast<const char*>(first.data()), first.size()}, 0, agreed, 1, second);
    } else {
        made->name = static_cast<uint32_t>(rank);
        made->ours_first = made->name > me_;
        made->key = key_of(job_, me_, card_.secret, made->name, theirs.secret);
    }
    made->piece = std::min(piece_, static_cast<size_t>(theirs.piece));
    peer.lane = std::move(made);
    return peer;
}

void Tcp::renew(protocol::Peer& peer) {
    Protocol::renew(peer);
    Lane& lane = static_cast<Lane&>(*peer.lane);
    lane.error_text = nullptr;
    lane.watching_room = false;
    lane.frames_sent = lane.frames_received = 0;
    lane.in_begin = lane.in_end = lane.out_begin = lane.out_end = 0;
}

void Tcp::drop_rail_lanes() {
    std::erase_if(failed_lanes_, [](const Lane* lane) { return lane->peer.upper != nullptr; });
    for (auto& one : peers_) {
        if (one == nullptr || one->upper == nullptr) continue;
        if (!one->lost()) one->lane->cut();
        one.reset();
    }
}

int Tcp::connect(taskinfo_t* task) {
    drop_needless_listeners(task);
    peers_.resize(static_cast<size_t>(task->ti_nprocs));
    for (procinfo* info = task->ti_proto[MPIP_PROTO_TCP]; info != nullptr; info = info->pi_next) {
        const int rank = info->pi_proc->p_gid.pg_wrank;
        if (rank == task->ti_index || peers_[static_cast<size_t>(rank)] != nullptr) continue;
        make_lane(task, rank, info->pi_proc, nullptr);
        info->pi_proc->p_flags |= MPIP_PROC_ATTACHED;
    }
    // Some of them may have called before they were known here.
    std::erase_if(pending_callers_, [this](PendingCaller& early) { return !read_hello(early); });
    return MPIP_SUCCESS;
}

int Tcp::complete(taskinfo_t* task) {
    if (task->ti_nprocs > adi::param_number(adi::Param::on_demand)) return MPIP_SUCCESS;
    const auto deadline = Clock::now() + std::chrono::seconds(adi::param_number(adi::Param::connect_timeout));
    for (size_t rank = me_ + 1; rank < peers_.size(); ++rank) {
        if (peers_[rank] != nullptr && peers_[rank]->upper == nullptr && lane(rank)->stage == Lane::Stage::idle)
            call(*lane(rank));
    }
    opening_ = true;
    const protocol::Peer* missing = nullptr;
    do {
        progress();
        missing = nullptr;
        for (const auto& c : peers_) {
            if (c != nullptr && c->upper == nullptr && !c->ready()) missing = c.get();
        }
        if (missing != nullptr) ::sched_yield();
    } while (missing != nullptr && !missing->lost() && Clock::now() < deadline);
    opening_ = false;
    if (missing == nullptr) return MPIP_SUCCESS;
    return adi::fail(MPIP_ERR_OTHER, "process %u could not be connected over TCP: %s", missing->rank,
                     missing->lost() ? mpip_last_error() : "no answer within CMPI_CONNECT_TIMEOUT");
}

bool Tcp::send_hello(const Lane& lane, int fd, Step step) const {
    const Call& call = lane.handshake;
    const Hello hello = {kMagic,
                         kVersion,
                         me_,
                         lane.name,
                         step == Step::call ? call.caller_nonce : call.called_nonce,
                         prove(lane.key, step, call)};
    return ::send(fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof hello;
}

bool Tcp::is_for_us(const Hello& hello) const {
    return hello.magic == kMagic && hello.version == kVersion && hello.to == me_;
}

// --- calling ---

void Tcp::call(Lane& lane) {
    lane.next_address = lane.refused = 0;
    lane.pause = kFirstPause;
    call_next(lane);
}

void Tcp::call_next(Lane& lane) {
    drop_call(lane);
    for (; lane.next_address < lane.addresses.size(); ++lane.next_address) {
        sockaddr_storage name;
        const socklen_t length = to_sockaddr(lane.addresses[lane.next_address], &name);
        Fd fd(above_stdio(::socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
        if (!fd.valid()) continue;
        prepare(fd.get());
        if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), length) != 0 && errno != EINPROGRESS) {
            if (errno == ECONNREFUSED) ++lane.refused;
            continue;
        }
        watch(fd.get(), tag(Watched::peer, lane.peer.rank), EPOLLOUT, false);
        lane.fd = std::move(fd);
        lane.stage = Lane::Stage::calling;
        lane.timeout_at = Clock::now() + kConnectTimeout;
        lane.hello_bytes = 0;
        ++calling_;
        // On one host the connect is complete already: the Hello is sent at once, before the peer may close the caller.
        if (can_write(lane.fd.get())) on_connected(lane);
        return;
    }
    if (lane.parked.valid()) return answer(lane, std::move(lane.parked), lane.parked_nonce);
    if (lane.refused == lane.addresses.size()) return fail_later(lane, "none of its addresses takes a call");
    try_later(lane);
}

// Drops the connection that is being made, of this side or the other.
void Tcp::drop_call(Lane& lane) {
    if (lane.stage == Lane::Stage::calling || lane.stage == Lane::Stage::waiting) --calling_;
    lane.stage = Lane::Stage::idle;
    close_socket(lane.fd);
}

void Tcp::try_later(Lane& lane) {
    drop_call(lane);
    if (lane.parked.valid()) return answer(lane, std::move(lane.parked), lane.parked_nonce);
    const auto now = Clock::now();
    if (lane.pause == kFirstPause)
        lane.deadline = now + std::chrono::seconds(adi::param_number(adi::Param::connect_timeout));
    if (now >= lane.deadline) return fail_later(lane, "it did not answer within CMPI_CONNECT_TIMEOUT");
    lane.stage = Lane::Stage::waiting;
    lane.next_address = lane.refused = 0;
    lane.timeout_at = now + lane.pause;
    lane.pause = std::min<std::chrono::milliseconds>(lane.pause * 2, kLongestPause);
    ++calling_;
}

// Calls are made from inside sends, where requests must not end: the next pass fails the peer.
void Tcp::fail_later(Lane& lane, const char* error_text) {
    lane.error_text = error_text;
    failed_lanes_.push_back(&lane);
}

void Tcp::on_connected(Lane& lane) {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(lane.fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error == EINPROGRESS) return;
    lane.handshake = {};
    lane.handshake.caller = me_;
    lane.handshake.called = lane.name;
    if (error != 0 || !make_random(lane.handshake.caller_nonce.data(), sizeof(Nonce)) ||
        !send_hello(lane, lane.fd.get(), Step::call)) {
        if (error == ECONNREFUSED) ++lane.refused;
        ++lane.next_address;
        return call_next(lane);
    }
    --calling_;
    lane.stage =
        Lane::Stage::hello_sent;  // without a time limit: the peer may compute, and its death ends the connection
    watch(lane.fd.get(), tag(Watched::peer, lane.peer.rank), EPOLLIN, true);
}

void Tcp::on_answer(Lane& lane) {
    const int had = read_more(lane.fd.get(), &lane.hello, sizeof lane.hello, &lane.hello_bytes);
    if (had == 0) return;
    if (had < 0) return try_later(lane);  // closed as a pending caller, or the peer is dead, which the next call finds
    lane.handshake.called_nonce = lane.hello.nonce;
    if (is_for_us(lane.hello) && lane.hello.from == lane.name &&
        is_proof(lane.hello.proof, lane.key, Step::answer, lane.handshake)) {
        const Proof proof = prove(lane.key, Step::confirm, lane.handshake);
        if (::send(lane.fd.get(), proof.data(), sizeof proof, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof proof)
            return try_later(lane);
        return finish_handshake(lane);
    }
    ++lane.next_address;  // another process listens there
    call_next(lane);
}

// --- being called ---

void Tcp::on_call(size_t listener) {
    for (;;) {
        Fd fd(above_stdio(
            ::accept4(listeners_[listener].get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
        if (!fd.valid()) {
            if ((errno != EMFILE && errno != ENFILE) || pending_callers_.empty()) return;
            pending_callers_.erase(pending_callers_.begin());
            continue;
        }
        prepare(fd.get());
        watch(fd.get(), tag(Watched::pending_caller, static_cast<size_t>(fd.get())), EPOLLIN, false);
        PendingCaller pending_caller;
        pending_caller.fd = std::move(fd);
        pending_caller.timeout_at = Clock::now() + kHelloTimeout;
        // The first bytes have mostly arrived with it, so callers that send nothing cannot displace it.
        if (!read_hello(pending_caller)) continue;
        if (pending_callers_.size() >= std::max(kMostPendingCallers, peers_.size()))
            pending_callers_.erase(pending_callers_.begin());
        pending_callers_.push_back(std::move(pending_caller));
    }
}

void Tcp::on_pending_caller(int fd) {
    const auto found = std::find_if(pending_callers_.begin(), pending_callers_.end(),
                                    [fd](const PendingCaller& s) { return s.fd.get() == fd; });
    if (found != pending_callers_.end() && !read_hello(*found)) pending_callers_.erase(found);
}

Lane* Tcp::proven(const Hello& hello, bool* may_come) const {
    Call call;
    call.caller = hello.from;
    call.called = me_;
    call.caller_nonce = hello.nonce;
    *may_come = lane(hello.from) == nullptr;
    for (const auto& one : peers_) {
        Lane* const candidate = one != nullptr ? static_cast<Lane*>(one->lane.get()) : nullptr;
        if (candidate == nullptr || candidate->name != hello.from || one->lost()) continue;
        if (is_proof(hello.proof, candidate->key, Step::call, call)) return candidate;
    }
    return nullptr;
}

// Reads the Hello of a caller. False: it is complete and handed on, or refused.
bool Tcp::read_hello(PendingCaller& pending_caller) {
    Hello& hello = pending_caller.hello;
    if (pending_caller.had < sizeof hello) {
        const int had = read_more(pending_caller.fd.get(), &hello, sizeof hello, &pending_caller.had);
        if (had < 0 || (pending_caller.had >= sizeof hello.magic && hello.magic != kMagic)) return false;
        if (had == 0) return true;
    }
    if (!is_for_us(hello)) return false;
    bool may_come = false;
    Lane* const proven_one = proven(hello, &may_come);
    if (proven_one == nullptr) return may_come;
    Lane& from = *proven_one;
    if (std::find(from.seen_nonces.begin(), from.seen_nonces.end(), hello.nonce) != from.seen_nonces.end())
        return false;
    if (from.seen_nonces.size() == kMostNonces) from.seen_nonces.erase(from.seen_nonces.begin());
    from.seen_nonces.push_back(hello.nonce);
    called(from, std::move(pending_caller.fd), hello.nonce);
    return false;
}

void Tcp::called(Lane& lane, Fd fd, const Nonce& caller_nonce) {
    if (lane.peer.lost() || lane.peer.ready()) return;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
    const bool ours_is_under_way = lane.stage == Lane::Stage::calling || lane.stage == Lane::Stage::hello_sent;
    if (ours_is_under_way && lane.ours_first) {
        lane.parked = std::move(fd);
        lane.parked_nonce = caller_nonce;
        return;
    }
    drop_call(lane);
    answer(lane, std::move(fd), caller_nonce);
}

void Tcp::answer(Lane& lane, Fd fd, const Nonce& caller_nonce) {
    lane.stage = Lane::Stage::answered;  // without a time limit, too
    lane.fd = std::move(fd);
    lane.hello_bytes = 0;
    lane.handshake.caller = lane.name;
    lane.handshake.called = me_;
    lane.handshake.caller_nonce = caller_nonce;
    watch(lane.fd.get(), tag(Watched::peer, lane.peer.rank), EPOLLIN, false);
    if (!make_random(lane.handshake.called_nonce.data(), sizeof(Nonce)) ||
        !send_hello(lane, lane.fd.get(), Step::answer)) {
        drop_call(lane);
        call(lane);
    }
}

void Tcp::on_proof(Lane& lane) {
    Proof& proof = lane.hello.proof;
    const int had = read_more(lane.fd.get(), proof.data(), sizeof proof, &lane.hello_bytes);
    if (had == 0) return;
    if (had > 0 && is_proof(proof, lane.key, Step::confirm, lane.handshake)) return finish_handshake(lane);
    drop_call(lane);
    call(lane);  // when the peer has ended, this call finds it
}

void Tcp::finish_handshake(Lane& lane) {
    lane.stage = Lane::Stage::connected;
    lane.error_text = nullptr;
    lane.parked.reset();
    lane.in.reset(new char[buffer_bytes_]);
    lane.out.reset(new char[buffer_bytes_]);
    lane_ready(lane.peer);
}

// --- ends ---

// Removed from epoll first: a forked child may still have the socket open, and epoll would go on reporting it.
void Tcp::close_socket(Fd& fd) {
    if (fd.valid()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
    fd.reset();
}

void Tcp::run_timers() {
    const auto now = Clock::now();
    std::erase_if(pending_callers_, [now](const PendingCaller& s) { return s.timeout_at < now; });
    if (calling_ == 0) return;
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
        Lane* one = lane(rank);
        if (one == nullptr || one->timeout_at > now) continue;
        if (one->stage == Lane::Stage::calling) ++one->next_address;
        if (one->stage == Lane::Stage::calling || one->stage == Lane::Stage::waiting) call_next(*one);
    }
}

void Lane::cut() {
    tcp.drop_call(*this);
    parked.reset();
    out_begin = out_end = 0;  // the buffers stay: frames may just be being read from there
}

int Tcp::close(process_t** procs, int count) {
    const int answer = Protocol::close(procs, count);
    if (procs == nullptr) return answer;
    for (int i = 0; i < count; ++i) {
        const protocol::Peer* const peer = protocol::peer_of(procs[i]);
        if (peer == nullptr || (procs[i]->p_flags & MPIP_PROC_REMOVED) == 0) continue;
        std::erase_if(failed_lanes_, [peer](const Lane* lane) { return &lane->peer == peer; });
        procs[i]->p_pm = nullptr;
        peers_[peer->rank].reset();
    }
    return answer;
}

void Tcp::finalize() {
    drop_peers();
    failed_lanes_.clear();
    pending_callers_.clear();
    listeners_.clear();
    epoll_.reset();
    calling_ = 0;
}

}  // namespace viaduct::tcp
