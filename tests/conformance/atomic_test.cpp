// SPDX-License-Identifier: BSD-2-Clause
// Atomic operations of viaduct/ext.h on NICs that have them, and the honest answer of those that have not.
#include <sched.h>
#include <viaduct/ext.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

constexpr VIP_UINT32 kDone = VIP_STATUS_DONE | VIPX_STATUS_OP_ATOMIC;

VIP_ULONG widths_of_words() {
    const End end;
    VIP_ULONG widths = 0;
    return VipxQueryAtomics(end.nic, &widths) == VIP_SUCCESS ? widths : 0;
}

bool has_atomics() { return widths_of_words() != 0; }

bool beside_processors() {
    const End end;
    VIP_BOOLEAN processors = VIP_FALSE;
    return VipxQueryAtomicScope(end.nic, &processors) == VIP_SUCCESS && processors != VIP_FALSE;
}

#define NEEDS_ATOMICS(width) \
    if ((widths_of_words() & (width)) == 0) GTEST_SKIP() << "this NIC has no such atomic operations"

// Words of the server that the client may change.
class Words {
public:
    explicit Words(Pair& pair) : nic_(pair.server.nic) {
        VIP_MEM_ATTRIBUTES open{pair.server.ptag, VIP_TRUE, VIP_TRUE};
        VIP_PVOID memory = nullptr;
        require(VipxAllocMemory(nic_, 4096, 0, &open, &memory, &handle), "VipxAllocMemory");
        base = static_cast<char*>(memory);
    }
    ~Words() { VipxFreeMemory(nic_, base, handle); }
    Words(const Words&) = delete;
    Words& operator=(const Words&) = delete;

    Target at(std::size_t offset) const { return {base + offset, handle}; }
    template <typename Word>
    Word word(std::size_t offset) const {
        Word value;
        std::memcpy(&value, base + offset, sizeof value);
        return value;
    }

    char* base = nullptr;
    VIP_MEM_HANDLE handle = 0;

private:
    VIP_NIC_HANDLE nic_;
};

template <typename Word>
Word fetch_add(End& end, const Target& target, Word value) {
    auto* operand = static_cast<Word*>(end.alloc(sizeof(Word)));
    *operand = value;
    VIP_DESCRIPTOR* d = end.descriptor();
    fill(d, VIPX_CONTROL_OP_FETCH_ADD, {end.piece(operand, sizeof(Word))}, target);
    require(end.post_send(d), "VipPostSend");
    const Outcome done = reap_send(end.vi);
    EXPECT_EQ(done.descriptor, d);
    EXPECT_EQ(done.status(), kDone);
    EXPECT_EQ(d->CS.Length, sizeof(Word));
    return *operand;
}

template <typename Word>
Word compare_swap(End& end, const Target& target, Word value, Word expected) {
    auto* operands = static_cast<Word*>(end.alloc(2 * sizeof(Word)));
    operands[0] = value;
    operands[1] = expected;
    VIP_DESCRIPTOR* d = end.descriptor();
    fill(d, VIPX_CONTROL_OP_COMPARE_SWAP, {end.piece(operands, 2 * sizeof(Word))}, target);
    require(end.post_send(d), "VipPostSend");
    EXPECT_EQ(reap_send(end.vi).status(), kDone);
    EXPECT_EQ(operands[1], expected);
    return operands[0];
}

template <typename Word>
void change_words() {
    Pair pair;
    const Words words(pair);
    EXPECT_EQ(fetch_add<Word>(pair.client, words.at(64), 5), Word{0});
    EXPECT_EQ(fetch_add<Word>(pair.client, words.at(64), Word(-1)), Word{5});
    EXPECT_EQ(words.word<Word>(64), Word{4});
    EXPECT_EQ(compare_swap<Word>(pair.client, words.at(64), 9, 7), Word{4});
    EXPECT_EQ(words.word<Word>(64), Word{4}) << "what was expected was not there";
    EXPECT_EQ(compare_swap<Word>(pair.client, words.at(64), 9, 4), Word{4});
    EXPECT_EQ(words.word<Word>(64), Word{9});
    EXPECT_EQ(words.word<Word>(64 - sizeof(Word)), Word{0});
    EXPECT_EQ(words.word<Word>(64 + sizeof(Word)), Word{0});
}

TEST(Atomics, ChangeWordsOfEightBytes) {
    NEEDS_ATOMICS(8);
    change_words<std::uint64_t>();
}

TEST(Atomics, ChangeWordsOfFourBytes) {
    NEEDS_ATOMICS(4);
    change_words<std::uint32_t>();
}

// Memory of the program's own, which a NIC of processes may not have mapped.
TEST(Atomics, ChangeWordsOfRegisteredMemory) {
    NEEDS_ATOMICS(8);
    Pair pair;
    auto* word = static_cast<std::uint64_t*>(pair.server.alloc(8));
    *word = 3;
    const Target target = pair.server.target(word);
    EXPECT_EQ(fetch_add<std::uint64_t>(pair.client, target, 5), 3u);
    EXPECT_EQ(compare_swap<std::uint64_t>(pair.client, target, 11, 8), 8u);
    EXPECT_EQ(*word, 11u);
}

// Adds one to the word at offset 0 again and again, by one VI of an end.
class Adder {
public:
    Adder(End& end, VIP_VI_HANDLE vi, const Target& word)
        : end_(end),
          vi_(vi),
          word_(word),
          operand_(static_cast<std::uint64_t*>(end.alloc(8))),
          d_(end.descriptor()) {}

    void run(int rounds) {
        for (int i = 0; i < rounds; ++i) {
            *operand_ = 1;
            fill(d_, VIPX_CONTROL_OP_FETCH_ADD, {end_.piece(operand_, 8)}, word_);
            require(VipPostSend(vi_, d_, end_.region), "VipPostSend");
            ASSERT_EQ(reap_send(vi_).status(), kDone);
        }
    }

private:
    End& end_;
    const VIP_VI_HANDLE vi_;
    const Target word_;
    std::uint64_t* const operand_;
    VIP_DESCRIPTOR* const d_;
};

TEST(Atomics, LoseNothingAgainstTheOwnersOwn) {
    NEEDS_ATOMICS(8);
    if (!beside_processors()) GTEST_SKIP() << "a processor's instructions may come between those of this NIC";
    Pair pair;
    const Words words(pair);
    constexpr int kRounds = 3'000, kBurst = 1'000, kBursts = 1'000;
    std::atomic<bool> over{false};
    std::atomic<int> bursts{0};
    // The owner adds for as long as the NIC does, and lets the threads that carry messages have the processor
    // meanwhile.
    std::thread owner([&] {
        auto* word = reinterpret_cast<std::uint64_t*>(words.base);
        while (!over) {
            for (int i = 0; i < kBurst; ++i) __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
            ++bursts;
            ::sched_yield();
        }
    });
    Adder adder(pair.client, pair.client.vi, words.at(0));
    int rounds = 0;
    for (constexpr int kSome = 100; (rounds < kRounds || bursts < kBursts) && !HasFailure(); rounds += kSome)
        adder.run(kSome);
    over = true;
    owner.join();
    EXPECT_EQ(words.word<std::uint64_t>(0), std::uint64_t{kBurst} * bursts + rounds);
}

TEST(Atomics, LoseNothingOfTwoConnections) {
    NEEDS_ATOMICS(8);
    Pair pair;
    const Words words(pair);
    const VIP_VI_HANDLE ours = pair.client.create_vi();
    const VIP_VI_HANDLE theirs = pair.server.create_vi();
    connect(pair.client.nic, ours, pair.server.nic, theirs);
    constexpr int kRounds = 3'000;
    Adder first(pair.client, pair.client.vi, words.at(0));
    Adder second(pair.client, ours, words.at(0));
    std::thread other([&] { second.run(kRounds); });
    first.run(kRounds);
    other.join();
    EXPECT_EQ(words.word<std::uint64_t>(0), 2u * kRounds);
    retire(ours);
    retire(theirs);
}

// The descriptor is made wrong by `spoil`; the connection ends, as after other mistakes at a reliable level.
template <typename Spoil>
void refused_with(VIP_UINT32 bit, Spoil&& spoil) {
    Pair pair;
    const Words words(pair);
    VIP_DESCRIPTOR* d = pair.client.descriptor(4);
    fill(d, VIPX_CONTROL_OP_FETCH_ADD, {pair.client.piece(pair.client.buffer(32), 8)}, words.at(0));
    spoil(pair, d);
    require(pair.client.post_send(d), "VipPostSend");
    const Outcome done = reap_send(pair.client.vi);
    EXPECT_EQ(done.descriptor, d);
    EXPECT_NE(done.status() & bit, 0u) << std::hex << done.status();
    EXPECT_TRUE(pair.client.reaches(VIP_STATE_ERROR));
    EXPECT_EQ(words.word<std::uint64_t>(0), 0u);
}

TEST(Atomics, RefuseWhatTheyCannotDo) {
    NEEDS_ATOMICS(8);
    refused_with(VIP_STATUS_FORMAT_ERROR,
                 [](Pair&, VIP_DESCRIPTOR* d) { d->DS[0].Remote.Data.AddressBits += 4; });
    refused_with(VIP_STATUS_FORMAT_ERROR,
                 [](Pair&, VIP_DESCRIPTOR* d) { d->CS.Control |= VIP_CONTROL_IMMEDIATE; });
    refused_with(VIP_STATUS_FORMAT_ERROR, [](Pair&, VIP_DESCRIPTOR* d) { d->CS.SegCount = 1; });
    refused_with(VIP_STATUS_LENGTH_ERROR,
                 [](Pair&, VIP_DESCRIPTOR* d) { d->CS.Length = d->DS[1].Local.Length = 16; });
    refused_with(VIP_STATUS_LENGTH_ERROR, [](Pair&, VIP_DESCRIPTOR* d) { d->CS.Length = 4; });
    refused_with(VIP_STATUS_PROTECTION_ERROR, [](Pair&, VIP_DESCRIPTOR* d) { d->DS[1].Local.Handle += 77; });
    refused_with(VIP_STATUS_RDMA_PROT_ERROR, [](Pair&, VIP_DESCRIPTOR* d) { d->DS[0].Remote.Handle += 77; });
    refused_with(VIP_STATUS_RDMA_PROT_ERROR,
                 [](Pair&, VIP_DESCRIPTOR* d) { d->DS[0].Remote.Data.AddressBits += 4096; });
}

TEST(Atomics, NeedBothPermissionsOfTheOtherEnd) {
    NEEDS_ATOMICS(8);
    for (const bool writes : {true, false}) {
        EndOptions closed;
        closed.rdma_write = writes;
        closed.rdma_read = !writes;
        Pair pair(EndOptions{}, closed);
        const Words words(pair);
        VIP_DESCRIPTOR* d = pair.client.descriptor();
        fill(d, VIPX_CONTROL_OP_FETCH_ADD, {pair.client.piece(pair.client.buffer(8), 8)}, words.at(0));
        require(pair.client.post_send(d), "VipPostSend");
        EXPECT_NE(reap_send(pair.client.vi).status() & VIP_STATUS_RDMA_PROT_ERROR, 0u);
        EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_RDMAR_PROT)) << "as of an RDMA read";
    }
}

TEST(Atomics, AreAFormatErrorWhereThereAreNone) {
    EndOptions chosen;
    const bool unreliable = has_atomics();
    if (unreliable) chosen.level = VIP_SERVICE_UNRELIABLE;
    if (unreliable && (nic_attributes().ReliabilityLevelSupport & VIP_SERVICE_UNRELIABLE) == 0)
        GTEST_SKIP() << "this NIC has atomic operations at every level it has";
    Pair pair(chosen);
    VIP_DESCRIPTOR* d = pair.client.descriptor();
    fill(d, VIPX_CONTROL_OP_FETCH_ADD, {pair.client.piece(pair.client.buffer(8), 8)},
         pair.server.target(pair.server.buffer(8)));
    require(pair.client.post_send(d), "VipPostSend");
    EXPECT_NE(reap_send(pair.client.vi).status() & VIP_STATUS_FORMAT_ERROR, 0u);
}

// So that the tests above cannot all be left out where they must pass.
TEST(AtomicsQuery, NicsOfOursHaveBothWidthsBesideProcessors) {
    const std::string name(reinterpret_cast<const char*>(nic_attributes().Name));
    if (name.rfind("paramnet", 0) != 0 && name.rfind("acenic", 0) != 0)
        GTEST_SKIP() << name << " has what its device has";
    EXPECT_EQ(widths_of_words(), 4u + 8u);
    EXPECT_TRUE(beside_processors());
}

TEST(AtomicsQuery, ChecksItsArguments) {
    const End end;
    VIP_ULONG widths = 0;
    EXPECT_EQ(VipxQueryAtomics(end.nic, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxQueryAtomics(nullptr, &widths), VIP_INVALID_PARAMETER);
    VIP_BOOLEAN processors = VIP_FALSE;
    EXPECT_EQ(VipxQueryAtomicScope(end.nic, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxQueryAtomicScope(nullptr, &processors), VIP_INVALID_PARAMETER);
}

}  // namespace
}  // namespace viaduct::conformance
