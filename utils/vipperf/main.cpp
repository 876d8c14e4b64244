// SPDX-License-Identifier: BSD-2-Clause
// vipperf: how fast a NIC is for VIPL programs. Options and wiring only.
#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>

#include "core/config/paths.hpp"
#include "utils/common/error.hpp"
#include "utils/common/nic.hpp"
#include "utils/common/output.hpp"
#include "utils/common/stop.hpp"
#include "utils/measure/limits.hpp"
#include "utils/measure/machine.hpp"
#include "utils/vipperf/client.hpp"
#include "utils/vipperf/report.hpp"
#include "utils/vipperf/server.hpp"
#include "utils/vipperf/sizes.hpp"
#include "utils/vipperf/tables.hpp"
#include "utils/vipperf/tune.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::vipperf;

struct Arguments {
    bool server = false, self = false, once = false, as_json = false, both_ways = false, check = false,
         mapped = false, tune = false, if_needed = false;
    std::string host, device, discriminator = "vipperf", level = "delivery", report;
    std::vector<std::string> tests, completions = {"queue"};
    std::string bytes;
    uint64_t iterations = 0;
    uint32_t vis = 1;
    int rounds = 5;
    long connect_wait_ms = 1000;
    std::vector<int> cpus;
};

void print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

std::vector<Test> tests_of(const Arguments& a) {
    std::vector<Test> tests;
    std::vector<std::string> names = a.tests.empty() ? std::vector<std::string>{"send_lat"} : a.tests;
    if (names.size() == 1 && names[0] == "all")
        names = {"send_lat", "send_bw", "write_lat", "write_bw", "read_lat", "read_bw"};
    for (const std::string& name : names) {
        for (const std::string& completion : a.completions) {
            Test test;
            if (!test_named(name, &test.operation, &test.kind))
                throw tools::ToolError("unknown test \"" + name +
                                           "\"; there are send_lat, send_bw, write_lat, "
                                           "write_bw, read_lat, read_bw and all",
                                       tools::kExitUsage);
            test.completion = completion_named(completion).value();
            test.both_ways = a.both_ways && test.kind == Kind::bandwidth;
            tests.push_back(test);
        }
    }
    return tests;
}

std::vector<uint64_t> bytes_of(const Arguments& a) {
    const std::string standard = a.report.empty() ? "8" : kReportSizes;
    const std::string& text = a.bytes.empty() ? standard : a.bytes;
    std::vector<uint64_t> sizes = sizes_of(text);
    if (sizes.empty())
        throw tools::ToolError("\"" + text + "\" names no sizes from 1 to 4M; examples: 8 or 1:4M or 8,4K,1M",
                               tools::kExitUsage);
    return sizes;
}

Plan plan_for(const Arguments& a, const Test& test, uint64_t max_bytes) {
    Plan plan;
    plan.operation = test.operation;
    plan.completion = test.completion;
    plan.level = tools::level_named(a.level);
    plan.vis = a.vis;
    plan.depth = std::max(256u / a.vis, 16u);
    plan.check = a.check ? 1 : 0;
    plan.mapped = a.mapped ? 1 : 0;
    plan.max_bytes = max_bytes;
    return plan;
}

Heading heading_of(const Arguments& a, Client& client) {
    return {client.nic().name(),
            tools::text_of(client.nic().local("").head),
            client.peer(),
            measure::machine_text(),
            measure::date_text(),
            a.vis,
            a.level,
            a.check,
            a.mapped};
}

void run_tests(const Arguments& a, Client& client) {
    const std::vector<uint64_t> sizes = bytes_of(a);
    const Heading heading = heading_of(a, client);
    std::vector<Result> results;
    for (const Test& test : tests_of(a)) {
        const uint32_t bundle = client.set_up(plan_for(a, test, sizes.back()));
        Result result;
        result.test = test;
        if (!a.as_json) print(heading_text(heading, test) + columns_text(test));
        for (const uint64_t bytes : sizes) {
            if (tools::stopped()) break;
            if (bytes > client.largest(bundle)) continue;  // beyond what the NIC can send in one descriptor
            if (test.kind == Kind::latency) {
                result.latencies.push_back(client.latency(bundle, bytes));
                if (!a.as_json) print(row_text(result.latencies.back()));
            } else {
                result.bandwidths.push_back(client.bandwidth(bundle, bytes, test.both_ways));
                if (!a.as_json) print(row_text(result.bandwidths.back()));
            }
        }
        results.push_back(std::move(result));
    }
    if (a.as_json) print(json_of(heading, results));
}

void make_report(const Arguments& a, Client& client) {
    ReportOptions options;
    options.sizes = bytes_of(a);
    options.rounds = a.rounds;
    options.base = plan_for(a, Test{}, options.sizes.back());
    options.heading = heading_of(a, client);
    const std::vector<Series> series = take_report(
        client, options, [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
    std::ofstream file(a.report);
    file << html_of(options, series);
    file.close();
    if (!file) throw tools::ToolError("cannot write " + a.report);
    print(a.as_json ? report_json(options, series) : report_text(options, series));
}

// Minutes of measuring are not for a page that cannot be written.
void require_place_for(const std::string& page) {
    const std::string folder = std::filesystem::path(page).parent_path();
    if (std::filesystem::is_directory(page)) throw tools::ToolError("cannot write " + page + ": it is a folder");
    const char* const place = ::access(page.c_str(), F_OK) == 0 ? page.c_str() : folder.empty() ? "." : folder.c_str();
    if (::access(place, W_OK) != 0) throw tools::ToolError("cannot write " + page + ": " + std::strerror(errno));
}

void lead(const Arguments& a, measure::Pair* pair) {
    ClientOptions options;
    options.device = a.device.empty() ? tools::device_toward(a.host) : a.device;
    options.host = a.host;
    options.discriminator = a.discriminator;
    options.connect_wait_ms = a.connect_wait_ms;
    options.iterations = a.iterations;
    options.pair = pair;
    if (!a.report.empty()) {
        options.sample_ns = 8e6;
        require_place_for(a.report);
    }
    Client client(options);
    a.report.empty() ? run_tests(a, client) : make_report(a, client);
}

// The processors of the two ends when both are started here.
void pick_processors(const Arguments& a, int (&cpus)[2]) {
    if (a.cpus.size() == 2) {
        std::copy(a.cpus.begin(), a.cpus.end(), cpus);
    } else if (!measure::Pair::pick_processors(&cpus[0], &cpus[1])) {
        const char* const needs = a.tune              ? "--tune needs two"
                                  : !a.report.empty() ? "--report with --self needs two"
                                                      : "--self needs two, or --cpu A,A";
        throw tools::ToolError(fmt::format("only one processor is allowed here; {}", needs));
    }
}

int run_tune(const Arguments& a) {
    TuneOptions options;
    options.device = a.device.empty() ? tools::kDefaultDevice : a.device;
    options.rounds = a.rounds;
    options.if_needed = a.if_needed;
    pick_processors(a, options.cpus);
    tune(options, [](const std::string& line) { print(line + "\n"); });
    return tools::kExitWell;
}

int run_self(Arguments a) {
    int cpus[2];
    pick_processors(a, cpus);
    // Short: some NICs have 16 bytes for it, and up to nine are added for the VIs (bundle.cpp).
    a.discriminator = fmt::format("v{:x}", ::getpid());
    a.connect_wait_ms = std::max(a.connect_wait_ms, 10'000L);
    measure::Pair pair = measure::Pair::split(measure::kArenaBytes, cpus[0], cpus[1]);
    try {
        if (pair.leader()) {
            lead(a, &pair);
        } else {
            const std::string device = a.device.empty() ? tools::kDefaultDevice : a.device;
            serve({{device}, a.discriminator, true, &pair}, [](const std::string&) {});
        }
    } catch (const tools::ToolError& error) {
        pair.leave(std::string("vipperf: ") + error.what(), error.code());
    }
    return tools::kExitWell;
}

void check_arguments(const Arguments& a) {
    const auto wrong = [](const char* text) { throw tools::ToolError(text, tools::kExitUsage); };
    if (a.server && (a.self || !a.host.empty())) wrong("-s, --self and HOST exclude each other");
    if (a.self && !a.host.empty()) wrong("--self takes no HOST");
    if (a.server && !a.report.empty()) wrong("the report is the client's");
    if (a.tune &&
        (a.server || a.self || a.as_json || !a.host.empty() || !a.report.empty() || !a.tests.empty()))
        wrong("--tune is measured alone");
    if (a.if_needed && !a.tune) wrong("--if-needed is about --tune");
    const bool two = a.self || a.tune;
    if (two ? !a.cpus.empty() && a.cpus.size() != 2 : a.cpus.size() > 1)
        wrong("--cpu takes one processor, with --self or --tune two");
    const bool one_processor = a.cpus.size() == 2 && a.cpus[0] == a.cpus[1];
    if (a.tune && one_processor) wrong("--tune needs two processors");
    // The limits are measured by two processes that poll.
    if (!a.report.empty() && one_processor) wrong("--report with --self needs two processors");
    for (const int cpu : a.cpus)
        if (!measure::may_run_on(cpu)) throw tools::ToolError(fmt::format("cannot run on processor {}", cpu));
    if (!a.server) {
        tests_of(a);
        bytes_of(a);
    }
}

void add_options(CLI::App& app, Arguments& a) {
    app.add_option("HOST", a.host, "name or address of the server's host; none: this host");
    app.add_flag("-s,--server", a.server, "be the server of clients until stopped");
    app.add_flag("-1,--once", a.once, "server: end with the first client");
    app.add_flag("--self", a.self, "start both ends here, on two processors");
    app.add_option("-t,--test", a.tests,
                   "send_lat (default), send_bw, write_lat, write_bw, read_lat, read_bw, or all")
        ->delimiter(',');
    app.add_option("-c,--completion", a.completions, "how completions are found: queue, cq, wait, cq_wait")
        ->delimiter(',')
        ->check(CLI::IsMember({"queue", "cq", "wait", "cq_wait"}))
        ->capture_default_str();
    app.add_option("-b,--bytes", a.bytes, "sizes: 8 (default) or 1:4M (powers of two) or 8,4K,1M");
    app.add_option("-n,--iterations", a.iterations,
                   "messages of each measurement; default: about 30 ms of them")
        ->check(CLI::Range(uint64_t{5}, uint64_t{10'000'000}));
    app.add_option("-q,--vis", a.vis, "VIs used in turns")
        ->check(CLI::Range(1u, kMostVis))
        ->capture_default_str();
    app.add_flag("-B,--both-ways", a.both_ways, "bandwidth: both sides send at once");
    app.add_flag("-m,--mapped", a.mapped, "memory that the library allocates, for peers to reach directly");
    app.add_flag("--check", a.check, "look at every byte that arrives");
    app.add_option("-r,--reliability", a.level, "unreliable, delivery or reception")
        ->check(CLI::IsMember({"unreliable", "delivery", "reception"}))
        ->capture_default_str();
    app.add_option("-d,--device", a.device, "the NIC, as VipOpenNic takes it; none: the NIC that reaches HOST, "
                                           "or for a server the default one and those of names.far_provider");
    app.add_option("-D,--discriminator", a.discriminator, "which server on that host")->capture_default_str();
    app.add_option("--cpu", a.cpus, "run on this processor; with --self: A,B")->delimiter(',');
    app.add_option("-w,--connect-wait", a.connect_wait_ms, "wait so many ms for the server to appear")
        ->check(CLI::Range(0, 3'600'000))
        ->capture_default_str();
    app.add_flag("-j,--json", a.as_json, "JSON instead of columns");
    app.add_option("--report", a.report, "measure everything and write curves to this HTML file");
    app.add_flag("--tune", a.tune, "measure which ways of the default NIC are best here, and keep that");
    app.add_flag("--if-needed", a.if_needed, "with --tune: only if nothing was measured on this machine yet");
    app.add_option("--rounds", a.rounds, "report, --tune: measure everything so often, in turns")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.set_version_flag("--version", std::string("vipperf (Viaduct) ") + viaduct::kVersion);
}

int run(const Arguments& a) {
    check_arguments(a);
    if (a.tune) return run_tune(a);
    if (a.self) return run_self(a);
    if (a.cpus.size() == 1) measure::pin_to(a.cpus[0]);
    if (a.server) {
        serve({a.device.empty() ? tools::served_devices() : std::vector{a.device}, a.discriminator, a.once, nullptr},
              [](const std::string& line) { print("vipperf: " + line + "\n"); });
    } else {
        lead(a, nullptr);
    }
    return tools::kExitWell;
}

int tool(int argc, char** argv) {
    CLI::App app{"Measures latency, bandwidth and message rate of a NIC as VIPL programs see it."};
    Arguments arguments;
    add_options(app, arguments);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? tools::kExitWell : tools::kExitUsage;
    }
    tools::catch_stop();
    try {
        return run(arguments);
    } catch (const tools::ToolError& error) {
        std::fprintf(stderr, "vipperf: %s\n", error.what());
        return error.code();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "vipperf: %s\n", error.what());
        return tools::kExitProblem;
    }
}

}  // namespace

int main(int argc, char** argv) { return viaduct::tools::finish("vipperf", tool(argc, argv)); }
