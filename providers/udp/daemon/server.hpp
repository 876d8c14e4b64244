// SPDX-License-Identifier: BSD-2-Clause
// viaduct-udpd: has the UDP port of a NIC that requests come to, and passes each on to the program that waits for it.
// Programs answer from ports of their own and everything else goes there directly: nothing of a connection passes
// through here. It answers at the ports of programs that have ended (dead_ports.hpp). One thread. Root's serves all
// users: each of them has as many sessions and filters as stay free beside his own, what they say is read in turns of
// equal time (core/fair), however many sessions one of them has, and no file that a user hands over is closed where
// that may take long. A request of a program of this host goes to programs of its user and of root alone, unless
// agent.cross_user is true.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/daemon/admission.hpp"
#include "core/daemon/idle_end.hpp"
#include "core/fair/places.hpp"
#include "core/fair/turns.hpp"
#include "core/shm/foreign_files.hpp"
#include "core/shm/segment.hpp"
#include "providers/packet/requests.hpp"
#include "providers/udp/daemon/dead_ports.hpp"
#include "providers/udp/daemon/protocol.hpp"
#include "providers/udp/daemon/socket_owner.hpp"
#include "providers/wire/answer_rate.hpp"
#include "providers/wire/host.hpp"

namespace viaduct::udp {

class RequestServer final : private daemon::Admission::Daemon {
public:
    struct Options {
        NicAddress address;
        int64_t linger_ns = 0;  // leave so long after the last program; negative: stay
        bool cross_user = false;  // agent.cross_user: a request of this host may reach programs of any user
        uint32_t flaws = 0;       // that it has inherited; a program without them may have the daemon replaced
    };

    RequestServer(Options, Fd listener);
    // The port. Where it cannot be had, every program is refused with the reason.
    bool open_port(std::string* why, std::string* cure);
    void refuse(const std::string& why, const std::string& cure);
    // Until the linger is over, or stop() (from a signal handler).
    void run();
    void stop() { stop_ = 1; }

private:
    struct Session : daemon::Program {
        explicit Session(daemon::Program&& p) : Program(std::move(p)) {}

        uint32_t slot = 0;
        bool greeted = false, over = false;
        bool refused = false;  // and may still have the daemon replaced
        uint64_t token = 0;
        NicAddress data;
    };

    void look(int timeout_ms);
    void serve_in_turns();
    bool enter(daemon::Program&) override;
    void turn_away(const daemon::Program&) override;
    void evict(uint64_t number) override;
    void take_messages(Session&);
    bool sends_files(Session&);
    Status take_hello(const daemon::Program&, Hello*);
    void on_hello(Session&);
    void on_filter(Session&, const FilterMessage&);
    void end_for(const Session&);
    void update_filter_count(const Session&, size_t before);
    void close_over();
    Session* session_numbered(uint64_t number);
    Session* session_of(uint32_t slot);

    void take_frames();
    void route(std::span<const std::byte> frame, const NicAddress& from);
    void pass_to(Session&, Envelope, std::span<const std::byte> frame);
    void send(std::span<const std::byte> bytes, const NicAddress& to);

    Options options_;
    Fd epoll_, port_;
    Closers closers_;
    daemon::Admission admission_;
    std::string refusal_, cure_;
    packet::Requests requests_{true, ::geteuid()};
    SocketOwner socket_owner_;
    std::vector<std::unique_ptr<Session>> sessions_;
    fair::Turns turns_;  // of sessions that have said something, by number
    DeadPorts dead_ports_;
    fair::Places greeted_;  // sessions that have had their welcome
    fair::Places filters_;
    uint32_t last_slot_ = 0;
    std::vector<std::byte> receive_buffer_, forward_buffer_;
    daemon::IdleEnd idle_end_;
    wire::AnswerRate answers_{wire::Tuning{}.answers_per_second, wire::Tuning{}.answers_at_once};
    volatile int stop_ = 0;
};

}  // namespace viaduct::udp
