// SPDX-License-Identifier: BSD-2-Clause
// Cookies of connection requests, and when they are demanded: pure parts, with a clock that the test moves.
#include <gtest/gtest.h>

#include <algorithm>

#include "providers/wire/proof_demand.hpp"
#include "providers/wire/request_cookies.hpp"
#include "tests/wire/simulated_wire.hpp"

namespace viaduct::wire {
namespace {

using test::address;
using test::end_address;

constexpr Time kLife = 1000;
constexpr LinkId kSource = 0x00070003;

Connect request() {
    Connect c;
    c.nonce = 0x99;
    c.pass = 0x1122334455667788;
    c.remote = end_address(2, "here");
    return c;
}

TEST(WireRequestCookies, ACookieServesItsRequestAlone) {
    RequestCookies cookies(kLife);
    EXPECT_TRUE(cookies.wants_secret(0));
    cookies.renew({1, 2}, 0);
    Connect c = request();
    c.cookie = cookies.make(address(1), kSource, c);
    EXPECT_TRUE(cookies.is_shown(address(1), kSource, c, 1));
    EXPECT_FALSE(cookies.is_shown(address(3), kSource, c, 1)) << "another address";
    EXPECT_FALSE(cookies.is_shown(address(1), kSource + 1, c, 1)) << "another link";
    for (int field = 0; field < 5; ++field) {
        Connect other = c;
        if (field == 0) ++other.nonce;
        if (field == 1) ++other.pass;
        if (field == 2) other.remote = end_address(2, "her");
        if (field == 3) ++other.cookie;
        if (field == 4) other.cookie = 0;
        EXPECT_FALSE(cookies.is_shown(address(1), kSource, other, 1)) << field;
    }
    RequestCookies others(kLife);
    others.renew({1, 3}, 0);
    EXPECT_FALSE(others.is_shown(address(1), kSource, c, 1)) << "another secret";
}

TEST(WireRequestCookies, NoCookieIsGoodBeforeTheFirstSecret) {
    const RequestCookies cookies(kLife);
    Connect c = request();
    c.cookie = 1;
    EXPECT_FALSE(cookies.is_shown(address(1), kSource, c, 0));
}

TEST(WireRequestCookies, ACookieIsGoodWhileItsSecretOrTheNextOneCounts) {
    for (const bool renewed : {false, true}) {
        SCOPED_TRACE(renewed);
        RequestCookies cookies(kLife);
        cookies.renew({1, 2}, 0);
        Connect c = request();
        c.cookie = cookies.make(address(1), kSource, c);
        EXPECT_FALSE(cookies.wants_secret(kLife - 1));
        EXPECT_TRUE(cookies.wants_secret(kLife));
        if (renewed) cookies.renew({3, 4}, kLife);
        EXPECT_TRUE(cookies.is_shown(address(1), kSource, c, 2 * kLife - 1));
        EXPECT_FALSE(cookies.is_shown(address(1), kSource, c, 2 * kLife));
    }
}

TEST(WireRequestCookies, ASecretThatWasReplacedLateDoesNotCount) {
    RequestCookies cookies(kLife);
    cookies.renew({1, 2}, 0);
    Connect c = request();
    c.cookie = cookies.make(address(1), kSource, c);
    cookies.renew({3, 4}, 5 * kLife);
    EXPECT_FALSE(cookies.is_shown(address(1), kSource, c, 5 * kLife));
}

constexpr Time kFirst = 60;

TEST(WireProofDemand, TwoAcceptsThatComeToNothingSoonAfterEachOtherBeginADemand) {
    ProofDemand demand(kFirst);
    EXPECT_FALSE(demand.is_demanded(0));
    EXPECT_FALSE(demand.note_unconfirmed(0));
    EXPECT_FALSE(demand.note_unconfirmed(kFirst + 1)) << "too long after the first one";
    EXPECT_FALSE(demand.is_demanded(kFirst + 1));
    EXPECT_TRUE(demand.note_unconfirmed(2 * kFirst + 1));
    EXPECT_TRUE(demand.is_demanded(2 * kFirst + 1));
    EXPECT_TRUE(demand.is_demanded(3 * kFirst));
    EXPECT_FALSE(demand.is_demanded(3 * kFirst + 1));
}

TEST(WireProofDemand, OneMoreSoonAfterADemandBeginsOneTwiceAsLong) {
    ProofDemand demand(kFirst);
    demand.note_unconfirmed(0);
    ASSERT_TRUE(demand.note_unconfirmed(1));
    Time now = 1, length = kFirst;
    for (int round = 0; round < 8; ++round) {
        EXPECT_FALSE(demand.note_unconfirmed(now)) << "an accept from before the demand";
        now += length;
        ASSERT_FALSE(demand.is_demanded(now));
        ASSERT_TRUE(demand.note_unconfirmed(now));
        length = std::min(2 * length, 16 * kFirst);
        EXPECT_TRUE(demand.is_demanded(now + length - 1));
        EXPECT_FALSE(demand.is_demanded(now + length));
    }
    now += 2 * length;
    EXPECT_FALSE(demand.note_unconfirmed(now)) << "a quiet time later two are needed";
    EXPECT_TRUE(demand.note_unconfirmed(now + 1));
    EXPECT_FALSE(demand.is_demanded(now + 1 + kFirst));
}

}  // namespace
}  // namespace viaduct::wire
