// SPDX-License-Identifier: BSD-2-Clause
// The transport from its card to its end: what it listens on, its lanes, its sockets.
#include <netinet/in.h>
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
constexpr auto kLookInterval = std::chrono::milliseconds(100);  // a system call for each peer
}

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
    listeners_.push_back(KeptFd(std::move(fd)));
    return true;
}

int Tcp::open(const taskinfo_t* task, Card* card, Card* outer_card) {
    finalize();
    me_ = static_cast<uint32_t>(task->ti_index);
    epoll_ = KeptFd(Fd(above_stdio(::epoll_create1(EPOLL_CLOEXEC))));
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

// Removed from epoll first: a forked child may still have the socket open, and epoll would go on reporting it.
void Tcp::close_socket(KeptFd& fd) {
    if (fd.is_ours()) ::epoll_ctl(epoll_.ours(), EPOLL_CTL_DEL, fd.get(), nullptr);
    fd.reset();
}

// The program may have closed all of them (closefrom) and have files of its own by their numbers: their peers are lost.
// An epoll set is known by its listeners, because it has no inode of its own.
void Tcp::look_at_sockets() {
    const auto now = Clock::now();
    if (now < next_look_) return;
    next_look_ = now + kLookInterval;
    bool all = epoll_.is_ours();
    for (KeptFd& listener : listeners_) {
        if (!listener.valid() || listener.is_ours()) continue;
        listener.release();
        all = false;
    }
    if (!all) epoll_.release();
    std::erase_if(pending_callers_, [](const PendingCaller& one) { return !one.fd.is_ours(); });
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
        Lane* const one = lane(rank);
        if (one == nullptr) continue;
        if (!one->parked.is_ours()) one->parked.release();
        if (!one->fd.valid() || (all && one->fd.is_ours())) continue;
        drop_call(*one);
        fail_later(*one, "its connection was closed by this program");
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
