// SPDX-License-Identifier: BSD-2-Clause
// Memory that the members of a communicator on one node share, for their collective calls. Each call that uses it has a
// number, the same in all members. A member arrives at a number: it has ended all calls before, and what it gives to
// this one is there. So one word for each member is all that they tell each other: a call is over for a member when
// those whose data it needs have arrived, and a buffer may be used again when all have arrived at a later number than
// that of its last use. Each member writes only its own word and its own part of a buffer, but for reductions that are
// done in pieces by those that have the time (work_on).
//
// What another process writes here can delay calls and change their data, and nothing else: all sizes and places are
// computed by each member for itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/sync/asymmetric_barrier.hpp"

namespace viaduct::mpi::coll {

// What a member waits for.
struct Wanted {
    enum class Until : uint32_t {
        all,       // have arrived
        all_for_me,  // the same, in a call in which no other member waits
        reduced,   // the reduction of that number is complete
        first      // and ranks from here on: that one has arrived
    };
    uint32_t until;
    uint64_t number;

    static Wanted all(uint64_t number) { return {uint32_t(Until::all), number}; }
    static Wanted all_for_me(uint64_t number) { return {uint32_t(Until::all_for_me), number}; }
    static Wanted reduced(uint64_t number) { return {uint32_t(Until::reduced), number}; }
    static Wanted of(int rank, uint64_t number) { return {uint32_t(Until::first) + uint32_t(rank), number}; }
};

class NodeSegment {
public:
    static constexpr int kMostMembers = 512;
    static constexpr unsigned kSmallBuffers = 32;  // by so many calls a member may run ahead of the others
    static constexpr unsigned kLargeBuffers = 2;
    // What a small buffer has for each member: its note, and so many bytes behind it.
    static constexpr size_t kSmall = 1024 - 16;

    struct Note {
        uint64_t bytes;  // that the member has for the call
        uint64_t spare;
    };
    // Of a member in a large buffer.
    static size_t large(int members);
    static size_t bytes_for(int members);

    // Of zeroed memory, bytes_for(members) of it.
    NodeSegment(std::byte* memory, int members, int own);

    int members() const { return members_; }
    int own() const { return own_; }
    size_t large() const { return large_; }

    // The number of the next call of this member, or of the next part of one.
    uint64_t next() { return ++number_; }
    // `place`: the processor, and 1; 0: unknown. True when members sleep, see wake().
    [[nodiscard]] bool arrive(uint64_t number, uint32_t place) {
        word(own_).store(with(number, place), std::memory_order_release);
        light_barrier();  // partner: announce()
        return some_sleep();
    }
    void tell_place(uint32_t place) {
        const uint64_t now = word(own_).load(std::memory_order_relaxed);
        if (beside(now) != place) word(own_).store(with(number_in(now), place), std::memory_order_release);
    }
    // Whether a member that is waited for was last seen on that processor.
    bool missing_at(const Wanted& wanted, uint32_t place) const;

    bool has(int rank, uint64_t number) const { return number_in(load(rank)) >= number; }
    bool holds(const Wanted& wanted);
    // Whether a wait is, as far as is known, for that member.
    bool awaits(const Wanted& wanted, int rank) const;

    // A buffer for a call: the next one in turn, and what to wait for before it is written.
    struct Buffer {
        std::byte* base = nullptr;
        size_t stride = 0;
        uint64_t free_at = 0;  // all members must have arrived here
        std::byte* of(int rank) const { return base + size_t(rank) * stride; }
    };
    Buffer small(uint64_t number);
    Buffer large_buffer(uint64_t number);
    static Note& note(std::byte* part) { return *reinterpret_cast<Note*>(part); }
    static std::byte* data(std::byte* part) { return part + sizeof(Note); }
    bool is_free(const Buffer& buffer) { return buffer.free_at == 0 || holds(Wanted::all(buffer.free_at)); }

    // Work in `pieces` that any member may do, once all have arrived: calls work(piece) for pieces that no member
    // has taken yet. True when this member has done the last one that was missing, and members sleep.
    template <class Work>
    [[nodiscard]] bool work_on(uint64_t number, uint32_t pieces, Work&& work) {
        for (uint32_t piece = 0; take(number, pieces, &piece);) {
            work(piece);
            if (!give(number, pieces)) continue;
            head_->reduced.store(number, std::memory_order_release);
            light_barrier();
            return some_sleep();
        }
        return false;
    }

    // Before each sleep (`again`: not the first one of the wait): from now on those that make true what is wanted call
    // wake(). It must be asked for after that, and withdraw() be called at the end of the wait.
    void announce(const Wanted& wanted, bool again);
    void withdraw();
    bool some_sleep() const { return head_->sleepers.load(std::memory_order_relaxed) != 0; }
    // Calls ring(rank) for members that sleep and can go on, each once. Of those that all wait, each wakes only a few
    // others, which go on with it: its partners in a tree of messages.
    template <class Ring>
    void wake(Ring&& ring) {
        for (int rank = 0; rank < members_; ++rank)
            if (rank != own_ && claim(rank)) ring(rank);
    }

private:
    using Word = std::atomic<uint64_t>;
    static_assert(Word::is_always_lock_free && sizeof(Word) == 8);
    struct Head {
        alignas(128) std::atomic<uint32_t> sleepers;
        alignas(128) Word taken;  // the number of a call, and how many pieces of it are taken
        alignas(128) Word given;  // ... and are done
        alignas(128) Word reduced;
    };

    // A word has a number and, in its low bits, something of that call: a processor, what is wanted, or how many
    // pieces. Numbers grow for as long as the communicator lives, and never begin again: members that have not
    // looked for any number of calls compare them.
    static constexpr unsigned kBeside = 16;
    static constexpr uint64_t with(uint64_t number, uint32_t beside) { return number << kBeside | beside; }
    static constexpr uint64_t number_in(uint64_t word) { return word >> kBeside; }
    static constexpr uint32_t beside(uint64_t word) { return uint32_t(word) & ((1u << kBeside) - 1); }
    static size_t words_bytes(int members);
    Word& word(int rank) const { return words_[rank]; }
    uint64_t load(int rank) const { return word(rank).load(std::memory_order_acquire); }
    bool has_all(uint64_t number) const;
    [[nodiscard]] bool take(uint64_t number, uint32_t pieces, uint32_t* piece);
    [[nodiscard]] bool give(uint64_t number, uint32_t pieces);
    [[nodiscard]] bool claim(int rank);

    Head* const head_;
    Word* const words_;
    Word* const asleep_;
    std::byte* const small_;
    std::byte* const large_base_;
    const int members_;
    const int own_;
    const size_t large_;
    uint64_t number_ = 0;
    uint64_t known_ = 0;     // all have arrived here
    uint64_t scanned_ = 0;   // where those below next_rank_ have arrived
    int next_rank_ = 0;
    uint32_t small_turn_ = 0, large_turn_ = 0;
    uint64_t small_used_[kSmallBuffers] = {};
    uint64_t large_used_[kLargeBuffers] = {};
};

}  // namespace viaduct::mpi::coll
