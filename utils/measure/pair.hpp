// SPDX-License-Identifier: BSD-2-Clause
// Two processes pinned to two processors that run the same program in step: the leader measures, the follower
// answers. Both call every function here in the same order.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace viaduct::measure {

struct Shared;  // what both map

class Pair {
public:
    // Forks. Both processes are pinned, to the first two processors allowed or to the two given.
    static Pair split(size_t arena_bytes, int first_cpu, int second_cpu);
    // Two processors this process may use; false when there is only one.
    static bool pick_processors(int* first, int* second);

    Pair(Pair&&) noexcept;
    ~Pair();  // the leader waits for the follower; the follower ends here

    bool leader() const { return side_ == 0; }
    int side() const { return side_; }
    int cpu(int side) const { return cpus_[side]; }
    // Memory both see; each side writes into its own half.
    std::byte* outgoing() const { return arena_ + static_cast<size_t>(side_) * half_; }
    const std::byte* incoming() const { return arena_ + static_cast<size_t>(1 - side_) * half_; }
    std::byte* half(int side) const { return arena_ + static_cast<size_t>(side) * half_; }
    size_t half_bytes() const { return half_; }

    void meet();  // both are here when it returns
    // The leader's value, in both.
    uint64_t agree(uint64_t value);
    // True in both when it is true in both.
    bool both(bool mine);
    // A number neither side has seen in any message: the caller uses `count` of them.
    uint64_t fresh(uint64_t count);
    // Half a round trip of one cache line, ns: near or far (spec/performance 1).
    double distance();

    // Runs `body(iterations)` on both sides, long enough to measure well, and gives ns per iteration.
    double ns_per_iteration(const std::function<void(uint64_t)>& body);

    // Ends both processes with a message.
    [[noreturn]] void fail(const std::string& why);
    // Ends this process; the other one finds out and follows. The first one's message is printed, and the
    // leader takes over the follower's exit code when that was the first.
    [[noreturn]] void leave(const std::string& why, int exit_code);
    // A pair that hangs is ended by the system after nine minutes; this starts them anew.
    void keep_watch();

private:
    Pair() = default;
    Pair(const Pair&) = default;
    // Whether the follower has ended, or, with `wait`, once it has. The system tells its status once; it is
    // kept.
    bool follower_ended(bool wait);
    // Its exit code; `otherwise` if it ended in another way.
    int follower_code(int otherwise) const;
    Shared* shared_ = nullptr;
    std::byte* arena_ = nullptr;
    size_t half_ = 0;
    size_t mapped_ = 0;
    int side_ = 0;
    int cpus_[2] = {};
    pid_t follower_ = -1;
    bool follower_ended_ = false;
    int follower_status_ = 0;
    uint32_t meetings_ = 0;
    uint64_t used_numbers_ = 0;
};

// Keeps the processor for so long: the other side sleeps by then.
void spin_for(int64_t ns);
inline constexpr int64_t kUntilAsleep = 200'000;

// A word that the other side polls: spins with one pause between looks (measured to be better than none).
void await_word(const std::atomic<uint64_t>& word, uint64_t wanted);

}  // namespace viaduct::measure
