// SPDX-License-Identifier: BSD-2-Clause
#include "utils/measure/limits.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "core/copy/copy.hpp"
#include "core/sync/futex.hpp"
#include "core/sync/pause.hpp"

namespace viaduct::measure {

namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr unsigned char kFill = 0x5A;  // no message number looks like it

// Private memory a message comes from or goes to.
std::byte* scratch(size_t bytes) {
    static std::vector<std::byte> memory;
    if (memory.size() < bytes) memory.assign(bytes, std::byte{kFill});
    return memory.data();
}

std::atomic<uint64_t>& word_at(const std::byte* address) {
    return *reinterpret_cast<std::atomic<uint64_t>*>(const_cast<std::byte*>(address));
}

// How long messages go through the ring. Which is best differs from machine to machine, and on one machine
// with the distance of the two processors: up to four times either method was seen. So the limit is the best of
// all.
struct CopyMethod {
    size_t block;    // messages of four blocks and more go in pieces of this size
    bool streaming;  // past the caches of the sender
};
constexpr CopyMethod kCopyMethods[] = {{16 << 10, false}, {16 << 10, true}, {64 << 10, false}, {64 << 10, true}};
constexpr size_t kInPieces = 16 << 10;  // shorter messages go in one piece, and there is but one method

// A ring of one direction in one half of the arena, for messages of one size: for each slot a line that says which
// piece is in it, and the block. The blocks lie together, so that they stay in the caches of both sides.
class Ring {
public:
    static constexpr size_t kMostSlots = 16;
    static constexpr size_t kLine = 128;
    static constexpr size_t kBlocks = 512 << 10;           // bytes of all blocks
    static constexpr size_t kInline = 48;                  // what travels inside the line itself
    static constexpr size_t kReadAt = kMostSlots * kLine;  // where a half keeps how far its owner has read
    static constexpr size_t kBlocksAt = kReadAt + kLine;

    Ring(std::byte* half, std::byte* readers_half, size_t bytes, CopyMethod method, uint64_t base)
        : lines_(half),
          blocks_(half + kBlocksAt),
          read_(word_at(readers_half + kReadAt)),
          piece_(piece_of(bytes, method)),
          slots_(piece_ <= 1024 ? kMostSlots : kMostSlots / 2),
          copy_in_(method.streaming ? copy_past_caches : copy_plainly),
          base_(base),
          at_(base),
          known_read_(base) {}

    // Long messages in pieces, so that both sides copy at once.
    static size_t piece_of(size_t bytes, CopyMethod method) {
        return bytes >= 4 * method.block ? method.block : bytes >= kInPieces ? 4 << 10 : bytes;
    }

    void send(const std::byte* from, size_t bytes) {
        for (size_t done = 0; done < bytes;) {
            const size_t piece = std::min(bytes - done, piece_);
            while (at_ - known_read_ >= slots_) {
                known_read_ = std::max(read_.load(std::memory_order_acquire), base_);
                if (at_ - known_read_ >= slots_) cpu_pause();
            }
            std::byte* line = line_at(at_);
            if (piece <= kInline) {
                std::memcpy(line + kWord, from + done, piece);
            } else {
                copy_in_(block_at(at_), from + done, piece);
            }
            word_at(line).store(++at_, std::memory_order_release);
            done += piece;
        }
    }

    void receive(std::byte* to, size_t bytes) {
        for (size_t done = 0; done < bytes;) {
            const size_t piece = std::min(bytes - done, piece_);
            const std::byte* line = line_at(at_);
            await_word(word_at(line), at_ + 1);
            std::memcpy(to + done, piece <= kInline ? line + kWord : block_at(at_), piece);
            ++at_;
            if (at_ % (slots_ / 4) == 0) read_.store(at_, std::memory_order_release);
            done += piece;
        }
    }

private:
    static void copy_plainly(std::byte* to, const std::byte* from, size_t n) { std::memcpy(to, from, n); }
    static void copy_past_caches(std::byte* to, const std::byte* from, size_t n) {
        copy_streaming(to, from, n);
        streaming_fence();
    }

    std::byte* line_at(uint64_t at) { return lines_ + at % slots_ * kLine; }
    std::byte* block_at(uint64_t at) { return blocks_ + at % slots_ * ((piece_ + 127) / 128 * 128); }

    std::byte* lines_;
    std::byte* blocks_;
    std::atomic<uint64_t>& read_;
    size_t piece_;
    uint64_t slots_;
    void (*copy_in_)(std::byte*, const std::byte*, size_t);
    uint64_t base_;
    uint64_t at_;
    uint64_t known_read_;
};

static_assert(Ring::kBlocksAt + Ring::kBlocks <= kArenaBytes);
static_assert(std::all_of(std::begin(kCopyMethods), std::end(kCopyMethods),
                          [](CopyMethod method) { return Ring::kMostSlots / 2 * method.block <= Ring::kBlocks; }));
static_assert(Ring::kBlocksAt % 64 == 0);  // else copy_streaming() would copy as ever

// Both ways of a pair. Numbers are fresh, so that what lies in the arena from before is no message.
struct Rings {
    Rings(Pair& pair, size_t bytes, CopyMethod method, uint64_t messages)
        : base((pair.fresh(messages * (bytes / Ring::piece_of(bytes, method) + 1) + 2 * Ring::kMostSlots) +
                Ring::kMostSlots) /
               Ring::kMostSlots * Ring::kMostSlots),
          out(pair.half(pair.side()), pair.half(1 - pair.side()), bytes, method, base),
          in(pair.half(1 - pair.side()), pair.half(pair.side()), bytes, method, base) {}
    uint64_t base;
    Ring out, in;
};

// The shortest time of all ways in which a message of that size can go.
template <class Measure>
double best_method(size_t bytes, Measure measure) {
    double best = measure(kCopyMethods[0]);
    if (bytes < kInPieces) return best;
    for (size_t i = 1; i < std::size(kCopyMethods); ++i) best = std::min(best, measure(kCopyMethods[i]));
    return best;
}

}  // namespace

double put_ping_pong(Pair& pair, size_t bytes) {
    const std::byte* source = scratch(kLargestMessage);
    std::byte* out = pair.outgoing();
    std::atomic<uint64_t>& last_out = word_at(out + bytes - kWord);
    const std::atomic<uint64_t>& last_in = word_at(pair.incoming() + bytes - kWord);
    const auto write = [&](uint64_t number) {
        if (bytes > kWord) std::memcpy(out, source, bytes - kWord);
        last_out.store(number, std::memory_order_release);
    };
    return pair.ns_per_iteration([&](uint64_t iterations) {
        const uint64_t base = pair.fresh(iterations);
        for (uint64_t i = base; i < base + iterations; ++i) {
            if (pair.leader()) write(i);
            await_word(last_in, i);
            if (!pair.leader()) write(i);
        }
    }) / 2;
}

double ring_ping_pong(Pair& pair, size_t bytes) {
    std::byte* memory = scratch(kLargestMessage);
    return best_method(bytes,
                    [&](CopyMethod method) {
                        return pair.ns_per_iteration([&](uint64_t iterations) {
                            Rings rings(pair, bytes, method, iterations);
                            for (uint64_t i = 0; i < iterations; ++i) {
                                if (pair.leader()) rings.out.send(memory, bytes);
                                rings.in.receive(memory, bytes);
                                if (!pair.leader()) rings.out.send(memory, bytes);
                            }
                        });
                    }) /
           2;
}

double ring_stream(Pair& pair, size_t bytes) {
    std::byte* memory = scratch(kLargestMessage);
    const double ns = best_method(bytes, [&](CopyMethod method) {
        return pair.ns_per_iteration([&](uint64_t iterations) {
            Rings rings(pair, bytes, method, iterations + 1);
            for (uint64_t i = 0; i < iterations; ++i) {
                pair.leader() ? rings.out.send(memory, bytes) : rings.in.receive(memory, bytes);
            }
            pair.leader() ? rings.in.receive(memory, kWord) : rings.out.send(memory, kWord);
        });
    });
    return static_cast<double>(bytes) / ns;
}

double line_rate(Pair& pair) {
    return 1000.0 / pair.ns_per_iteration([&](uint64_t iterations) {
        Rings rings(pair, kWord, kCopyMethods[0], iterations + 1);
        std::byte word[kWord] = {};
        for (uint64_t i = 0; i < iterations; ++i) {
            pair.leader() ? rings.out.send(word, kWord) : rings.in.receive(word, kWord);
        }
        pair.leader() ? rings.in.receive(word, kWord) : rings.out.send(word, kWord);
    });
}

double plain_copy(Pair& pair, size_t bytes) {
    static std::vector<std::byte> target;
    target.resize(std::max(target.size(), bytes));
    const std::byte* source = scratch(std::max(bytes, kLargestMessage));
    const double ns = pair.ns_per_iteration([&](uint64_t iterations) {
        if (!pair.leader()) return;
        for (uint64_t i = 0; i < iterations; ++i) {
            std::memcpy(target.data(), source, bytes);
            asm volatile("" : : "r"(target.data()) : "memory");
        }
    });
    return static_cast<double>(bytes) / ns;
}

double futex_wake_up(Pair& pair) {
    using Turn = std::atomic<uint32_t>;
    // The futex words lie where the other halves' owner reads: one for each direction, set by the waker.
    Turn& out = *reinterpret_cast<Turn*>(pair.outgoing());
    Turn& in = *reinterpret_cast<Turn*>(pair.half(1 - pair.side()));
    const auto wait = [](Turn& word, uint32_t wanted) {
        for (uint32_t seen = word.load(std::memory_order_acquire); seen != wanted;
             seen = word.load(std::memory_order_acquire))
            futex_wait(word, seen, 1'000'000'000, true);
    };
    return pair.ns_per_iteration([&](uint64_t iterations) {
        const auto base = static_cast<uint32_t>(pair.fresh(iterations));
        for (uint32_t i = base; i != base + static_cast<uint32_t>(iterations); ++i) {
            if (!pair.leader()) wait(in, i);
            spin_for(kUntilAsleep);
            out.store(i, std::memory_order_release);
            futex_wake(out, 1, true);
            if (pair.leader()) wait(in, i);
        }
    }) / 2 -
           static_cast<double>(kUntilAsleep);
}

}  // namespace viaduct::measure
