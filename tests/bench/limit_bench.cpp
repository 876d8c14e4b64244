// SPDX-License-Identifier: BSD-2-Clause
// viaduct_limits: what this machine can do at best between two processes. Figures of Viaduct are to be read
// as ratios to these, of the same run and the same distance of processors.
#include "report.hpp"
#include "utils/measure/limits.hpp"

using namespace viaduct::bench;

int main(int argc, char** argv) {
    Options options;
    int exit_code = 0;
    if (!read_options(argc, argv, &options, &exit_code)) return exit_code;

    std::vector<Row> rows;
    rows.push_back({"cache line, one way", "ns", [](Pair& p) { return p.distance(); }, ""});
    const std::pair<size_t, const char*> sizes[] = {
        {8, "8 B"},           {1 << 10, "1 KiB"}, {4 << 10, "4 KiB"}, {16 << 10, "16 KiB"},
        {64 << 10, "64 KiB"}, {1 << 20, "1 MiB"}, {4 << 20, "4 MiB"}};
    for (const auto& [bytes, name] : sizes) {
        const std::string put = std::string("put ping-pong ") + name;
        rows.push_back({put, "ns", [bytes = bytes](Pair& p) { return put_ping_pong(p, bytes); }, ""});
        rows.push_back({std::string("ring ping-pong ") + name, "ns",
                        [bytes = bytes](Pair& p) { return ring_ping_pong(p, bytes); }, put});
    }
    for (const auto& [bytes, name] : sizes) {
        if (bytes < 4096) continue;
        const std::string copy = std::string("memcpy in one process ") + name;
        rows.push_back({copy, "GB/s", [bytes = bytes](Pair& p) { return plain_copy(p, bytes); }, ""});
        rows.push_back({std::string("ring stream ") + name, "GB/s",
                        [bytes = bytes](Pair& p) { return ring_stream(p, bytes); }, copy});
    }
    rows.push_back({"messages of one line", "M/s", line_rate, ""});
    rows.push_back({"futex wake-up", "ns", futex_wake_up, "", true});

    Pair pair = Pair::split(kArenaBytes, options.cpus[0], options.cpus[1]);
    take_samples(pair, rows, options.rounds);
    if (pair.leader()) print_table(pair, rows, "Limits of this machine between two processes");
    return 0;
}
