// SPDX-License-Identifier: BSD-2-Clause
// The engine process of shared mode: owns a DPDK port and moves frames between it and the rings of the
// applications that share it. One thread. It has no VIs; it handles connections only so far that frames
// of them must reach the right application, and be ended for one that has died.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/daemon/admission.hpp"
#include "core/daemon/idle_end.hpp"
#include "core/fair/places.hpp"
#include "core/shm/foreign_files.hpp"
#include "core/shm/segment.hpp"
#include "core/wait/crowd_score.hpp"
#include "core/wait/spin_wait.hpp"
#include "providers/acenic/daemon/protocol.hpp"
#include "providers/acenic/daemon/session.hpp"
#include "providers/acenic/daemon/steering.hpp"
#include "providers/acenic/port.hpp"
#include "providers/wire/answer_rate.hpp"
#include "providers/wire/host.hpp"

namespace viaduct::acenic {

class Server final : private daemon::Admission::Daemon {
public:
    struct Options {
        std::string port;       // as configured
        bool faults = false;    // faults are injected into all that leaves, also to the own address
        int64_t linger_ns = 0;  // leave so long after the last application; negative: stay
        uint32_t flaws = 0;     // that it has inherited; an application without them may have it replaced
    };

    Server(Options, Fd listener);
    // Every application is refused with these words; for a port that could not be had.
    void refuse(const std::string& why, const std::string& cure);
    void use(std::unique_ptr<Port> port);
    // Until the linger is over, or stop() (from a signal handler).
    void run();
    void stop() { stop_ = 1; }

private:
    // ---- the control side (server_control.cpp)
    void look_at_sockets(int timeout_us);
    bool enter(daemon::Program&) override;
    void evict(uint64_t number) override;
    void share_rounds();
    void take_messages(Session&);
    bool are_harmless(const Session&, std::vector<Fd>& files);
    void on_hello(Session&);
    void on_attach(Session&);
    bool may_be_replaced_by(const Session&) const;
    void set_faults(Session&, uint32_t link, const FaultPlan&);
    uint32_t admit(uid_t user, uint32_t* links);
    void close_over();
    void end_connections(uint32_t slot);
    bool may_leave(int64_t now);

    // ---- the data side (server.cpp)
    bool round(int64_t now);
    void run_commands(Session&, int64_t now);
    bool send_frames(Session&, int64_t now);
    bool has_faults(const Session&, std::span<const std::byte> packet) const;
    bool send_out(Session&, std::span<const std::byte> packet, const NicAddress& to);
    bool send_local(Session&, std::span<const std::byte> packet, int64_t now);
    bool waits_for_room(Session&, uint32_t link, uint32_t bytes, int64_t now);
    // A frame of the wire format in two pieces, for its receiver, if there is one.
    void route(std::span<const std::byte> head, std::span<const std::byte> rest, const NicAddress& from, int64_t now);
    void deliver(uint32_t slot, std::span<const std::byte> head, std::span<const std::byte> rest,
                 const NicAddress& from);
    void on_strange_version(std::span<const std::byte> head, std::span<const std::byte> rest, const NicAddress& from,
                            int64_t now);
    void answer(wire::Kind, std::span<const std::byte> frame, uint64_t nonce, const NicAddress& to, int64_t now);
    void send_own(std::span<const std::byte> frame, const NicAddress& to, int64_t now);
    void sleep(int64_t now);
    void log_counters() const;

    Options options_;
    Fd epoll_;
    Closers closers_;
    daemon::Admission admission_;
    std::unique_ptr<Port> port_;
    std::string refusal_, cure_;
    Steering steering_;
    CardMemory memory_;  // outlives the sessions
    std::vector<std::unique_ptr<Session>> sessions_;
    fair::Places hosts_{kHosts};
    std::array<Session*, kPlaces + 1> by_slot_{};
    std::vector<std::byte> scratch_;
    daemon::IdleEnd idle_end_;
    int64_t sockets_at_ = 0, next_version_report_ = 0;
    wire::AnswerRate answers_{wire::Tuning{}.answers_per_second, wire::Tuning{}.answers_at_once};
    uint32_t next_first_ = 0;  // whose frames are sent first
    volatile int stop_ = 0;
};

}  // namespace viaduct::acenic
