// SPDX-License-Identifier: BSD-2-Clause
// Which of several methods transfers use, learnt from the transfers of the program itself. For each power of two of
// their length, some transfers try each method, the fastest method is kept, and the trials are repeated later, because
// processors of virtual machines are moved. No clock, no memory, no lock: the caller says how long a transfer took. One
// thread at a time.
//
// What trials may cost. A transfer of a trial is late if it takes longer than TunerRules::late_ns and a nanosecond for
// each byte. A method that was late twice is not tried again in this round. If another method was not late, it is left
// out of the next 1, 3, 7 and then 15 rounds. Between two rounds there are at least `first_pause` transfers, and so
// many that the extra time of the round is at most kMostCost per cent of the time until the next one (but no more than
// kLongestPauses times `longest_pause` transfers).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace viaduct {

struct TunedMethod {
    uint8_t told = 4;    // transfers of a round whose times count,
    uint8_t untold = 0;  // and those before them: caches have to get used to it, or those of another method hide them
    uint8_t handicap = 0;      // per cent that are added to its time
    bool after_others = false;  // is tried only where another one has just been in time: it needs a peer that looks
};

enum class Statistic : uint8_t {
    least,  // the least time of each method counts: one transfer at a time is tried
    mean,   // of transfers that overlap two may end at once: what they took together counts
};

// The order of `methods` is that of preference while nothing is known.
struct TunerRules {
    std::span<const TunedMethod> methods;
    Statistic statistic = Statistic::least;
    uint32_t gain = 5;  // per cent by which another method has to be better than the kept one
    // Transfers between two rounds; eight times as many each time the kept method is confirmed.
    uint32_t first_pause = 4096, longest_pause = 4096;
    uint32_t late_ns = 10'000;
};

// Of transfers that are about as long.
class TunerClass {
public:
    static constexpr uint32_t kMostMethods = 4;
    static constexpr uint32_t kMostLate = 2;       // late transfers of a method in a round
    static constexpr uint32_t kMostLeftOut = 15;   // rounds
    static constexpr uint32_t kMostCost = 1;       // per cent of the time
    static constexpr uint32_t kLongestPauses = 16;
    static constexpr uint64_t kNeverTold = UINT64_MAX;

    struct Choice {
        uint8_t method = 0;
        bool timed = false;   // how long it takes is of interest,
        bool counts = false;  // and to be told
        uint32_t round = 0;
    };

    TunerClass();
    // `possible`: a bit for each method that this transfer can take; it is tried only if `may_try`.
    Choice choose(const TunerRules&, uint32_t possible, bool may_try);
    // How long a choice that counts took, or kNeverTold.
    void tell(const TunerRules&, const Choice&, size_t bytes, uint64_t ns);
    // Whether all transfers take that method and no round is due. Then it counts as a choice.
    bool stays(uint8_t method) {
        if (trying_ || order_[0] != method || since_ + 1 >= pause_) return false;
        ++since_;
        return true;
    }
    uint8_t kept(uint32_t possible) const;
    uint32_t pause() const { return pause_; }

private:
    struct Trial {
        uint8_t run = 0, told = 0, late = 0;
        bool left_out = false;
        uint64_t time = 0;  // the least, or the sum; ns for 64 KiB
    };
    bool is_wanted(const TunerRules&, uint32_t method) const;
    bool is_over(const TunerRules&) const;
    bool another_in_time(uint32_t method) const;
    uint64_t time_of(const TunerRules&, uint32_t method) const;
    void begin();
    void decide(const TunerRules&);
    void sort(const TunerRules&);

    std::array<Trial, kMostMethods> trials_{};
    std::array<uint8_t, kMostMethods> order_{};            // of preference
    std::array<uint8_t, kMostMethods> left_out_of_{};      // so many rounds,
    std::array<uint8_t, kMostMethods> left_out_so_far_{};  // of which so many have run
    bool trying_ = true;
    bool decided_ = false;
    uint32_t took_part_ = 0;  // methods of this round
    uint32_t round_ = 0;
    uint32_t since_ = 0;  // transfers since the last round, or since the last trial of this one
    uint32_t pause_ = 0;
    uint64_t spent_ = 0;  // by what was told in this round, ns for 64 KiB
    uint32_t spent_by_ = 0;
};

// Classes from 2^kFirst bytes and less to 2^kLast and more.
template <unsigned kFirst, unsigned kLast>
class TransferTuner {
public:
    using Choice = TunerClass::Choice;

    explicit TransferTuner(const TunerRules& rules, bool on = true) : rules_(&rules), on_(on) {}

    Choice choose(size_t bytes, uint32_t possible = UINT32_MAX, bool may_try = true) {
        possible &= (1u << rules_->methods.size()) - 1;
        TunerClass& c = of(bytes);
        if (!on_ || std::has_single_bit(possible)) return {c.kept(possible), false, false, 0};
        return c.choose(*rules_, possible, may_try);
    }
    void tell(size_t bytes, const Choice& choice, uint64_t ns) { of(bytes).tell(*rules_, choice, bytes, ns); }
    bool stays(size_t bytes, uint8_t method) { return on_ && of(bytes).stays(method); }
    uint8_t kept(size_t bytes, uint32_t possible = UINT32_MAX) const {
        return classes_[index_of(bytes)].kept(possible & ((1u << rules_->methods.size()) - 1));
    }
    const TunerClass& of_length(size_t bytes) const { return classes_[index_of(bytes)]; }

private:
    static size_t index_of(size_t bytes) {
        const unsigned bits = static_cast<unsigned>(std::bit_width(bytes | 1)) - 1;
        return std::clamp(bits, kFirst, kLast) - kFirst;
    }
    TunerClass& of(size_t bytes) { return classes_[index_of(bytes)]; }

    const TunerRules* rules_;
    bool on_;
    std::array<TunerClass, kLast - kFirst + 1> classes_;
};

}  // namespace viaduct
