// SPDX-License-Identifier: BSD-2-Clause
#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/config/paths.hpp"

namespace viaduct::bench {

namespace {

constexpr int kTries = 6;  // of one sample that is disturbed every time

const Row* find_row(const std::vector<Row>& rows, const std::string& name) {
    for (const Row& row : rows) {
        if (row.name == name) return &row;
    }
    return nullptr;
}

void print_value(double value) { std::printf("%11.*f", value < 10 ? 2 : value < 1000 ? 1 : 0, value); }

bool on_one_processor(const Pair& pair) { return pair.cpu(0) == pair.cpu(1); }

// Polling to and fro between two on one processor would take a time slice each way, and there is no distance.
Distance probe(Pair& pair) { return on_one_processor(pair) ? Distance::near : distance_of(pair.distance()); }

void print_rows(const std::vector<Row>& rows, Distance d, const std::string& where) {
    const auto at = static_cast<size_t>(d);
    std::printf("\n%-36s %-5s %11s %11s %8s %9s\n", where.c_str(), "unit", "median", "limit", "ratio",
                "samples");
    for (const Row& row : rows) {
        if (row.samples[at].empty()) continue;
        const double value = median(row.samples[at]);
        std::printf("%-36s %-5s", row.name.c_str(), row.unit.c_str());
        print_value(value);
        const Row* limit = find_row(rows, row.limit);
        if (limit != nullptr && !limit->samples[at].empty()) {
            const double best = median(limit->samples[at]);
            std::printf(" ");
            print_value(best);
            std::printf(" %7.2fx", value / best);
        } else {
            std::printf(" %11s %8s", "", "");
        }
        std::printf(" %9zu%s\n", row.samples[at].size(), row.disturbed != 0 ? "  disturbed" : "");
    }
}

}  // namespace

void take_samples(Pair& pair, std::vector<Row>& rows, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        for (Row& row : rows) {
            for (int tries = 0; tries < kTries; ++tries) {
                const Distance before = probe(pair);
                const double used = thread_seconds();
                const int64_t began = now_ns();
                const double value = row.measure(pair);
                const double share = (thread_seconds() - used) * 1e9 / static_cast<double>(now_ns() - began);
                const Distance after = probe(pair);
                const bool own = row.sleeps || on_one_processor(pair) || share > kOwnShare;
                const bool quiet = pair.both(before == after && own);
                if (!quiet && tries + 1 < kTries) continue;
                row.disturbed += quiet ? 0 : 1;
                row.samples[static_cast<size_t>(before)].push_back(value);
                break;
            }
        }
    }
}

void print_table(const Pair& pair, const std::vector<Row>& rows, const std::string& title) {
    std::printf("%s\nViaduct %s, %s, processors %d and %d, %s\n", title.c_str(), kVersion,
                machine_text().c_str(), pair.cpu(0), pair.cpu(1), date_text().c_str());
    for (const Distance d : {Distance::near, Distance::far, Distance::remote}) {
        const bool any = std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
            return !row.samples[static_cast<size_t>(d)].empty();
        });
        if (any)
            print_rows(rows, d,
                       on_one_processor(pair) ? "one processor" : std::string(name_of(d)) + " processors");
    }
}

bool read_options(int argc, char** argv, Options* options, int* exit_code) {
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        char rest = 0;
        if (i + 1 < argc && argument == "--rounds" &&
            std::sscanf(argv[i + 1], "%d%c", &options->rounds, &rest) == 1 && options->rounds > 0) {
            ++i;
        } else if (i + 1 < argc && argument == "--cpus" &&
                   std::sscanf(argv[i + 1], "%d,%d%c", &options->cpus[0], &options->cpus[1], &rest) == 2) {
            ++i;
        } else {
            const bool asked = argument == "--help" || argument == "-h";
            std::fprintf(asked ? stdout : stderr, "usage: %s [--rounds N] [--cpus A,B]\n", argv[0]);
            *exit_code = asked ? 0 : 2;
            return false;
        }
    }
    if (options->cpus[0] < 0 && !Pair::pick_processors(&options->cpus[0], &options->cpus[1])) {
        std::printf("only one processor is allowed here: there is no distance between two to measure\n");
        *exit_code = 0;
        return false;
    }
    return true;
}

}  // namespace viaduct::bench
