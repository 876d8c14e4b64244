// SPDX-License-Identifier: BSD-2-Clause
// Which host of a shared port a frame is for, and what a host may send.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "providers/acenic/daemon/steering.hpp"

namespace viaduct::acenic {
namespace {

using wire::Kind;
using Bytes = std::vector<std::byte>;

constexpr int64_t kSecond = 1'000'000'000;
const NicAddress kRemote{{2, 0, 0, 0, 0, 9}};
const NicAddress kOwn{{2, 0, 0, 0, 0, 1}};

EndAddress named(const char* name, const NicAddress& host = kOwn) {
    EndAddress a;
    a.host = host;
    a.discriminator_len = static_cast<uint16_t>(std::strlen(name));
    std::memcpy(a.discriminator, name, a.discriminator_len);
    return a;
}

Bytes bare(Kind kind, uint32_t destination, uint32_t source, uint32_t fields = 0) {
    Bytes frame(wire::kHeaderBytes + fields);
    wire::Header h;
    h.kind = kind;
    h.destination = destination;
    h.source = source;
    h.length = static_cast<uint16_t>(fields);
    wire::seal(frame.data(), h);
    return frame;
}

Bytes request(const char* to, uint32_t source, uint64_t nonce, Kind kind = Kind::request,
              const char* from = "") {
    Bytes frame(wire::kHeaderBytes + wire::kConnectBytes);
    wire::Connect c;
    c.nonce = nonce;
    c.local = named(from, kRemote);
    c.remote = named(to);
    wire::write_connect(frame.data() + wire::kHeaderBytes, c);
    wire::Header h;
    h.kind = kind;
    h.source = source;
    h.length = wire::kConnectBytes;
    wire::seal(frame.data(), h);
    return frame;
}

Bytes withdraw(uint64_t nonce) {
    Bytes frame(wire::kHeaderBytes + wire::kAnswerBytes);
    wire::write_answer(frame.data() + wire::kHeaderBytes, {nonce, 0, 0});
    wire::Header h;
    h.kind = Kind::withdraw;
    h.length = wire::kAnswerBytes;
    wire::seal(frame.data(), h);
    return frame;
}

Bytes no_match(uint32_t destination, uint64_t nonce) {
    Bytes frame(wire::kHeaderBytes + wire::kAnswerBytes);
    wire::write_answer(frame.data() + wire::kHeaderBytes, {nonce, 0, 0});
    wire::Header h;
    h.kind = Kind::no_match;
    h.destination = destination;
    h.length = wire::kAnswerBytes;
    wire::seal(frame.data(), h);
    return frame;
}

RequestFilter listener(uint32_t index, const char* name) { return {index, false, 0, named(name), {}}; }
RequestFilter peer(uint32_t index, const char* own, const char* other, uint32_t link) {
    return {index, true, link, named(own), named(other, kRemote)};
}
uint32_t link_of(uint32_t slot, uint32_t number) { return 7u << 16 | (Steering::first_link(slot) + number); }

struct AcenicSteering : testing::Test {
    AcenicSteering() {
        for (uint32_t& slot : slots) {
            uint32_t links = 0;
            slot = steering.admit(&links);
            steering.join(slot);
            EXPECT_EQ(links, kPlacesAtEase * kLinksPerPlace);
        }
    }
    void add(uint32_t slot, const RequestFilter& filter) { steering.add(slot, filter, 0, &held); }
    uint32_t slot_for(const Bytes& frame, int64_t now = 0) {
        return steering.incoming(frame, kRemote, now).slot;
    }
    Steering steering;
    Held held;
    uint32_t slots[3] = {};
};

TEST_F(AcenicSteering, FramesGoToTheHostOfTheirLink) {
    EXPECT_EQ(slot_for(bare(Kind::acknowledge, link_of(slots[1], 0), 5, 32)), slots[1]);
    EXPECT_EQ(slot_for(bare(Kind::acknowledge, link_of(slots[2], kPlacesAtEase * kLinksPerPlace - 1), 5, 32)),
              slots[2]);
    EXPECT_EQ(slot_for(bare(Kind::acknowledge, link_of(60, 0), 5, 32)), kNoSlot);
}

TEST_F(AcenicSteering, AFrameForNoHostIsAnsweredAsANodeWould) {
    const auto answer = [&](const Bytes& f) { return steering.incoming(f, kRemote, 0).answer; };
    EXPECT_EQ(answer(bare(Kind::acknowledge, link_of(60, 0), 5, 32)), Kind::reset);
    EXPECT_EQ(answer(bare(Kind::disconnect, link_of(60, 0), 5, 8)), Kind::disconnected);
    EXPECT_EQ(answer(bare(Kind::reset, link_of(60, 0), 5)), Kind{});
    EXPECT_EQ(answer(request("no-waiter", 5, 1)), Kind::no_match);
    EXPECT_EQ(answer(request("no-waiter", 5, 1, Kind::peer_request)), Kind{});
    Bytes damaged = bare(Kind::acknowledge, link_of(60, 0), 5, 32);
    damaged[40] ^= std::byte{1};
    EXPECT_EQ(answer(damaged), Kind{}) << "a bad check is never answered";
    EXPECT_EQ(answer(Bytes(10)), Kind{});
}

TEST_F(AcenicSteering, ARequestThatIsTakenBackIsNotKept) {
    EXPECT_EQ(slot_for(request("late", 5, 1)), kNoSlot);
    EXPECT_EQ(slot_for(withdraw(9)), kNoSlot) << "of another attempt";
    add(slots[0], listener(1, "late"));
    EXPECT_FALSE(held.frame.empty());
    EXPECT_EQ(slot_for(request("later", 5, 2)), kNoSlot);
    EXPECT_EQ(slot_for(withdraw(2)), kNoSlot);
    add(slots[0], listener(2, "later"));
    EXPECT_TRUE(held.frame.empty());
}

TEST_F(AcenicSteering, OnlyTheSenderOfARequestTakesItBackAndByAWholeFrame) {
    const NicAddress other{{2, 0, 0, 0, 0, 8}};
    Bytes damaged = withdraw(1);
    damaged.back() ^= std::byte{1};
    add(slots[1], listener(1, "here"));
    EXPECT_EQ(slot_for(request("here", 5, 1)), slots[1]);
    EXPECT_EQ(steering.incoming(withdraw(1), other, 0).slot, kNoSlot);
    EXPECT_EQ(slot_for(damaged), kNoSlot);
    EXPECT_EQ(slot_for(request("late", 5, 2)), kNoSlot);
    EXPECT_EQ(steering.incoming(withdraw(2), other, 0).slot, kNoSlot);
    add(slots[0], listener(2, "late"));
    EXPECT_FALSE(held.frame.empty());
}

TEST_F(AcenicSteering, RequestsOfTwoHostsUnderOneNumberAreTwo) {
    const NicAddress other{{2, 0, 0, 0, 0, 8}};
    EXPECT_EQ(slot_for(request("late", 5, 1)), kNoSlot);
    EXPECT_EQ(steering.incoming(request("late", 5, 1), other, 0).slot, kNoSlot);
    add(slots[0], listener(1, "late"));
    EXPECT_EQ(held.from, kRemote);
    add(slots[0], listener(2, "late"));
    EXPECT_EQ(held.from, other);
    EXPECT_FALSE(held.frame.empty());
}

TEST_F(AcenicSteering, OfManyRequestsWithoutAWaiterTheLastOnesAreKept) {
    for (uint64_t nonce = 1; nonce <= 65; ++nonce) slot_for(request("late", 5, nonce));
    add(slots[0], listener(0, "late"));
    wire::Frame f;
    wire::Connect c;
    ASSERT_EQ(wire::read_frame(held.frame, &f), wire::Flaw::none);
    ASSERT_EQ(wire::read_connect(f, &c), wire::Flaw::none);
    EXPECT_EQ(c.nonce, 2u);
}

TEST_F(AcenicSteering, WhatAHostHadGoesToTheOthersWhenItHasLeft) {
    add(slots[0], listener(1, "service"));
    EXPECT_EQ(slot_for(request("service", 50, 1)), slots[0]);
    std::vector<EndedLink> ended_links;
    steering.drop(slots[0], &ended_links);
    EXPECT_EQ(steering.matches(), 0u);
    add(slots[1], listener(1, "service"));
    EXPECT_EQ(slot_for(request("service", 50, 1)), slots[1]);
}

TEST_F(AcenicSteering, AHostThatHasNotJoinedTakesNoFrames) {
    uint32_t links = 0;
    const uint32_t slot = steering.admit(&links);
    const Bytes frame = bare(Kind::acknowledge, link_of(slot, 0), 5, 32);
    EXPECT_EQ(slot_for(frame), kNoSlot);
    steering.join(slot);
    EXPECT_EQ(slot_for(frame), slot);
}

TEST_F(AcenicSteering, TheHostThatHasARequestIsToldOfItsWithdrawal) {
    add(slots[1], listener(1, "here"));
    EXPECT_EQ(slot_for(request("here", 5, 1)), slots[1]);
    EXPECT_EQ(slot_for(withdraw(1)), slots[1]);
    EXPECT_EQ(slot_for(withdraw(2)), kNoSlot);
    EXPECT_TRUE(steering.outgoing(slots[0], withdraw(1), kRemote));
    EXPECT_FALSE(steering.outgoing(slots[0], bare(Kind::reset, 0, link_of(slots[0], 3)), kRemote));
}

TEST_F(AcenicSteering, OneListenerIsToldOfOneRequestAndOfAllItsCopies) {
    add(slots[0], listener(4, "service"));
    add(slots[1], listener(4, "service"));
    EXPECT_EQ(slot_for(request("service", 50, 1000)), slots[0]);
    EXPECT_EQ(slot_for(request("service", 60, 2000)), slots[1]) << "the first listener is used up";
    EXPECT_EQ(slot_for(request("service", 50, 1000)), slots[0]);
    EXPECT_EQ(slot_for(request("service", 60, 2000)), slots[1]);
    EXPECT_EQ(slot_for(request("service", 70, 3000)), kNoSlot);
    EXPECT_EQ(slot_for(request("other", 80, 4000)), kNoSlot);
    EXPECT_EQ(steering.count_filters(), 0u);
}

TEST_F(AcenicSteering, NoMatchOfAListenerThatHasLeftDoesNotCount) {
    add(slots[0], listener(4, "service"));
    EXPECT_EQ(slot_for(request("service", 50, 1000)), slots[0]);
    add(slots[1], listener(1, "service"));
    EXPECT_FALSE(steering.outgoing(slots[1], no_match(50, 1000), kRemote))
        << "swallowed, and not host 2's to say";
    EXPECT_EQ(slot_for(request("service", 50, 1000)), slots[0]);
    EXPECT_FALSE(steering.outgoing(slots[0], no_match(50, 1000), kRemote));
    EXPECT_EQ(slot_for(request("service", 50, 1000)), slots[1]);
}

TEST_F(AcenicSteering, WhatAFilterHasMatchedOutlivesTheNextOneInItsPlace) {
    add(slots[0], listener(4, "service"));
    EXPECT_EQ(slot_for(request("service", 50, 1000)), slots[0]);
    steering.remove(slots[0], 4, false);  // the host has the request and has not decided yet
    add(slots[0], listener(4, "other"));
    steering.remove(slots[0], 4, true);
    EXPECT_EQ(slot_for(request("service", 50, 1000)), slots[0]);
}

TEST_F(AcenicSteering, ARequestThatHasJustComeIsThereForALaterWait) {
    const Bytes early = request("service", 50, 1000);
    EXPECT_EQ(slot_for(early), kNoSlot);
    EXPECT_EQ(slot_for(early), kNoSlot) << "its copies are one";
    add(slots[0], listener(1, "other"));
    EXPECT_TRUE(held.frame.empty());
    add(slots[0], listener(2, "service"));
    EXPECT_EQ(held.frame, early);
    EXPECT_EQ(held.from, kRemote);
    add(slots[0], listener(3, "service"));
    EXPECT_TRUE(held.frame.empty());
    EXPECT_EQ(slot_for(request("late", 50, 2000)), kNoSlot);
    steering.add(slots[0], listener(4, "late"), kSecond, &held);
    EXPECT_TRUE(held.frame.empty());
}

TEST_F(AcenicSteering, PlacesRunOutAndComeBack) {
    std::vector<uint32_t> all;
    uint32_t links = 0;
    while (const uint32_t slot = steering.admit(&links)) {
        EXPECT_EQ(steering.slot_of(Steering::first_link(slot)), slot);
        EXPECT_EQ(steering.slot_of(Steering::first_link(slot) + links - 1), slot);
        all.push_back(slot);
    }
    EXPECT_GE(all.size(), 30u);
    std::vector<EndedLink> ended_links;
    steering.drop(all[20], &ended_links);
    EXPECT_EQ(steering.admit(&links), all[20]);
    EXPECT_EQ(links, kLinksPerPlace);
}

TEST_F(AcenicSteering, DamagedRequestsUseNothingUp) {
    add(slots[0], listener(4, "service"));
    Bytes damaged = request("service", 50, 1000);
    damaged[100] ^= std::byte{1};
    EXPECT_EQ(slot_for(damaged), kNoSlot);
    EXPECT_EQ(steering.count_filters(), 1u);
}

TEST_F(AcenicSteering, PeersFindEachOtherByBothAddresses) {
    add(slots[0], peer(0, "left", "right", link_of(slots[0], 0)));
    add(slots[1], peer(0, "left", "wrong", link_of(slots[1], 0)));
    add(slots[2], peer(0, "left", "right", link_of(slots[2], 0)));
    EXPECT_EQ(slot_for(request("left", 50, 1, Kind::peer_request, "right")), slots[0]);
    EXPECT_EQ(slot_for(request("left", 51, 2, Kind::peer_request, "right")), slots[2])
        << "the one still alone";
    EXPECT_EQ(slot_for(request("left", 50, 1, Kind::peer_request, "right")), slots[0]);
    steering.remove(slots[0], 0, false);  // connected: late copies still go there
    EXPECT_EQ(slot_for(request("left", 50, 1, Kind::peer_request, "right")), slots[0]);
    steering.remove(slots[2], 0, true);  // given up
    EXPECT_EQ(slot_for(request("left", 51, 2, Kind::peer_request, "right")), kNoSlot);
}

TEST_F(AcenicSteering, APeerIsNotItsOwnPeer) {
    RequestFilter self = peer(0, "same", "same", link_of(slots[0], 0));
    self.remote.host = kRemote;
    add(slots[0], self);
    EXPECT_EQ(slot_for(request("same", link_of(slots[0], 0), 1, Kind::peer_request, "same")), kNoSlot);
    EXPECT_EQ(slot_for(request("same", link_of(slots[1], 0), 2, Kind::peer_request, "same")), slots[0]);
}

TEST_F(AcenicSteering, AHostSendsAsItselfOnly) {
    EXPECT_TRUE(steering.outgoing(slots[0], bare(Kind::send, 5, link_of(slots[0], 3)), kRemote));
    EXPECT_FALSE(steering.outgoing(slots[0], bare(Kind::send, 5, link_of(slots[1], 3)), kRemote));
    EXPECT_FALSE(steering.outgoing(slots[0], bare(Kind::reset, 5, link_of(slots[1], 3)), kRemote));
    EXPECT_FALSE(steering.outgoing(slots[0], bare(Kind::send, 0, link_of(slots[0], 3)), kRemote));
    EXPECT_FALSE(steering.outgoing(slots[0], bare(Kind::send, 5, link_of(slots[0], 3)),
                                   NicAddress{{1, 0, 0, 0, 0, 1}}));
    EXPECT_FALSE(steering.outgoing(slots[0], Bytes(31), kRemote));
    EXPECT_FALSE(steering.outgoing(slots[0], bare(Kind::accept, 5, link_of(slots[0], 3)), kRemote)) << "cut short";
    for (const Kind kind : {Kind::reject, Kind::pending, Kind::prove}) {
        const uint32_t fields = wire::field_bytes(kind);
        EXPECT_TRUE(steering.outgoing(slots[0], bare(kind, 5, 0, fields), kRemote));
        EXPECT_TRUE(steering.outgoing(slots[0], bare(kind, 5, link_of(slots[0], 3), fields), kRemote));
        EXPECT_FALSE(steering.outgoing(slots[0], bare(kind, 5, link_of(slots[1], 3), fields), kRemote));
    }
    EXPECT_FALSE(steering.outgoing(slots[0], bare(Kind::withdraw, 0, link_of(slots[1], 3), 16), kRemote));
    EXPECT_FALSE(steering.outgoing(slots[0], bare(Kind::withdraw, 5, 0, 16), kRemote));
    EXPECT_TRUE(steering.outgoing(slots[0], request("x", link_of(slots[0], 3), 9), kRemote));
    EXPECT_FALSE(steering.outgoing(slots[0], request("x", link_of(slots[2], 3), 9), kRemote));
}

TEST_F(AcenicSteering, TheConnectionsOfADeadHostAreKnown) {
    add(slots[0], listener(4, "service"));
    Bytes accept = bare(Kind::accept, 70, link_of(slots[0], 0), wire::kConnectBytes);
    wire::Connect c;
    c.pass = 0x1234567890;
    wire::write_connect(accept.data() + wire::kHeaderBytes, c);
    wire::Frame f;
    ASSERT_NE(wire::read_frame(accept, &f), wire::Flaw::too_short);
    f.header.sequence = 0xFFFFFFFF;
    wire::seal(accept.data(), f.header);
    steering.outgoing(slots[0], accept, kRemote);
    Bytes send = bare(Kind::send, 70, link_of(slots[0], 0), wire::kMessageBytes);
    ASSERT_EQ(wire::read_frame(send, &f), wire::Flaw::none);
    f.header.sequence = 0xFFFFFFFF;
    wire::seal(send.data(), f.header);
    steering.outgoing(slots[0], send, kRemote);
    steering.outgoing(slots[0], bare(Kind::send, 71, link_of(slots[0], 5)), kOwn);
    steering.outgoing(slots[0], bare(Kind::send, 72, link_of(slots[0], 6)), kOwn);
    steering.outgoing(slots[0], bare(Kind::disconnect, 72, link_of(slots[0], 6), 8), kOwn);
    steering.outgoing(slots[1], bare(Kind::send, 73, link_of(slots[1], 6)), kOwn);
    std::vector<EndedLink> ended_links;
    steering.drop(slots[0], &ended_links);
    ASSERT_EQ(ended_links.size(), 2u);
    EXPECT_EQ(ended_links[0].peer, kRemote);
    EXPECT_EQ(ended_links[0].peer_link, 70u);
    EXPECT_EQ(ended_links[0].own_link, link_of(slots[0], 0));
    EXPECT_EQ(ended_links[0].pass, 0x1234567890u);
    EXPECT_EQ(ended_links[0].sequence, 0u) << "what is expected next";
    EXPECT_EQ(ended_links[1].peer_link, 71u);
    EXPECT_EQ(steering.count_filters(), 0u);
    EXPECT_EQ(steering.incoming(bare(Kind::acknowledge, link_of(slots[0], 0), 70, 32), kRemote, 0).answer,
              Kind::reset);
}

TEST_F(AcenicSteering, MatchesAreDroppedAndBounded) {
    for (uint32_t i = 0; i < 20'000; ++i) {
        add(slots[0], listener(i % 4096, "service"));
        slot_for(request("service", 50, 1 + i), i * 1000);
    }
    EXPECT_LE(steering.matches(), 8192u);
    slot_for(request("other", 50, 1), 100 * kSecond);
    EXPECT_EQ(steering.matches(), 0u);
}

}  // namespace
}  // namespace viaduct::acenic
