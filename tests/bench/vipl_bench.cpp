// SPDX-License-Identifier: BSD-2-Clause
// viaduct_bench: two processes over libvipl, each figure taken in turns with the limit of this machine it is
// compared with. The NIC is the default one, or VIADUCT_BENCH_NIC.
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "report.hpp"
#include "utils/measure/limits.hpp"
#include "via_link.hpp"

using namespace viaduct::bench;

namespace {

const std::pair<size_t, const char*> kSizes[] = {
    {8, "8 B"},           {64, "64 B"},         {1 << 10, "1 KiB"}, {4 << 10, "4 KiB"},
    {16 << 10, "16 KiB"}, {64 << 10, "64 KiB"}, {1 << 20, "1 MiB"}};

constexpr uint32_t kIdle = 1023;

double gigabytes(size_t bytes, double ns) { return static_cast<double>(bytes) / ns; }

}  // namespace

int main(int argc, char** argv) {
    Options options;
    int exit_code = 0;
    if (!read_options(argc, argv, &options, &exit_code)) return exit_code;
    // An agent of our own: other programs' NICs are none of our business.
    ::setenv("VIADUCT_AGENT", ("@viaduct-bench-" + std::to_string(::getpid())).c_str(), 0);
    const char* nic = std::getenv("VIADUCT_BENCH_NIC");
    const std::string device = nic != nullptr ? nic : "/dev/via_eth0";

    Pair pair = Pair::split(kArenaBytes, options.cpus[0], options.cpus[1]);
    auto queue = std::make_unique<ViaLink>(pair, device, Arrival::poll_queue);
    auto cq = std::make_unique<ViaLink>(pair, device, Arrival::poll_cq);
    auto wait = std::make_unique<ViaLink>(pair, device, Arrival::wait);
    // As many as one NIC context has, with those above.
    auto many = std::make_unique<ViaLink>(pair, device, Arrival::poll_cq, kIdle);

    std::vector<Row> rows;
    rows.push_back({"cache line, one way", "ns", [](Pair& p) { return p.distance(); }, ""});
    for (const auto& [bytes, name] : kSizes) {
        if (bytes > queue->largest()) continue;
        const std::string put = std::string("put ping-pong ") + name,
                          ring = std::string("ring ping-pong ") + name;
        rows.push_back({put, "ns", [bytes = bytes](Pair& p) { return put_ping_pong(p, bytes); }, ""});
        rows.push_back({ring, "ns", [bytes = bytes](Pair& p) { return ring_ping_pong(p, bytes); }, ""});
        rows.push_back({std::string("VIPL send/receive ") + name, "ns",
                        [bytes = bytes, &queue](Pair&) { return queue->ping_pong(bytes); }, ring});
        if (bytes == 8) {
            const std::string by_cq = std::string("VIPL send/receive by CQ ") + name;
            rows.push_back({by_cq, "ns", [bytes = bytes, &cq](Pair&) { return cq->ping_pong(bytes); }, ring});
            rows.push_back({"the same with 1,023 idle VIs", "ns",
                            [bytes = bytes, &many](Pair&) { return many->ping_pong(bytes); }, by_cq});
        }
        rows.push_back({std::string("VIPL RDMA write ") + name, "ns",
                        [bytes = bytes, &queue](Pair&) { return queue->rdma_ping_pong(bytes); }, put});
    }
    rows.push_back({"futex wake-up", "ns", futex_wake_up, "", true});
    rows.push_back({"VIPL to a thread asleep in RecvWait", "ns",
                    [&wait](Pair&) { return wait->ping_pong(8, kUntilAsleep); }, "futex wake-up", true});
    rows.push_back({"VIPL VipRecvWait 8 B", "ns", [&wait](Pair&) { return wait->ping_pong(8); },
                    "ring ping-pong 8 B", true});
    rows.push_back({"messages of one line", "M/s", line_rate, ""});
    rows.push_back({"VIPL messages of 8 B", "M/s", [&queue](Pair&) { return 1000 / queue->stream(8); },
                    "messages of one line"});
    for (const auto& [bytes, name] : kSizes) {
        if (bytes < 4096 || bytes > queue->largest()) continue;
        const std::string stream = std::string("ring stream ") + name;
        rows.push_back({stream, "GB/s", [bytes = bytes](Pair& p) { return ring_stream(p, bytes); }, ""});
        rows.push_back({std::string("VIPL stream ") + name, "GB/s",
                        [bytes = bytes, &queue](Pair&) { return gigabytes(bytes, queue->stream(bytes)); },
                        stream});
    }
    take_samples(pair, rows, options.rounds);
    if (pair.leader()) print_table(pair, rows, "VIPL between two processes, " + device);
    many.reset();
    wait.reset();
    cq.reset();
    queue.reset();
    return 0;
}
