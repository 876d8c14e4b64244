// SPDX-License-Identifier: BSD-2-Clause
// vipcap: the frames of a network, decoded, kept in files, shown as a chart. Options and output only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "core/config/paths.hpp"
#include "utils/common/error.hpp"
#include "utils/common/output.hpp"
#include "utils/common/stop.hpp"
#include "utils/vipcap/capture.hpp"
#include "utils/vipcap/connections.hpp"
#include "utils/vipcap/dissector.hpp"
#include "utils/vipcap/json.hpp"
#include "utils/vipcap/pcap.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::vipcap;

struct Options {
    std::string interface, write, chart;
    std::vector<std::string> read;
    std::string name_of_capture() const { return fmt::format("{}", fmt::join(read, ", ")); }
    uint64_t count = 0, most_mib = 0;
    uint32_t files = 10;
    size_t connection = 1;
    bool verbose = false, list = false, quiet = false, install = false, as_json = false;
};

void print(const std::string& line) { std::fputs((line + "\n").c_str(), stdout); }

void print_frame(const Frame& f, const Options& options) {
    if (options.quiet) return;
    print(fmt::format("{:.6f} {} > {} {}", f.seconds, text_of(f.from), text_of(f.to), summary_of(f)));
    if (!options.verbose) return;
    for (const Field& field : fields_of(f)) print(fmt::format("    {} {}", field.name, field.value));
}

void print_frames(const std::vector<Frame>& frames, const Options& options) {
    if (options.as_json && !options.quiet)
        std::fputs(json_of(std::vector<KeptFrame>(frames.begin(), frames.end()), {}).c_str(), stdout);
    else
        for (const Frame& f : frames) print_frame(f, options);
}

int run_live(const Options& options) {
    std::unique_ptr<PcapWriter> writer;
    if (!options.write.empty())
        writer = std::make_unique<PcapWriter>(options.write, options.most_mib << 20, options.files);
    uint64_t frames = 0;
    const uint32_t dropped = capture(
        options.interface, [&] { std::fprintf(stderr, "vipcap: listening on %s\n", options.interface.c_str()); },
        [&](Bytes packet, int64_t ns) {
            const std::vector<Frame> found = frames_in(packet, static_cast<double>(ns) / 1e9);
            if (found.empty()) return true;
            if (writer != nullptr) writer->add(packet, ns);
            print_frames(found, options);
            std::fflush(stdout);
            frames += found.size();
            return options.count == 0 || frames < options.count;
        });
    if (writer != nullptr) writer->flush();
    std::fprintf(stderr, "vipcap: %llu frames, %u packets dropped by the kernel\n",
                 static_cast<unsigned long long>(frames), dropped);
    return dropped == 0 ? tools::kExitWell : tools::kExitProblem;
}

int write_chart(const Options& options, const std::vector<KeptFrame>& frames) {
    const std::vector<Connection> all = connections_in(frames);
    if (options.connection == 0 || options.connection > all.size())
        throw tools::ToolError(fmt::format("{} has {} connections", options.name_of_capture(), all.size()));
    const Connection& c = all[options.connection - 1];
    const std::string title = fmt::format("Connection {} of {}", options.connection, options.name_of_capture());
    const File file(std::fopen(options.chart.c_str(), "w"));
    const std::string page = chart_of(c, frames, title);
    if (file == nullptr || std::fwrite(page.data(), page.size(), 1, file.get()) != 1 || std::fflush(file.get()) != 0)
        throw tools::ToolError(options.chart + ": cannot be written");
    print(fmt::format("{}: {} frames", options.chart, c.frames.size()));
    return tools::kExitWell;
}

int run_files(const Options& options) {
    std::vector<KeptFrame> frames;
    const bool keep = options.list || options.as_json || !options.chart.empty();
    for (const std::string& path : by_time(options.read)) {
        read_pcap(path, [&](Bytes packet, double seconds) {
            for (const Frame& f : frames_in(packet, seconds)) {
                if (keep)
                    frames.emplace_back(f);
                else
                    print_frame(f, options);
            }
            return true;
        });
    }
    if (!options.chart.empty()) return write_chart(options, frames);
    if (options.as_json) {
        const std::vector<Connection> all = connections_in(frames);
        if (options.list || options.quiet) frames.clear();
        std::fputs(json_of(frames, all).c_str(), stdout);
        return tools::kExitWell;
    }
    if (!options.list) return tools::kExitWell;
    size_t number = 0;
    for (const Connection& c : connections_in(frames))
        print(fmt::format("{} {}/{:08x} {}/{:08x} {} frames", ++number, text_of(c.first.address), c.first.link,
                          text_of(c.second.address), c.second.link, c.frames.size()));
    return tools::kExitWell;
}

// An option of the other form would be left undone without a word.
void check_forms(const CLI::App& app, const Options& options) {
    const bool live = !options.interface.empty();
    if (live == !options.read.empty()) throw CLI::ValidationError("either --interface or --read is needed");
    for (const char* const option : {"--list", "--chart", "--connection"})
        if (live && app.count(option) != 0)
            throw CLI::ValidationError(std::string(option) + " is about a file: --read");
    for (const char* const option : {"--write", "--count", "--megabytes", "--files"})
        if (!live && app.count(option) != 0)
            throw CLI::ValidationError(std::string(option) + " is about an interface: --interface");
    if (app.count("--megabytes") + app.count("--files") != 0 && options.write.empty())
        throw CLI::ValidationError("--megabytes and --files are about --write");
    if (app.count("--connection") != 0 && options.chart.empty())
        throw CLI::ValidationError("--connection is about --chart");
}

int tool(int argc, char** argv) {
    CLI::App app{"Captures frames of VI over Ethernet and UDP and shows what they say."};
    Options options;
    app.add_option("-i,--interface", options.interface, "capture what this interface carries");
    app.add_option("-r,--read", options.read, "read a pcap file instead, or several of one capture");
    app.add_option("-w,--write", options.write, "keep the packets in a pcap file");
    app.add_option("-C,--megabytes", options.most_mib, "begin another file after so many MiB")
        ->check(CLI::Range(1, 1 << 20));
    app.add_option("-W,--files", options.files, "keep so many of them")
        ->check(CLI::Range(1, 10'000))
        ->capture_default_str();
    app.add_option("-c,--count", options.count, "stop after so many frames")->check(CLI::Range(1, 2'000'000'000));
    app.add_flag("-v,--verbose", options.verbose, "every field");
    app.add_flag("-q,--quiet", options.quiet, "show no frames");
    app.add_flag("-l,--list", options.list, "of a file: its connections");
    app.add_option("--chart", options.chart, "of a file: write a chart of one connection, as HTML");
    app.add_option("-n,--connection", options.connection, "which one, by its number in the list")
        ->capture_default_str();
    app.add_flag("-j,--json", options.as_json, "JSON instead of text; captured live: one object for each packet")
        ->excludes("--chart");
    app.add_flag("--install-dissector", options.install, "give your own Wireshark the dissector");
    app.set_version_flag("--version", std::string("vipcap (Viaduct) ") + kVersion);
    try {
        app.parse(argc, argv);
        if (!options.install) check_forms(app, options);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? tools::kExitWell : tools::kExitUsage;
    }
    tools::catch_stop();
    try {
        if (options.install) {
            print(fmt::format("{}: Wireshark and tshark load it when they start", install_dissector()));
            return tools::kExitWell;
        }
        return options.read.empty() ? run_live(options) : run_files(options);
    } catch (const tools::ToolError& error) {
        std::fprintf(stderr, "vipcap: %s\n", error.what());
        return error.code();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "vipcap: %s\n", error.what());
        return tools::kExitProblem;
    }
}

}  // namespace

int main(int argc, char** argv) { return viaduct::tools::finish("vipcap", tool(argc, argv)); }
