// SPDX-License-Identifier: BSD-2-Clause
// Frames through sockets. What a socket does not take at once waits in a buffer of fixed size; when that is
// full as well, requests wait. Each field of a frame is checked before it is used.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/tcp/tcp.hpp"

namespace viaduct::tcp {

using protocol::Frame;

namespace {
constexpr int kEvents = 64;
constexpr unsigned kPassesBetweenTimers = 128;
}  // namespace

int Tcp::initialize() {
    buffer_bytes_ = static_cast<size_t>(adi::param_number(adi::Param::tcp_buffer));
    // Room for some frames behind one that waits.
    piece_ = std::min<size_t>(buffer_bytes_ / 2, 1 << 20) - sizeof(Frame);
    eager_limit_ = std::min<size_t>(piece_, 65536);
    mpip_properties& properties = mpip_protocols[MPIP_PROTO_TCP].pt_prop;
    properties = {};
    properties.mp_exclusivity = 0;
    properties.mp_latency_ns = 10000;
    properties.mp_bandwidth_mb = 2000;
    properties.mp_eager_limit = eager_limit_;
    properties.mp_first_frag = properties.mp_max_frag = piece_;
    properties.mp_min_frag = 1;
    properties.mp_cache_size = 256;
    mpip_protocols[MPIP_PROTO_TCP].pt_mtu = static_cast<unsigned>(piece_ + sizeof(Frame));
    return MPIP_SUCCESS;
}

// --- out ---

void Tcp::append(Lane& lane, const void* data, size_t bytes) {
    if (bytes == 0) return;
    if (lane.out_end + bytes > buffer_bytes_) {
        std::memmove(lane.out.get(), lane.out.get() + lane.out_begin, lane.out_end - lane.out_begin);
        lane.out_end -= lane.out_begin;
        lane.out_begin = 0;
    }
    std::memcpy(lane.out.get() + lane.out_end, data, bytes);
    lane.out_end += bytes;
}

// What waits goes as far as the socket takes it.
void Tcp::flush(Lane& lane) {
    while (lane.out_begin < lane.out_end) {
        const ssize_t n = ::send(lane.fd.get(), lane.out.get() + lane.out_begin,
                                 lane.out_end - lane.out_begin, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) break;  // full, or broken, which the next receive finds
        lane.out_begin += static_cast<size_t>(n);
    }
    const bool all = lane.out_begin == lane.out_end;
    if (all) lane.out_begin = lane.out_end = 0;
    if (lane.watching_room == all) {
        lane.watching_room = !all;
        watch(lane.fd.get(), tag(Watched::peer, lane.peer.rank), all ? EPOLLIN : EPOLLIN | EPOLLOUT, true);
    }
}

size_t Lane::eager_limit(bool) const { return std::min(tcp.eager_limit_, piece); }

bool Lane::put(const Frame& frame, const protocol::Payload& payload) {
    const size_t bytes = frame.bytes;
    if (out_end != 0) tcp.flush(*this);
    if (out_end != 0 && tcp.buffer_bytes_ - (out_end - out_begin) < sizeof frame + bytes) return false;
    Frame head = frame;
    head.number = frames_sent;
    const char* data = payload.contiguous();
    std::unique_ptr<char[]> packed;
    if (data == nullptr && bytes != 0) {
        packed.reset(new char[bytes]);
        payload.copy(packed.get(), bytes);
        data = packed.get();
    }
    size_t sent = 0;
    if (out_end == 0) {
        iovec parts[2] = {{&head, sizeof head}, {const_cast<char*>(data), bytes}};
        msghdr message = {};
        message.msg_iov = parts;
        message.msg_iovlen = bytes != 0 ? 2 : 1;
        const ssize_t n = ::sendmsg(fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;  // the next receive finds the reason
        if (n > 0) sent = static_cast<size_t>(n);
    }
    ++frames_sent;
    ++adi::counters[MPIP_PROTO_TCP].mc_packets;
    if (sent == sizeof head + bytes) return true;
    if (sent < sizeof head) {
        tcp.append(*this, reinterpret_cast<const char*>(&head) + sent, sizeof head - sent);
        sent = sizeof head;
    }
    tcp.append(*this, data + (sent - sizeof head), bytes - (sent - sizeof head));
    if (!watching_room) {
        watching_room = true;
        tcp.watch(fd.get(), Tcp::tag(Tcp::Watched::peer, peer.rank), EPOLLIN | EPOLLOUT, true);
    }
    return true;
}

void Lane::start_connecting() {
    if (stage == Stage::idle && error_text == nullptr && !peer.lost()) tcp.call(*this);
}

// --- in ---

void Tcp::take_frames(Lane& lane) {
    while (lane.in_end - lane.in_begin >= sizeof(Frame)) {
        Frame frame;
        std::memcpy(&frame, lane.in.get() + lane.in_begin, sizeof frame);
        if (frame.bytes > lane.piece || frame.number != lane.frames_received) {
            return fail(lane.peer, "it sent an invalid frame");
        }
        const size_t whole = sizeof frame + frame.bytes;
        if (lane.in_end - lane.in_begin < whole) {
            if (buffer_bytes_ - lane.in_begin < whole) break;
            return;
        }
        const char* payload = lane.in.get() + lane.in_begin + sizeof frame;
        lane.in_begin += whole;
        ++lane.frames_received;
        if (!incoming(lane.peer, frame, payload))
            return fail(lane.peer, "it sent a frame that is invalid in this state");
        if (lane.peer.lost()) return;
    }
    // What is left of a frame goes to the front, where the rest of it has room.
    std::memmove(lane.in.get(), lane.in.get() + lane.in_begin, lane.in_end - lane.in_begin);
    lane.in_end -= lane.in_begin;
    lane.in_begin = 0;
}

void Tcp::receive(Lane& lane) {
    const ssize_t n =
        ::recv(lane.fd.get(), lane.in.get() + lane.in_end, buffer_bytes_ - lane.in_end, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return fail(lane.peer, n == 0 ? "its process has ended" : std::strerror(errno));
    lane.in_end += static_cast<size_t>(n);
    take_frames(lane);
}

void Tcp::on_peer(Lane& lane, uint32_t events) {
    if (!lane.fd.valid()) return;
    switch (lane.stage) {
        case Lane::Stage::calling:
            return on_connected(lane);
        case Lane::Stage::hello_sent:
            return on_answer(lane);
        case Lane::Stage::answered:
            return on_proof(lane);
        case Lane::Stage::connected:
            break;
        case Lane::Stage::idle:
        case Lane::Stage::waiting:
            return;
    }
    if (opening_) return;
    if ((events & EPOLLOUT) != 0) flush(lane);
    if ((events & ~EPOLLOUT) != 0) receive(lane);
    if (!lane.peer.lost() && lane.peer.blocked()) push(lane.peer);
}

int Tcp::progress() {
    while (!failed_lanes_.empty()) {
        Lane* lane = failed_lanes_.back();
        failed_lanes_.pop_back();
        if (lane->error_text != nullptr) fail(lane->peer, lane->error_text);
    }
    epoll_event events[kEvents];
    const int n = ::epoll_wait(epoll_.get(), events, kEvents, 0);
    for (int i = 0; i < n; ++i) {
        const auto kind = static_cast<Watched>(events[i].data.u64 >> 32);
        const auto index = static_cast<uint32_t>(events[i].data.u64);
        if (kind == Watched::peer) {
            if (Lane* one = lane(index)) on_peer(*one, events[i].events);
        } else if (kind == Watched::pending_caller) {
            on_pending_caller(static_cast<int>(index));
        } else {
            on_call(index);
        }
    }
    if (++idle_ % kPassesBetweenTimers == 0) {
        look_at_sockets();
        if (calling_ != 0 || !pending_callers_.empty()) run_timers();
    }
    return n > 0 ? n : 0;
}

int Tcp::block(unsigned timeout_us) {
    look_at_sockets();
    if (!epoll_.valid() || !failed_lanes_.empty()) return 0;
    run_timers();
    pollfd watched = {epoll_.get(), POLLIN, 0};
    const timespec timeout = {static_cast<time_t>(timeout_us / 1'000'000),
                              static_cast<long>(timeout_us % 1'000'000) * 1000};
    const adi::SleepScope sleep;
    ::ppoll(&watched, 1, &timeout, nullptr);
    return 0;
}

}  // namespace viaduct::tcp
