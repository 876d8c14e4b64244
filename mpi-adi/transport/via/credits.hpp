// SPDX-License-Identifier: BSD-2-Clause
// Flow control of one connection, as pure arithmetic (spec/adi 5, F1-F17). VIA has none of its own: a packet
// that meets no posted receive ends the connection. Two kinds of posted receives are therefore told apart:
// those the peer holds credits for, and a reserve for packets that cost no credit (noop, closing).
//
// The reserve suffices by construction: every packet tells how many receives of the reserve its sender has
// posted anew (Header::noops), and no side ever has more credit-free packets unanswered than the other's
// reserve holds. That cannot lock up, as long as the reserve is refilled before the credits of a noop are
// spent: a side that has no credit left has spent those of every noop it had, so its last packet answered them all,
// and the next noop may go. Noops that bring no credit take no more than half of the room.
#pragma once

#include <algorithm>
#include <cstdint>

namespace viaduct::via {

struct CreditRules {
    int depth = 64;     // receives posted for packets that cost credit
    int preserve = 10;  // credits eager data leaves for control packets
    int dynamic = 10;   // unreported credits that make a noop
    int notify = 5;     // the same when the peer has hardly any left
    int extra = 64;     // most additional receives while packets of long messages are expected
    int reserve = 16;   // receives for credit-free packets, one of them for the closing packet

    // Posted when a connection is made. One is for the peer's hello, after which credits begin.
    int first_receives() const { return depth + reserve + 1; }
    int most_receives() const { return first_receives() + extra; }

    // All other numbers follow from depth and extra; small depths keep at least one credit for control.
    static CreditRules for_depth(int depth, int extra) {
        CreditRules rules;
        rules.depth = depth;
        rules.preserve = std::min(10, depth / 4);
        rules.dynamic = std::max(1, std::min(10, depth / 4));
        rules.notify = std::max(1, std::min(5, depth / 8));
        rules.extra = extra;
        // F16: what a peer that spends all its credits without polling can provoke; one more is for
        // the closing packet.
        const int most = depth + extra;
        const int by_amount = (most - rules.preserve + rules.dynamic - 1) / rules.dynamic;
        const int by_need = (rules.preserve + rules.notify - 1) / rules.notify;
        rules.reserve = std::max(2, std::min(by_amount + by_need, 30)) + 1;
        return rules;
    }
};

class Credits {
public:
    // The peer posts `peer_depth` receives for us and holds back `peer_reserve` for what costs nothing.
    void start(const CreditRules& rules, int peer_depth, int peer_reserve) {
        rules_ = rules;
        remote_ = peer_depth;
        peer_reserve_ = peer_reserve;
        local_ = 0;
        posted_ = rules.depth;
        reserve_posted_ = rules.reserve;
        extra_ = 0;
        view_ = rules.depth;
        free_sent_ = free_answered_ = free_had_ = 0;
    }

    // --- sending ---
    bool can_send() const { return remote_ > 0; }
    // F7: eager data may use `packets` credits and leave the preserved ones.
    bool eager_ok(int packets) const { return remote_ - packets >= rules_.preserve; }
    // F10: packets of long messages leave the preserved ones too.
    bool may_push() const { return remote_ > rules_.preserve; }
    bool may_send_noop() const { return unanswered() < peer_reserve_ - 1; }
    // One that brings no credit lets the peer answer nothing: room is left for those that do.
    bool may_send_empty_noop() const { return unanswered() < (peer_reserve_ - 1) / 2; }

    // A packet leaves: what its header says (spec/adi F2).
    uint16_t take_local() {
        const int reported = std::min(local_, 65535);
        local_ -= reported;
        return static_cast<uint16_t>(reported);
    }
    uint8_t view() const { return static_cast<uint8_t>(std::min(remote_, 255)); }
    uint8_t free_had() const { return free_had_; }
    void spend() { --remote_; }
    void sent_free() { ++free_sent_; }

    // --- receiving ---
    // Every header is read here first; false: its numbers are impossible.
    [[nodiscard]] bool read_header(uint16_t credit, uint8_t view, uint8_t free_had) {
        if (static_cast<uint8_t>(free_had - free_answered_) > unanswered()) return false;
        if (remote_ + credit > kMost) return false;
        free_answered_ = free_had;
        remote_ += credit;
        view_ = view;
        return true;
    }
    // A receive was used up; false: the peer sent beyond its credits.
    [[nodiscard]] bool used(bool free_packet) {
        int& posted = free_packet ? reserve_posted_ : posted_;
        if (posted == 0) return false;
        --posted;
        return true;
    }
    // F11, F14: how many receives are missing, of either kind; they are posted with reposted().
    int missing_reserve() const { return rules_.reserve - reserve_posted_; }
    int missing() const { return std::max(0, rules_.depth + extra_ - posted_); }
    void reposted(bool reserve) {
        if (reserve) {
            ++reserve_posted_;  // F5: no credit for credit
            ++free_had_;
        } else {
            ++posted_;
            ++local_;
        }
    }
    // F12: that many packets of long messages are to come (negative: have come).
    void expect(int packets) {
        expected_ += packets;
        extra_ = std::clamp(expected_, 0, rules_.extra);
    }
    // F6
    bool noop_due() const { return local_ >= rules_.dynamic || (local_ >= rules_.notify && view_ <= rules_.preserve); }
    // Any more, and a peer that goes on with eager data might come to its preserved credits before half of
    // the receives are used, which is when all are reported.
    bool many_unreported() const { return noop_due() && local_ >= rules_.depth / 2 - rules_.preserve; }

    int remote() const { return remote_; }
    int local() const { return local_; }
    int posted() const { return posted_; }
    int reserve_posted() const { return reserve_posted_; }
    const CreditRules& rules() const { return rules_; }

private:
    static constexpr int kMost = 1 << 20;
    int unanswered() const { return static_cast<uint8_t>(free_sent_ - free_answered_); }

    CreditRules rules_;
    int remote_ = 0;          // receives the peer has posted for this end, as far as was reported
    int local_ = 0;           // receives posted again and not reported yet
    int posted_ = 0;          // receives posted for packets that cost credit
    int reserve_posted_ = 0;  // receives posted for the others
    int extra_ = 0;
    int expected_ = 0;
    int view_ = 0;  // the peer's remote_, as last reported
    int peer_reserve_ = 2;
    uint8_t free_sent_ = 0, free_answered_ = 0, free_had_ = 0;
};

}  // namespace viaduct::via
