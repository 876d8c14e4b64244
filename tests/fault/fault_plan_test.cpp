// SPDX-License-Identifier: BSD-2-Clause
// The guarantees of the reliability table (spec/reliability 6.1) under seeded faults of the wire: every level
// against every fault and every way to move data. The table of what was seen is printed; each line of it is
// checked.
#include <gtest/gtest.h>

#include <cstring>
#include <iomanip>
#include <iostream>
#include <random>
#include <sstream>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

using conformance::FaultControl;
using conformance::Pair;

constexpr std::uint32_t kMessages = 200;
constexpr std::uint32_t kLargest = 3000;
constexpr std::uint32_t kSlot = 3072;

struct Fault {
    const char* name;
    const char* plan;
    bool loses;    // a message may not arrive where it is not sent again
    bool damages;  // it may be found damaged
    bool nothing_passes;
    std::uint32_t delay_us;  // of each operation
};
constexpr Fault kFaults[] = {
    {"none", "", false, false, false, 0},
    {"loss 20 %", "seed=11,drop=0.2", true, false, false, 0},
    {"duplicates 30 %", "seed=12,duplicate=0.3", false, false, false, 0},
    {"damage 20 %", "seed=13,corrupt=0.2", true, true, false, 0},
    {"delay 300 us", "seed=14,delay_us=300", false, false, false, 300},
    {"all of these", "seed=15,drop=0.1,duplicate=0.1,corrupt=0.1,delay_us=100", true, true, false, 100},
    {"link down", "linkdown=1", true, false, true, 0},
};

enum class Moves { kSend, kWrite, kWriteImmediate, kRead };
constexpr const char* kMoves[] = {"send", "write", "write+imm", "read"};

constexpr struct {
    VIP_RELIABILITY_LEVEL level;
    const char* name;
} kLevels[] = {{VIP_SERVICE_UNRELIABLE, "unreliable"},
               {VIP_SERVICE_RELIABLE_DELIVERY, "reliable delivery"},
               {VIP_SERVICE_RELIABLE_RECEPTION, "reliable reception"}};

/// What came of one line of the table.
struct Seen {
    std::uint32_t good = 0;     // of the initiator's descriptors
    std::uint32_t refused = 0;  // TRANSPORT
    std::uint32_t flushed = 0;  // FLUSHED
    std::uint32_t other = 0;    // any other error
    std::uint32_t arrived = 0;  // whole messages at the target (reads: at the initiator)
    std::uint32_t twice = 0;
    std::uint32_t damaged = 0;
    std::uint32_t disordered = 0;
    std::uint32_t early = 0;  // reliable reception: reported before it was in the target's memory
    bool both_connected = false;
};

std::uint32_t size_of(std::uint32_t number) { return 4 + number * 2654435761u % (kLargest - 4); }

/// Two ends with numbered messages between them.
class Line {
public:
    Line(VIP_RELIABILITY_LEVEL level, Moves moves) : pair_(options(level)), moves_(moves) {
        from_ = pair_.client.buffer(std::size_t{kMessages} * kSlot);
        to_ = pair_.server.buffer(std::size_t{kMessages} * kSlot, '-');
        for (std::uint32_t i = 0; i < kMessages; ++i) {
            write_pattern((moves == Moves::kRead ? to_ : from_) + std::size_t{i} * kSlot, size_of(i), i);
            sends_.push_back(pair_.client.descriptor());
        }
        for (std::uint32_t i = 0; takes_receives() && i < kMessages; ++i) {
            receives_.push_back(pair_.server.descriptor());
            conformance::fill(receives_[i], VIP_CONTROL_OP_SENDRECV,
                              {pair_.server.piece(target_of(i), kLargest)});
            require(pair_.server.post_recv(receives_[i]), "VipPostRecv");
        }
    }

    Seen run() {
        for (std::uint32_t i = 0; i < kMessages; ++i) {
            post(i);
            reap_initiator();
            reap_target();
        }
        const auto all_back = [&] {
            reap_initiator();
            reap_target();
            return back_ == kMessages;
        };
        EXPECT_TRUE(eventually(all_back)) << back_ << " of " << kMessages << " descriptors came back";
        const bool connected = [&] {
            // What is on its way arrives at once; a break shows within a second.
            if (seen_.good == kMessages) conformance::never([&] { return reap_target(), false; });
            return pair_.client.state() == VIP_STATE_CONNECTED && pair_.server.state() == VIP_STATE_CONNECTED;
        }();
        seen_.both_connected = connected;
        if (!takes_receives()) look_at_slots();
        return seen_;
    }

    Pair& pair() { return pair_; }

private:
    static EndOptions options(VIP_RELIABILITY_LEVEL level) {
        EndOptions chosen;
        chosen.level = level;
        chosen.memory = (kMessages + 16) * std::size_t{kSlot + 512};
        return chosen;
    }
    bool takes_receives() const { return moves_ == Moves::kSend || moves_ == Moves::kWriteImmediate; }
    char* target_of(std::uint32_t number) { return to_ + std::size_t{number} * kSlot; }

    void post(std::uint32_t i) {
        constexpr VIP_UINT16 kControl[] = {
            VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE, VIP_CONTROL_OP_RDMAWRITE,
            VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, VIP_CONTROL_OP_RDMAREAD};
        std::optional<conformance::Target> target;
        if (moves_ != Moves::kSend) target = pair_.server.target(target_of(i));
        conformance::fill(sends_[i], kControl[static_cast<int>(moves_)],
                          {pair_.client.piece(from_ + std::size_t{i} * kSlot, size_of(i))}, target, i);
        require(pair_.client.post_send(sends_[i]), "VipPostSend");
    }

    /// Whether message i lies whole in the target's memory at this moment, for sends that took receive `i`
    /// (nothing lost).
    bool in_target(std::uint32_t i) { return has_pattern(target_of(i), size_of(i), i); }

    void reap_initiator() {
        for (;;) {
            VIP_DESCRIPTOR* done = nullptr;
            const VIP_RETURN code = VipSendDone(pair_.client.vi, &done);
            if (done == nullptr) return;
            EXPECT_EQ(sends_[back_], done) << "descriptors come back in posting order";
            const VIP_UINT32 errors = done->CS.Status & VIP_STATUS_ERROR_MASK;
            EXPECT_EQ(errors == 0, code == VIP_SUCCESS);
            if (errors == 0) {
                ++seen_.good;
                if (pair_.client.wanted.level == VIP_SERVICE_RELIABLE_RECEPTION && moves_ != Moves::kRead &&
                    !in_target(back_))
                    ++seen_.early;
                if (moves_ == Moves::kRead) read_came(back_);
            } else if ((errors & VIP_STATUS_TRANSPORT_ERROR) != 0) {
                ++seen_.refused;
            } else if ((errors & VIP_STATUS_DESC_FLUSHED_ERROR) != 0) {
                ++seen_.flushed;
            } else {
                ++seen_.other;
            }
            ++back_;
        }
    }

    void read_came(std::uint32_t i) {
        if (has_pattern(from_ + std::size_t{i} * kSlot, size_of(i), i)) {
            ++seen_.arrived;
        } else {
            ++seen_.damaged;
        }
    }

    void reap_target() {
        for (;;) {
            VIP_DESCRIPTOR* done = nullptr;
            const VIP_RETURN code = VipRecvDone(pair_.server.vi, &done);
            if (done == nullptr || code != VIP_SUCCESS) return;
            const std::uint32_t number = done->CS.ImmediateData;
            const char* data =
                moves_ == Moves::kSend ? target_of(taken_) : target_of(std::min(number, kMessages - 1));
            EXPECT_EQ(receives_[taken_], done);
            ++taken_;
            if (number >= kMessages || done->CS.Length != size_of(number) ||
                !has_pattern(data, size_of(number), number)) {
                ++seen_.damaged;
                continue;
            }
            if (number == last_) ++seen_.twice;
            if (last_ != kNone && number < last_) ++seen_.disordered;
            last_ = number;
            ++seen_.arrived;
        }
    }

    /// Writes without immediate data leave no trace but themselves: each place is whole or untouched.
    void look_at_slots() {
        if (moves_ == Moves::kRead) return;
        for (std::uint32_t i = 0; i < kMessages; ++i) {
            const std::string place(target_of(i), size_of(i));
            if (in_target(i)) {
                ++seen_.arrived;
            } else if (place != std::string(size_of(i), '-')) {
                ++seen_.damaged;
            }
        }
    }

    static constexpr std::uint32_t kNone = ~0u;
    Pair pair_;
    Moves moves_;
    char* from_ = nullptr;
    char* to_ = nullptr;
    std::vector<VIP_DESCRIPTOR*> sends_, receives_;
    std::uint32_t back_ = 0, taken_ = 0, last_ = kNone;
    Seen seen_;
};

void check(const Seen& seen, Pair& pair, const Fault& fault, VIP_RELIABILITY_LEVEL level, Moves moves) {
    EXPECT_EQ(0u, seen.damaged) << "damage is detected at every level";
    EXPECT_EQ(0u, seen.twice) << "at most once at every level";
    EXPECT_EQ(0u, seen.other);
    EXPECT_EQ(0u, seen.early) << "reported, and not in the target's memory";
    if (level == VIP_SERVICE_UNRELIABLE) {
        EXPECT_EQ(kMessages, seen.good) << "what is lost is lost silently";
        EXPECT_TRUE(seen.both_connected) << "no connection is broken by the network";
        if (!fault.loses) {
            EXPECT_EQ(kMessages, seen.arrived);
        } else if (fault.nothing_passes) {
            EXPECT_EQ(0u, seen.arrived);
        } else {
            EXPECT_GT(seen.arrived, kMessages / 2);
            EXPECT_LT(seen.arrived, kMessages);
        }
        EXPECT_EQ(0u, pair.client.errors.size());
        const bool told = fault.damages && (moves == Moves::kWrite || moves == Moves::kWriteImmediate);
        EXPECT_EQ(told, pair.server.errors.wait_for(VIP_ERROR_RDMAW_DATA,
                                                    told ? conformance::kTimeout : Millis(0)));
        EXPECT_EQ(pair.server.errors.count(VIP_ERROR_RDMAW_DATA), pair.server.errors.size());
        return;
    }
    EXPECT_EQ(0u, seen.disordered) << "order is guaranteed";
    if (!fault.nothing_passes) {
        EXPECT_EQ(kMessages, seen.good);
        EXPECT_EQ(kMessages, seen.arrived) << "exactly once, whatever the wire does";
        EXPECT_TRUE(seen.both_connected);
        EXPECT_EQ(0u, pair.client.errors.size() + pair.server.errors.size());
        return;
    }
    EXPECT_EQ(0u, seen.arrived + seen.good);
    EXPECT_EQ(1u, seen.refused) << "the one that could not be sent";
    EXPECT_EQ(kMessages - 1, seen.flushed) << "and all that follow";
    for (End* end : {&pair.client, &pair.server}) {
        EXPECT_TRUE(end->reaches(VIP_STATE_ERROR, conformance::kOneSecond));
        EXPECT_TRUE(end->errors.wait_for(VIP_ERROR_CONN_LOST, conformance::kOneSecond));
        EXPECT_EQ(1u, end->errors.size());
    }
}

std::string line_of(const char* level, const Fault& fault, Moves moves, const Seen& seen, Pair& pair) {
    std::ostringstream out;
    out << std::left << std::setw(20) << level << std::setw(17) << fault.name << std::setw(11)
        << kMoves[static_cast<int>(moves)] << std::right;
    for (const std::uint32_t n :
         {seen.good, seen.refused, seen.flushed, seen.arrived, seen.twice, seen.damaged})
        out << std::setw(9) << n;
    const auto state = [](const End& end) { return end.state() == VIP_STATE_CONNECTED ? "up" : "broken"; };
    out << "   " << state(pair.client) << '/' << state(pair.server) << "  " << pair.client.errors.size()
        << '/' << pair.server.errors.size();
    return out.str();
}

TEST(FaultPlan, EveryLevelKeepsWhatItsTableSays) {
    std::string table =
        "level               fault            operation       good transport  flushed  arrived    twice  "
        "damaged   states  "
        "errors\n";
    for (const auto& level : kLevels) {
        if ((conformance::nic_attributes().ReliabilityLevelSupport & level.level) == 0) continue;
        for (const Fault& fault : kFaults) {
            for (const Moves moves : {Moves::kSend, Moves::kWrite, Moves::kWriteImmediate, Moves::kRead}) {
                if (moves == Moves::kRead &&
                    (conformance::nic_attributes().RDMAReadSupport & level.level) == 0)
                    continue;
                SCOPED_TRACE(std::string(level.name) + ", " + fault.name + ", " +
                             kMoves[static_cast<int>(moves)]);
                Line line(level.level, moves);
                const FaultControl faults;
                NEEDS_FAULTS(faults, line.pair().client.vi, fault.plan);
                const auto begun = Clock::now();
                const Seen seen = line.run();
                EXPECT_GE(Clock::now() - begun, std::chrono::microseconds(fault.delay_us * kMessages))
                    << "each is held back";
                check(seen, line.pair(), fault, level.level, moves);
                table += line_of(level.name, fault, moves, seen, line.pair()) + "\n";
            }
        }
    }
    std::cout << table << kMessages << " operations in each line" << std::endl;
}

}  // namespace
}  // namespace viaduct::fault
