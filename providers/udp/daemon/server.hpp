// SPDX-License-Identifier: BSD-2-Clause
// viaduct-udpd: has the UDP port of a NIC that requests come to, and passes each on to the program that waits for it.
// Programs answer from ports of their own and everything else goes there directly: nothing of a connection passes
// through here. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/shm/segment.hpp"
#include "providers/packet/requests.hpp"
#include "providers/udp/daemon/protocol.hpp"
#include "providers/wire/answer_rate.hpp"
#include "providers/wire/host.hpp"

namespace viaduct::udp {

class RequestServer {
public:
    struct Options {
        NicAddress address;
        int64_t linger_ns = 0;  // leave so long after the last program; negative: stay
    };

    RequestServer(Options, Fd listener);
    // The port. Where it cannot be had, every program is refused with the reason.
    bool open_port(std::string* why, std::string* cure);
    void refuse(const std::string& why, const std::string& cure);
    // Until the linger is over, or stop() (from a signal handler).
    void run();
    void stop() { stop_ = 1; }

private:
    struct Session {
        Fd socket, process;
        uint32_t slot = 0;
        bool greeted = false, over = false;
        int64_t since = 0;
        uint64_t token = 0;
        NicAddress data;
    };

    void look(int timeout_ms);
    void take_connections();
    void hear(Session&);
    void on_hello(Session&);
    void on_wish(Session&, const WishMessage&);
    void close_over();
    Session* session_of(uint32_t slot);

    void take_frames();
    void route(std::span<const std::byte> frame, const NicAddress& from);
    void pass_to(Session&, Envelope, std::span<const std::byte> frame);
    void send(std::span<const std::byte> bytes, const NicAddress& to);

    Options options_;
    Fd listener_, epoll_, port_;
    std::string refusal_, cure_;
    packet::Requests requests_{true};
    std::vector<std::unique_ptr<Session>> sessions_;
    uint32_t last_slot_ = 0;
    std::vector<std::byte> room_, parcel_;
    int64_t idle_since_ = 0;
    wire::AnswerRate answers_{wire::Tuning{}.answers_per_second, wire::Tuning{}.answers_at_once};
    volatile int stop_ = 0;
};

}  // namespace viaduct::udp
