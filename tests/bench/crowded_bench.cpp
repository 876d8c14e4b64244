// SPDX-License-Identifier: BSD-2-Clause
// viaduct_crowded: two processes on one processor, both polling. A waiting process has to hand the processor
// over, so that the limit is a ping-pong through shared memory in which each side yields after every look
// that finds nothing. The NIC is the default one, or VIADUCT_BENCH_NIC.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "report.hpp"
#include "utils/measure/limits.hpp"
#include "via_link.hpp"

using namespace viaduct::bench;

namespace {

// Half a round trip of one word, ns.
double yielding_ping_pong(Pair& pair) {
    auto& out = *reinterpret_cast<std::atomic<uint64_t>*>(pair.outgoing());
    auto& in = *reinterpret_cast<std::atomic<uint64_t>*>(pair.half(1 - pair.side()));
    const auto await = [&in](uint64_t wanted) {
        while (in.load(std::memory_order_acquire) != wanted) ::sched_yield();
    };
    return pair.ns_per_iteration([&](uint64_t iterations) {
        const uint64_t base = pair.fresh(iterations);
        for (uint64_t i = base; i < base + iterations; ++i) {
            if (pair.leader()) out.store(i, std::memory_order_release);
            await(i);
            if (!pair.leader()) out.store(i, std::memory_order_release);
        }
    }) / 2;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    int exit_code = 0;
    if (!read_options(argc, argv, &options, &exit_code)) return exit_code;
    ::setenv("VIADUCT_AGENT", ("@viaduct-crowded-" + std::to_string(::getpid())).c_str(), 0);
    const char* nic = std::getenv("VIADUCT_BENCH_NIC");
    const std::string device = nic != nullptr ? nic : "/dev/via_eth0";

    Pair pair = Pair::split(kArenaBytes, options.cpus[0], options.cpus[0]);
    auto queue = std::make_unique<ViaLink>(pair, device, Arrival::poll_queue);
    auto cq = std::make_unique<ViaLink>(pair, device, Arrival::poll_cq);
    auto wait = std::make_unique<ViaLink>(pair, device, Arrival::wait);
    const std::string limit = "ping-pong that yields";
    std::vector<Row> rows;
    rows.push_back({limit, "ns", yielding_ping_pong, ""});
    rows.push_back(
        {"VIPL send/receive 8 B, polling", "ns", [&](Pair&) { return queue->ping_pong(8); }, limit});
    rows.push_back({"VIPL by CQ 8 B, polling", "ns", [&](Pair&) { return cq->ping_pong(8); }, limit});
    rows.push_back({"VIPL VipRecvWait 8 B", "ns", [&](Pair&) { return wait->ping_pong(8); }, limit});
    take_samples(pair, rows, options.rounds);
    if (pair.leader()) print_table(pair, rows, "VIPL between two processes on one processor, " + device);
    wait.reset();
    cq.reset();
    queue.reset();
    return 0;
}
