// SPDX-License-Identifier: BSD-2-Clause
// Atomic operations of viaduct/ext.h as the verbs provider hands them to the device, and what comes of them.
#include "providers/verbs/atomic.hpp"
#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs {
namespace {

constexpr uint32_t kTheirs = 0x4001;
constexpr uint64_t kWord = 0x10008;
constexpr uint32_t kOpen = kRegionRdmaWrite | kRegionRdmaRead;

class VerbsAtomics : public test::VerbsFixture {
protected:
    VerbsAtomics() { connect(VIP_SERVICE_RELIABLE_DELIVERY); }

    VIP_DESCRIPTOR* atomic(uint32_t control, uint64_t first, uint64_t second = 0) {
        const uint64_t operands[2] = {first, second};
        std::memcpy(memory_, operands, sizeof operands);
        return rdma(control == kControlFetchAdd ? 8 : 16, static_cast<uint16_t>(control), kTheirs, kWord);
    }
    void expect_status(const VIP_DESCRIPTOR* d, uint32_t bits) {
        EXPECT_EQ(d->CS.Status, VIP_STATUS_DONE | kStatusAtomic | bits);
    }
};

TEST_F(VerbsAtomics, AFetchAddCarriesItsOperandAndGetsTheOldValueInItsPlace) {
    VIP_DESCRIPTOR* d = atomic(kControlFetchAdd | VIP_CONTROL_QFENCE, 5);
    d->CS.Length = d->DS[1].Local.Length = 8;
    post_send(d);
    ASSERT_EQ(fake_.messages.size(), 1u);
    EXPECT_EQ(message(0).length, 8u);
    EXPECT_EQ(message(0).flags, kOpen) << "the word is both read and written";
    answer(kTheirs, RemoteKey{0x10000, 4096, 4711, kOpen});
    ASSERT_EQ(fake_.sends.size(), 1u);
    const test::PostedSend& posted = fake_.sends[0];
    EXPECT_EQ(posted.wr.opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
    EXPECT_EQ(posted.wr.send_flags, static_cast<unsigned>(IBV_SEND_SIGNALED | IBV_SEND_FENCE))
        << "never inline: the piece is where the answer comes";
    EXPECT_EQ(posted.wr.wr.atomic.remote_addr, kWord);
    EXPECT_EQ(posted.wr.wr.atomic.rkey, 4711u);
    EXPECT_EQ(posted.wr.wr.atomic.compare_add, 5u);
    ASSERT_EQ(posted.pieces.size(), 1u);
    EXPECT_EQ(posted.pieces[0].addr, reinterpret_cast<uintptr_t>(memory_));
    EXPECT_EQ(posted.pieces[0].length, 8u);
    complete(posted.wr.wr_id, IBV_WC_SUCCESS, 8, IBV_WC_FETCH_ADD);
    poll_send(core_);
    expect_status(d, 0);
    EXPECT_EQ(d->CS.Length, 8u);
}

TEST_F(VerbsAtomics, ACompareSwapHasTheNewValueFirstAndAnswersIntoIt) {
    VIP_DESCRIPTOR* d = atomic(kControlCompareSwap, 9, 4);
    post_send(d);
    EXPECT_EQ(message(0).length, 8u) << "of the word, not of the operands";
    answer(kTheirs, RemoteKey{kWord, 8, 4711, kOpen});
    ASSERT_EQ(fake_.sends.size(), 1u);
    EXPECT_EQ(fake_.sends[0].wr.opcode, IBV_WR_ATOMIC_CMP_AND_SWP);
    EXPECT_EQ(fake_.sends[0].wr.wr.atomic.swap, 9u);
    EXPECT_EQ(fake_.sends[0].wr.wr.atomic.compare_add, 4u);
    ASSERT_EQ(fake_.sends[0].pieces.size(), 1u);
    EXPECT_EQ(fake_.sends[0].pieces[0].length, 8u);
}

TEST_F(VerbsAtomics, AKeyForWritesAloneIsNotEnough) {
    post_send(rdma(8, VIP_CONTROL_OP_RDMAWRITE, kTheirs, kWord));
    answer(kTheirs, RemoteKey{0x10000, 4096, 4711, kRegionRdmaWrite});
    ASSERT_EQ(fake_.sends.size(), 1u);
    post_send(atomic(kControlFetchAdd, 1));
    EXPECT_EQ(fake_.sends.size(), 1u);
    EXPECT_EQ(fake_.messages.size(), 2u) << "it is asked for anew";
}

TEST_F(VerbsAtomics, WhatTheOwnerRefusesIsToldToTheDescriptorAtEveryLevel) {
    VIP_DESCRIPTOR* d = atomic(kControlFetchAdd, 1);
    post_send(d);
    answer(kTheirs, RemoteKey());
    expect_status(d, VIP_STATUS_RDMA_PROT_ERROR);
    EXPECT_TRUE(core_.is_marked_broken());
    EXPECT_TRUE(fake_.sends.empty());
}

TEST_F(VerbsAtomics, SoIsWhatTheDeviceRefuses) {
    VIP_DESCRIPTOR* d = atomic(kControlFetchAdd, 1);
    post_send(d);
    answer(kTheirs, RemoteKey{0x10000, 4096, 4711, kOpen});
    ASSERT_EQ(fake_.sends.size(), 1u);
    complete(fake_.sends[0].wr.wr_id, IBV_WC_REM_ACCESS_ERR);
    poll_send(core_);
    expect_status(d, VIP_STATUS_RDMA_PROT_ERROR);
    EXPECT_EQ(message(1).kind, MessageKind::read_refused) << "the owner is told";
}

TEST_F(VerbsAtomics, MistakesNeverReachTheDevice) {
    const struct {
        uint32_t bit;
        void (*spoil)(VIP_DESCRIPTOR*);
    } rows[] = {
        {VIP_STATUS_FORMAT_ERROR, [](VIP_DESCRIPTOR* d) { d->DS[0].Remote.Data.AddressBits += 4; }},
        {VIP_STATUS_FORMAT_ERROR, [](VIP_DESCRIPTOR* d) { d->CS.SegCount = 1; }},
        {VIP_STATUS_LENGTH_ERROR, [](VIP_DESCRIPTOR* d) { d->CS.Length = d->DS[1].Local.Length = 4; }},
        {VIP_STATUS_LENGTH_ERROR, [](VIP_DESCRIPTOR* d) { d->CS.Length = d->DS[1].Local.Length = 16; }},
        {VIP_STATUS_PROTECTION_ERROR, [](VIP_DESCRIPTOR* d) { d->DS[1].Local.Handle += 77; }},
    };
    for (const auto& row : rows) {
        core_.broken.store(0);
        core_.endpoint->stopped = false;
        VIP_DESCRIPTOR* d = atomic(kControlFetchAdd, 1);
        row.spoil(d);
        post_send(d);
        expect_status(d, row.bit);
    }
    EXPECT_TRUE(fake_.sends.empty());
    EXPECT_TRUE(fake_.messages.empty());
}

// Some devices refuse the word where they have no atomics.
TEST_F(VerbsAtomics, MemoryIsRegisteredForThemOnlyWhereTheDeviceHasThemAndBothWaysAreOpen) {
    constexpr int kBoth = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    for (const bool has : {true, false}) {
        RegionKeys keys;
        ASSERT_TRUE(keys.allocate(nullptr, has));
        Region region;
        region.base = reinterpret_cast<uintptr_t>(memory_);
        region.length = 64;
        region.flags = kOpen;
        ASSERT_EQ(keys.add(1, region), Status::ok);
        EXPECT_EQ(fake_.registered.back(), has ? kBoth | IBV_ACCESS_REMOTE_ATOMIC : kBoth);
        region.flags = kRegionRdmaWrite;
        ASSERT_EQ(keys.add(2, region), Status::ok);
        EXPECT_EQ(fake_.registered.back(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        keys.clear();
    }
}

}  // namespace
}  // namespace viaduct::verbs
