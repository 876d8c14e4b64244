// SPDX-License-Identifier: BSD-2-Clause
// Connections that others make to this process. Any process may connect to a port. A caller that has not proved with
// its first bytes that it has the key of a pair is pending: pending callers are few, the oldest one is closed first,
// and an invalid Hello closes a caller.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/clock/limits.hpp"
#include "mpi-adi/transport/tcp/sockets.hpp"
#include "mpi-adi/transport/tcp/tcp.hpp"

namespace viaduct::tcp {

namespace {

constexpr size_t kMostPendingCallers = 256;
constexpr size_t kMostNonces = 4096;

}  // namespace

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
        pending_caller.fd = KeptFd(std::move(fd));
        pending_caller.timeout_at = Clock::now() + std::chrono::nanoseconds(limit_ns(TimeLimit::mpi_tcp_hello));
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

void Tcp::called(Lane& lane, KeptFd fd, const Nonce& caller_nonce) {
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

void Tcp::answer(Lane& lane, KeptFd fd, const Nonce& caller_nonce) {
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

}  // namespace viaduct::tcp
