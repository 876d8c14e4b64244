// SPDX-License-Identifier: BSD-2-Clause
// Frames through sockets. What a socket does not take at once waits in a buffer of fixed size; when that is
// full as well, requests wait. Nothing of a frame is believed before it is checked.
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

using stream::Frame;

namespace {
constexpr int kEvents = 64;
constexpr unsigned kPassesBetweenLooks = 128;
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

void Tcp::append(Peer& peer, const void* data, size_t bytes) {
    if (bytes == 0) return;
    if (peer.out_end + bytes > buffer_bytes_) {
        std::memmove(peer.out.get(), peer.out.get() + peer.out_begin, peer.out_end - peer.out_begin);
        peer.out_end -= peer.out_begin;
        peer.out_begin = 0;
    }
    std::memcpy(peer.out.get() + peer.out_end, data, bytes);
    peer.out_end += bytes;
}

// What waits goes as far as the socket takes it; true: all.
bool Tcp::flush(Peer& peer) {
    while (peer.out_begin < peer.out_end) {
        const ssize_t n = ::send(peer.fd.get(), peer.out.get() + peer.out_begin,
                                 peer.out_end - peer.out_begin, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) break;  // full; or broken, which the next look at the socket tells
        peer.out_begin += static_cast<size_t>(n);
    }
    const bool all = peer.out_begin == peer.out_end;
    if (all) peer.out_begin = peer.out_end = 0;
    if (peer.watching_room == all) {
        peer.watching_room = !all;
        watch(peer.fd.get(), tag(Watched::peer, peer.rank), all ? EPOLLIN : EPOLLIN | EPOLLOUT, true);
    }
    return all;
}

bool Tcp::put(stream::Connection& c, const Frame& frame, const void* payload, const mpip_req_t* source,
              size_t offset) {
    Peer& peer = static_cast<Peer&>(c);
    if (!peer.ready) {
        reach_out(peer);
        return false;
    }
    const size_t bytes = frame.bytes;
    if (peer.out_end != 0 && !flush(peer) &&
        buffer_bytes_ - (peer.out_end - peer.out_begin) < sizeof frame + bytes)
        return false;
    Frame head = frame;
    head.number = peer.frames_sent;
    const char* data = static_cast<const char*>(payload);
    std::unique_ptr<char[]> packed;
    if (source != nullptr && bytes != 0) {
        if (mpip_req_is_contig(source)) {
            data = static_cast<const char*>(source->r_buf) + offset;
        } else {
            packed.reset(new char[bytes]);
            mpip_req_collect(source, offset, packed.get(), bytes);
            data = packed.get();
        }
    }
    size_t gone = 0;
    if (peer.out_end == 0) {
        iovec parts[2] = {{&head, sizeof head}, {const_cast<char*>(data), bytes}};
        msghdr message = {};
        message.msg_iov = parts;
        message.msg_iovlen = bytes != 0 ? 2 : 1;
        const ssize_t n = ::sendmsg(peer.fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;  // the next look at the socket tells
        if (n > 0) gone = static_cast<size_t>(n);
    }
    ++peer.frames_sent;
    ++adi::counters[MPIP_PROTO_TCP].mc_packets;
    if (gone == sizeof head + bytes) return true;
    if (gone < sizeof head) {
        append(peer, reinterpret_cast<const char*>(&head) + gone, sizeof head - gone);
        gone = sizeof head;
    }
    append(peer, data + (gone - sizeof head), bytes - (gone - sizeof head));
    if (!peer.watching_room) {
        peer.watching_room = true;
        watch(peer.fd.get(), tag(Watched::peer, peer.rank), EPOLLIN | EPOLLOUT, true);
    }
    return true;
}

void Tcp::reach_out(stream::Connection& c) {
    Peer& peer = static_cast<Peer&>(c);
    if (peer.stage == Peer::Stage::idle && peer.trouble == nullptr && !peer.lost) call(peer);
}

bool Tcp::flushed(const stream::Connection& c) const { return static_cast<const Peer&>(c).out_end == 0; }

// --- in ---

void Tcp::take_frames(Peer& peer) {
    while (peer.in_end - peer.in_begin >= sizeof(Frame)) {
        Frame frame;
        std::memcpy(&frame, peer.in.get() + peer.in_begin, sizeof frame);
        if (frame.bytes > peer.piece || frame.number != peer.frames_had) {
            return fail(peer, "it sent a frame that cannot be");
        }
        const size_t whole = sizeof frame + frame.bytes;
        if (peer.in_end - peer.in_begin < whole) {
            if (buffer_bytes_ - peer.in_begin < whole) break;
            return;
        }
        const char* payload = peer.in.get() + peer.in_begin + sizeof frame;
        peer.in_begin += whole;
        ++peer.frames_had;
        if (!incoming(peer, frame, payload)) return fail(peer, "it sent a frame that makes no sense here");
        if (peer.lost) return;
    }
    // What is left of a frame goes to the front, where the rest of it has room.
    std::memmove(peer.in.get(), peer.in.get() + peer.in_begin, peer.in_end - peer.in_begin);
    peer.in_end -= peer.in_begin;
    peer.in_begin = 0;
}

void Tcp::receive(Peer& peer) {
    const ssize_t n =
        ::recv(peer.fd.get(), peer.in.get() + peer.in_end, buffer_bytes_ - peer.in_end, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return fail(peer, n == 0 ? "its process has ended" : std::strerror(errno));
    peer.in_end += static_cast<size_t>(n);
    take_frames(peer);
}

void Tcp::on_peer(Peer& peer, uint32_t events) {
    if (!peer.fd.valid()) return;
    switch (peer.stage) {
        case Peer::Stage::calling:
            return on_connected(peer);
        case Peer::Stage::greeting:
            return on_answer(peer);
        case Peer::Stage::answering:
            return on_proof(peer);
        case Peer::Stage::talking:
            break;
        case Peer::Stage::idle:
        case Peer::Stage::waiting:
            return;
    }
    if (opening_) return;
    if ((events & EPOLLOUT) != 0) flush(peer);
    if ((events & ~EPOLLOUT) != 0) receive(peer);
    if (!peer.lost && blocked(peer)) push(peer);
}

int Tcp::progress() {
    while (!troubled_.empty()) {
        Peer* peer = troubled_.back();
        troubled_.pop_back();
        if (peer->trouble != nullptr) fail(*peer, peer->trouble);
    }
    epoll_event events[kEvents];
    const int n = ::epoll_wait(epoll_.get(), events, kEvents, 0);
    for (int i = 0; i < n; ++i) {
        const auto kind = static_cast<Watched>(events[i].data.u64 >> 32);
        const auto index = static_cast<uint32_t>(events[i].data.u64);
        if (kind == Watched::peer) {
            if (index < connections.size()) on_peer(*peer(index), events[i].events);
        } else if (kind == Watched::stranger) {
            on_stranger(static_cast<int>(index));
        } else {
            on_call(index);
        }
    }
    if (++idle_ % kPassesBetweenLooks == 0 && (calling_ != 0 || !strangers_.empty())) look_for_late();
    return n > 0 ? n : 0;
}

void Tcp::block(unsigned timeout_us) {
    if (!epoll_.valid() || !troubled_.empty()) return;
    look_for_late();
    pollfd watched = {epoll_.get(), POLLIN, 0};
    const timespec timeout = {timeout_us / 1'000'000, static_cast<long>(timeout_us % 1'000'000) * 1000};
    const adi::Asleep asleep;
    ::ppoll(&watched, 1, &timeout, nullptr);
}

}  // namespace viaduct::tcp
