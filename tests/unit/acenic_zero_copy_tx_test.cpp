// SPDX-License-Identifier: BSD-2-Clause
// Payload that lies elsewhere and has to wait: it is copied behind its frame, and its memory is let go.
#include "providers/acenic/zero_copy_tx.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace viaduct::acenic {
namespace {

class AcenicZeroCopyTx : public testing::Test {
protected:
    // A frame of 100 bytes with three parts of 10, 200 and 1 behind it.
    AcenicZeroCopyTx() {
        prepare(frame_, frame_memory_.data(), 100);
        rte_mbuf* last = &frame_;
        std::byte* at = payload_.data();
        for (size_t i = 0; i < parts_.size(); ++i) {
            prepare(parts_[i], at, kBytes[i]);
            std::memset(at, static_cast<int>(i + 1), kBytes[i]);
            at += kBytes[i];
            last->next = &parts_[i];
            last = &parts_[i];
            frame_.pkt_len += kBytes[i];
        }
        frame_.nb_segs = 1 + parts_.size();
    }
    static void prepare(rte_mbuf& m, std::byte* memory, uint16_t bytes) {
        m.buf_addr = memory;
        m.data_len = bytes;
        m.pkt_len = bytes;
        m.nb_segs = 1;
        rte_mbuf_refcnt_set(&m, kOurs);
    }
    void expect_let_go() {
        EXPECT_EQ(frame_.nb_segs, 1);
        EXPECT_EQ(frame_.next, nullptr);
        for (const rte_mbuf& part : parts_) EXPECT_EQ(rte_mbuf_refcnt_read(&part), kOurs - 1);
    }

    static constexpr uint16_t kOurs = 1000;  // references: no pool stands behind them
    static constexpr std::array<uint16_t, 3> kBytes = {10, 200, 1};
    rte_mbuf frame_{};
    std::array<rte_mbuf, 3> parts_{};
    std::array<std::byte, 2048> frame_memory_{};
    std::array<std::byte, 256> payload_{};
};

TEST_F(AcenicZeroCopyTx, WhatHasToWaitIsCopiedInWholeAndInOrder) {
    ZeroCopyTx::copy_in(&frame_);
    expect_let_go();
    EXPECT_EQ(frame_.data_len, 311);
    EXPECT_EQ(frame_.pkt_len, 311u);
    EXPECT_EQ(std::memcmp(frame_memory_.data() + 100, payload_.data(), 211), 0);
}

TEST_F(AcenicZeroCopyTx, TheTailOfWhatHasBeenSentIsFreedUntouched) {
    ZeroCopyTx::free_tail(&frame_);
    expect_let_go();
    EXPECT_EQ(frame_.data_len, 100);
    EXPECT_EQ(frame_memory_[100], std::byte{});
}

TEST_F(AcenicZeroCopyTx, AFrameWithoutAnythingBehindItIsLeftAlone) {
    rte_mbuf alone{};
    std::array<std::byte, 64> memory{};
    prepare(alone, memory.data(), 60);
    ZeroCopyTx::copy_in(&alone);
    ZeroCopyTx::free_tail(&alone);
    EXPECT_EQ(alone.data_len, 60);
    EXPECT_EQ(rte_mbuf_refcnt_read(&alone), kOurs);
}

}  // namespace
}  // namespace viaduct::acenic
