// SPDX-License-Identifier: BSD-2-Clause
// The error table of spec/reliability 6.2, row by row, at each level and on both sides.
#include "paramnet_fixture.hpp"

namespace viaduct::paramnet::test {
namespace {

class Errors : public testing::TestWithParam<uint16_t> {
protected:
    bool unreliable() const { return GetParam() == VIP_SERVICE_UNRELIABLE; }
    bool reception() const { return GetParam() == VIP_SERVICE_RELIABLE_RECEPTION; }

    // What the sender of a message that met trouble at the receiver sees.
    void expect_sender(TestVi& a) {
        VIP_DESCRIPTOR* d = a.wait_send();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK,
                  reception() ? uint32_t{VIP_STATUS_REMOTE_DESC_ERROR} : 0u);
        if (!unreliable()) {
            EXPECT_TRUE(a.reaches(VIP_STATE_ERROR));
        }
    }

    void expect_alive(TestPair& pair) {
        EXPECT_EQ(pair.a.state(), uint32_t{VIP_STATE_CONNECTED});
        EXPECT_EQ(pair.b.state(), uint32_t{VIP_STATE_CONNECTED});
        pair.b.receive(pair.b.data() + 5000, 8);
        fill(pair.a.data() + 5000, 8, 42);
        pair.a.send(pair.a.data() + 5000, 8);
        ASSERT_NE(pair.b.wait_recv(), nullptr);
        EXPECT_TRUE(filled(pair.b.data() + 5000, 8, 42));
    }
};

TEST_P(Errors, NoReceivePosted) {
    TestPair pair(GetParam());
    pair.a.send(pair.a.data(), 8);
    EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RECVQ_EMPTY));
    expect_sender(pair.a);
    if (unreliable()) {
        expect_alive(pair);
        EXPECT_EQ(pair.b.errors().size(), 1u);
    } else {
        EXPECT_TRUE(pair.b.reaches(VIP_STATE_ERROR));
        EXPECT_EQ(pair.b.errors().size(), 1u);
    }
}

TEST_P(Errors, EarlierMessagesArriveBeforeTheBreak) {
    TestPair pair(GetParam());
    for (int i = 0; i < 3; ++i) pair.b.receive(pair.b.data() + i * 100, 100);
    for (int i = 0; i < 4; ++i) pair.a.send(pair.a.data(), 30);
    EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RECVQ_EMPTY));
    for (int i = 0; i < 3; ++i) {
        VIP_DESCRIPTOR* d = pair.b.wait_recv();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
    }
}

TEST_P(Errors, MessageLongerThanTheReceive) {
    for (const uint32_t size : {40u, 100u, 100000u}) {
        SCOPED_TRACE(size);
        TestPair pair(GetParam());
        std::memset(pair.b.data(), 0x5A, 200);
        pair.b.receive(pair.b.data() + 64, 39);
        pair.a.send(pair.a.data(), size);
        VIP_DESCRIPTOR* d = pair.b.wait_recv();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_LENGTH_ERROR});
        expect_sender(pair.a);
        for (int i = 0; i < 200; ++i) ASSERT_EQ(pair.b.data()[i], std::byte{0x5A});
        if (unreliable()) {
            expect_alive(pair);
        } else {
            EXPECT_TRUE(pair.b.reaches(VIP_STATE_ERROR));
        }
        EXPECT_TRUE(pair.b.errors().empty()) << "a descriptor has told it";
    }
}

TEST_P(Errors, ReceiveDescriptorIsBad) {
    for (const bool format : {true, false}) {
        SCOPED_TRACE(format);
        TestPair pair(GetParam());
        VIP_DESCRIPTOR* bad = pair.b.make(true, pair.b.data(), 50);
        if (format) {
            bad->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
        } else {
            bad->DS[0].Local.Handle += 1u << kRegionIndexBits;
        }
        pair.b.post_recv(bad);
        pair.a.send(pair.a.data(), 20);
        VIP_DESCRIPTOR* d = pair.b.wait_recv();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK,
                  uint32_t(format ? VIP_STATUS_FORMAT_ERROR : VIP_STATUS_PROTECTION_ERROR));
        expect_sender(pair.a);
        if (unreliable()) {
            expect_alive(pair);
        } else {
            EXPECT_TRUE(pair.b.reaches(VIP_STATE_ERROR));
        }
    }
}

TEST_P(Errors, SendDescriptorIsBad) {
    TestPair pair(GetParam());
    pair.b.receive(pair.b.data(), 100);
    pair.a.send(pair.a.data(), 8);
    VIP_DESCRIPTOR* bad = pair.a.make(false, pair.a.data(), 20);
    bad->CS.Length = 21;
    pair.a.post_send(bad);
    EXPECT_EQ(status_of(pair.a.wait_send()) & VIP_STATUS_ERROR_MASK, 0u) << "the one before was good";
    VIP_DESCRIPTOR* d = pair.a.wait_send();
    ASSERT_EQ(d, bad);
    EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_LENGTH_ERROR});
    ASSERT_NE(pair.b.wait_recv(), nullptr);
    if (unreliable()) {
        expect_alive(pair);
    } else {
        EXPECT_TRUE(pair.a.reaches(VIP_STATE_ERROR));
        EXPECT_TRUE(pair.b.is_told(VIP_ERROR_CONN_LOST));
        EXPECT_TRUE(pair.a.errors().empty());
    }
}

TEST_P(Errors, PeerDisconnects) {
    TestPair pair(GetParam());
    for (int i = 0; i < 3; ++i) pair.b.receive(pair.b.data() + 100 * i, 100);
    pair.a.send(pair.a.data(), 10);
    pair.a.send(pair.a.data(), 11);
    pair.a.disconnect();
    EXPECT_TRUE(pair.b.is_told(VIP_ERROR_CONN_LOST));
    EXPECT_TRUE(pair.b.reaches(VIP_STATE_ERROR));
    EXPECT_EQ(status_of(pair.b.recv_done()) & VIP_STATUS_ERROR_MASK, 0u) << "published before the end";
    EXPECT_EQ(status_of(pair.b.recv_done()) & VIP_STATUS_ERROR_MASK, 0u);
    EXPECT_EQ(status_of(pair.b.recv_done()) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_DESC_FLUSHED_ERROR});
    EXPECT_EQ(pair.b.errors().size(), 1u);
}

TEST_P(Errors, AMessageUnderWayAtTheEndIsPartial) {
    TestPair pair(GetParam(), Reach::same_process, 1 << 20, {{"pull_from", "0"}});
    pair.b.receive(pair.b.data(), 1 << 20);
    {
        // No thread sends the rest.
        const std::scoped_lock held(pair.a.core.recv.lock, pair.a.core.send.lock);
        pair.a.core.send.push(pair.a.make(false, pair.a.data(), 1 << 20));
        ops().kick_send(pair.a.core);
        EXPECT_EQ(pair.b.recv_done(), nullptr);
        EXPECT_NE(pair.b.endpoint().rx.message.kind, IncomingMessage::none);
        ops().disconnect(pair.a.core);
        pair.a.core.state = VIP_STATE_IDLE;
    }
    pair.a.disconnect();
    ASSERT_TRUE(pair.b.reaches(VIP_STATE_ERROR));
    VIP_DESCRIPTOR* d = pair.b.recv_done();
    ASSERT_NE(d, nullptr);
    EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK,
              uint32_t{VIP_STATUS_PARTIAL_ERROR | VIP_STATUS_DESC_FLUSHED_ERROR});
}

INSTANTIATE_TEST_SUITE_P(Paramnet, Errors, testing::ValuesIn(kLevels));

}  // namespace
}  // namespace viaduct::paramnet::test
