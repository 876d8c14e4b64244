// SPDX-License-Identifier: BSD-2-Clause
// viptrace: what the VIPL calls of a program do, in time. Options and output only.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "core/config/paths.hpp"
#include "core/shm/fd.hpp"
#include "utils/common/error.hpp"
#include "utils/common/output.hpp"
#include "utils/viptrace/attach.hpp"
#include "utils/viptrace/findings.hpp"
#include "utils/viptrace/record.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::viptrace;

struct Options {
    std::string folder = "viptrace.out", trace, html;
    uint64_t events = kEventsUnlessGiven;
    double seconds = 0;
    std::vector<std::string> command;
    std::vector<pid_t> pids;
};

void write_file(const std::string& path, const std::string& text) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    const bool written = file != nullptr && std::fwrite(text.data(), text.size(), 1, file) == 1;
    const bool closed = file != nullptr && std::fclose(file) == 0;
    if (!written || !closed) throw tools::ToolError(path + ": cannot be written");
}

int report(const Options& options) {
    std::vector<std::string> problems;
    const std::vector<Process> all = read_folder(options.folder, &problems);
    const Matched matched = match(all);
    const Findings findings = find(all, matched);
    std::fputs(text(all, matched, findings).c_str(), stdout);
    if (!options.trace.empty()) write_file(options.trace, chrome_trace(all, matched));
    if (!options.html.empty()) write_file(options.html, page(all, matched, findings));
    for (const std::string& problem : problems) std::fprintf(stderr, "viptrace: %s\n", problem.c_str());
    return problems.empty() ? tools::kExitWell : tools::kExitProblem;
}

int tool(int argc, char** argv) {
    CLI::App app{"Records the VIPL calls of programs, and shows what they have waited for."};
    Options options;
    CLI::App* const record_it = app.add_subcommand("record", "run a program and record it");
    record_it->add_option("-o,--output", options.folder, "the folder for the record")->capture_default_str();
    record_it->add_option("-n,--events", options.events, "keep so many of each process, the newest")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 28))
        ->capture_default_str();
    record_it->add_option("command", options.command, "the program and its arguments, behind --")->required();
    CLI::App* const attach_to = app.add_subcommand("attach", "record processes that run");
    attach_to->add_option("-o,--output", options.folder, "the folder for the record")->capture_default_str();
    attach_to->add_option("-n,--events", options.events, "keep so many of each process, the newest")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 28))
        ->capture_default_str();
    attach_to->add_option("-s,--seconds", options.seconds, "stop after so long; otherwise at Ctrl-C")
        ->check(CLI::Range(0.001, 1e9));
    attach_to->add_option("pid", options.pids, "process numbers")->required()->check(CLI::PositiveNumber);
    CLI::App* const report_it = app.add_subcommand("report", "what a record says");
    report_it->add_option("folder", options.folder, "the folder of the record")->capture_default_str();
    report_it->add_option("-t,--trace", options.trace,
                          "write the time line for Perfetto (Chrome trace-event format) there");
    report_it->add_option("--html", options.html, "write a page for a browser there");
    app.require_subcommand(1);
    app.set_version_flag("--version", std::string("viptrace (Viaduct) ") + kVersion);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? tools::kExitWell : tools::kExitUsage;
    }
    try {
        if (*record_it) return record(options.folder, options.events, options.command);
        if (*attach_to) return attach(options.folder, options.events, options.seconds, options.pids);
        return report(options);
    } catch (const tools::ToolError& error) {
        std::fprintf(stderr, "viptrace: %s\n", error.what());
        return error.code();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "viptrace: %s\n", error.what());
        return tools::kExitProblem;
    }
}

}  // namespace

int main(int argc, char** argv) { return viaduct::tools::finish("viptrace", tool(argc, argv)); }
