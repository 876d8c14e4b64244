// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/udp_port.hpp"

#include <netinet/udp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/format.hpp"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace viaduct::udp {

namespace {

// Payloads from this size on are read where they lie, by the kernel's own copy.
constexpr uint32_t kZeroCopyFrom = 2048;
constexpr uint32_t kMostOfTrain = 64;          // frames (UDP_MAX_SEGMENTS)
constexpr uint32_t kTrainBytes = 65'535 - 28;  // a datagram's most
constexpr uint32_t kLeastWindow = 8, kUsualWindow = 64;

// Hot calls call it, so it throws nothing: if an allocation fails, the log lacks the line.
void log_too_large(const NicAddress& own, uint32_t frame) try {
    VIADUCT_LOG(warn, "udp",
                "%s: frames of up to %u bytes are larger than the interface takes now; new connections find a size "
                "that passes",
                udp::text_of(own).c_str(), frame);
} catch (const std::exception&) {
}

}  // namespace

struct UdpPort::Kept {
    NicAddress to;
    std::vector<std::byte> frame;
};

std::unique_ptr<packet::FramePort> UdpPort::open(const Spec& spec, std::string* why, std::string* cure) {
    Fd socket(above_stdio(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    sockaddr_in own = to_socket_address(spec.address);
    own.sin_port = 0;
    socklen_t bytes = sizeof own;
    if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0) {
        *why = spec.text + ": no UDP socket at " + udp::text_of(spec.address) + ": " + std::strerror(errno);
        *cure = "is the address still there (ip -4 address), and is a descriptor left (ulimit -n)?";
        return nullptr;
    }
    uint64_t token = 0;
    if (::getrandom(&token, sizeof token, 0) != sizeof token) {
        *why = "there are no random numbers to be had";
        *cure = "allow getrandom";
        return nullptr;
    }
    return std::unique_ptr<FramePort>(new UdpPort(spec, std::move(socket), own, token));
}

UdpPort::UdpPort(const Spec& spec, Fd socket, const sockaddr_in& own, uint64_t token)
    : spec_(spec),
      sockets_(std::move(socket), own, {spec.connected, spec.busy_poll_us}),
      data_(from_socket_address(own)),
      daemon_(spec.address, data_, token),
      probe_(spec.address),
      out_room_(size_t{kOut} * spec.max_frame()) {
    for (uint32_t i = 0; i < kOut; ++i) out_[i].frame = out_room_.data() + size_t{i} * spec.max_frame();
    // What a peer may have under way has to fit the buffer, with the kernel's own needs: what does not is lost. Where
    // there is room, two peers at once fit, and a peer may go on for as long as this process waits for a processor.
    const int room = sockets_.receive_room();
    const uint32_t fits = std::max(static_cast<uint32_t>(room) / (2 * spec_.max_frame()), kLeastWindow);
    window_ = std::clamp(fits / 2, std::min(fits, kUsualWindow), wire::kMostInFlight);
    int size = 0;
    socklen_t bytes = sizeof size;
    segments_ = ::getsockopt(sockets_.own(), IPPROTO_UDP, UDP_SEGMENT, &size, &bytes) == 0;
    if (spec_.zero_copy) zero_copy_from_ = kZeroCopyFrom;
    set_faults(0, spec_.faults);
    VIADUCT_LOG(info, "udp", "%s is open at %s, frames up to %u bytes, window %u, receive buffer %d%s",
                udp::text_of(spec_.address).c_str(), udp::text_of(data_).c_str(), max_frame(), window_, room,
                segments_ ? ", UDP_SEGMENT" : "");
}

UdpPort::~UdpPort() { faults_.reset(); }

// ---- frames out

std::byte* UdpPort::begin_frame(uint32_t) {
    if (out_count_ == kOut) send_frames();
    return out_count_ != kOut ? out_[out_count_].frame : nullptr;
}

void UdpPort::end_frame(std::byte*, uint32_t bytes, const NicAddress& to) {
    if (bytes == 0) return;
    Out& o = out_[out_count_];
    o.bytes = o.all = bytes;
    o.pieces = 0;
    o.to = to;
    if (faults_ != nullptr) [[unlikely]]
        return misbehave(o);
    ++out_count_;
}

void UdpPort::end_zero_copy(std::byte*, uint32_t bytes, std::span<const wire::Piece> tail, const NicAddress& to) {
    Out& o = out_[out_count_];
    o.bytes = o.all = bytes;
    o.pieces = static_cast<uint32_t>(tail.size());
    o.to = to;
    for (uint32_t i = 0; i < o.pieces; ++i) {
        o.tail[i] = tail[i];
        o.all += tail[i].bytes;
    }
    ++out_count_;
}

// Frames of a hand-shake go alone: that one arrives shows that its size passes, and trains may pass where frames of
// their size do not (veth looks at no frame within them).
bool UdpPort::goes_alone(const Out& o) { return wire::is_connecting(wire::Kind{wire::load8(o.frame + wire::kKindAt)}); }

// Frames for one peer, all of the size of the first; the last may be shorter.
uint32_t UdpPort::length_of_train(uint32_t first) const {
    const Out& head = out_[first];
    if (!segments_ || goes_alone(head)) return 1;
    uint32_t n = 1, bytes = head.all;
    for (; first + n < out_count_ && n < kMostOfTrain; ++n) {
        const Out& o = out_[first + n];
        if (!(o.to == head.to) || o.all > head.all || bytes + o.all > kTrainBytes || goes_alone(o)) break;
        bytes += o.all;
        if (o.all < head.all) return n + 1;
    }
    return n;
}

// The path of a short message. False: it was not sent.
bool UdpPort::send_alone() {
    const Out& o = out_[0];
    if (o.pieces != 0) return false;
    const Sockets::Route route = sockets_.toward(o.to);
    ssize_t sent = 0;
    if (route.connected) {
        sent = ::send(route.socket, o.frame, o.bytes, MSG_DONTWAIT);
    } else {
        const sockaddr_in to = to_socket_address(o.to);
        sent =
            ::sendto(route.socket, o.frame, o.bytes, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    }
    if (sent >= 0) [[likely]]
        return true;
    if (errno == ENOBUFS) return note_failure(errno, 1);
    if (errno != EAGAIN) sockets_.note_error();
    return false;
}

// What one system call sends.
struct UdpPort::Batch {
    struct alignas(cmsghdr) Control {
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    };
    std::array<mmsghdr, kOut> messages;
    std::array<sockaddr_in, kOut> addresses;
    std::array<iovec, size_t{kOut} * (1 + wire::kMostPieces)> parts;
    std::array<uint32_t, kOut> lengths;  // in frames
    std::array<Control, kOut> controls;
};

// The datagrams from that frame on that go this route.
uint32_t UdpPort::fill(Batch& b, uint32_t first, Sockets::Route route) {
    uint32_t count = 0;
    size_t part = 0;
    for (uint32_t at = first; at < out_count_ && (!route.connected || out_[at].to == out_[first].to); ++count) {
        const uint32_t n = b.lengths[count] = length_of_train(at);
        msghdr& m = b.messages[count].msg_hdr;
        m = {};
        if (!route.connected) {
            b.addresses[count] = to_socket_address(out_[at].to);
            m.msg_name = &b.addresses[count];
            m.msg_namelen = sizeof(sockaddr_in);
        }
        m.msg_iov = &b.parts[part];
        for (uint32_t i = 0; i < n; ++i) {
            const Out& o = out_[at + i];
            b.parts[part++] = {o.frame, o.bytes};
            for (uint32_t p = 0; p < o.pieces; ++p)
                b.parts[part++] = {const_cast<std::byte*>(o.tail[p].at), o.tail[p].bytes};
        }
        m.msg_iovlen = static_cast<size_t>(&b.parts[0] + part - m.msg_iov);
        if (n > 1) {
            const auto each = static_cast<uint16_t>(out_[at].all);
            m.msg_control = b.controls[count].bytes;
            m.msg_controllen = sizeof b.controls[count].bytes;
            cmsghdr* const c = CMSG_FIRSTHDR(&m);
            c->cmsg_level = IPPROTO_UDP;
            c->cmsg_type = UDP_SEGMENT;
            c->cmsg_len = CMSG_LEN(sizeof each);
            std::memcpy(CMSG_DATA(c), &each, sizeof each);
            ++counters_.trains;
        }
        at += n;
    }
    return count;
}

void UdpPort::send_frames() {
    if (faults_ != nullptr) [[unlikely]]
        release_held();
    const CancellationHeldOff inside_hot_calls;
    if (out_count_ == 1 && send_alone()) {
        out_count_ = 0;
        return;
    }
    uint32_t first = 0;
    bool only_own = false;
    while (first < out_count_) {
        Batch b;
        const Sockets::Route route = only_own ? Sockets::Route{sockets_.own(), false} : sockets_.toward(out_[first].to);
        const uint32_t count = fill(b, first, route);
        const int sent = count == 1 ? (::sendmsg(route.socket, &b.messages[0].msg_hdr, MSG_DONTWAIT) >= 0 ? 1 : -1)
                                    : ::sendmmsg(route.socket, b.messages.data(), count, MSG_DONTWAIT);
        for (int i = 0; i < sent; ++i) first += b.lengths[static_cast<size_t>(i)];
        if (sent > 0) continue;
        if (errno == EINTR) continue;
        if (!only_own && errno != EAGAIN && errno != ENOBUFS) {  // what an earlier frame met on its way, perhaps
            sockets_.note_error();
            only_own = true;
            continue;
        }
        if (!note_failure(errno, b.lengths[0])) break;
        if (b.lengths[0] > 1 && !segments_) continue;  // once more, each alone
        first += b.lengths[0];                         // lost, as on the way
    }
    keep_rest(first);
}

// False: the socket takes no more now.
bool UdpPort::note_failure(int error, uint32_t frames) {
    switch (error) {
        case EAGAIN:
        case ENOMEM:
            counters_.not_taken += frames;
            return false;
        case ENOBUFS:  // the device has dropped it: a socket that keeps reports (IP_RECVERR) says so
            counters_.lost += frames;
            return true;
        case EMSGSIZE:
            counters_.too_large += frames;
            if (!told_too_large_) log_too_large(spec_.address, max_frame());
            told_too_large_ = true;
            return true;
        case EINVAL:
        case EIO:
            if (frames > 1) segments_ = false;  // not on this interface
            [[fallthrough]];
        default:
            counters_.lost += frames;
            return true;
    }
}

// What the socket has not taken waits in our own memory.
void UdpPort::keep_rest(uint32_t first) {
    for (uint32_t i = first; i < out_count_; ++i) {
        Out& o = out_[i];
        for (uint32_t p = 0; p < o.pieces; ++p) {
            std::memcpy(o.frame + o.bytes, o.tail[p].at, o.tail[p].bytes);
            o.bytes += o.tail[p].bytes;
        }
        o.pieces = 0;
        if (first != 0) std::swap(out_[i - first], o);
    }
    out_count_ -= first;
}

// ---- frames in

// True: it was a frame.
bool UdpPort::take_one(Take take, void* argument, const NicAddress& from, std::span<const std::byte> frame) {
    if (wire::load8(frame.data()) != Envelope::kMark) [[likely]] {
        take(argument, frame, from);
        return true;
    }
    Envelope e;
    if (frame.size() < sizeof e || !(from == spec_.address)) {
        ++counters_.foreign;
        return false;
    }
    std::memcpy(&e, frame.data(), sizeof e);
    if (!daemon_.is_from_daemon(e)) {
        ++counters_.foreign;
        return false;
    }
    if (e.what == Envelope::known) daemon_.note_known(e.number);
    if (e.what == Envelope::request) take(argument, frame.subspan(sizeof e), e.from);
    return e.what == Envelope::request;
}

// One fetch at a time: what has come is answered before more is fetched.
uint32_t UdpPort::receive_into(Take take, void* argument) {
    uint32_t n = 0;
    std::span<const std::byte> frame;
    NicAddress from;
    if (in_.is_empty() && !sockets_.take([this](int socket) { return in_.fetch(socket) ? in_.count() : 0u; })) return 0;
    while (n < kBurst && in_.next(&frame, &from)) {
        take_one(take, argument, from, frame);
        ++n;
    }
    return in_.is_empty() && !sockets_.has_ready() ? n : kBurst;  // there is more
}

bool UdpPort::next_unreachable(NicAddress* address) {
    if (in_.met_error()) sockets_.note_error();
    return sockets_.next_closed(address);
}

bool UdpPort::may_sleep() {
    daemon_.look_after(now_ns());
    if (in_.met_error()) sockets_.note_error();
    sockets_.take_reports();
    sockets_.expect_any();
    return in_.is_empty();
}

// ---- other programs on this address

uint32_t UdpPort::expect_request(const EndAddress& local, bool every) {
    FilterMessage message;
    message.every = every;
    message.local = local;
    return daemon_.add(message, now_ns());
}

void UdpPort::attend() { daemon_.attend(now_ns()); }

bool UdpPort::still_expects(uint32_t number) {
    daemon_.look_after(now_ns());
    return !daemon_.is_refused(number);
}

uint32_t UdpPort::expect_peer(const EndAddress& local, const EndAddress& remote, wire::LinkId own) {
    FilterMessage message;
    message.peer = 1;
    message.link = own;
    message.local = local;
    message.remote = remote;
    return daemon_.add(message, now_ns());
}

// ---- fault plans

bool UdpPort::set_faults(wire::LinkId link, const FaultPlan& plan) {
    if (faults_ == nullptr && !plan.active()) return true;
    if (faults_ == nullptr) faults_ = std::make_unique<packet::FaultyWire>(static_cast<packet::FrameKeeper&>(*this));
    zero_copy_from_ = UINT32_MAX;   // frames may be held back
    faults_->set_plan(link, plan);  // it stays: there may be frames in it
    return true;
}

void* UdpPort::copy_of(void* frame) { return new Kept(*static_cast<Kept*>(frame)); }
void UdpPort::free(void* frame) { delete static_cast<Kept*>(frame); }

void UdpPort::misbehave(const Out& o) {
    auto* const kept = new Kept{o.to, {o.frame, o.frame + o.bytes}};
    const uint32_t source = wire::load32(o.frame + wire::kSourceAt);
    void* now[2];
    const uint32_t n = faults_->pass(kept, source, kept->frame, now_ns(), now);
    for (uint32_t i = 0; i < n; ++i) place(static_cast<Kept*>(now[i]));
}

// One frame too many is lost as well.
void UdpPort::place(Kept* kept) {
    const std::unique_ptr<Kept> owned(kept);
    if (out_count_ == kOut) return;
    Out& o = out_[out_count_++];
    std::memcpy(o.frame, kept->frame.data(), kept->frame.size());
    o.bytes = o.all = static_cast<uint32_t>(kept->frame.size());
    o.pieces = 0;
    o.to = kept->to;
}

void UdpPort::release_held() {
    const int64_t now = now_ns();
    while (out_count_ != kOut) {
        void* const held = faults_->release(now);
        if (held == nullptr) return;
        place(static_cast<Kept*>(held));
    }
}

std::string UdpPort::counters() const {
    const Counters& c = counters_;
    return "connected sockets " + std::to_string(sockets_.connected()) + ", closed ports " +
           std::to_string(sockets_.closed_reports()) + ", questions refused " + std::to_string(probe_.refused()) +
           ", trains out " + std::to_string(c.trains) + ", in " + std::to_string(in_.trains()) + ", too large " +
           std::to_string(c.too_large) + ", not taken " + std::to_string(c.not_taken) + ", lost otherwise " +
           std::to_string(c.lost) + ", foreign " + std::to_string(c.foreign);
}

}  // namespace viaduct::udp
