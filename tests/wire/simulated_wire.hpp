// SPDX-License-Identifier: BSD-2-Clause
// A wire between nodes that loses, repeats, reorders, damages and delays frames by a seed, and whose link
// goes down now and then. Time is a number that jumps to the next event. All memory is taken at the start.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "providers/wire/node.hpp"

namespace viaduct::wire::test {

struct Weather {
    double lose = 0, repeat = 0, damage = 0, reorder = 0;
    Time delay = 5'000;            // of every frame
    Time jitter = 0;               // more, evenly spread
    Time reorder_by = 200'000;     // more, for the frames that are held up
    uint32_t path_limit = 16'384;  // larger frames vanish, as where a router drops them
    Time up = kNoTime, down = 0;   // mean times between flaps and of a flap
};

class SimulatedWire {
public:
    explicit SimulatedWire(uint64_t seed, uint32_t frames = 1024) : random_(seed), frames_(frames) {
        for (uint32_t i = frames; i-- != 0;) {
            frames_[i].bytes.resize(kMaxFrame);
            free_.push_back(i);
        }
        events_.reserve(frames);
    }

    class Port final : public Outlet {
    public:
        Port(SimulatedWire& wire, const NicAddress& address) : own(address), wire_(wire) {}
        std::byte* begin_frame(uint32_t) override {
            return wire_.stopped || wire_.free_.empty() ? nullptr : scratch_;
        }
        void end_frame(std::byte* frame, uint32_t bytes, const NicAddress& to) override {
            if (bytes != 0) wire_.send(frame, bytes, own, to);
        }
        void end_zero_copy(std::byte* frame, uint32_t bytes, std::span<const Piece> tail,
                           const NicAddress& to) override {
            if (on_zero_copy) on_zero_copy();
            for (const Piece& piece : tail) {
                std::memcpy(frame + bytes, piece.at, piece.bytes);
                bytes += piece.bytes;
            }
            wire_.send(frame, bytes, own, to);
        }
        void ask(const NicAddress& to, const Question& q) override {
            ++asked;
            Question said = q;
            if (refuses && refuses(to, said)) refused_.push_back({wire_.now + wire_.weather.delay, said});
        }
        bool next_refused(Question* q) override {
            if (refused_.empty() || refused_.front().when > wire_.now) return false;
            *q = refused_.front().question;
            refused_.erase(refused_.begin());
            return true;
        }
        bool next_unreachable(NicAddress* address) override {
            if (unreachable.empty()) return false;
            *address = unreachable.back();
            unreachable.pop_back();
            return true;
        }
        bool stands_still(Time) override { return still; }
        const NicAddress own;
        bool still = false;  // as if its frames were not carried; they go all the same
        uint32_t& zero_copy_above = zero_copy_from_;
        std::function<void()> on_zero_copy;  // before zero-copy payload is read
        // Whether the host refuses this question; the refusal quotes what is left of it.
        std::function<bool(const NicAddress& to, Question&)> refuses;
        int asked = 0;  // questions
        std::vector<NicAddress> unreachable;  // addresses that the medium reports

    private:
        struct Refused {
            Time when = 0;
            Question question;
        };
        std::vector<Refused> refused_;
        SimulatedWire& wire_;
        std::byte scratch_[kMaxFrame];
    };

    void attach(Port& port, Node& node) {
        nodes_.push_back(&node);
        addresses_.push_back(port.own);
    }
    void detach(const Node& node) {
        const auto at = std::find(nodes_.begin(), nodes_.end(), &node);
        if (at != nodes_.end()) *at = nullptr;
    }

    // Carries on until `done` or until nothing can happen before `until`. True: done.
    template <class Done>
    bool run(Time until, Done done) {
        while (!done()) {
            if (!step(until)) return done();
        }
        return true;
    }
    void run_for(Time how_long) {
        const Time until = now + how_long;
        while (step(until)) {
        }
        now = until;
    }

    Time now = 1'000'000'000;
    Weather weather;
    bool stopped = false;  // the outlets take nothing
    // Sees each frame that is sent; may change it. False: it vanishes.
    std::function<bool(std::byte* frame, uint32_t& bytes, const NicAddress& from)> tap;
    uint64_t sent = 0, lost = 0, repeated = 0, damaged = 0, flaps = 0;

private:
    struct InFlight {
        std::vector<std::byte> bytes;
        uint32_t size = 0;
        NicAddress from, to;
    };
    struct Event {
        Time when = 0;
        uint64_t order = 0;
        uint32_t frame = 0;
        bool operator<(const Event& other) const {
            return when != other.when ? when > other.when : order > other.order;
        }
    };

    bool chance(double p) { return p > 0 && std::uniform_real_distribution<>(0, 1)(random_) < p; }
    Time some(Time most) {
        return most <= 0 ? 0 : static_cast<Time>(random_() % static_cast<uint64_t>(most));
    }

    bool link_is_up() {
        if (weather.up == kNoTime) return true;
        if (next_change_ == 0) next_change_ = now + some(2 * weather.up);
        while (now >= next_change_) {
            up_ = !up_;
            if (!up_) ++flaps;
            next_change_ += 1 + some(2 * (up_ ? weather.up : weather.down));
        }
        return up_;
    }

    void send(std::byte* frame, uint32_t bytes, const NicAddress& from, const NicAddress& to) {
        ++sent;
        if (tap && !tap(frame, bytes, from)) return;
        if (!link_is_up() || bytes > weather.path_limit || chance(weather.lose)) {
            ++lost;
            return;
        }
        deliver_later(frame, bytes, from, to);
        if (!chance(weather.repeat)) return;
        ++repeated;
        deliver_later(frame, bytes, from, to);
    }

    void deliver_later(const std::byte* frame, uint32_t bytes, const NicAddress& from, const NicAddress& to) {
        if (free_.empty()) {
            ++lost;
            return;
        }
        const uint32_t slot = free_.back();
        free_.pop_back();
        InFlight& f = frames_[slot];
        std::memcpy(f.bytes.data(), frame, bytes);
        f.size = bytes;
        f.from = from;
        f.to = to;
        if (chance(weather.damage)) {
            ++damaged;
            for (uint64_t bits = 1 + random_() % 4; bits != 0; --bits)
                f.bytes[random_() % bytes] ^= static_cast<std::byte>(1u << random_() % 8);
        }
        Time when = now + weather.delay + some(weather.jitter);
        if (chance(weather.reorder)) when += some(weather.reorder_by);
        events_.push_back({when, order_++, slot});
        std::push_heap(events_.begin(), events_.end());
    }

    // The next frame or timer. False: there is none before `until`.
    bool step(Time until) {
        for (Node* node : nodes_)
            if (node != nullptr && node->wants_flush() && !stopped) node->flush(now);
        Time next = events_.empty() ? kNoTime : events_.front().when;
        for (const Node* node : nodes_)
            if (node != nullptr) next = std::min(next, node->next_deadline());
        if (next > until) return false;
        now = std::max(now, next);
        while (!events_.empty() && events_.front().when <= now) {
            const uint32_t slot = events_.front().frame;
            std::pop_heap(events_.begin(), events_.end());
            events_.pop_back();
            InFlight& f = frames_[slot];
            for (size_t i = 0; i < nodes_.size(); ++i)
                if (nodes_[i] != nullptr && addresses_[i] == f.to)
                    nodes_[i]->input({f.bytes.data(), f.size}, f.from, now);
            free_.push_back(slot);
        }
        for (Node* node : nodes_)
            if (node != nullptr) node->advance(now);
        return true;
    }

    std::mt19937_64 random_;
    std::vector<InFlight> frames_;
    std::vector<uint32_t> free_;
    std::vector<Event> events_;
    uint64_t order_ = 0;
    std::vector<Node*> nodes_;
    std::vector<NicAddress> addresses_;
    Time next_change_ = 0;
    bool up_ = true;
};

inline NicAddress address(uint8_t last) { return {{0x02, 0, 0, 0, 0, last}}; }

inline EndAddress end_address(uint8_t host, const char* discriminator) {
    EndAddress a;
    a.host = address(host);
    a.discriminator_len = static_cast<uint16_t>(std::strlen(discriminator));
    std::memcpy(a.discriminator, discriminator, a.discriminator_len);
    return a;
}

}  // namespace viaduct::wire::test
