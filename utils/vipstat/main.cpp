// SPDX-License-Identifier: BSD-2-Clause
// vipstat: what the VIs of running processes do and wait for, seen from outside. Options and the loop only.
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>

#include "core/clock/clock.hpp"
#include "core/config/paths.hpp"
#include "utils/common/error.hpp"
#include "utils/common/http.hpp"
#include "utils/common/output.hpp"
#include "utils/common/stop.hpp"
#include "utils/vipstat/ended.hpp"
#include "utils/vipstat/render.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::vipstat;

struct Options {
    std::vector<pid_t> pids;
    bool as_json = false, top = false, all_counters = false, as_prometheus = false;
    std::string listen;  // where to answer readers
    double interval_s = 1;
    uint64_t count = 0;  // 0: as the mode says
};

const char* why(stats::Look look) {
    switch (look) {
        case stats::Look::ok:
            return "";
        case stats::Look::no_process:
            return "no such process";
        case stats::Look::no_permission:
            return "not permitted: it belongs to another user";
        case stats::Look::no_stats:
            return "has no NIC open through libvipl";
        case stats::Look::unreadable:
            return "shows something this vipstat cannot read";
    }
    return "";
}

// Everything there is to see, those that have ended behind those that run. A process asked for by number that cannot be
// seen is an error at the first look; later it has ended, which is none.
class Looker {
public:
    explicit Looker(const Options& options) : options_(options) {}
    std::vector<ProcessView> look(bool first);

private:
    const Options& options_;
    Watch watch_;
    EndedLook ended_;
};

std::vector<ProcessView> Looker::look(bool first) {
    std::vector<ProcessView> out, ended = ended_.look(options_.pids, watch_);
    for (const pid_t pid : options_.pids.empty() ? stats::visible_processes() : options_.pids) {
        stats::Picture picture;
        const stats::Look seen = stats::look_at(pid, &picture);
        const auto is_it = [pid](const ProcessView& p) { return p.pid == pid; };
        if (seen == stats::Look::ok) {
            out.push_back(watch_.view(picture));
        } else if (first && !options_.pids.empty() && std::none_of(ended.begin(), ended.end(), is_it)) {
            throw tools::ToolError("process " + std::to_string(pid) + ": " + why(seen));
        }
    }
    std::move(ended.begin(), ended.end(), std::back_inserter(out));
    return out;
}

bool none_runs(const std::vector<ProcessView>& processes) {
    return std::all_of(processes.begin(), processes.end(), [](const ProcessView& p) { return p.ended_s >= 0; });
}

void sleep_for(double s) {
    for (int64_t left = static_cast<int64_t>(s * 1e9); left > 0 && !tools::stopped();) {
        const int64_t slice = std::min<int64_t>(left, 100'000'000);
        const timespec t = timespec_of(slice);
        ::nanosleep(&t, nullptr);
        left -= slice;
    }
}

void show(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

View view_of(const Options& options, bool terminal) {
    View view;
    view.counters = options.all_counters;
    winsize size{};
    if (terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        view.columns = size.ws_col;
        view.rows = size.ws_row > 8 ? size.ws_row / 2 : 4;
    }
    return view;
}

// Redraws until stopped, until the processes asked for have ended, or --count times.
void top(const Options& options) {
    const bool terminal = ::isatty(STDOUT_FILENO) != 0 && !options.as_json;
    Looker looker(options);
    if (terminal) show("\033[?1049h\033[?25l");  // another screen, no cursor
    for (uint64_t n = 0; !tools::stopped() && (options.count == 0 || n < options.count); ++n) {
        if (n != 0) sleep_for(options.interval_s);
        const std::vector<ProcessView> processes = looker.look(n == 0);
        const bool over = !options.pids.empty() && none_runs(processes);
        if (over && processes.empty()) break;
        std::string out = options.as_json ? json(processes) : text(processes, view_of(options, terminal));
        if (!options.as_json && processes.empty()) out = "no process of yours has a NIC open\n";
        if (terminal) out.insert(0, "\033[H\033[J");
        show(out + (terminal || options.as_json ? "" : "\n"));
        if (over) break;
    }
    if (terminal) show("\033[?25h\033[?1049l");
}

// Looks whenever it is asked, until stopped.
void serve(const Options& options) {
    Looker looker(options);
    (void)looker.look(true);
    tools::HttpEndpoint endpoint(options.listen);
    show(endpoint.where() + "\n");
    endpoint.serve([&](std::string_view path) -> std::optional<tools::Answer> {
        if (path == "/metrics")
            return tools::Answer{"text/plain; version=0.0.4", prometheus(looker.look(false))};
        if (path == "/json") return tools::Answer{"application/json", json(looker.look(false))};
        if (path == "/") return tools::Answer{"text/html; charset=utf-8", page()};
        return std::nullopt;
    });
}

void once(const Options& options) {
    const std::vector<ProcessView> processes = Looker(options).look(true);
    if (options.as_prometheus) return show(prometheus(processes));
    show(options.as_json ? json(processes) : text(processes, view_of(options, false)));
    if (processes.empty() && !options.as_json) show("no process of yours has a NIC open\n");
}

int tool(int argc, char** argv) {
    CLI::App app{"Shows what the VIs of running processes do and wait for, without disturbing them."};
    Options options;
    app.add_option("-p,--pid", options.pids, "these processes; none: all of this user")
        ->delimiter(',')
        ->check(CLI::Range(1, std::numeric_limits<int>::max()));
    CLI::Option* const top_it =
        app.add_flag("-t,--top", options.top, "again and again, with rates; redraws on a terminal");
    app.add_option("-i,--interval", options.interval_s, "top: seconds between two looks")
        ->check(CLI::Range(0.01, 3600.0))
        ->capture_default_str()
        ->needs(top_it);
    app.add_option("-n,--count", options.count, "top: end after so many looks")
        ->check(CLI::Range(1, 2'000'000'000))
        ->needs(top_it);
    app.add_flag("-c,--counters", options.all_counters, "all counters, those at zero too");
    app.add_flag("-j,--json", options.as_json, "JSON instead of text; top: one object for each look");
    app.add_flag("--prometheus", options.as_prometheus, "the text format of Prometheus")
        ->excludes("--top")
        ->excludes("--json");
    app.add_option("--listen,--serve", options.listen,
                   "answer GET /metrics (Prometheus), /json and / (a page) there until stopped: 127.0.0.1:PORT, "
                   "[::1]:PORT or unix:PATH")
        ->excludes("--top")
        ->excludes("--json")
        ->excludes("--prometheus");
    app.set_version_flag("--version", std::string("vipstat (Viaduct) ") + kVersion);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? tools::kExitWell : tools::kExitUsage;
    }
    tools::catch_stop();
    try {
        if (!options.listen.empty())
            serve(options);
        else
            options.top ? top(options) : once(options);
        return tools::kExitWell;
    } catch (const tools::ToolError& error) {
        std::fprintf(stderr, "vipstat: %s\n", error.what());
        return error.code();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "vipstat: %s\n", error.what());
        return tools::kExitProblem;
    }
}

}  // namespace

int main(int argc, char** argv) { return viaduct::tools::finish("vipstat", tool(argc, argv)); }
