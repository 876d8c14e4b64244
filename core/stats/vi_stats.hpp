// SPDX-License-Identifier: BSD-2-Clause
// What a VI shows to readers outside of the process (vipstat), besides the positions of its queues: counters of
// everything that happens silently. Written on slow paths only, by any thread; part of ViCore.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace viaduct {

// One for each silent path; names and meanings in kViCounters, in the same order.
enum class ViCount : uint32_t {
    flushed,
    errors,
    async_errors,
    sleeps,
    wakes,
    backlogs,
    credit_looks,
    no_receive,
    peer_calls,
    retries,
    drops,
    count_
};
inline constexpr size_t kViCountKinds = static_cast<size_t>(ViCount::count_);

struct CounterInfo {
    const char* name;
    const char* help;
};

inline constexpr std::array<CounterInfo, kViCountKinds> kViCounters = {{
    {"flushed", "descriptors completed as flushed"},
    {"errors", "descriptors completed in error, flushed ones not counted"},
    {"async_errors", "asynchronous errors"},
    {"sleeps", "times a waiting call went to sleep"},
    {"wakes", "times a sleeping thread was woken for a completion"},
    {"backlogs", "times sends found no room on the way and had to wait"},
    {"credit_looks", "times the peer's count of posted receives was read anew"},
    {"no_receive", "messages that met no posted receive"},
    {"peer_calls", "times the peer's helper had to be called because its program did not look"},
    {"retries", "frames sent again"},
    {"drops", "messages or frames lost or thrown away"},
}};

struct ViStats {
    static constexpr size_t kTextBytes = 64;

    std::array<std::atomic<uint64_t>, kViCountKinds> counts{};
    std::atomic<uint32_t> last_error{0};    // VIP_ERROR_CODE + 1; 0: none
    std::atomic<uint32_t> credits{0};       // messages the peer had room for when last looked
    std::atomic<int64_t> last_error_at{0};  // CLOCK_MONOTONIC, ns
    std::atomic<int64_t> changed_at{0};     // of the last change of state, likewise
    // Position of the descriptor that a poll has found incomplete, and since when; [0] send, [1] receive.
    struct Waiting {
        std::atomic<uint32_t> position{0};
        std::atomic<int64_t> since{0};
    };
    std::array<Waiting, 2> waiting;
    char nic[kTextBytes] = {};
    char local[kTextBytes] = {};
    char peer[kTextBytes] = {};

    void count(ViCount what, uint64_t by = 1) {
        counts[static_cast<size_t>(what)].fetch_add(by, std::memory_order_relaxed);
    }

    // Good to a few milliseconds, for a fraction of the price: ages are for people.
    static int64_t coarse_now() {
        timespec t;
        ::clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
    }

    // A poll has just found the descriptor at `position` not complete.
    void note_waiting(bool is_receive, uint32_t position) {
        Waiting& w = waiting[is_receive ? 1 : 0];
        if (w.position.load(std::memory_order_relaxed) == position &&
            w.since.load(std::memory_order_relaxed) != 0)
            return;
        w.since.store(coarse_now(), std::memory_order_relaxed);
        w.position.store(position, std::memory_order_relaxed);
    }

    void note_error(uint32_t code) {
        count(ViCount::async_errors);
        last_error_at.store(coarse_now(), std::memory_order_relaxed);
        last_error.store(code + 1, std::memory_order_relaxed);
    }

    void note_state() { changed_at.store(coarse_now(), std::memory_order_relaxed); }

    // Byte by byte: a thread may copy while another one connects the VI anew, and gets some mixture then.
    static void set_text(char (&to)[kTextBytes], std::string_view text) {
        const size_t n = text.size() < kTextBytes - 1 ? text.size() : kTextBytes - 1;
        for (size_t i = 0; i < n; ++i) std::atomic_ref<char>(to[i]).store(text[i], std::memory_order_relaxed);
        std::atomic_ref<char>(to[n]).store(0, std::memory_order_relaxed);
    }
    static void copy_text(const char (&from)[kTextBytes], char (&to)[kTextBytes]) {
        for (size_t i = 0; i < kTextBytes; ++i)
            to[i] = std::atomic_ref<char>(const_cast<char&>(from[i])).load(std::memory_order_relaxed);
        to[kTextBytes - 1] = 0;
    }

    // For a VI that is made.
    void clear() {
        for (auto& c : counts) c.store(0, std::memory_order_relaxed);
        last_error.store(0, std::memory_order_relaxed);
        last_error_at.store(0, std::memory_order_relaxed);
        credits.store(0, std::memory_order_relaxed);
        for (Waiting& w : waiting) w.since.store(0, std::memory_order_relaxed);
        for (auto* text : {&nic, &local, &peer}) set_text(*text, "");
        note_state();
    }
};

}  // namespace viaduct
