// SPDX-License-Identifier: BSD-2-Clause
#include "utils/measure/limits.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

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

// A one-way ring in one half of the arena, for messages of one size: for each slot a line that says which
// piece is in it, and the block. The blocks lie together and are few, so that they stay in the caches of both
// sides: with sixteen blocks 32 KiB apart the same ring was eight times slower.
class Ring {
public:
    static constexpr size_t kMostSlots = 16;
    static constexpr size_t kLine = 128;
    static constexpr size_t kBlock = 16 << 10;
    static constexpr size_t kInline = 48;                  // what travels inside the line itself
    static constexpr size_t kReadAt = kMostSlots * kLine;  // where a half keeps how far its owner has read
    static constexpr size_t kBlocksAt = kReadAt + kLine;

    Ring(std::byte* half, std::byte* readers_half, size_t bytes, uint64_t base)
        : lines_(half),
          blocks_(half + kBlocksAt),
          read_(word_at(readers_half + kReadAt)),
          piece_(piece_of(bytes)),
          slots_(piece_ <= 1024 ? kMostSlots : kMostSlots / 2),
          base_(base),
          at_(base),
          known_read_(base) {}

    // Long messages in pieces, so that both sides copy at once.
    static size_t piece_of(size_t bytes) {
        return bytes >= (256 << 10) ? kBlock : bytes >= (16 << 10) ? 4 << 10 : bytes;
    }

    void send(const std::byte* from, size_t bytes) {
        for (size_t done = 0; done < bytes;) {
            const size_t piece = std::min(bytes - done, piece_);
            while (at_ - known_read_ >= slots_) {
                known_read_ = std::max(read_.load(std::memory_order_acquire), base_);
                if (at_ - known_read_ >= slots_) cpu_pause();
            }
            std::byte* line = line_at(at_);
            std::memcpy(piece <= kInline ? line + kWord : block_at(at_), from + done, piece);
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
    std::byte* line_at(uint64_t at) { return lines_ + at % slots_ * kLine; }
    std::byte* block_at(uint64_t at) { return blocks_ + at % slots_ * ((piece_ + 127) / 128 * 128); }

    std::byte* lines_;
    std::byte* blocks_;
    std::atomic<uint64_t>& read_;
    size_t piece_;
    uint64_t slots_;
    uint64_t base_;
    uint64_t at_;
    uint64_t known_read_;
};

static_assert(Ring::kBlocksAt + Ring::kMostSlots * Ring::kBlock <= kArenaBytes);

// Both ways of a pair. Numbers are fresh, so that what lies in the arena from before is no message.
struct Rings {
    Rings(Pair& pair, size_t bytes, uint64_t messages)
        : base((pair.fresh(messages * (bytes / Ring::piece_of(bytes) + 1) + 2 * Ring::kMostSlots) +
                Ring::kMostSlots) /
               Ring::kMostSlots * Ring::kMostSlots),
          out(pair.half(pair.side()), pair.half(1 - pair.side()), bytes, base),
          in(pair.half(1 - pair.side()), pair.half(pair.side()), bytes, base) {}
    uint64_t base;
    Ring out, in;
};

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
    return pair.ns_per_iteration([&](uint64_t iterations) {
        Rings rings(pair, bytes, iterations);
        for (uint64_t i = 0; i < iterations; ++i) {
            if (pair.leader()) rings.out.send(memory, bytes);
            rings.in.receive(memory, bytes);
            if (!pair.leader()) rings.out.send(memory, bytes);
        }
    }) / 2;
}

double ring_stream(Pair& pair, size_t bytes) {
    std::byte* memory = scratch(kLargestMessage);
    const double ns = pair.ns_per_iteration([&](uint64_t iterations) {
        Rings rings(pair, bytes, iterations + 1);
        for (uint64_t i = 0; i < iterations; ++i) {
            pair.leader() ? rings.out.send(memory, bytes) : rings.in.receive(memory, bytes);
        }
        pair.leader() ? rings.in.receive(memory, kWord) : rings.out.send(memory, kWord);
    });
    return static_cast<double>(bytes) / ns;
}

double line_rate(Pair& pair) {
    return 1000.0 / pair.ns_per_iteration([&](uint64_t iterations) {
        Rings rings(pair, kWord, iterations + 1);
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
            linger(kUntilAsleep);
            out.store(i, std::memory_order_release);
            futex_wake(out, 1, true);
            if (pair.leader()) wait(in, i);
        }
    }) / 2 -
           static_cast<double>(kUntilAsleep);
}

}  // namespace viaduct::measure
