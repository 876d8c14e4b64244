// SPDX-License-Identifier: BSD-2-Clause
// Connections that this process makes. Either side may call; when both do at once the call of the lower rank goes
// first: the higher one drops its own, the lower one lays the other's aside until its own is through, so that
// neither misses the death of the other meanwhile. A caller whose connection is closed before the answer tries again,
// until CMPI_CONNECT_TIMEOUT: its first bytes may have been late.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/clock/limits.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/tcp/sockets.hpp"
#include "mpi-adi/transport/tcp/tcp.hpp"

namespace viaduct::tcp {

namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(5);
constexpr auto kLongestPause = std::chrono::milliseconds(500);

bool can_write(int fd) {
    pollfd watched = {fd, POLLOUT, 0};
    return ::poll(&watched, 1, 0) > 0;
}

}  // namespace

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
        lane.fd = KeptFd(std::move(fd));
        lane.stage = Lane::Stage::calling;
        lane.timeout_at = Clock::now() + std::chrono::nanoseconds(limit_ns(TimeLimit::mpi_tcp_connect));
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

void Tcp::finish_handshake(Lane& lane) {
    lane.stage = Lane::Stage::connected;
    lane.error_text = nullptr;
    lane.parked.reset();
    lane.in.reset(new char[buffer_bytes_]);
    lane.out.reset(new char[buffer_bytes_]);
    lane_ready(lane.peer);
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

}  // namespace viaduct::tcp
