// SPDX-License-Identifier: BSD-2-Clause
// Descriptors: every trigger of spec/descriptors 2.3 that the core checks, and how completions are written.
#include "core/vi/descriptor.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "core/copy/copy.hpp"
#include "core/vi/vi_core.hpp"

namespace viaduct {
namespace {

constexpr uint32_t kMaxSegments = 252;

class Descriptors : public ::testing::Test {
protected:
    void SetUp() override {
        Region whole;
        whole.base = address(0);
        whole.length = sizeof memory_;
        whole.ptag = 7;
        handle_ = regions_.add(whole);
        Region descriptors = whole;
        descriptors.base = reinterpret_cast<uintptr_t>(storage_);
        descriptors.length = sizeof storage_;
        regions_.add(descriptors);
        vi_.regions = &regions_;
        vi_.ptag = 7;
        vi_.max_segments = kMaxSegments;
        vi_.max_transfer = 4096;
        vi_.rdma_read_allowed = 1;
    }

    uint64_t address(size_t offset) const { return reinterpret_cast<uintptr_t>(memory_) + offset; }

    VIP_DESCRIPTOR* descriptor(uint16_t control, const std::vector<uint32_t>& lengths, bool with_address = false) {
        std::memset(storage_, 0, sizeof storage_);
        auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(storage_);
        d->CS.Control = control;
        size_t at = 0;
        if (with_address) d->DS[at++].Remote.Data.AddressBits = 1;
        for (const uint32_t length : lengths) {
            VIP_DATA_SEGMENT& s = segment(d, at++);
            s.Data.AddressBits = address(64);
            s.Handle = handle_;
            s.Length = length;
            d->CS.Length += length;
        }
        d->CS.SegCount = static_cast<VIP_UINT16>(at);
        return d;
    }

    static VIP_DATA_SEGMENT& segment(VIP_DESCRIPTOR* d, size_t index) {
        return const_cast<VIP_DATA_SEGMENT&>(segments_of(d)[index].Local);
    }

    uint32_t send(const VIP_DESCRIPTOR* d) { return check_send(vi_, d, &total_); }
    uint32_t receive(const VIP_DESCRIPTOR* d) { return check_receive(vi_, d, &total_); }

    alignas(64) char memory_[8192] = {};
    alignas(64) char storage_[64 + 16 * 300] = {};
    RegionTable regions_;
    uint32_t handle_ = 0;
    ViCore vi_;
    uint64_t total_ = 0;
};

TEST_F(Descriptors, PlainSendIsGood) {
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_SENDRECV, {100})), 0u);
    EXPECT_EQ(total_, 100u);
    EXPECT_EQ(send(descriptor(VIP_CONTROL_IMMEDIATE, {1, 2, 3})), 0u);
    EXPECT_EQ(total_, 6u);
    EXPECT_EQ(send(descriptor(VIP_CONTROL_QFENCE | VIP_CONTROL_IMMEDIATE, {})), 0u);
    EXPECT_EQ(total_, 0u);
    EXPECT_EQ(send(descriptor(0, std::vector<uint32_t>(kMaxSegments, 1))), 0u);
    EXPECT_EQ(total_, kMaxSegments);
}

TEST_F(Descriptors, RdmaCountsItsAddressSegment) {
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAWRITE, {50, 50}, true)), 0u);
    EXPECT_EQ(total_, 100u);
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, {}, true)), 0u);
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAREAD, {10}, true)), 0u);
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_QFENCE, {10}, true)), 0u);
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAWRITE, std::vector<uint32_t>(kMaxSegments - 1, 1), true)),
              0u);
}

TEST_F(Descriptors, AddressSegmentIsNotLocalMemory) {
    VIP_DESCRIPTOR* d = descriptor(VIP_CONTROL_OP_RDMAWRITE, {10}, true);
    d->DS[0].Remote.Handle = 0xDEADBEEF;
    EXPECT_EQ(send(d), 0u) << "the target checks it, not we";
}

TEST_F(Descriptors, FormatErrorsOfTheSendQueue) {
    const uint32_t format = VIP_STATUS_FORMAT_ERROR;
    for (int bit = 4; bit < 16; ++bit)
        EXPECT_EQ(send(descriptor(static_cast<uint16_t>(1 << bit), {1})), format) << bit;
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RESERVED, {1}, true)), format);
    EXPECT_EQ(send(descriptor(0, std::vector<uint32_t>(kMaxSegments + 1, 1))), format);
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAWRITE, std::vector<uint32_t>(kMaxSegments, 1), true)),
              format);
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAWRITE, {})), format) << "no address segment";
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAREAD, {})), format);
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE, {1}, true)), format);
    vi_.rdma_read_allowed = 0;
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAREAD, {1}, true)), format);
    EXPECT_EQ(send(descriptor(VIP_CONTROL_OP_RDMAWRITE, {1}, true)), 0u);
}

TEST_F(Descriptors, ProtectionErrorsOfTheSendQueue) {
    const uint32_t protection = VIP_STATUS_PROTECTION_ERROR;
    VIP_DESCRIPTOR* d = descriptor(0, {100, 100});
    segment(d, 1).Handle = 0;
    EXPECT_EQ(send(d), protection);
    d = descriptor(0, {100});
    segment(d, 0).Data.AddressBits = address(sizeof memory_ - 99);
    EXPECT_EQ(send(d), protection);
    d = descriptor(0, {100});
    segment(d, 0).Data.AddressBits = address(0) - 1;
    EXPECT_EQ(send(d), protection);
    vi_.ptag = 8;
    EXPECT_EQ(send(descriptor(0, {100})), protection);
    vi_.ptag = 0;
    EXPECT_EQ(send(descriptor(0, {100})), 0u) << "the NULL tag clashes with none";
    regions_.remove(handle_, 0, nullptr);
    EXPECT_EQ(send(descriptor(0, {100})), protection);
}

TEST_F(Descriptors, LengthErrorsOfTheSendQueue) {
    VIP_DESCRIPTOR* d = descriptor(0, {100});
    d->CS.Length = 99;
    EXPECT_EQ(send(d), uint32_t{VIP_STATUS_LENGTH_ERROR});
    d->CS.Length = 101;
    EXPECT_EQ(send(d), uint32_t{VIP_STATUS_LENGTH_ERROR});
    EXPECT_EQ(send(descriptor(0, {4096})), 0u);
    EXPECT_EQ(send(descriptor(0, {4096, 1})), uint32_t{VIP_STATUS_LENGTH_ERROR});
    d = descriptor(0, {100});
    d->CS.Length = 99;
    segment(d, 0).Handle = 0;
    EXPECT_EQ(send(d), uint32_t{VIP_STATUS_LENGTH_ERROR | VIP_STATUS_PROTECTION_ERROR}) << "both are told";
}

TEST_F(Descriptors, SumsDoNotWrap) {
    vi_.max_transfer = UINT32_MAX;
    VIP_DESCRIPTOR* d = descriptor(0, {0x80000000u, 0x80000000u});
    ASSERT_EQ(d->CS.Length, 0u);
    EXPECT_NE(send(d) & VIP_STATUS_LENGTH_ERROR, 0u);
}

TEST_F(Descriptors, EmptySegmentsAreNotLookedAt) {  // spec/descriptors 2.2 rule 4
    VIP_DESCRIPTOR* d = descriptor(0, {0, 10, 0});
    segment(d, 0).Handle = 0;
    segment(d, 2).Data.AddressBits = 0;
    EXPECT_EQ(send(d), 0u);
    EXPECT_EQ(receive(d), 0u);
    EXPECT_EQ(total_, 10u);
}

TEST_F(Descriptors, ReceivesTolerateImmediateAndAnyLength) {  // spec/descriptors 2.2 rule 2, spec/compat T3
    EXPECT_EQ(receive(descriptor(0, {100, 200})), 0u);
    EXPECT_EQ(total_, 300u);
    VIP_DESCRIPTOR* d = descriptor(VIP_CONTROL_IMMEDIATE, {100});
    d->CS.Length = 12345;
    EXPECT_EQ(receive(d), 0u);
    EXPECT_EQ(total_, 100u);
    EXPECT_EQ(receive(descriptor(0, {})), 0u);
    EXPECT_EQ(total_, 0u);
    EXPECT_EQ(receive(descriptor(0, {8000})), 0u) << "room for more than MaxTransferSize is no error";
}

TEST_F(Descriptors, ErrorsOfTheReceiveQueue) {
    const uint32_t format = VIP_STATUS_FORMAT_ERROR;
    EXPECT_EQ(receive(descriptor(VIP_CONTROL_OP_RDMAWRITE, {1}, true)), format);
    EXPECT_EQ(receive(descriptor(VIP_CONTROL_OP_RDMAREAD, {1}, true)), format);
    EXPECT_EQ(receive(descriptor(VIP_CONTROL_OP_RESERVED, {1})), format);
    EXPECT_EQ(receive(descriptor(VIP_CONTROL_QFENCE, {1})), format);
    EXPECT_EQ(receive(descriptor(0x10, {1})), format);
    EXPECT_EQ(receive(descriptor(0, std::vector<uint32_t>(kMaxSegments + 1, 1))), format);
    VIP_DESCRIPTOR* d = descriptor(0, {100, 100});
    segment(d, 1).Handle = handle_ + 1;
    EXPECT_EQ(receive(d), uint32_t{VIP_STATUS_PROTECTION_ERROR});
}

TEST_F(Descriptors, OfAReceiveCountsWhereTheBytesOfItsMessageGo) {
    VIP_DESCRIPTOR* d = descriptor(0, {sizeof memory_ - 64, 100});
    segment(d, 0).Length += 1000;  // the region ends before it, and the second one lies nowhere
    segment(d, 1).Handle = handle_ + 77;
    const auto with = [&](uint64_t bytes) { return check_receive(vi_, d, bytes, &total_); };
    const uint32_t refused = VIP_STATUS_PROTECTION_ERROR;
    EXPECT_EQ(with(0), 0u);
    EXPECT_EQ(with(sizeof memory_ - 64), 0u);
    EXPECT_EQ(total_, sizeof memory_ - 64 + 1000 + 100) << "the capacity is what was posted";
    EXPECT_EQ(with(sizeof memory_ - 63), refused);
    EXPECT_EQ(with(UINT64_MAX), refused);
    vi_.strict_receives = true;
    EXPECT_EQ(with(0), refused);
}

TEST_F(Descriptors, StatusIsOverwrittenAndTheRestSurvives) {  // spec/compat T1, T2
    VIP_DESCRIPTOR* d = descriptor(VIP_CONTROL_IMMEDIATE, {100});
    d->CS.Status = 0xFFFFFFFF;
    d->CS.Next.AddressBits = 0x1234;
    d->CS.ImmediateData = 77;
    d->CS.Reserved = 5;
    publish_status(d, VIP_STATUS_OP_RECEIVE, 42);
    EXPECT_EQ(d->CS.Status, uint32_t{VIP_STATUS_OP_RECEIVE | VIP_STATUS_DONE});
    EXPECT_EQ(d->CS.Length, 42u);
    EXPECT_EQ(d->CS.Next.AddressBits, 0x1234u);
    EXPECT_EQ(d->CS.ImmediateData, 77u);
    EXPECT_EQ(d->CS.Reserved, 5u);
    EXPECT_EQ(d->CS.Control, VIP_CONTROL_IMMEDIATE);
    EXPECT_EQ(d->CS.SegCount, 1);
}

// A peer that may write to the memory of descriptors makes a posted one seem longer than its region.
TEST_F(Descriptors, SegmentsBehindRegisteredMemoryAreNeverRead) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    void* pages = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    ASSERT_EQ(::mprotect(static_cast<char*>(pages) + page, page, PROT_NONE), 0);
    Region first;
    first.base = reinterpret_cast<uintptr_t>(pages);
    first.length = page;
    first.ptag = 7;
    const uint32_t handle = regions_.add(first);
    auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(static_cast<char*>(pages) + page - sizeof(VIP_DESCRIPTOR));
    for (const VIP_UINT16 operation :
         {VIP_UINT16{VIP_CONTROL_OP_SENDRECV}, VIP_UINT16{VIP_CONTROL_OP_RDMAWRITE}}) {
        d->CS.Control = operation;
        for (const VIP_UINT16 count : std::vector<VIP_UINT16>{3, 200, 252, 65535}) {
            d->CS.SegCount = count;
            EXPECT_EQ(send(d), uint32_t{VIP_STATUS_FORMAT_ERROR}) << count;
            if (operation == VIP_CONTROL_OP_SENDRECV) {
                EXPECT_EQ(receive(d), uint32_t{VIP_STATUS_FORMAT_ERROR}) << count;
            }
            SegmentCursor cursor;
            cursor.begin(d, 1000, vi_.regions, vi_.ptag);
            uint32_t n = 0;
            EXPECT_EQ(cursor.next(1000, &n), nullptr) << "changed after the check: " << count;
        }
    }
    d->CS.SegCount = 0;  // it was an RDMA with its address when it was checked
    SegmentCursor cursor;
    cursor.begin(d, 1000, vi_.regions, vi_.ptag);
    uint32_t n = 0;
    EXPECT_EQ(cursor.next(1000, &n), nullptr);
    d->CS.Control = VIP_CONTROL_OP_SENDRECV;
    d->CS.SegCount = 2;
    EXPECT_EQ(receive(d), 0u) << "the first two segments always lie in it";
    regions_.remove(handle, 0, nullptr);
    ::munmap(pages, 2 * page);
}

TEST_F(Descriptors, OperationBitsOfCompletions) {  // spec/descriptors 2.4
    EXPECT_EQ(send_status_op(VIP_CONTROL_OP_SENDRECV), uint32_t{VIP_STATUS_OP_SEND});
    EXPECT_EQ(send_status_op(VIP_CONTROL_OP_RDMAWRITE), uint32_t{VIP_STATUS_OP_RDMA_WRITE});
    EXPECT_EQ(send_status_op(VIP_CONTROL_OP_RDMAREAD), uint32_t{VIP_STATUS_OP_RDMA_READ});
    EXPECT_EQ(send_status_op(VIP_CONTROL_OP_RESERVED), uint32_t{VIP_STATUS_OP_SEND});
}

}  // namespace
}  // namespace viaduct
