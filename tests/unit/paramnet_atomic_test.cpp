// SPDX-License-Identifier: BSD-2-Clause
// Atomic operations on memory that the initiator reaches by plain instructions, by system calls only, or not
// at all: the target does the last two.
#include <sys/mman.h>
#include <viaduct/ext.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "paramnet_fixture.hpp"

namespace viaduct::paramnet::test {
namespace {

constexpr uint32_t kDone = VIP_STATUS_DONE | VIPX_STATUS_OP_ATOMIC;

class Atomic : public testing::TestWithParam<std::tuple<uint16_t, Reach>> {
protected:
    Atomic() : pair(std::get<0>(GetParam()), std::get<1>(GetParam())) { pair.a.core.atomic_widths = 4 + 8; }

    bool plain() const { return std::get<1>(GetParam()) == Reach::same_process; }

    template <class Word>
    VIP_DESCRIPTOR* post(uint32_t control, const std::byte* word, uint32_t handle, Word operand,
                         Word expected = 0) {
        const Word operands[2] = {operand, expected};
        const uint32_t n = control == VIPX_CONTROL_OP_COMPARE_SWAP ? 2 * sizeof(Word) : sizeof(Word);
        std::byte* at = pair.a.data() + 64 * (made_++ % 64);
        std::memcpy(at, operands, n);
        VIP_DESCRIPTOR* d = pair.a.make_rdma(control, at, n, word, handle);
        pair.a.post_send(d);
        return d;
    }

    // As the library waits for a send: it takes what arrives, too.
    template <class Word>
    Word before(VIP_DESCRIPTOR* d) {
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_TRUE(eventually(
            [&] { return pair.a.recv_done() == nullptr && (done = pair.a.send_done()) != nullptr; }));
        EXPECT_EQ(done, d);
        EXPECT_EQ(status_of(d), kDone);
        Word old;
        std::memcpy(&old, d->DS[1].Local.Data.Address, sizeof old);
        return old;
    }

    template <class Word>
    void change_words() {
        std::byte* word = pair.b.data() + 64;
        std::memset(word - 64, 0, 192);
        const auto now = [&](std::ptrdiff_t at) {
            Word value;
            std::memcpy(&value, word + at, sizeof value);
            return value;
        };
        const uint32_t add = VIPX_CONTROL_OP_FETCH_ADD, swap = VIPX_CONTROL_OP_COMPARE_SWAP;
        EXPECT_EQ(before<Word>(post<Word>(add, word, pair.b.region, 5)), Word{0});
        EXPECT_EQ(before<Word>(post<Word>(add, word, pair.b.region, Word(-1))), Word{5});
        EXPECT_EQ(before<Word>(post<Word>(swap, word, pair.b.region, 9, 7)), Word{4});
        EXPECT_EQ(now(0), Word{4}) << "what was expected was not there";
        VIP_DESCRIPTOR* d = post<Word>(swap, word, pair.b.region, 9, 4);
        EXPECT_EQ(before<Word>(d), Word{4});
        EXPECT_EQ(d->CS.Length, 2 * sizeof(Word));
        EXPECT_EQ(now(0), Word{9});
        EXPECT_EQ(now(-std::ptrdiff_t{sizeof(Word)}), Word{0});
        EXPECT_EQ(now(sizeof(Word)), Word{0});
    }

    void expect_refused(VIP_DESCRIPTOR* d) {
        ASSERT_EQ(pair.a.wait_send(), d);
        EXPECT_EQ(status_of(d), kDone | VIP_STATUS_RDMA_PROT_ERROR);
        EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RDMAR_PROT)) << "as of an RDMA read";
        EXPECT_TRUE(pair.a.reaches(VIP_STATE_ERROR));
    }

    TestPair pair;

private:
    uint32_t made_ = 0;
};

TEST_P(Atomic, WordsOfEightBytesChange) { change_words<uint64_t>(); }
TEST_P(Atomic, WordsOfFourBytesChange) { change_words<uint32_t>(); }

TEST_P(Atomic, KeepsItsPlaceAmongOtherRdma) {
    std::byte* word = pair.b.data();
    const uint64_t first = 100, last = 1000;
    std::byte* const from = pair.a.data() + 8192;
    for (int round = 0; round < 100; ++round) {
        std::memcpy(from, &first, 8);
        std::memcpy(from + 8, &last, 8);
        pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, from, 8, word, pair.b.region));
        VIP_DESCRIPTOR* add = post<uint64_t>(VIPX_CONTROL_OP_FETCH_ADD, word, pair.b.region, 1);
        pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, from + 16, 8, word, pair.b.region));
        pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, from + 8, 8, word, pair.b.region));
        VIP_DESCRIPTOR* again = post<uint64_t>(VIPX_CONTROL_OP_FETCH_ADD, word, pair.b.region, 1);
        uint64_t seen[3];
        ASSERT_NE(pair.a.wait_send(), nullptr);
        seen[0] = before<uint64_t>(add);
        ASSERT_NE(pair.a.wait_send(), nullptr);
        std::memcpy(&seen[1], from + 16, 8);
        ASSERT_NE(pair.a.wait_send(), nullptr);
        seen[2] = before<uint64_t>(again);
        ASSERT_EQ(seen[0], 100u);
        ASSERT_EQ(seen[1], 101u);
        ASSERT_EQ(seen[2], 1000u);
    }
}

// No thread polls the group of the receive queue, and the progress thread is kept busy with another connection.
TEST_P(Atomic, TheAnswerIsTakenByAPollOfTheSendGroup) {
    if (plain()) return;
    Group* const sends = pair.nic_a.new_group();
    TestVi from(pair.nic_a, std::get<0>(GetParam()), 1 << 20, sends, pair.nic_a.new_group());
    TestVi to(pair.nic_b, std::get<0>(GetParam()));
    connect(from, to);
    from.core.atomic_widths = 4 + 8;
    TestVi busy(pair.nic_a, VIP_SERVICE_UNRELIABLE), other(pair.nic_b, VIP_SERVICE_UNRELIABLE);
    connect(busy, other);
    const auto held = busy.holds_up_errors();
    other.send(other.data(), 8);  // no receive is posted
    const auto& seen = busy.endpoint().events_seen[kEventNoReceive];
    ASSERT_TRUE(eventually([&] { return seen.load() != 0; }));
    for (int i = 0; i < 100; ++i) {
        VIP_DESCRIPTOR* d = from.make_rdma(VIPX_CONTROL_OP_FETCH_ADD, from.data(), 8, to.data(), to.region);
        from.post_send(d);
        ASSERT_TRUE(eventually(
            [&] {
                ops().poll_group(sends);
                return (status_of(d) & VIP_STATUS_DONE) != 0;
            }));
        EXPECT_EQ(from.send_done(), d);
    }
}

TEST_P(Atomic, NothingIsLostBesideTheOwnersOwn) {
    auto* word = reinterpret_cast<uint64_t*>(pair.b.data());
    *word = 0;
    constexpr uint64_t kRounds = 2000;
    std::atomic<bool> stop{false};
    uint64_t own = 0;
    std::thread owner([&] {
        for (; !stop.load(); ++own) __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
    });
    for (uint64_t i = 0; i < kRounds && !HasFailure(); ++i)
        before<uint64_t>(post<uint64_t>(VIPX_CONTROL_OP_FETCH_ADD, pair.b.data(), pair.b.region, 1));
    stop.store(true);
    owner.join();
    EXPECT_EQ(*word, own + kRounds);
}

// As the initiator finds, and as the target does where the initiator has not looked.
TEST_P(Atomic, NeedsBothPermissionsOfTheRegion) {
    for (const uint32_t flag : {kRegionRdmaWrite, kRegionRdmaRead})
        for (const bool asks : {false, true}) {
            TestPair fresh(std::get<0>(GetParam()), std::get<1>(GetParam()));
            fresh.a.core.atomic_widths = 4 + 8;
            fresh.a.endpoint().tx.rdma.asks_help = asks;
            const uint32_t half = fresh.nic_b.add_region(fresh.b.data(), 4096, flag);
            fresh.b.data()[0] = std::byte{7};
            VIP_DESCRIPTOR* d =
                fresh.a.make_rdma(VIPX_CONTROL_OP_FETCH_ADD, fresh.a.data(), 8, fresh.b.data(), half);
            fresh.a.data()[0] = std::byte{1};
            fresh.a.post_send(d);
            ASSERT_EQ(fresh.a.wait_send(), d);
            EXPECT_EQ(status_of(d), kDone | VIP_STATUS_RDMA_PROT_ERROR);
            EXPECT_TRUE(fresh.b.is_told(VIP_ERROR_RDMAR_PROT));
            EXPECT_EQ(fresh.b.data()[0], std::byte{7});
        }
}

TEST_P(Atomic, AWordOutsideOfTheRegionIsRefused) {
    expect_refused(post<uint64_t>(VIPX_CONTROL_OP_FETCH_ADD, pair.b.data() + (1 << 20), pair.b.region, 1));
}

TEST_P(Atomic, TheTargetRefusesAWordOutsideOfTheRegion) {
    pair.a.endpoint().tx.rdma.asks_help = true;
    expect_refused(post<uint64_t>(VIPX_CONTROL_OP_FETCH_ADD, pair.b.data() + (1 << 20), pair.b.region, 1));
}

TEST_P(Atomic, TheTargetRefusesAWordThatBeginsInsideOfTheRegionOnly) {
    pair.a.endpoint().tx.rdma.asks_help = true;
    const uint32_t small = pair.nic_b.add_region(pair.b.data(), 12);
    expect_refused(post<uint64_t>(VIPX_CONTROL_OP_FETCH_ADD, pair.b.data() + 8, small, 1));
    EXPECT_EQ(pair.b.data()[8], std::byte{0});
}

TEST_P(Atomic, TheTargetTakesItsOwnHandlesOnly) {
    pair.a.endpoint().tx.rdma.asks_help = true;
    expect_refused(post<uint64_t>(VIPX_CONTROL_OP_FETCH_ADD, pair.b.data(), pair.b.region + (1u << 24), 1));
}

TEST_P(Atomic, MemoryThatItsOwnerHasUnmappedIsRefused) {
    if (plain()) return;  // the initiator touches it in its own call, as the program itself would
    void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const uint32_t lost = pair.nic_b.add_region(memory, 4096);
    ::mprotect(memory, 4096, PROT_NONE);
    expect_refused(post<uint64_t>(VIPX_CONTROL_OP_FETCH_ADD, static_cast<std::byte*>(memory), lost, 1));
    ::munmap(memory, 4096);
}

INSTANTIATE_TEST_SUITE_P(
    Paramnet, Atomic,
    testing::Combine(testing::Values(VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION),
                     testing::Values(Reach::same_process, Reach::cross_copy, Reach::none)));

}  // namespace
}  // namespace viaduct::paramnet::test
