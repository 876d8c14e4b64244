// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/client.hpp"

#include <algorithm>

#include "utils/common/limits.hpp"
#include "utils/vipperf/fitting.hpp"
#include "utils/vipperf/limit.hpp"

namespace viaduct::vipperf {

namespace {

constexpr uint64_t kMostLatency = 200'000;
constexpr uint64_t kMostStream = 2'000'000;
constexpr double kNsPerUs = 1000;

}  // namespace

Client::Client(const ClientOptions& options) : options_(options), control_(options.device) {
    control_.request(options_.host, options_.discriminator, options_.connect_wait_ms);
}

Client::~Client() {
    try {
        control_.send(Command{});
    } catch (const std::exception&) {
        // It has left before us.
    }
}

Answer Client::answer(VIP_ULONG wait_ms) {
    Answer got;
    if (!control_.receive(&got, wait_ms)) throw tools::ToolError("the server does not answer");
    got.trouble[sizeof got.trouble - 1] = 0;
    if (got.trouble[0] != 0) throw tools::ToolError(std::string("the server: ") + got.trouble);
    return got;
}

uint32_t Client::set_up(const Plan& plan) {
    auto bundle = std::make_unique<Bundle>(options_.device, plan);
    Command command;
    command.what = Command::What::setup;
    command.plan = bundle->plan();
    control_.send(command);
    const Answer theirs = answer(tools::limit_ms(TimeLimit::vipperf_answer));
    bundle->request_all(options_.host, options_.discriminator + "/" + std::to_string(theirs.bundle));
    bundle->set_remote(theirs.window);
    command = Command{};
    command.what = Command::What::window;
    command.window = bundle->window();
    control_.send(command);
    answer(tools::limit_ms(TimeLimit::vipperf_answer));
    if (theirs.bundle != bundles_.size()) throw tools::ToolError("the server counts plans differently");
    bundles_.push_back(std::move(bundle));
    return theirs.bundle;
}

Client::Both Client::run(const Run& run) {
    Command command;
    command.what = Command::What::run;
    command.run = run;
    control_.send(command);
    answer(tools::limit_ms(TimeLimit::vipperf_answer));
    Both both;
    both.here = measure(*bundles_[run.bundle], run, true);
    both.there = answer(tools::limit_ms(TimeLimit::vipperf_answer));
    return both;
}

uint64_t Client::iterations_for(Run run, uint64_t most) {
    if (options_.iterations != 0) return options_.iterations;
    run.stamped = 0;
    return fitting(options_.sample_ns, most, [&](uint64_t count) {
        run.iterations = count;
        return this->run(run).here.ns;
    });
}

Latency Client::latency(uint32_t bundle, uint64_t bytes) {
    Run run;
    run.kind = Kind::latency;
    run.bundle = bundle;
    run.bytes = bytes;
    run.iterations = iterations_for(run, kMostLatency);
    run.stamped = 1;
    run.warm_up = std::clamp<uint64_t>(run.iterations / 10, 1, 1000);
    std::vector<double> samples = this->run(run).here.each_ns;
    const double ways = bundles_[bundle]->plan().operation == Operation::read ? 1 : 2;
    for (double& ns : samples) ns /= ways * kNsPerUs;
    return {bytes, run.iterations, tools::summarise(std::move(samples))};
}

Bandwidth Client::bandwidth(uint32_t bundle, uint64_t bytes, bool both_ways) {
    Run run;
    run.kind = Kind::bandwidth;
    run.bundle = bundle;
    run.bytes = bytes;
    run.both_ways = both_ways ? 1 : 0;
    run.iterations = iterations_for(run, kMostStream);
    run.warm_up = std::max<uint64_t>(run.iterations / 10, 1);
    const Both both = this->run(run);
    const auto messages = static_cast<double>(run.iterations);
    double per_ns = messages / both.here.ns;
    // Messages are counted where they arrive; the target does not see writes and reads.
    const bool sends = bundles_[bundle]->plan().operation == Operation::send;
    const double peak_ns = sends ? both.there.peak_ns : both.here.peak_ns;
    double peak = peak_ns > 0 ? 1 / peak_ns : per_ns;
    if (both_ways) {
        peak *= 2;
        per_ns += messages / both.there.ns;
    }
    peak = std::max(peak, per_ns);
    const auto size = static_cast<double>(bytes);
    return {bytes, run.iterations, peak * size * 1000, per_ns * size * 1000, per_ns * 1000};
}

double Client::plain_ns(uint32_t bundle, Kind kind, uint64_t bytes, double* share) {
    Run run;
    run.kind = kind;
    run.bundle = bundle;
    run.bytes = bytes;
    const bool latency = kind == Kind::latency;
    run.iterations = iterations_for(run, latency ? kMostLatency : kMostStream);
    run.warm_up = std::clamp<uint64_t>(run.iterations / 10, 1, 1000);
    const Both both = this->run(run);
    // A target of reads or writes has nothing to do; only the sending side must have had its processor.
    const bool passive = bundles_[bundle]->plan().operation == Operation::read ||
                         (!latency && bundles_[bundle]->plan().operation == Operation::write);
    *share = passive ? both.here.share : std::min(both.here.share, both.there.share);
    const bool half = latency && bundles_[bundle]->plan().operation != Operation::read;
    return both.here.ns / static_cast<double>(run.iterations) / (half ? 2 : 1);
}

double Client::limit(Limit limit, uint64_t bytes) {
    Command command;
    command.what = Command::What::limit;
    command.limit = limit;
    command.run.bytes = bytes;
    control_.send(command);
    return measure_limit(*options_.pair, limit, bytes);
}

measure::Distance Client::distance() {
    options_.pair->keep_watch();
    Command command;
    command.what = Command::What::distance;
    control_.send(command);
    return measure::distance_of(options_.pair->distance());
}

}  // namespace viaduct::vipperf
