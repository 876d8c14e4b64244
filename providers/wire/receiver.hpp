// SPDX-License-Identifier: BSD-2-Clause
// The incoming half of a connection: sequenced frames are taken in order and once, early ones are held, and
// what they carry goes to the host. Used by Link.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "providers/wire/format.hpp"
#include "providers/wire/host.hpp"
#include "providers/wire/reorder_buffer.hpp"

namespace viaduct::wire {

class Link;

class Receiver {
public:
    explicit Receiver(Link&);

    void begin(bool reliable);
    void expect(uint32_t first_sequence) { expected_ = first_sequence; }
    void start(Time now);
    // Gives back what is held and leaves nothing half done with the host.
    void end(bool tell_host);

    void on_frame(const Frame&, Time now);
    // fast_path.cpp: the next frame is a message of so many bytes by itself, and nothing is half done.
    bool is_next(uint32_t sequence, uint32_t total) const;
    void take_next(const std::byte* message, uint32_t total, uint16_t flags, Time now);  // when it is

    uint32_t expected() const { return expected_; }
    bool is_started() const { return started_; }
    bool has_early() const { return early_ != 0; }
    Selective selective() const;

private:
    enum class Phase : uint8_t { none, message, write, discard };
    struct Current {
        Phase phase = Phase::none;
        uint32_t number = 0, offset = 0, total = 0, immediate = 0, handle = 0;
        uint64_t address = 0;
        bool has_immediate = false;
        const uint32_t* immediate_or_null() const { return has_immediate ? &immediate : nullptr; }
    };

    void on_frame_unreliable(const Frame&, Time now);
    void pass_to(uint32_t sequence);
    void note_duplicate();
    bool keep_early(const Frame&);
    void take_held(Time now);
    void take(const Frame&, Time now);
    void take_fragment(const Frame&, Time now);
    void take_whole(const Frame&, const Message&, Time now);
    bool begin_current(const Frame&, const Message&, Time now);
    void place(const Frame&, Time now);
    void abandon();
    void refuse(HostResult, uint32_t number, Time now);
    void take_read_request(const Frame&, Time now);
    void take_atomic_request(const Frame&, Time now);
    void protocol_error(Time now);

    Link& link_;
    bool reliable_ = true, started_ = false;
    uint32_t expected_ = 0;
    uint32_t early_ = 0;         // frames held
    std::bitset<kWindow> seen_;  // Unreliable: of the last kWindow sequence numbers before expected_
    Current current_;
    std::array<uint16_t, kWindow> early_places_;
};

}  // namespace viaduct::wire
