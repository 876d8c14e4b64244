// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/daemon/server.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "providers/acenic/exclusive_port.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/version_answer.hpp"

namespace viaduct::acenic {

using wire::Kind;

namespace {

constexpr int64_t kSpin = 20'000;             // looked for work for so long before sleeping
constexpr int64_t kSocketsEvery = 1'000'000;  // deaths and newcomers are noticed so soon while busy
constexpr int64_t kRefuseFor = 200'000'000;
constexpr int kLongestSleepUs = 1'000'000;
constexpr int kLookAgainUs = 100;               // a port without a descriptor to wait for
constexpr size_t kSilentOfOneUser = 32;
constexpr size_t kSilentInAll = 2 * kPlaces;
constexpr uint32_t kCommandsPerRound = 16;
constexpr int kBurstsPerRound = 2;
// For frames that wait: some of the largest messages for each of a few hosts that are behind.
constexpr size_t kCardMemory = size_t{32} << 20;

// Frames of these kinds concern requests and are checked by more than the header: they are few and are copied whole.
bool is_checked_whole(std::span<const std::byte> header) {
    return wire::load8(header.data() + 1) < static_cast<uint8_t>(Kind::disconnect);
}

}  // namespace

Server::Server(Options options, Fd listener)
    : options_(std::move(options)),
      epoll_(above_stdio(::epoll_create1(EPOLL_CLOEXEC))),
      admission_(std::move(listener), epoll_.get(), epoll_data_t{this},
                 {"acenicd", kSilentOfOneUser, kSilentInAll, limit_ns(TimeLimit::acenicd_greeting), options_.flaws},
                 closers_),
      memory_(kCardMemory),
      scratch_(wire::kMaxFrame),
      idle_end_(options_.linger_ns, now_ns()) {}

void Server::refuse(const std::string& why, const std::string& cure) {
    refusal_ = why;
    cure_ = cure;
    idle_end_.set_linger(kRefuseFor);  // the next request may succeed
}

void Server::use(std::unique_ptr<Port> port) {
    port_ = std::move(port);
    if (port_->wait_fd() < 0) return;
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.ptr = nullptr;  // the port
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, port_->wait_fd(), &e);
}

void Server::run() {
    SpinWait spin(kSpin);
    while (stop_ == 0) {
        const int64_t now = now_ns();
        if (now - sockets_at_ > kSocketsEvery) look_at_sockets(0);
        const bool worked = port_ != nullptr && round(now);
        close_over();
        if (worked) {
            spin = SpinWait(kSpin);
            continue;
        }
        if (may_leave(now)) return;
        // A sleeping thread is woken at once where others need the processor; a yielding one waits for all of them.
        if (!sessions_.empty() && port_ != nullptr && !crowded() && spin.step()) continue;
        sleep(now);
        spin = SpinWait(kSpin);
    }
}

// ---- moving frames

bool Server::round(int64_t now) {
    bool worked = false;
    for (const auto& s : sessions_)
        if (!s->fifo.empty()) worked = s->fifo.drain(s->firmware) || worked;
    for (int i = 0; i < kBurstsPerRound; ++i) {
        const uint32_t n = port_->receive(
            [&](std::span<const std::byte> frame, const NicAddress& from) { route(frame, {}, from, now); });
        if (n == 0) break;
        worked = true;
    }
    const size_t count = sessions_.size();
    ++next_first_;
    for (size_t i = 0; i < count; ++i) {
        Session& s = *sessions_[(i + next_first_) % count];
        if (s.stage != Session::Stage::running) continue;
        run_commands(s, now);
        worked = send_frames(s, now) || worked;
    }
    port_->transmit();
    for (const auto& s : sessions_)
        if (s->stage == Session::Stage::running && s->firmware.publish()) send_look(s->socket.get());
    return worked;
}

void Server::run_commands(Session& s, int64_t now) {
    tigon::Firmware& nic = s.firmware;
    tigon::Packed c;
    for (uint32_t i = 0; i < kCommandsPerRound && nic.next_command(&c); ++i) {
        switch (c.id) {
            case tigon::kHostState:
                s.up = c.code == tigon::kUp;
                nic.post_event(tigon::kLinkState, tigon::kUp, 0);
                break;
            case tigon::kUpdateStatistics:
            case tigon::kRefreshStatistics:
                nic.update_statistics();
                break;
            case tigon::kClearStatistics:
                nic.clear_statistics();
                break;
            case tigon::kAddFilter: {
                using Entry = tigon::FilterEntry;
                const Entry e = nic.filter(c.index);
                if (e.kind > Entry::every_request || e.local.discriminator_len > kMaxDiscriminator ||
                    e.remote.discriminator_len > kMaxDiscriminator) {
                    nic.post_event(tigon::kError, tigon::kBadConfiguration, c.id);
                    break;
                }
                Held held;
                const bool every = e.kind == Entry::every_request;
                steering_.add(s.slot, {c.index, e.kind == Entry::peer, e.link, e.local, e.remote, {}, 0, every}, now,
                              &held);
                if (!held.frame.empty()) route(held.frame, {}, held.from, now);
                nic.post_event(tigon::kFilterAdded, 0, c.index);
                break;
            }
            case tigon::kSetFaults: {
                const tigon::FaultEntry e = nic.faults(c.index);
                set_faults(s, e.link, e.plan);
                break;
            }
            case tigon::kDeleteFilter:
                steering_.remove(s.slot, c.index, c.code == 1);
                break;
            case tigon::kResetJumbo:
                nic.post_event(tigon::kError, tigon::kUnimplemented, c.id);
                break;
            default:
                nic.post_event(tigon::kError, tigon::kInvalidCommand, c.id);
        }
    }
}

// True: there was something.
bool Server::send_frames(Session& s, int64_t now) {
    std::span<const std::byte> packet;
    uint32_t n = 0;
    for (; n < s.sends && s.firmware.next_send(&packet); ++n) {
        NicAddress to;
        std::memcpy(to.bytes, packet.data(), kNicAddressBytes);
        if (packet.size() < tigon::kEthernetHeader + wire::kHeaderBytes ||
            packet.size() > tigon::kEthernetHeader + port_->max_frame()) {
            s.firmware.send_done(false);
        } else if (to == port_->address() && !has_faults(s, packet)) {
            if (!send_local(s, packet.subspan(tigon::kEthernetHeader), now)) break;
        } else if (!send_out(s, packet.subspan(tigon::kEthernetHeader), to)) {
            break;  // the port takes no more now
        }
    }
    return n != 0;
}

// Whether faults are injected into the frames of that link. The port injects them, so these frames go through the port
// even when their receiver is a host of the same port: the port gives back frames that are sent to its own address.
bool Server::has_faults(const Session& s, std::span<const std::byte> packet) const {
    if (options_.faults) return true;
    if (s.faulty.empty()) return false;
    const uint32_t source = wire::load32(packet.data() + tigon::kEthernetHeader + wire::kSourceAt);
    return std::find(s.faulty.begin(), s.faulty.end(), source) != s.faulty.end();
}

// Copies the frame first and checks the copy, because the host may change its frame at any time. False: no room.
bool Server::send_out(Session& s, std::span<const std::byte> frame, const NicAddress& to) {
    std::byte* at = port_->begin_frame(static_cast<uint32_t>(frame.size()));
    if (at == nullptr) return false;
    std::memcpy(at, frame.data(), frame.size());
    const bool good = steering_.outgoing(s.slot, {at, frame.size()}, to);
    port_->end_frame(at, good ? static_cast<uint32_t>(frame.size()) : 0, to);
    s.firmware.send_done(good);
    return true;
}

// Between hosts no frame is lost for want of receive descriptors while the receiver runs: the frame stays in its ring
// for a moment, and the ring of a host that sends too fast fills up.
bool Server::waits_for_room(Session& s, uint32_t link, uint32_t bytes, int64_t now) {
    const Session* target = by_slot_[steering_.slot_of(link)];
    if (target == nullptr || target->stage != Session::Stage::running ||
        (target->fifo.empty() && target->firmware.has_room(bytes))) {
        s.stalled_since = 0;
        return false;
    }
    if (s.stalled_since == 0) s.stalled_since = now;
    return now - s.stalled_since < limit_ns(TimeLimit::acenicd_stall);
}

// To our own address: to another host of this port, or to the same one. False: not yet.
bool Server::send_local(Session& s, std::span<const std::byte> frame, int64_t now) {
    size_t checked = wire::kHeaderBytes;
    std::memcpy(scratch_.data(), frame.data(), checked);
    if (!is_checked_whole({scratch_.data(), checked})) {
        const auto bytes = static_cast<uint32_t>(tigon::kEthernetHeader + frame.size());
        if (waits_for_room(s, wire::load32(scratch_.data() + 4), bytes, now)) return false;
    } else {
        std::memcpy(scratch_.data() + checked, frame.data() + checked, frame.size() - checked);
        checked = frame.size();
    }
    const std::span<const std::byte> head(scratch_.data(), checked);
    const bool good = steering_.outgoing(s.slot, head, port_->address());
    s.firmware.send_done(good);
    if (good) route(head, frame.subspan(checked), port_->address(), now);
    return true;
}

void Server::route(std::span<const std::byte> head, std::span<const std::byte> rest, const NicAddress& from,
                   int64_t now) {
    if (!head.empty() && wire::load8(head.data()) != wire::kVersion) [[unlikely]]
        return on_strange_version(head, rest, from, now);
    const Target target = steering_.incoming(head, from, now);
    if (target.slot == kNoSlot) {
        if (target.answer != Kind{}) answer(target.answer, head, target.nonce, from, now);
        return;
    }
    deliver(target.slot, head, rest, from);
}

void Server::deliver(uint32_t slot, std::span<const std::byte> head, std::span<const std::byte> rest,
                     const NicAddress& from) {
    Session* s = by_slot_[slot];
    if (s == nullptr) return;
    std::byte front[tigon::kEthernetHeader + wire::kHeaderBytes];
    wire::Ethernet link{from};
    link.write(front, port_->address(), 0);
    if (head.size() < wire::kHeaderBytes) return;
    std::memcpy(front + tigon::kEthernetHeader, head.data(), wire::kHeaderBytes);
    // What is dropped counts as lost on the wire, whose protocol sends it again, but not at Unreliable.
    s->fifo.deliver(s->firmware, front, rest.empty() ? head.subspan(wire::kHeaderBytes) : rest);
}

// ---- frames of our own: what a node says of links it does not have

void Server::on_strange_version(std::span<const std::byte> head, std::span<const std::byte> rest,
                                const NicAddress& from, int64_t now) {
    if (rest.empty() && wire::is_version_answer(head)) {  // to a request of one of the hosts
        wire::VersionAnswer a;
        if (wire::read_version_answer(head, &a)) deliver(steering_.slot_of(a.source), head, rest, from);
        return;
    }
    if (!rest.empty() || !wire::asks_for_version(head) || !answers_.allows(now)) return;
    std::byte bytes[wire::kVersionAnswerBytes];
    wire::make_version_answer(head, bytes);
    send_own(bytes, from, now);
    if (now < next_version_report_) return;
    next_version_report_ = now + wire::Tuning{}.tell_again;
    VIADUCT_LOG(warn, "acenicd", "a host speaks version %u of the wire format, this one version %u",
                wire::load8(head.data()), wire::kVersion);
}

void Server::answer(Kind kind, std::span<const std::byte> frame, uint64_t nonce, const NicAddress& to,
                    int64_t now) {
    std::byte bytes[packet::kNoMatchBytes];
    if (kind == Kind::no_match) {
        if (packet::make_no_match(frame, nonce, bytes)) send_own(bytes, to, now);
        return;
    }
    if ((wire::load16(frame.data() + 2) & wire::kFlagTagged) != 0) return;  // we have no key
    if (!answers_.allows(now)) return;
    wire::Header h;
    h.kind = kind;
    h.destination = wire::load32(frame.data() + wire::kSourceAt);
    h.source = wire::load32(frame.data() + 4);
    h.sequence = wire::load32(frame.data() + 16);
    h.acknowledge = wire::load32(frame.data() + 12);
    h.pass = wire::load64(frame.data() + wire::kPassAt);
    wire::seal(bytes, h);
    send_own({bytes, wire::kHeaderBytes + h.length}, to, now);
}

void Server::send_own(std::span<const std::byte> frame, const NicAddress& to, int64_t now) {
    if (to == port_->address()) return route(frame, {}, to, now);
    std::byte* at = port_->begin_frame(static_cast<uint32_t>(frame.size()));
    if (at == nullptr) return;  // a client without an answer asks again
    std::memcpy(at, frame.data(), frame.size());
    port_->end_frame(at, static_cast<uint32_t>(frame.size()), to);
}

void Server::end_connections(uint32_t slot) {
    std::vector<EndedLink> ended_links;
    steering_.drop(slot, &ended_links);
    if (port_ == nullptr) return;
    const int64_t now = now_ns();
    for (const EndedLink& o : ended_links) {
        std::byte bytes[wire::kHeaderBytes];
        wire::Header h;
        h.kind = Kind::reset;
        h.destination = o.peer_link;
        h.source = o.own_link;
        h.sequence = o.sequence;
        h.pass = o.pass;
        wire::seal(bytes, h);
        send_own(bytes, o.peer, now);
        port_->transmit();
    }
}

// ---- sleeping: every host is told to ring, then everything is looked at once more

void Server::sleep(int64_t now) {
    bool work = false;
    for (const auto& s : sessions_) {
        if (s->stage != Session::Stage::running) continue;
        s->firmware.set_asleep(true, !s->fifo.empty());
        work = work || s->firmware.has_work() || s->fifo.may_drain(s->firmware);
    }
    int timeout = kLongestSleepUs;
    if (port_ != nullptr && port_->wait_fd() < 0 && !sessions_.empty()) timeout = kLookAgainUs;
    if (sessions_.empty()) timeout = static_cast<int>(std::min<int64_t>(idle_end_.left(now) / 1000 + 1, timeout));
    if (port_ != nullptr && port_->held_until() != INT64_MAX)  // frames that a fault plan holds back
        timeout = static_cast<int>(std::clamp<int64_t>((port_->held_until() - now) / 1000 + 1, 0, timeout));
    if (admission_.rests()) timeout = std::min(timeout, static_cast<int>(fair::Acceptor::kRest / 1000));
    look_at_sockets(work ? 0 : timeout);
    for (const auto& s : sessions_)
        if (s->stage == Session::Stage::running) s->firmware.set_asleep(false, false);
}

void Server::log_counters() const {
    if (port_ != nullptr)
        VIADUCT_LOG(info, "acenicd", "%s: %s", options_.port.c_str(),
                    ExclusivePort::counters_text(*port_).c_str());
}

}  // namespace viaduct::acenic
