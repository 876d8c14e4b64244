// SPDX-License-Identifier: BSD-2-Clause
// Which program a request is for where addresses are IPv4 and port (udp). What is the same with Ethernet is in
// acenic_steering_test.cpp.
#include "providers/packet/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "providers/wire/encapsulation.hpp"
#include "tests/eventually.hpp"
#include "tests/fuzz/packet_requests_fuzz.hpp"

namespace viaduct::packet {
namespace {

using Bytes = std::vector<std::byte>;
using wire::Kind;

constexpr uint32_t kFar = 0xC0000201, kNear = 0xC0000202;
const NicAddress kFarHost = wire::udp_address(kFar, 4792), kNearHost = wire::udp_address(kNear, 4792);
const NicAddress kFarProgram = wire::udp_address(kFar, 40001), kNearProgram = wire::udp_address(kNear, 40002);

EndAddress named(const char* name, const NicAddress& host) {
    EndAddress a;
    a.host = host;
    a.discriminator_len = static_cast<uint16_t>(std::strlen(name));
    std::memcpy(a.discriminator, name, a.discriminator_len);
    return a;
}

Bytes request(const char* to, uint32_t source, uint64_t nonce, Kind kind, const EndAddress& local) {
    Bytes frame(wire::kHeaderBytes + wire::kConnectBytes);
    wire::Connect c;
    c.nonce = nonce;
    c.local = local;
    c.remote = named(to, kNearHost);
    wire::write_connect(frame.data() + wire::kHeaderBytes, c);
    wire::Header h;
    h.kind = kind;
    h.source = source;
    h.length = wire::kConnectBytes;
    wire::seal(frame.data(), h);
    return frame;
}

class PacketRequests : public testing::Test {
protected:
    // The shortest of 50 requests of a peer, which reach these programs.
    int64_t shortest_ns(uint64_t first_nonce, const std::set<uint32_t>& programs) {
        const tests::RunningTime time;
        int64_t best = INT64_MAX;
        for (uint64_t nonce = first_nonce; nonce < first_nonce + 50; ++nonce) {
            const Bytes asked = request("here", 9, nonce, Kind::peer_request, named("there", kFarHost));
            const int64_t begin = time.wall_ns();
            EXPECT_TRUE(programs.contains(requests_.incoming(asked, kFarProgram, 2).slot));
            best = std::min(best, time.wall_ns() - begin);
        }
        return best;
    }

    Requests requests_{true};
    Held held_;
};

TEST_F(PacketRequests, APeerIsKnownByItsHostsPortWhateverPortItSendsFrom) {
    requests_.add(1, {1, true, 7, named("here", kNearHost), named("there", kFarHost), kNearProgram}, 1, &held_);
    const Bytes asked = request("here", 9, 100, Kind::peer_request, named("there", kFarHost));
    EXPECT_EQ(requests_.incoming(asked, kFarProgram, 2).slot, 1u);
}

TEST_F(PacketRequests, AFilterIsCountedUntilItsProgramRemovesIt) {
    const EndAddress here = named("here", kNearHost), there = named("there", kFarHost);
    requests_.add(1, {1, false, 0, here, {}, kNearProgram}, 1, &held_);
    requests_.add(1, {2, false, 0, here, {}, kNearProgram}, 1, &held_);
    requests_.add(1, {2, false, 0, here, {}, kNearProgram}, 1, &held_);  // in place of the former
    requests_.add(2, {1, false, 0, here, {}, kNearProgram}, 1, &held_);
    EXPECT_EQ(requests_.count_places(), 3u);
    EXPECT_EQ(requests_.count_places_of(1), 2u);
    // Oldest first; one that a request has used up is still the program's to remove.
    EXPECT_EQ(requests_.incoming(request("here", 9, 100, Kind::request, there), kFarProgram, 2).slot, 1u);
    EXPECT_EQ(requests_.incoming(request("here", 9, 101, Kind::request, there), kFarProgram, 2).slot, 1u);
    EXPECT_EQ(requests_.incoming(request("here", 9, 102, Kind::request, there), kFarProgram, 2).slot, 2u);
    EXPECT_EQ(requests_.count_places_of(1), 2u);
    requests_.remove(1, 1, false);
    requests_.remove(1, 1, false);
    EXPECT_EQ(requests_.count_places_of(1), 1u);
    requests_.drop(1);
    requests_.drop(1);
    EXPECT_EQ(requests_.count_places_of(1), 0u);
    EXPECT_EQ(requests_.count_places(), 1u);
}

TEST_F(PacketRequests, AKnownUserMeetsProgramsOfThatUserAndOfRootAlone) {
    constexpr uid_t kUser = 1001, kOther = 1002, kRoot = 0;
    const EndAddress here = named("here", kNearHost), there = named("there", kFarHost);
    const auto client = [&](uint64_t nonce, Requester requester) {
        return requests_.incoming(request("here", 9, nonce, Kind::request, there), kFarProgram, 2, requester).slot;
    };
    const auto peer = [&](uint64_t nonce, Requester requester) {
        return requests_.incoming(request("here", 9, nonce, Kind::peer_request, there), kFarProgram, 2, requester).slot;
    };
    requests_.add(1, {1, false, 0, here, {}, kNearProgram, kOther}, 1, &held_);
    requests_.add(1, {2, true, 7, here, there, kNearProgram, kOther}, 1, &held_);
    EXPECT_EQ(client(100, kUser), kNoSlot);
    EXPECT_EQ(peer(101, kUser), kNoSlot);
    // The request that was kept is for the user's own program.
    requests_.add(1, {3, false, 0, here, {}, kNearProgram, kOther}, 2, &held_);
    EXPECT_TRUE(held_.frame.empty());
    requests_.add(2, {1, false, 0, here, {}, kNearProgram, kRoot}, 2, &held_);
    EXPECT_FALSE(held_.frame.empty());
    requests_.add(3, {1, false, 0, here, {}, kNearProgram, kUser}, 2, &held_);
    requests_.add(3, {2, true, 7, here, there, kNearProgram, kUser}, 2, &held_);
    EXPECT_EQ(client(102, kUser), 3u);
    EXPECT_EQ(client(103, kUser), 2u);
    EXPECT_EQ(client(104, kUser), kNoSlot);
    EXPECT_EQ(peer(105, kUser), 3u);
    // A requester of another host: the oldest of all.
    EXPECT_EQ(client(106, {}), 1u);
    EXPECT_EQ(peer(107, {}), 1u);
}

TEST_F(PacketRequests, APeerIsFoundAtOnceHoweverManyWaitAtItsDiscriminator) {
    requests_.add(1, {1, true, 7, named("here", kNearHost), named("there", kFarHost), kNearProgram}, 1, &held_);
    const int64_t alone = shortest_ns(100, {1});
    for (uint32_t i = 0; i < 30'000; ++i) {
        const EndAddress other = named(("other" + std::to_string(i)).c_str(), kFarHost);
        requests_.add(2, {i, true, 8, named("here", kNearHost), other, kNearProgram}, 1, &held_);
    }
    EXPECT_LT(shortest_ns(1000, {1}), std::max<int64_t>(10 * alone, 50'000));
}

TEST_F(PacketRequests, APeerIsFoundAtOnceHoweverManyWaitForIt) {
    requests_.add(1, {1, true, 7, named("here", kNearHost), named("there", kFarHost), kNearProgram}, 1, &held_);
    const int64_t alone = shortest_ns(100, {1});
    const auto limit = std::max<int64_t>(10 * alone, 50'000);
    for (uint32_t i = 0; i < 30'000; ++i)
        requests_.add(2, {i, true, 8, named("here", kNearHost), named("there", kFarHost), kNearProgram}, 1, &held_);
    EXPECT_LT(shortest_ns(1000, {1, 2}), limit);
    requests_.drop(2);
    // Filters of another user that claim to be the requester's own.
    constexpr uid_t kOther = 1002;
    for (uint32_t i = 0; i < 30'000; ++i)
        requests_.add(2, {i, true, 9, named("here", kNearHost), named("there", kFarHost), kFarProgram, kOther}, 1,
                      &held_);
    EXPECT_LT(shortest_ns(2000, {1}), limit);
    requests_.drop(2);
    EXPECT_EQ(requests_.count_filters(), 1u);
}

TEST_F(PacketRequests, PeersThatWaitForTheSameHaveTurns) {
    for (uint32_t i = 1; i <= 3; ++i)
        requests_.add(i, {1, true, 7, named("here", kNearHost), named("there", kFarHost), kNearProgram}, 1, &held_);
    int64_t now = 2;
    for (uint64_t nonce = 100; nonce < 106; ++nonce) {
        const Bytes asked = request("here", 9, nonce, Kind::peer_request, named("there", kFarHost));
        EXPECT_EQ(requests_.incoming(asked, kFarProgram, ++now).slot, (nonce - 100) % 3 + 1);
    }
    // A filter without a match has its turn before those with one.
    requests_.add(4, {1, true, 7, named("here", kNearHost), named("there", kFarHost), kNearProgram}, 1, &held_);
    const Bytes asked = request("here", 9, 200, Kind::peer_request, named("there", kFarHost));
    EXPECT_EQ(requests_.incoming(asked, kFarProgram, ++now).slot, 4u);
    requests_.remove(4, 1, true);
    EXPECT_EQ(requests_.incoming(asked, kFarProgram, ++now).slot, 1u);
}

// A program whose NIC has refused a request (wire::Host::on_request_refused) replaces its filter by such a filter.
TEST_F(PacketRequests, AFilterForEveryRequestStaysUntilItIsRemoved) {
    int64_t now = 1;
    const auto ask = [&](uint64_t nonce) {
        const Bytes asked = request("here", 9, nonce, Kind::request, named("there", kFarHost));
        return requests_.incoming(asked, kFarProgram, ++now).slot;
    };
    const auto filter = [&](uint32_t index, bool every) {
        return RequestFilter{index, false, 0, named("here", kNearHost), {}, kNearProgram, 0, every};
    };
    requests_.add(1, filter(1, false), now, &held_);
    EXPECT_EQ(ask(1), 1u);
    requests_.remove(1, 1, true);
    requests_.add(1, filter(2, true), now, &held_);
    EXPECT_EQ(ask(1), 1u) << "its copy";
    for (uint64_t nonce = 2; nonce < 100; ++nonce) EXPECT_EQ(ask(nonce), 1u);

    requests_.add(2, filter(1, false), now, &held_);
    EXPECT_EQ(ask(100), 2u) << "a filter without a match has its turn first";
    EXPECT_EQ(ask(101), 1u) << "the other filter is used up";
    requests_.add(2, filter(2, true), now, &held_);
    EXPECT_EQ(ask(102), 2u);
    EXPECT_EQ(ask(103), 1u) << "they have turns";

    requests_.remove(1, 2, true);
    EXPECT_EQ(ask(103), 2u) << "its wait has ended: the copies go to another program";
    requests_.drop(2);
    EXPECT_EQ(ask(103), kNoSlot);
    EXPECT_EQ(requests_.count_filters(), 0u);
    EXPECT_EQ(requests_.count_places(), 0u);
}

TEST_F(PacketRequests, AUserWithManyMatchesLeavesPlacesForThoseOfOthers) {
    constexpr uid_t kFlood = 1002, kUser = 1001;
    constexpr uint64_t kMore = 9000;  // than are kept
    for (uint32_t i = 0; i < kMore; ++i)
        requests_.add(1, {i, false, 0, named("flood", kNearHost), {}, kNearProgram, kFlood}, 1, &held_);
    for (uint64_t nonce = 1; nonce <= kMore; ++nonce)
        requests_.incoming(request("flood", 9, nonce, Kind::request, named("there", kFarHost)), kFarProgram, 2);
    EXPECT_LT(requests_.matches(), kMore);
    requests_.add(2, {1, false, 0, named("here", kNearHost), {}, kNearProgram, kUser}, 1, &held_);
    const Bytes asked = request("here", 9, kMore + 1, Kind::request, named("there", kFarHost));
    for (int copy = 0; copy < 3; ++copy) EXPECT_EQ(requests_.incoming(asked, kFarProgram, 2).slot, 2u);
    requests_.drop(1);
    EXPECT_EQ(requests_.matches(), 1u);
}

TEST_F(PacketRequests, AMatchThatHasEndedLeavesItsPlace) {
    const int64_t limit = limit_ns(TimeLimit::packet_request);
    int64_t now = limit / 2;
    uint64_t nonce = 0;
    const auto ask = [&] {
        requests_.incoming(request("here", 9, ++nonce, Kind::peer_request, named("there", kFarHost)), kFarProgram, now);
    };
    const auto fill = [&] {
        constexpr uid_t kUser = 1001;
        requests_.add(1, {1, true, 7, named("here", kNearHost), named("there", kFarHost), kNearProgram, kUser}, now,
                      &held_);
        for (size_t before = requests_.matches() - 1; requests_.matches() != before;) {
            before = requests_.matches();
            ask();
        }
        return requests_.matches();
    };
    const size_t most = fill();
    EXPECT_GT(most, 1000u);
    requests_.drop(1);
    EXPECT_EQ(fill(), most);
    requests_.remove(1, 1, true);
    EXPECT_EQ(fill(), most);
    for (uint64_t n = 1; n <= nonce; ++n) requests_.pass_on(1, kFarProgram, 9, n);
    EXPECT_EQ(fill(), most);
    now = limit + 1;
    ask();
    EXPECT_EQ(requests_.matches(), most) << "younger than the limit";
    now += limit / 2;
    ask();
    EXPECT_EQ(requests_.matches(), 1u) << "old ones make room for a new one";
}

TEST_F(PacketRequests, AUserWithManyRequestsThatWaitLeavesThoseOfOthers) {
    constexpr uid_t kFlood = 1002, kUser = 1001;
    const EndAddress there = named("there", kFarHost);
    for (const Requester flood : {Requester(kFlood), Requester()}) {
        requests_.incoming(request("here", 9, 1, Kind::request, there), kFarProgram, 2, kUser);
        for (uint64_t nonce = 2; nonce < 300; ++nonce)
            requests_.incoming(request("flood", 9, nonce, Kind::request, there), kFarProgram, 2, flood);
        requests_.add(1, {1, false, 0, named("here", kNearHost), {}, kNearProgram, kUser}, 3, &held_);
        EXPECT_FALSE(held_.frame.empty());
        requests_.drop(1);
    }
}

TEST(PacketRequestsScripts, AtRandomFindNoProgramThatIsNotThere) {
    std::mt19937 dice(28);
    for (int round = 0; round < 3000; ++round) {
        std::vector<uint8_t> script(dice() % 600);
        for (uint8_t& byte : script) byte = static_cast<uint8_t>(dice());
        fuzz::run_requests(script.data(), script.size());
    }
}

TEST_F(PacketRequests, AHostCannotAskInTheNameOfAnother) {
    requests_.add(1, {1, true, 7, named("here", kNearHost), named("there", kFarHost), kNearProgram}, 1, &held_);
    const Bytes asked = request("here", 9, 100, Kind::peer_request, named("there", kFarHost));
    EXPECT_EQ(requests_.incoming(asked, wire::udp_address(0xC0000203, 40001), 2).slot, kNoSlot);
}

TEST_F(PacketRequests, AProgramsOwnPeerRequestIsNotForIt) {
    requests_.add(1, {1, true, 7, named("x", kNearHost), named("x", kNearHost), kNearProgram}, 1, &held_);
    const Bytes asked = request("x", 7, 100, Kind::peer_request, named("x", kNearHost));
    EXPECT_EQ(requests_.incoming(asked, kNearProgram, 2).slot, kNoSlot) << "its own";
    const NicAddress another = wire::udp_address(kNear, 40003);
    EXPECT_EQ(requests_.incoming(asked, another, 3).slot, 1u) << "another program's, whose link has the same number";
}

TEST_F(PacketRequests, ANoMatchShowsThePassOfTheRequest) {
    Bytes asked = request("no-waiter", 9, 100, Kind::request, named("", kFarHost));
    const Target target = requests_.incoming(asked, kFarProgram, 1);
    EXPECT_EQ(target.slot, kNoSlot);
    EXPECT_EQ(target.answer, Kind::no_match);
    Bytes answer(kNoMatchBytes);
    ASSERT_TRUE(make_no_match(asked, target.nonce, answer.data()));
    wire::Frame f;
    ASSERT_EQ(wire::read_frame(answer, &f), wire::Flaw::none);
    EXPECT_EQ(f.header.destination, 9u);
    EXPECT_EQ(wire::read_answer(f).nonce, 100u);
}

}  // namespace
}  // namespace viaduct::packet
