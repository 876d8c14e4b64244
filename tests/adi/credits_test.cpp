// SPDX-License-Identifier: BSD-2-Clause
// Flow control of the VIA module as a model: two ends, two wires, random schedules, also with ends that never
// look. What must hold after every step is spec/adi F15, and that no packet ever meets an empty receive
// queue (spec/adi F16).
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "mpi-adi/transport/via/credits.hpp"

namespace viaduct::via {
namespace {

struct Packet {
    bool free, eager;
    uint16_t credit;
    uint8_t view, answered;
};

struct End {
    Credits credits;
    std::deque<Packet> inbox;  // on the wire to this end: each has taken one of its posted receives
    int receives = 0;          // posted, as the NIC sees them
    int noops = 0;
    int kept_back = 0;  // by the cap
    bool underrun = false;

    void start(const CreditRules& rules, const CreditRules& peer) {
        credits.start(rules, peer.depth, peer.reserve);
        receives = rules.depth + rules.reserve;
    }

    void send(End& to, bool free, bool eager = true) {
        if (free) {
            credits.sent_free();
        } else {
            credits.spend();
        }
        to.inbox.push_back({free, eager, credits.take_local(), credits.view(), credits.free_had()});
        if (--to.receives < 0) to.underrun = true;
    }

    void repost(bool reserve) {
        credits.reposted(reserve);
        ++receives;
    }

    // As a VIA lane does: credits, the reserve at once, the rest when it is short, behind packets of long
    // messages every few, or when nothing comes in.
    void take(End& other) {
        const Packet p = inbox.front();
        inbox.pop_front();
        ASSERT_TRUE(credits.read_header(p.credit, p.view, p.answered));
        ASSERT_TRUE(credits.used(p.free));
        if (p.free) repost(true);
        if (credits.posted() <= credits.rules().depth / 2) {
            fill();
            if (credits.noop_due()) noop(other);
        } else if ((p.free || !p.eager) && credits.missing() >= credits.rules().notify) {
            fill();
            if (credits.many_unreported()) noop(other);
        }
    }

    void noop(End& other) {
        if (!credits.may_send_noop()) {
            ++kept_back;
            return;
        }
        ++noops;
        send(other, true);
    }

    // Tells of something else than credits.
    void press(End& other) {
        if (credits.may_send_empty_noop()) noop(other);
    }

    void fill() {
        while (credits.missing() > 0) repost(false);
    }

    void do_deferred_work(End& other) {
        fill();
        if (credits.noop_due()) noop(other);
    }
};

// F15, for the direction a -> b.
int sum(const End& a, const End& b) {
    int paid = 0, told = 0;
    for (const Packet& p : b.inbox) paid += p.free ? 0 : 1;
    for (const Packet& p : a.inbox) told += p.credit;
    return a.credits.remote() + paid + told + b.credits.local();
}

// Receives of b for packets that cost credit: those posted, and those a packet on the wire has taken.
int receives_for_credit(const End& b) { return b.credits.posted(); }

void run(int depth_a, int depth_b, int extra, unsigned seed, int steps, bool deaf) {
    std::mt19937 dice(seed);
    End a, b;
    const CreditRules rules_a = CreditRules::for_depth(depth_a, extra),
                      rules_b = CreditRules::for_depth(depth_b, extra);
    a.start(rules_a, rules_b);
    b.start(rules_b, rules_a);
    uint64_t moved = 0;
    for (int step = 0; step < steps; ++step) {
        End& self = dice() % 2 == 0 ? a : b;
        End& other = &self == &a ? b : a;
        const bool looks = !(deaf && &self == &a && step % 5000 < 4000);  // a may be deaf for long
        switch (dice() % 6) {
            case 0:
            case 1:
                if (self.credits.can_send()) {
                    self.send(other, false, dice() % 2 == 0);
                    ++moved;
                }
                break;
            case 2:
            case 3:
                if (looks && !self.inbox.empty()) self.take(other);
                break;
            case 4:
                if (looks && self.inbox.empty()) self.do_deferred_work(other);
                break;
            default:
                if (dice() % 50 == 0) {
                    const int packets = static_cast<int>(dice() % 20);
                    self.credits.expect(packets);
                    self.fill();
                    self.credits.expect(-packets);
                }
                break;
        }
        ASSERT_FALSE(a.underrun || b.underrun) << "a packet met no receive at step " << step;
        ASSERT_EQ(sum(a, b), receives_for_credit(b)) << step;
        ASSERT_EQ(sum(b, a), receives_for_credit(a)) << step;
        ASSERT_GE(a.credits.remote(), 0);
        ASSERT_GE(b.credits.remote(), 0);
    }
    // It never locks up: when both look, both can send again.
    for (int i = 0; i < 4 * (depth_a + depth_b + 4 * extra + 100); ++i) {
        for (End* end : {&a, &b}) {
            if (!end->inbox.empty()) {
                end->take(end == &a ? b : a);
            } else {
                end->do_deferred_work(end == &a ? b : a);
            }
        }
    }
    EXPECT_TRUE(a.credits.can_send());
    EXPECT_TRUE(b.credits.can_send());
    EXPECT_GT(moved, static_cast<uint64_t>(deaf ? steps / 1000 : steps / 60));
}

TEST(Credits, KeepTheirSumAndNeverMeetAnEmptyQueue) {
    for (const int depth : {1, 2, 4, 8, 64, 200}) {
        for (const int extra : {0, 4, 64}) {
            for (unsigned seed = 1; seed <= 5; ++seed) run(depth, depth, extra, seed, 20000, false);
        }
    }
}

TEST(Credits, SurviveAnEndThatDoesNotLook) {
    for (const int depth : {1, 4, 64}) {
        for (const int extra : {0, 64}) {
            for (unsigned seed = 1; seed <= 5; ++seed) run(depth, depth, extra, seed, 20000, true);
        }
    }
}

TEST(Credits, NeedNotBeEqualOnBothSides) {
    for (unsigned seed = 1; seed <= 10; ++seed) run(4, 64, 16, seed, 20000, seed % 2 == 0);
}

// F16: a peer that spends all its credits and never looks provokes no more noops than the reserve holds,
// without the cap.
TEST(Credits, ReserveHoldsWhatADeafSenderProvokes) {
    for (const int depth : {4, 16, 64, 128}) {
        for (const int extra : {0, 64}) {
            const CreditRules rules = CreditRules::for_depth(depth, extra);
            End deaf, polite;
            deaf.start(rules, rules);
            polite.start(rules, rules);
            while (deaf.credits.can_send()) {
                deaf.send(polite, false);
                while (!polite.inbox.empty()) polite.take(deaf);
                polite.do_deferred_work(deaf);
            }
            EXPECT_FALSE(deaf.underrun);
            EXPECT_EQ(polite.kept_back, 0) << "depth " << depth << ", extra " << extra;
        }
    }
}

// An end that always finds another packet and has nothing to answer: the sender, which polls, goes on.
TEST(Credits, AreToldInAStreamWithoutAnswers) {
    for (const int depth : {4, 16, 64, 128}) {
        for (const int eager_each : {0, 1, 2, 3}) {  // of so many one is data in packets; 0: all
            const CreditRules rules = CreditRules::for_depth(depth, 0);
            End sender, busy;
            sender.start(rules, rules);
            busy.start(rules, rules);
            for (int packet = 0; packet < 20 * depth; ++packet) {
                while (!sender.inbox.empty()) sender.take(busy);
                ASSERT_TRUE(sender.credits.eager_ok(1)) << "depth " << depth << ", packet " << packet;
                sender.send(busy, false, eager_each != 0 && packet % (eager_each + 1) != 0);
                busy.take(sender);
            }
            // And with eager data alone at the end.
            for (int packet = 0; packet < 2 * depth; ++packet) {
                while (!sender.inbox.empty()) sender.take(busy);
                ASSERT_TRUE(sender.credits.eager_ok(1)) << "depth " << depth << ", eager packet " << packet;
                sender.send(busy, false);
                busy.take(sender);
            }
        }
    }
}

// Noops that bring no credit, to an end that is busy elsewhere and then sends before it looks.
TEST(Credits, AreToldBehindNoopsThatBringNone) {
    for (const int depth : {1, 4, 8, 64}) {
        const CreditRules rules = CreditRules::for_depth(depth, 0);
        End pressed, busy;
        pressed.start(rules, rules);
        busy.start(rules, rules);
        for (int i = 0; i < 40; ++i) pressed.press(busy);
        while (busy.credits.eager_ok(1)) busy.send(pressed, false);
        for (int i = 0; i < 4 * depth + 100; ++i) {
            pressed.inbox.empty() ? pressed.do_deferred_work(busy) : pressed.take(busy);
            busy.inbox.empty() ? busy.do_deferred_work(pressed) : busy.take(pressed);
        }
        EXPECT_FALSE(pressed.underrun || busy.underrun);
        EXPECT_TRUE(busy.credits.eager_ok(1)) << "depth " << depth;
    }
}

// The cap behind the reserve, which schedules hardly meet.
TEST(Credits, LeaveTheLastOfTheReserveToTheClosingPacket) {
    constexpr int kReserve = 6, kRoom = kReserve - 1;
    Credits credits;
    credits.start(CreditRules::for_depth(8, 0), 8, kReserve);
    for (int sent = 0; sent < kRoom; ++sent) {
        EXPECT_EQ(credits.may_send_empty_noop(), sent < kRoom / 2) << sent;
        ASSERT_TRUE(credits.may_send_noop()) << sent;
        credits.sent_free();
    }
    EXPECT_FALSE(credits.may_send_noop());
    ASSERT_TRUE(credits.read_header(0, 8, 2));  // two of them are answered
    EXPECT_TRUE(credits.may_send_noop());
    EXPECT_FALSE(credits.may_send_empty_noop());
    credits.sent_free();
    credits.sent_free();
    EXPECT_FALSE(credits.may_send_noop());
    ASSERT_TRUE(credits.read_header(0, 8, 2 + kRoom));
    EXPECT_TRUE(credits.may_send_empty_noop());
}

TEST(Credits, RefuseWhatAPeerCannotHaveDone) {
    const CreditRules rules = CreditRules::for_depth(4, 0);
    Credits credits;
    credits.start(rules, 4, rules.reserve);
    EXPECT_FALSE(credits.read_header(0, 0, 1));  // answers a packet that was never sent
    EXPECT_TRUE(credits.read_header(0, 0, 0));
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(credits.used(false));
    EXPECT_FALSE(credits.used(false));  // a fifth packet on four credits
    for (int i = 0; i < rules.reserve; ++i) EXPECT_TRUE(credits.used(true));
    EXPECT_FALSE(credits.used(true));
    for (int i = 0; i < 16; ++i) EXPECT_TRUE(credits.read_header(65535, 0, 0));
    EXPECT_FALSE(credits.read_header(65535, 0, 0));  // a million credits
}

TEST(Credits, LeaveTheLastOnesToControlPackets) {
    const CreditRules rules = CreditRules::for_depth(64, 0);
    Credits credits;
    credits.start(rules, 64, rules.reserve);
    EXPECT_EQ(rules.preserve, 10);
    EXPECT_TRUE(credits.eager_ok(54));
    EXPECT_FALSE(credits.eager_ok(55));
    for (int i = 0; i < 54; ++i) credits.spend();
    EXPECT_FALSE(credits.eager_ok(1));
    EXPECT_FALSE(credits.may_push());
    EXPECT_TRUE(credits.can_send());
}

}  // namespace
}  // namespace viaduct::via
