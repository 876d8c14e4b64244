// SPDX-License-Identifier: BSD-2-Clause
// What the tests of the reliability table, spec/reliability 6.2, expect of both sides of a connection. Where
// the table lets a provider choose, the choices are spelled out in one place, after_break().
#pragma once

#include "fixture.hpp"

namespace viaduct::conformance {

// What a descriptor may say that was under way when the connection ended.
inline constexpr VIP_UINT32 kBroken = VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_DESC_FLUSHED_ERROR;

class Reliability : public AtEachLevel {
protected:
    /// The connection goes on: another message arrives, and no end was told of a break.
    static void still_connected(Pair& pair) {
        EXPECT_EQ(pair.client.state(), VIP_STATE_CONNECTED);
        EXPECT_EQ(pair.server.state(), VIP_STATE_CONNECTED);
        VIP_DESCRIPTOR* receive = pair.server.receive(64);
        pair.client.send(pair.client.buffer(8, 'o'), 8);
        EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        const Outcome got = reap_recv(pair.server.vi);
        EXPECT_EQ(got.code, VIP_SUCCESS);
        EXPECT_EQ(got.descriptor, receive);
        EXPECT_EQ(pair.client.errors.count(VIP_ERROR_CONN_LOST), 0u);
        EXPECT_EQ(pair.server.errors.count(VIP_ERROR_CONN_LOST), 0u);
    }

    /// Both VIs end in Error, and each side is told at most once per entry (spec/states 3).
    static void broken(Pair& pair, Millis limit = kOneSecond) {
        EXPECT_TRUE(pair.client.reaches(VIP_STATE_ERROR, limit)) << "the initiator's VI";
        EXPECT_TRUE(pair.server.reaches(VIP_STATE_ERROR, limit)) << "the target's VI";
    }

    /// What the initiator's descriptor may say once the target broke the connection. Reliable Reception has the
    /// cause, Reliable Delivery may have finished already or reports the break only.
    void after_break(const Outcome& sent, VIP_UINT32 cause) const {
        if (reception()) {
            EXPECT_EQ(sent.code, VIP_DESCRIPTOR_ERROR);
            EXPECT_TRUE(sent.errors() & cause) << std::hex << sent.status();
        } else if (sent.code != VIP_SUCCESS) {
            EXPECT_EQ(sent.code, VIP_DESCRIPTOR_ERROR);
            EXPECT_TRUE(sent.errors() & (kBroken | cause)) << std::hex << sent.status();
        }
    }

    static void heard(const End& end, VIP_ERROR_CODE code) {
        EXPECT_TRUE(end.errors.wait_for(code, kOneSecond)) << "asynchronous error " << code;
        const auto error = end.errors.first(code);
        if (error) {
            EXPECT_EQ(error->ViHandle, end.vi);
            EXPECT_EQ(error->NicHandle, end.nic);
            EXPECT_EQ(error->ResourceCode, VIP_RESOURCE_VI);
        }
    }
};

}  // namespace viaduct::conformance
