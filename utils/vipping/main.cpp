// SPDX-License-Identifier: BSD-2-Clause
// vipping: does a message come through to the other side and back, and how long does it take. Options and
// output only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "core/config/paths.hpp"
#include "utils/common/error.hpp"
#include "utils/common/nic.hpp"
#include "utils/common/output.hpp"
#include "utils/common/statistics.hpp"
#include "utils/common/stop.hpp"
#include "utils/doctor/examine.hpp"
#include "utils/vipping/server.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::messages;

void print(const std::string& line) {
    std::fputs((line + "\n").c_str(), stdout);
    std::fflush(stdout);
}

std::string time_text(double us) { return fmt::format("{:.{}f}", us, us < 10 ? 2 : us < 1000 ? 1 : 0); }

uint64_t lost(const Outcome& o) { return o.sent - o.round_trips_us.size(); }

void print_summary(const Options& options, const Outcome& o) {
    const tools::Summary s = tools::summarise(o.round_trips_us);
    const double share = o.sent == 0 ? 0 : 100.0 * static_cast<double>(lost(o)) / static_cast<double>(o.sent);
    print(fmt::format("\n--- {} vipping statistics ---", options.host.empty() ? o.remote : options.host));
    print(fmt::format("{} messages sent, {} answered, {:.0f}% lost{}, {:.0f} ms", o.sent, s.count, share,
                      o.damaged != 0 ? fmt::format(", {} damaged", o.damaged) : "", o.seconds * 1000));
    if (s.count == 0) return;
    print(fmt::format("round trip min/avg/max/mdev = {}/{}/{}/{} us", time_text(s.least), time_text(s.mean),
                      time_text(s.most), time_text(s.deviation)));
    print(fmt::format("round trip 50%/90%/99%/99.9% = {}/{}/{}/{} us", time_text(s.p50), time_text(s.p90),
                      time_text(s.p99), time_text(s.p999)));
}

void print_json(const Options& options, const Outcome& o) {
    const tools::Summary s = tools::summarise(o.round_trips_us);
    nlohmann::ordered_json out = {{"schema", "viaduct/vipping/1"},
                                  {"tool", "vipping"},
                                  {"version", kVersion},
                                  {"nic", o.nic},
                                  {"local", o.local},
                                  {"remote", o.remote},
                                  {"host", options.host},
                                  {"discriminator", options.discriminator},
                                  {"bytes", options.bytes},
                                  {"sent", o.sent},
                                  {"answered", s.count},
                                  {"lost", lost(o)},
                                  {"damaged", o.damaged},
                                  {"seconds", o.seconds},
                                  {"error", o.ended_by}};
    out["round_trip_us"] = {{"min", s.least}, {"avg", s.mean}, {"max", s.most}, {"mdev", s.deviation},
                            {"p50", s.p50},   {"p90", s.p90},  {"p99", s.p99},  {"p99.9", s.p999}};
    print(out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int run_client(const Options& options, bool as_json, bool quiet) {
    Progress progress;
    if (!as_json) {
        progress.connected = [&](const Outcome& o) {
            print(fmt::format("VIPPING {} ({}) through {}: {} bytes",
                              options.host.empty() ? "this NIC" : options.host, o.remote, o.nic,
                              options.bytes));
        };
    }
    if (!as_json && !quiet && !options.flood) {
        progress.answered = [&](uint64_t sequence, double us) {
            print(fmt::format("{} bytes: seq={} time={} us", options.bytes, sequence, time_text(us)));
        };
        progress.unanswered = [&](uint64_t sequence) {
            print(fmt::format("no answer: seq={} within {} ms", sequence, options.answer_ms));
        };
    }
    const Outcome outcome = ping(options, progress);
    as_json ? print_json(options, outcome) : print_summary(options, outcome);
    if (!outcome.ended_by.empty()) std::fprintf(stderr, "vipping: %s\n", outcome.ended_by.c_str());
    const bool well = outcome.ended_by.empty() && lost(outcome) == 0 && outcome.damaged == 0;
    return well ? tools::kExitWell : tools::kExitProblem;
}

int run_server(const Options& options, bool quiet) {
    vipping::serve(options, [quiet](const std::string& line) {
        if (!quiet) print("vipping: " + line);
    });
    return tools::kExitWell;
}

int tool(int argc, char** argv) {
    CLI::App app{"Sends messages over a VI to a server of its own kind and shows how long each takes there and back."};
    Options options;
    bool server = false, as_json = false, quiet = false;
    app.add_option("HOST", options.host, "name or address of the server's host; none: the NIC itself");
    app.add_flag("-s,--server", server, "answer clients until stopped");
    app.add_flag("-1,--once", options.once, "server: end when the first client has left");
    app.add_option("-d,--device", options.device,
                   "the NIC, as VipOpenNic takes it; none: the NIC that reaches HOST, "
                   "or for a server the default one and those of names.far_provider");
    app.add_option("-D,--discriminator", options.discriminator, "which server on that host")->capture_default_str();
    app.add_option("-c,--count", options.count, "stop after so many messages")->check(CLI::Range(1, 2'000'000'000));
    app.add_option("-i,--interval", options.interval_s, "seconds from one message to the next")
        ->check(CLI::Range(0.0, 3600.0))
        ->capture_default_str();
    app.add_option("-b,--bytes", options.bytes, "size of a message")
        ->check(CLI::Range(kLeastBytes, kMostBytes))
        ->capture_default_str();
    app.add_option("-W,--wait", options.answer_ms, "wait so many ms for an answer")
        ->check(CLI::Range(1, 3'600'000))
        ->capture_default_str();
    app.add_option("-w,--connect-wait", options.connect_wait_ms, "wait so many ms for the server to appear")
        ->check(CLI::Range(0, 3'600'000))
        ->capture_default_str();
    app.add_option("-r,--reliability", options.level, "unreliable, delivery or reception")
        ->check(CLI::IsMember({"unreliable", "delivery", "reception"}))
        ->capture_default_str();
    app.add_flag("-f,--flood", options.flood, "send the next as soon as the answer is there");
    app.add_flag("-p,--poll", options.poll, "poll for the answer instead of sleeping");
    app.add_flag("--doctor", options.doctor,
                 "look for what keeps this host and HOST apart, from both ends; server: answer those who do");
    app.add_flag("-q,--quiet", quiet, "the summary only");
    app.add_flag("-j,--json", as_json, "the summary as JSON");
    app.set_version_flag("--version", std::string("vipping (Viaduct) ") + kVersion);
    try {
        app.parse(argc, argv);
        if (server && !options.host.empty()) throw CLI::ValidationError("a server takes no HOST");
        if (options.doctor && !server && options.host.empty()) throw CLI::ValidationError("--doctor needs a HOST");
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? tools::kExitWell : tools::kExitUsage;
    }
    tools::catch_stop();
    try {
        if (server) return run_server(options, quiet);
        if (options.doctor) return doctor::tell_examination("vipping", options.host, as_json);
        return run_client(options, as_json, quiet);
    } catch (const tools::ToolError& error) {
        std::fprintf(stderr, "vipping: %s\n", error.what());
        return error.code();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "vipping: %s\n", error.what());
        return tools::kExitProblem;
    }
}

}  // namespace

int main(int argc, char** argv) { return viaduct::tools::finish("vipping", tool(argc, argv)); }
