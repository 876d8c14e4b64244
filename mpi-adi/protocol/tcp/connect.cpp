// SPDX-License-Identifier: BSD-2-Clause
// From cards to connections. Either side may call; when both do at once the call of the lower rank goes
// first: the higher one drops its own, the lower one lays the other's aside until its own is through, so that
// neither misses the death of the other meanwhile.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "mpi-adi/protocol/common/error.hpp"
#include "mpi-adi/protocol/common/host.hpp"
#include "mpi-adi/protocol/common/params.hpp"
#include "mpi-adi/protocol/tcp/tcp.hpp"

namespace viaduct::tcp {

namespace {

constexpr auto kStrangerPatience = std::chrono::seconds(10);
constexpr auto kWayPatience = std::chrono::seconds(10);
constexpr size_t kMostStrangers = 256;

// A peer that vanished without a word, host and all, is missed after some 15 s of silence.
void prepare(int fd) {
    const int on = 1, idle = 5, interval = 2, count = 5;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

// More of a Hello. 1: it is whole, 0: more is to come, -1: the connection has ended.
int read_hello(int fd, Hello* hello, size_t* had) {
    const ssize_t n = ::recv(fd, reinterpret_cast<char*>(hello) + *had, sizeof *hello - *had, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0) return -1;
    *had += static_cast<size_t>(n);
    return *had == sizeof *hello ? 1 : 0;
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

int Tcp::open(const taskinfo_t* task, Card* card) {
    finalize();
    me_ = static_cast<uint32_t>(task->ti_index);
    epoll_ = Fd(above_stdio(::epoll_create1(EPOLL_CLOEXEC)));
    if (!epoll_.valid()) return adi::fail(MPIP_ERR_OTHER, "epoll_create1: %s", std::strerror(errno));
    card_ = {};
    card_.magic = kMagic;
    card_.host = adi::host_number("net");
    card_.piece = static_cast<uint32_t>(piece_);
    if (::getrandom(&card_.token, sizeof card_.token, 0) != sizeof card_.token)
        return adi::fail(MPIP_ERR_OTHER, "getrandom: %s", std::strerror(errno));
    const std::string names = adi::param_text(adi::Param::tcp_interfaces);
    for (Address& address : own_addresses(names, task->ti_nhosts > 1)) {
        if (listen_on(address)) card_.addresses[card_.count++] = address;
    }
    if (card_.count == 0) {
        return adi::fail(MPIP_ERR_OTHER, "no address to listen on%s%s",
                         names.empty() ? "" : ", CMPI_TCP_INTERFACES=", names.c_str());
    }
    *card = card_;
    return MPIP_SUCCESS;
}

bool Tcp::reaches(const taskinfo_t* task, int rank) const {
    return rank != task->ti_index && !ways(card_of(task, task->ti_index), card_of(task, rank)).empty();
}

int Tcp::connect(taskinfo_t* task) {
    connections.resize(static_cast<size_t>(task->ti_nprocs));
    for (procinfo* info = task->ti_proto[MPIP_PROTO_TCP]; info != nullptr; info = info->pi_next) {
        const int rank = info->pi_proc->p_gid.pg_wrank;
        if (rank == task->ti_index || connections[static_cast<size_t>(rank)] != nullptr) continue;
        const Card theirs = card_of(task, rank);
        auto made = std::make_unique<Peer>();
        made->ways = ways(card_, theirs);
        made->token = theirs.token;
        made->piece = std::min(piece_, static_cast<size_t>(theirs.piece));
        made->rank = static_cast<uint32_t>(rank);
        made->proc = info->pi_proc;
        info->pi_proc->p_pm = static_cast<stream::Connection*>(made.get());
        info->pi_proc->p_flags |= MPIP_PROC_ATTACHED;
        connections[static_cast<size_t>(rank)] = std::move(made);
        ++mpip_protocols[MPIP_PROTO_TCP].pt_nprocs;
    }
    // Some of them may have called before they were known here.
    for (Stranger& early : std::exchange(strangers_, {})) take_stranger(std::move(early));
    return MPIP_SUCCESS;
}

int Tcp::complete(taskinfo_t* task) {
    if (task->ti_nprocs > adi::param_number(adi::Param::on_demand)) return MPIP_SUCCESS;
    const auto deadline = Clock::now() + std::chrono::seconds(adi::param_number(adi::Param::connect_timeout));
    for (size_t rank = me_ + 1; rank < connections.size(); ++rank) {
        if (connections[rank] != nullptr && peer(rank)->stage == Peer::Stage::idle) call(*peer(rank));
    }
    opening_ = true;
    const Peer* missing = nullptr;
    do {
        progress();
        missing = nullptr;
        for (const auto& c : connections) {
            if (c != nullptr && !c->ready) missing = static_cast<const Peer*>(c.get());
        }
        if (missing != nullptr) ::sched_yield();
    } while (missing != nullptr && !missing->lost && Clock::now() < deadline);
    opening_ = false;
    if (missing == nullptr) return MPIP_SUCCESS;
    return adi::fail(MPIP_ERR_OTHER, "process %u could not be connected over TCP: %s", missing->rank,
                     missing->lost ? mpip_last_error() : "no answer within CMPI_CONNECT_TIMEOUT");
}

bool Tcp::say_hello(const Peer& peer, int fd) const {
    const Hello hello = {kMagic, kVersion, me_, peer.rank, peer.token};
    return ::send(fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof hello;
}

bool Tcp::is_for_us(const Hello& hello) const {
    return hello.magic == kMagic && hello.version == kVersion && hello.to == me_ &&
           hello.token == card_.token;
}

// --- calling ---

void Tcp::call(Peer& peer) {
    peer.way = 0;
    call_next(peer);
}

void Tcp::call_next(Peer& peer) {
    if (peer.stage == Peer::Stage::calling) --calling_;
    peer.stage = Peer::Stage::idle;
    hang_up(peer.fd);
    for (; peer.way < peer.ways.size(); ++peer.way) {
        sockaddr_storage name;
        const socklen_t length = to_sockaddr(peer.ways[peer.way], &name);
        Fd fd(above_stdio(::socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
        if (!fd.valid()) continue;
        prepare(fd.get());
        if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), length) != 0 && errno != EINPROGRESS)
            continue;
        watch(fd.get(), tag(Watched::peer, peer.rank), EPOLLOUT, false);
        peer.fd = std::move(fd);
        peer.stage = Peer::Stage::calling;
        peer.patience = Clock::now() + kWayPatience;
        peer.hello_had = 0;
        ++calling_;
        return;
    }
    if (peer.parked.valid()) return answer(peer, std::move(peer.parked));
    report(peer, "none of its addresses takes a call");
}

// Calls are made from inside sends, where requests must not end: the next pass tells.
void Tcp::report(Peer& peer, const char* trouble) {
    peer.trouble = trouble;
    troubled_.push_back(&peer);
}

void Tcp::on_connected(Peer& peer) {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(peer.fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error == EINPROGRESS) return;
    if (error != 0 || !say_hello(peer, peer.fd.get())) {
        ++peer.way;
        return call_next(peer);
    }
    --calling_;
    peer.stage = Peer::Stage::greeting;  // for as long as it likes: it may compute, and its death is told
    watch(peer.fd.get(), tag(Watched::peer, peer.rank), EPOLLIN, true);
}

void Tcp::on_answer(Peer& peer) {
    const int had = read_hello(peer.fd.get(), &peer.hello, &peer.hello_had);
    if (had == 0) return;
    if (had > 0 && is_for_us(peer.hello) && peer.hello.from == peer.rank) return talk(peer);
    ++peer.way;
    call_next(peer);
}

// --- being called ---

void Tcp::on_call(size_t listener) {
    for (;;) {
        Fd fd(above_stdio(
            ::accept4(listeners_[listener].get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
        if (!fd.valid()) return;
        prepare(fd.get());
        watch(fd.get(), tag(Watched::stranger, static_cast<size_t>(fd.get())), EPOLLIN, false);
        // A crowd that says nothing must not keep those out who would.
        if (strangers_.size() >= std::max(kMostStrangers, connections.size()))
            strangers_.erase(strangers_.begin());
        Stranger stranger;
        stranger.fd = std::move(fd);
        stranger.patience = Clock::now() + kStrangerPatience;
        strangers_.push_back(std::move(stranger));
    }
}

void Tcp::on_stranger(int fd) {
    const auto found = std::find_if(strangers_.begin(), strangers_.end(),
                                    [fd](const Stranger& s) { return s.fd.get() == fd; });
    if (found == strangers_.end()) return;
    const int had = read_hello(fd, &found->hello, &found->had);
    if (had == 0) return;
    Stranger stranger = std::move(*found);
    strangers_.erase(found);
    if (had > 0) take_stranger(std::move(stranger));
}

// One that has said who it is; what it says is checked here.
void Tcp::take_stranger(Stranger stranger) {
    const Hello& hello = stranger.hello;
    if (stranger.had < sizeof hello) return strangers_.push_back(std::move(stranger));
    if (!is_for_us(hello)) return;
    if (hello.from < connections.size() && connections[hello.from] != nullptr) {
        called(*peer(hello.from), std::move(stranger.fd));
    } else {
        strangers_.push_back(std::move(stranger));  // it knows the job's token: it may be attached any moment
    }
}

void Tcp::called(Peer& peer, Fd fd) {
    if (peer.lost || peer.ready) return;
    const bool ours_is_under_way = peer.stage != Peer::Stage::idle;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
    if (ours_is_under_way && peer.rank > me_) {
        peer.parked = std::move(fd);
        return;
    }
    if (peer.stage == Peer::Stage::calling) --calling_;
    hang_up(peer.fd);
    answer(peer, std::move(fd));
}

void Tcp::answer(Peer& peer, Fd fd) {
    peer.stage = Peer::Stage::idle;
    peer.fd = std::move(fd);
    watch(peer.fd.get(), tag(Watched::peer, peer.rank), EPOLLIN, false);
    if (!say_hello(peer, peer.fd.get())) return report(peer, "it hung up");
    talk(peer);
}

void Tcp::talk(Peer& peer) {
    peer.stage = Peer::Stage::talking;
    peer.trouble = nullptr;
    peer.parked.reset();
    peer.in.reset(new char[buffer_bytes_]);
    peer.out.reset(new char[buffer_bytes_]);
    peer.ready = true;
    greeted(peer);
}

// --- ends ---

// A forked child may still hold the socket: epoll would go on telling of it.
void Tcp::hang_up(Fd& fd) {
    if (fd.valid()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
    fd.reset();
}

void Tcp::look_for_late() {
    const auto now = Clock::now();
    std::erase_if(strangers_, [now](const Stranger& s) { return s.patience < now; });
    if (calling_ == 0) return;
    for (const auto& c : connections) {
        auto* one = static_cast<Peer*>(c.get());
        if (one == nullptr || one->stage != Peer::Stage::calling || one->patience > now) continue;
        ++one->way;
        call_next(*one);
    }
}

void Tcp::cut(stream::Connection& c) {
    Peer& peer = static_cast<Peer&>(c);
    if (peer.stage == Peer::Stage::calling) --calling_;
    peer.stage = Peer::Stage::idle;
    hang_up(peer.fd);
    peer.parked.reset();
    peer.out_begin = peer.out_end = 0;  // the buffers stay: frames may just be being read from there
}

void Tcp::finalize() {
    for (const auto& c : connections) {
        if (c != nullptr) c->proc->p_pm = nullptr;
    }
    connections.clear();
    troubled_.clear();
    strangers_.clear();
    listeners_.clear();
    epoll_.reset();
    calling_ = 0;
    mpip_protocols[MPIP_PROTO_TCP].pt_nprocs = 0;
}

}  // namespace viaduct::tcp
