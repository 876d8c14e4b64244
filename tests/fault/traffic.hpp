// SPDX-License-Identifier: BSD-2-Clause
// Traffic whose every byte is checked, for connections that are about to break: used by the tests in their
// own process and by the roles in the victims.
#pragma once

#include <vipl.h>

#include <cstdint>
#include <vector>

#include "../conformance/fixture.hpp"

namespace viaduct::fault {

/// Contents of message `number`: any damage, loss, repetition or exchange shows.
void write_pattern(char* data, std::size_t bytes, std::uint32_t number);
bool has_pattern(const char* data, std::size_t bytes, std::uint32_t number);

/// One direction of numbered messages of `bytes` each; the other direction carries credits of kWindow / 2 in
/// immediate data.
class Stream {
public:
    static constexpr std::uint32_t kWindow = 32;  // messages a sender may have unanswered
    /// Memory an end needs for it.
    static std::size_t memory_for(std::uint32_t bytes) {
        return kWindow * (std::size_t{bytes} + 512) + 65536;
    }

    Stream(conformance::End& end, std::uint32_t bytes);

    /// Posts the receives the sender relies on. Call before it starts.
    void begin_receiving();
    /// Posts the receives for credits. Call before the receiver can give any.
    void begin_sending();
    /// One step of polling. False once the connection has ended.
    bool step_receiver();
    bool step_sender();

    std::uint32_t received() const { return received_; }
    std::uint32_t sent() const { return sent_; }
    bool damaged() const { return damaged_; }
    std::uint32_t moved() const { return received_ + sent_; }

private:
    bool give_credit();
    bool take_credit();

    conformance::End& end_;
    std::uint32_t bytes_;
    std::vector<VIP_DESCRIPTOR*> slots_;
    std::vector<char*> data_;
    std::vector<VIP_DESCRIPTOR*> credit_slots_;
    std::uint32_t received_ = 0;
    std::uint32_t sent_ = 0;
    std::uint32_t completed_ = 0;
    std::uint32_t credits_ = kWindow;
    bool damaged_ = false;
};

/// Both directions at once: each side serves kBalls messages and answers every one that arrives. So at most 2
/// * kBalls travel to one side at any time, which is what it has posted.
class Volley {
public:
    static constexpr std::uint32_t kBalls = 2;
    static std::size_t memory_for(std::uint32_t bytes) {
        return 4 * kBalls * (std::size_t{bytes} + 128) + 65536;
    }

    Volley(conformance::End& end, std::uint32_t bytes);

    /// Posts the receives. Call before the other side serves.
    void begin();
    void serve();
    /// One step of polling. False once the connection has ended.
    bool step();

    std::uint32_t received() const { return received_; }
    bool damaged() const { return damaged_; }
    std::uint32_t moved() const { return received_ + sent_; }

private:
    bool take();
    bool send_one();

    static constexpr std::uint32_t kSlots = 2 * kBalls;
    conformance::End& end_;
    std::uint32_t bytes_;
    std::vector<VIP_DESCRIPTOR*> in_, out_;
    std::vector<char*> in_data_, out_data_;
    std::uint32_t received_ = 0;
    std::uint32_t sent_ = 0;
    std::uint32_t completed_ = 0;
    std::uint32_t owed_ = 0;
    bool damaged_ = false;
};

/// A condition for eventually(), which pauses between two looks: one look steps for as long as messages move, so that
/// the traffic has its full speed. True once the connection has ended, or enough() holds.
template <typename Traffic, typename Enough>
bool runs_until(Traffic& traffic, bool (Traffic::*step)(), Enough enough) {
    constexpr int kStepsOfALook = 1000;  // eventually() looks at its limit between two looks
    for (int i = 0; i < kStepsOfALook; ++i) {
        const std::uint32_t before = traffic.moved();
        if (!(traffic.*step)() || enough()) return true;
        if (traffic.moved() == before) return false;
    }
    return false;
}

}  // namespace viaduct::fault
