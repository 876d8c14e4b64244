// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/tune.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <vector>

#include "core/clock/clock.hpp"
#include "core/config/tuning.hpp"
#include "core/shm/segment.hpp"
#include "utils/common/error.hpp"
#include "utils/common/stop.hpp"
#include "utils/measure/crossover.hpp"
#include "utils/measure/limits.hpp"
#include "utils/measure/machine.hpp"
#include "utils/vipperf/client.hpp"
#include "utils/vipperf/server.hpp"

namespace viaduct::vipperf {

namespace {

using measure::Cost;

constexpr std::array<uint64_t, 6> kSizes = {8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20};
constexpr std::array kKinds = {Kind::latency, Kind::bandwidth};
constexpr size_t kCells = kSizes.size() * kKinds.size();
constexpr double kSampleNs = 4e6;
constexpr double kGain = 0.05;  // by which a method has to be better than one that needs less of the system
constexpr int kMostRounds = 3;  // times the rounds asked for, while others keep the processors busy
constexpr int64_t kMostNs =
    30'000'000'000;               // and no longer: a method takes a quarter of a second where it is quiet
constexpr uint64_t kFrom = 4097;  // what goes through the ring in several pieces at all
// A message that is pulled is sent when the receiver has looked, one in the ring at once. Those that are
// short beside the ring are left there, whatever is faster while both sides look all the time.
constexpr uint64_t kLeastPull = 64 << 10;

// A method as the settings of the NIC that make it the only one.
struct Method {
    const char* name;
    uint32_t block_bytes;
    bool streaming;
    bool pulled;
};
constexpr std::array<Method, 7> kMethods = {{{"blocks of 16 KiB", 16 << 10, false, false},
                                       {"past the caches", 16 << 10, true, false},
                                       {"blocks of 8 KiB", 8 << 10, false, false},
                                       {"past the caches", 8 << 10, true, false},
                                       {"blocks of 64 KiB", 64 << 10, false, false},
                                       {"past the caches", 64 << 10, true, false},
                                       {"pulled by the receiver", 16 << 10, false, true}}};
constexpr size_t kPulled = kMethods.size() - 1;

// ns of one message, by size and kind; infinite where another thread had a processor.
using Samples = std::array<double, kCells>;
constexpr double kNone = std::numeric_limits<double>::infinity();

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

// In a process of its own: libvipl reads its settings once.
void measure_here(const TuneOptions& options, const Method& method, int out) {
    set("VIADUCT_TUNING", "off");
    set("VIADUCT_PARAMNET_BLOCK_BYTES", std::to_string(method.block_bytes));
    set("VIADUCT_PARAMNET_STREAM_FROM", method.streaming ? std::to_string(kFrom) : "0");
    set("VIADUCT_PARAMNET_PULL_FROM", method.pulled ? std::to_string(kFrom) : "0");
    const std::string discriminator = "vipperf-tune-" + std::to_string(::getpid());
    measure::Pair pair = measure::Pair::split(measure::kArenaBytes, options.cpus[0], options.cpus[1]);
    try {
        if (!pair.leader()) {
            serve({{options.device}, discriminator, true, &pair}, [](const std::string&) {});
            return;
        }
        ClientOptions to;
        to.device = options.device;
        to.discriminator = discriminator;
        to.connect_wait_ms = 10'000;
        to.sample_ns = kSampleNs;
        to.pair = &pair;
        Client client(to);
        if (client.nic().name().rfind("paramnet", 0) != 0)
            throw tools::ToolError(client.nic().name() + " has nothing to be measured for: only paramnet has",
                                   tools::kExitUsage);
        Plan plan;
        plan.max_bytes = kSizes.back();
        const uint32_t bundle = client.set_up(plan);
        Samples samples;
        size_t cell = 0;
        for (const uint64_t bytes : kSizes) {
            for (const Kind kind : kKinds) {
                double share = 1;
                const double ns = client.plain_ns(bundle, kind, bytes, &share);
                samples[cell++] = share > measure::kOwnShare ? ns : kNone;
            }
        }
        if (::write(out, samples.data(), sizeof samples) != sizeof samples)
            throw tools::ToolError("cannot hand on what was measured");
    } catch (const tools::ToolError& error) {
        pair.leave(std::string("vipperf: ") + error.what(), error.code());
    }
}

Samples measure_method(const TuneOptions& options, const Method& method) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw tools::ToolError("no pipe");
    const Fd in(ends[0]);
    Fd out(ends[1]);
    const pid_t child = ::fork();
    if (child < 0) throw tools::ToolError("no process");
    if (child == 0) {
        measure_here(options, method, out.get());
        std::exit(tools::kExitWell);
    }
    out.reset();
    Samples samples;
    const bool whole = ::read(in.get(), samples.data(), sizeof samples) == sizeof samples;
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) ::_exit(WEXITSTATUS(status));  // it has said why
    if (!whole || !WIFEXITED(status)) throw tools::ToolError("the measurement has ended early");
    return samples;
}

using Table = std::array<Samples, kMethods.size()>;

bool is_whole(const Table& table) {
    return std::all_of(table.begin(), table.end(), [](const Samples& samples) {
        return std::none_of(samples.begin(), samples.end(), [](double ns) { return ns == kNone; });
    });
}

// The least of all rounds: what disturbs a measurement makes it longer.
Table take_table(const TuneOptions& options, const std::function<void(const std::string&)>& on_line) {
    Table table;
    for (Samples& samples : table) samples.fill(kNone);
    const int64_t begin = now_ns();
    bool in_time = true;
    for (int round = 1; round <= options.rounds * kMostRounds && in_time; ++round) {
        if (round > options.rounds && is_whole(table)) break;
        on_line(fmt::format("round {} of {}", round, std::max(round, options.rounds)));
        for (size_t method = 0; method < kMethods.size() && in_time; ++method) {
            if (tools::stopped()) throw tools::ToolError("stopped; nothing was kept");
            const Samples samples = measure_method(options, kMethods[method]);
            for (size_t cell = 0; cell < kCells; ++cell)
                table[method][cell] = std::min(table[method][cell], samples[cell]);
            in_time = now_ns() - begin < kMostNs * std::max(options.rounds, 5) / 5;
        }
    }
    if (!is_whole(table))
        throw tools::ToolError(
            "other programs keep the processors busy: nothing was kept; try when it is quiet");
    return table;
}

std::vector<Cost> costs_of(const Samples& samples) {
    std::vector<Cost> costs;
    size_t cell = 0;
    for (const uint64_t bytes : kSizes) {
        costs.push_back({bytes, {}});
        for (size_t kind = 0; kind < kKinds.size(); ++kind) costs.back().ns.push_back(samples[cell++]);
    }
    return costs;
}

struct Choice {
    uint64_t block_bytes = 0;
    uint64_t stream_from = 0;
    uint64_t pull_from = 0;
};

// Plain stores and streaming stores, for each size of blocks: the first method stays unless another is clearly better.
// Then the lengths from which the receiver fetches faster than the best of them.
Choice choose(const Table& table) {
    Choice choice;
    std::vector<Cost> best;
    for (size_t method = 0; method < kPulled; method += 2) {
        const std::vector<Cost> plain = costs_of(table[method]), streaming = costs_of(table[method + 1]);
        const uint64_t from = measure::crossover(plain, streaming, kGain).from;
        std::vector<Cost> costs = measure::joined(plain, streaming, from);
        if (!best.empty() && measure::quotient_of(costs, best) > 1 - kGain) continue;
        best = std::move(costs);
        choice.block_bytes = kMethods[method].block_bytes;
        choice.stream_from = from;
    }
    std::vector<Cost> pulled = costs_of(table[kPulled]);
    for (std::vector<Cost>* costs : {&best, &pulled})
        std::erase_if(*costs, [](const Cost& cost) { return cost.bytes < kLeastPull; });
    choice.pull_from = measure::crossover(best, pulled, kGain).from;
    return choice;
}

// Latency in microseconds and the stream in GB/s of each method, by size.
std::vector<std::string> table_text(const Table& table) {
    std::vector<std::string> lines;
    std::string head = fmt::format("{:<36}", "us, GB/s");
    for (const uint64_t bytes : kSizes) head += fmt::format("{:>16}", fmt::format("{} KiB", bytes >> 10));
    lines.push_back(head);
    for (size_t method = 0; method < kMethods.size(); ++method) {
        std::string name = kMethods[method].name;
        if (kMethods[method].streaming)
            name = fmt::format("blocks of {} KiB {}", kMethods[method].block_bytes >> 10, name);
        std::string line = fmt::format("{:<36}", name);
        for (size_t size = 0; size < kSizes.size(); ++size) {
            const double latency = table[method][2 * size], stream = table[method][2 * size + 1];
            line += fmt::format("{:>16}", fmt::format("{:.2f}, {:.1f}", latency / 1000,
                                                      static_cast<double>(kSizes[size]) / stream));
        }
        lines.push_back(line);
    }
    return lines;
}

std::vector<FileSetting> settings_of(const Choice& choice) {
    return {{"paramnet", "stream_from", std::to_string(choice.stream_from), 0},
            {"paramnet", "block_bytes", std::to_string(choice.block_bytes), 0},
            {"paramnet", "pull_from", std::to_string(choice.pull_from), 0}};
}

}  // namespace

void tune(const TuneOptions& options, const std::function<void(const std::string&)>& on_line) {
    const std::string path = own_tuning_path();
    if (path.empty())
        throw tools::ToolError("nowhere to keep it: there is no home folder, or VIADUCT_TUNING is off");
    if (options.if_needed) {
        if (const Tuning there = load_tuning(); there.state == Tuning::State::valid) {
            on_line(fmt::format("{} was measured on this machine, {}", there.path, there.measured));
            return;
        }
    }
    const Table table = take_table(options, on_line);
    const std::vector<FileSetting> settings = settings_of(choose(table));
    std::vector<std::string> notes = table_text(table);
    const std::string text = tuning_text(this_machine(), measure::date_text(), settings, notes);
    if (const std::string why = write_tuning(path, text); !why.empty())
        throw tools::ToolError(fmt::format("cannot write {}: {}", path, why));
    for (const std::string& line : notes) on_line(line);
    for (const FileSetting& s : settings)
        on_line(fmt::format("{}.{} = {}{}", s.section, s.key, s.text, s.text == "0" ? " (never)" : ""));
    on_line("kept in " + path);
}

}  // namespace viaduct::vipperf
