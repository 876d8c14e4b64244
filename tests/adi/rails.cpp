// SPDX-License-Identifier: BSD-2-Clause
// Several NICs for one peer: links that go down and up under load, shares by bandwidth. The links are those
// of the default NIC's model (paramnet.link_rate, paramnet.faults).
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cases.hpp"
#include "mpi-adi/transport/multirail/multi_lane.hpp"
#include "mpi-adi/transport/via/lane.hpp"
#include "pieces.hpp"

namespace viaduct::adi_test {

namespace {

constexpr uint32_t kMessages = 10'000;
constexpr uint32_t kGroup = 50;
constexpr size_t kLongest = 300 * 1000;
constexpr unsigned kLimit = 300;  // seconds; a tenth of it where nothing else runs

// Mostly short, every 16th long enough for stripes.
size_t length_of(uint32_t number) {
    return number % 16 == 5 ? 40'000 + number * 7919 % 260'000 : number * 37 % 3000;
}

// Tells of the rails to a process; how often any was taken out.
uint64_t losses_of(int rank, bool tell) {
    mpip_rail rails[8];
    const size_t count = mpip_rails_of(rank, rails, 8);
    uint64_t losses = 0;
    for (size_t i = 0; i < count; ++i) {
        losses += rails[i].ra_losses;
        if (!tell) continue;
        std::printf("    %s: %llu frames, %.1f MB in stripes, taken out %llu times, %.0f MB/s, %.1f us\n",
                    rails[i].ra_name, static_cast<unsigned long long>(rails[i].ra_messages),
                    static_cast<double>(rails[i].ra_bytes) / 1e6,
                    static_cast<unsigned long long>(rails[i].ra_losses), rails[i].ra_bandwidth_mb,
                    rails[i].ra_latency_ns / 1000);
    }
    return losses;
}

bool all_up(int rank) {
    mpip_rail rails[8];
    const size_t count = mpip_rails_of(rank, rails, 8);
    return count > 1 &&
           std::all_of(rails, rails + count, [](const mpip_rail& rail) { return rail.ra_up != 0; });
}

bool any_up(int rank) {
    mpip_rail rails[8];
    const size_t count = mpip_rails_of(rank, rails, 8);
    return std::any_of(rails, rails + count, [](const mpip_rail& rail) { return rail.ra_up != 0; });
}

// Ten thousand messages while links go down and up every 100 ms: each comes once, whole, and in its turn.
void flapping(Job& job) {
    Engine e(job, module);
    std::vector<unsigned char> data(kLongest);
    if (e.rank() == 0) {
        for (uint32_t number = 0; number < kMessages; ++number) {
            const size_t bytes = length_of(number);
            for (size_t i = 0; i < bytes; ++i) data[i] = byte_at(number, i);
            e.send(1, 7, data.data(), bytes);
            if (number % kGroup == kGroup - 1) e.progress_for(10);  // so that there are many changes
        }
        char word;
        CHECK(e.receive(1, 8, &word, 1) == 1);
    } else {
        for (uint32_t number = 0; number < kMessages; ++number) {
            const size_t got = e.receive(0, 7, data.data(), data.size());
            CHECK(got == length_of(number));
            CHECK(holds(data.data(), got, number));
        }
        CHECK(e.unexpected() == 0);
        e.send(0, 8, "", 1);
    }
    // Both ways at the end, so that no process leaves with something of the other still to come.
    e.barrier();
    CHECK(losses_of(1 - e.rank(), e.rank() == 0) >= 5);
}

// A process that does not run for longer than the limit, while no NIC has a way to it, is not lost.
void stopped_without_rails(Job& job) {
    Engine e(job, module);
    *job.word() = 0;
    job.barrier();
    if (e.rank() == 0) {
        job.say(::getpid());
        int value = 0;
        for (int i = 0; i < 100; ++i) CHECK(e.receive(1, 1, &value, sizeof value) == 3);
    } else {
        const pid_t receiver = job.await_process();
        ::kill(receiver, SIGSTOP);
        std::vector<mpip_req_t> out(100);
        for (mpip_req_t& req : out) {
            e.isend(req, 0, 1, "abc", 3);
            e.progress_for(30);
        }
        CHECK(losses_of(0, true) >= 3 && !any_up(0));  // the limit is a second
        CHECK(e.failed().empty());
        ::kill(receiver, SIGCONT);
        for (mpip_req_t& req : out) CHECK(e.wait(req) == MPIP_SUCCESS);
    }
    e.barrier();
    CHECK(e.failed().empty());
}

bool shares_follow_rates(int rank) {
    mpip_rail rails[8];
    return mpip_rails_of(rank, rails, 8) == 2 && rails[0].ra_bytes > 2 * rails[1].ra_bytes &&
           rails[1].ra_bytes > 0 && rails[0].ra_bandwidth_mb > 1.5 * rails[1].ra_bandwidth_mb;
}

// The NIC of four times the rate carries most of the bytes. What is measured on a busy machine may be wrong
// for a while: the case ends when the shares are right, and its time limit is the verdict.
void shares(Job& job) {
    Engine e(job, module);
    std::vector<unsigned char> data(4 << 20);
    int more = 1;
    for (uint32_t round = 0; more != 0; ++round) {
        if (e.rank() == 0) {
            fill(data, round);
            e.send(1, 1, data.data(), data.size());
            more = round < 11 || !shares_follow_rates(1) ? 1 : 0;
            e.send(1, 2, &more, sizeof more);
        } else {
            CHECK(e.receive(0, 1, data.data(), data.size()) == data.size());
            CHECK(holds(data.data(), data.size(), round));
            CHECK(e.receive(0, 2, &more, sizeof more) == sizeof more);
        }
    }
    e.barrier();
    if (e.rank() == 0) losses_of(1, true);
}

bool several_used(int rank) {
    mpip_rail rails[8];
    const size_t count = mpip_rails_of(rank, rails, 8);
    return std::count_if(rails, rails + count, [](const mpip_rail& r) { return r.ra_messages > 50; }) >= 2;
}

// Short messages take the NICs in turn. One whose first probes met a busy process joins in when it has
// measured well: the case ends when several are in use, and its time limit is the verdict.
void turns(Job& job) {
    Engine e(job, module);
    int value = 0;
    for (int i = 0; i >= 0;) {
        if (e.rank() == 0) {
            i = several_used(1) && all_up(1) ? -1 : i + 1;
            e.send(1, 1, &i, sizeof i);
            CHECK(e.receive(1, 1, &value, sizeof value) == sizeof value && value == i);
        } else {
            CHECK(e.receive(0, 1, &i, sizeof i) == sizeof i);
            e.send(0, 1, &i, sizeof i);
        }
    }
    e.barrier();
    if (e.rank() == 0) losses_of(1, true);
}

// NICs through whose rings short messages were sent.
int rings_used(Engine& e) {
    const auto& lane = dynamic_cast<multirail::MultiLane&>(*protocol::peer_of(e.process(1 - e.rank()))->lane);
    return static_cast<int>(
        std::count_if(std::begin(lane.links), std::end(lane.links), [](const multirail::Link& link) {
            const auto* one = link.peer == nullptr ? nullptr : dynamic_cast<via::Lane*>(link.peer->lane.get());
            return one != nullptr && one->ring.open && one->ring.counts[via::kShort].next() > 50;
        }));
}

// Each NIC has an eager ring, and short messages go by those of several.
void ring(Job& job) {
    Engine e(job, module);
    struct {
        int round, several;
    } mine = {0, 0}, theirs = {0, 0};
    // As long as it takes for both: the time limit of the case ends it.
    while (mine.several == 0 || theirs.several == 0) {
        mine = {mine.round + 1, rings_used(e) >= 2 ? 1 : 0};
        if (e.rank() == 0) e.send(1, 1, &mine, sizeof mine);
        CHECK(e.receive(1 - e.rank(), 1, &theirs, sizeof theirs) == sizeof theirs && theirs.round == mine.round);
        if (e.rank() == 1) e.send(0, 1, &mine, sizeof mine);
    }
    e.barrier();
    CHECK(rings_used(e) >= 2);
}

uint64_t read_by(int rank, size_t at) {
    mpip_rail rails[8];
    return mpip_rails_of(rank, rails, 8) > at ? rails[at].ra_bytes : 0;
}

// What is long is read, by several NICs, without gaps and with them.
void reads(Job& job) {
    Engine e(job, module);
    const mpip_counters& counters = *mpip_counters_of(MPIP_PROTO_VIA);
    std::vector<unsigned char> data(4 << 20);
    std::mt19937 dice(3);
    Buffer out(random_pieces(dice, 4 << 20, 200)), in(random_pieces(dice, 4 << 20, 7));
    constexpr uint32_t kRounds = 6;
    for (uint32_t round = 0; round < kRounds; ++round) {
        if (e.rank() == 0) {
            fill(data, round);
            e.send(1, 1, data.data(), data.size());
            out.put(round);
            mpip_req_t req;
            e.isend(req, 1, 2, out.data(), out.layout.total, 0, out.type(), 1);
            CHECK(e.wait(req) == MPIP_SUCCESS);
        } else {
            CHECK(e.receive(0, 1, data.data(), data.size()) == data.size());
            CHECK(holds(data.data(), data.size(), round));
            mpip_req_t req;
            e.irecv(req, 0, 2, in.data(), in.layout.total, in.type(), 1);
            CHECK(e.wait(req) == MPIP_SUCCESS);
            CHECK(in.has(round, in.layout.total));
        }
    }
    e.barrier();
    if (e.rank() == 0) return;
    CHECK(counters.mc_rget == 2 * kRounds && counters.mc_scattered == kRounds);
    CHECK(read_by(0, 0) > 0 && read_by(0, 1) > 0);
    CHECK(read_by(0, 0) + read_by(0, 1) + read_by(0, 2) == kRounds * (data.size() + in.layout.total));
    losses_of(0, true);
}

// Stripes go by a NIC and by sockets at once.
void mixed(Job& job) {
    Engine e(job, module);
    std::vector<unsigned char> data(4 << 20);
    int more = 1;
    for (uint32_t round = 0; more != 0; ++round) {
        if (e.rank() == 0) {
            fill(data, round);
            e.send(1, 1, data.data(), data.size());
            more = round < 3 || read_by(1, 0) == 0 || read_by(1, 1) == 0 ? 1 : 0;
            e.send(1, 2, &more, sizeof more);
        } else {
            CHECK(e.receive(0, 1, data.data(), data.size()) == data.size());
            CHECK(holds(data.data(), data.size(), round));
            CHECK(e.receive(0, 2, &more, sizeof more) == sizeof more);
        }
    }
    e.barrier();
    if (e.rank() == 0) losses_of(1, true);
}

}  // namespace

std::vector<Case> rail_cases() {
    return {
        {"turns", turns, 2, 30, "rails"},
        {"ring", ring, 2, 30, "rails"},
        {"reads", reads, 2, 30, "rails", {{"CMPI_RENDEZVOUS", "rget"}, {"CMPI_GAP_PIECE", "1024"}}},
        {"flapping", flapping, 2, kLimit, "rails", {{"VIADUCT_PARAMNET_FAULTS", "flap_ms=100"}}},
        {"flapping-rget",
         flapping,
         2,
         kLimit,
         "rails",
         {{"VIADUCT_PARAMNET_FAULTS", "flap_ms=100"}, {"CMPI_RENDEZVOUS", "rget"}}},
        {"flapping-rput",
         flapping,
         2,
         kLimit,
         "rails",
         {{"VIADUCT_PARAMNET_FAULTS", "flap_ms=100"}, {"CMPI_RENDEZVOUS", "rput"}}},
        {"flapping-r3",
         flapping,
         2,
         kLimit,
         "rails",
         {{"VIADUCT_PARAMNET_FAULTS", "flap_ms=100"}, {"CMPI_RENDEZVOUS", "r3"}}},
        // The only NIC, beside sockets, which then carry everything.
        {"flapping-mixed",
         flapping,
         2,
         kLimit,
         "rails",
         {{"VIADUCT_PARAMNET_FAULTS", "flap_ms=100"}, {"CMPI_VIA_NICS", "paramnet0,tcp"}}},
        {"mixed",
         mixed,
         2,
         60,
         "rails",
         {{"CMPI_VIA_NICS", "paramnet0,tcp"}, {"VIADUCT_PARAMNET_LINK_RATE", "100M"}}},
        // All at the same time: between, there is no way at all.
        {"flapping-all",
         flapping,
         2,
         kLimit,
         "rails",
         {{"VIADUCT_PARAMNET_FAULTS", "flap_ms=100;flap_ms=100;flap_ms=100"}}},
        // And while their packets are still on the link.
        {"flapping-slow",
         flapping,
         2,
         kLimit,
         "rails",
         {{"VIADUCT_PARAMNET_FAULTS", "flap_ms=100;flap_ms=70"}, {"VIADUCT_PARAMNET_LINK_RATE", "200M"}}},
        {"stopped",
         stopped_without_rails,
         2,
         60,
         "rails",
         {{"VIADUCT_PARAMNET_FAULTS", "flap_ms=100;flap_ms=100;flap_ms=100"}, {"CMPI_RAIL_TIMEOUT", "1"}}},
        {"shares",
         shares,
         2,
         60,
         "rails",
         {{"CMPI_VIA_NICS", "paramnet0,paramnet1"}, {"VIADUCT_PARAMNET_LINK_RATE", "160M;40M"}}},
    };
}

}  // namespace viaduct::adi_test
