// SPDX-License-Identifier: BSD-2-Clause
// The sockets of a port, all at one address and UDP port. The own one sends to every peer and takes what comes from
// every peer. The few peers that most frames go to have a socket each that is connected to them: the kernel then looks
// for no route with each frame, and finds the receiver of theirs at once. A connected socket is never needed: what one
// cannot send goes through the own one, and where none can be had there is none.
//
// A socket keeps the errors that routers and hosts report (ICMP), and a call on it fails once for each. That a port is
// closed is a hint for the protocol, since any host can forge it. Other errors decide nothing.
//
// What a peer has sent before it had a socket here is taken before what comes to that socket: frames of a peer keep
// their order, which the Unreliable level does not restore.
//
// A connected socket stays until the port is closed; it only changes its peer. Closed earlier, a forked child that has
// inherited it would go on to receive the frames of its peer.
//
// Used by UdpPort, under the engine's lock.
#pragma once

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/shm/segment.hpp"
#include "viaduct/types.hpp"

namespace viaduct::udp {

class Sockets {
public:
    static constexpr uint32_t kMostConnected = 64;

    // `own` is bound to `address`, and has the options that each of these sockets gets.
    struct Options {
        uint32_t connected = 0;  // how many there may be
        int busy_poll_us = 0;    // 0: what the system says
    };
    Sockets(Fd own, const sockaddr_in& address, const Options&);

    int own() const { return own_.get(); }
    // A call on one of them has failed for another reason than want of room or frames: there may be reports.
    void note_error() { reports_ = true; }
    // Takes the reports: a socket that has some is readable until then.
    void take_reports();
    // A peer whose port has been reported as closed. False: none more.
    bool next_closed(NicAddress* peer);
    uint64_t closed_reports() const { return closed_reports_; }
    // Readable when one of them is.
    int wait_fd() const { return epoll_.valid() ? epoll_.get() : own_.get(); }
    // What the kernel grants each of them for frames that wait to be taken.
    int receive_room() const { return receive_room_; }

    struct Route {
        int socket;
        bool connected;  // no address is named
    };
    // How frames leave to that peer. Counts them.
    Route toward(const NicAddress& to) {
        if (last_ < ways_.size() && ways_[last_].peer == to) [[likely]] {
            ++ways_[last_].uses;
            return {ways_[last_].socket.get(), true};
        }
        return look_up(to);
    }

    // Takes from one socket by `from(socket)`: the number of datagrams, 0 when nothing was there. The socket that had
    // something last is tried at once, the others now and then: seldom as long as they have nothing.
    template <class From>
    bool take(From from) {
        if (ways_.empty()) return from(own_.get()) != 0;
        if (own_first_ != 0) [[unlikely]] {
            const uint32_t taken = from(own_.get());
            own_first_ = taken != 0 ? own_first_ - std::min(taken, own_first_) : 0;
            if (taken != 0) return true;
        }
        if (next_ready_ == ready_count_) {
            if (--until_all_ != 0) return from(likely_) != 0;
            find_ready();
        }
        while (next_ready_ != ready_count_) {
            const int socket = ready_[next_ready_++];
            if (from(socket) == 0) continue;
            likely_ = socket;
            return true;
        }
        return false;
    }
    // Sockets are known from which nothing has been taken yet.
    bool has_ready() const { return next_ready_ != ready_count_; }
    bool has_reports() const { return reports_; }
    // A thread may sleep now: what wakes it may be any of them.
    void expect_any() { until_all_ = std::min(until_all_, 2u); }
    uint32_t connected() const { return static_cast<uint32_t>(ways_.size()); }

private:
    struct Connected {
        NicAddress peer;
        Fd socket;
        uint32_t uses = 0;  // counted down when another peer asks for a socket
    };
    struct Candidate {
        NicAddress peer;
        uint32_t uses = 0;
    };
    static constexpr uint32_t kCandidates = 16;
    static constexpr uint32_t kSeldom = 8;
    Route look_up(const NicAddress& to);
    bool counts_enough(const NicAddress& to);
    bool connect_to(const NicAddress& peer);
    bool bind_beside(int socket);
    Connected* least_used();
    bool has_frames(int socket);
    bool take_reports_of(int socket);
    uint32_t most_in_own() const;
    bool watch(int socket);
    void find_ready();

    const Fd own_;
    const sockaddr_in address_;
    Options options_;
    Fd epoll_;
    int receive_room_ = 0;
    std::vector<Connected> ways_;
    uint32_t last_ = 0;  // of ways_: where the last frame went
    std::array<Candidate, kCandidates> candidates_{};

    static constexpr uint32_t kMostClosed = 16;
    bool reports_ = false;  // there may be some that have not been taken
    std::array<NicAddress, kMostClosed> closed_{};
    uint32_t closed_count_ = 0;
    uint64_t closed_reports_ = 0;

    int likely_;
    uint32_t own_first_ = 0;              // datagrams of the own socket that come before those of others
    uint32_t until_all_ = 1, every_ = 1;  // takes until all are asked, and between
    std::array<int, kMostConnected + 1> ready_{};
    uint32_t ready_count_ = 0, next_ready_ = 0;
};

}  // namespace viaduct::udp
