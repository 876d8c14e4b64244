// SPDX-License-Identifier: BSD-2-Clause
// cmpiinfo: which protocols carry MPI messages here, which of them reaches which process, and the parameters in
// force. Alone it tells of this host; under mpiexec or mpirun, of that very job. With --job, what the ranks of running
// jobs wait for. Wiring only.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "core/config/paths.hpp"
#include "utils/cmpiinfo/job_view.hpp"
#include "utils/cmpiinfo/waits.hpp"
#include "utils/common/output.hpp"

namespace {

// Exit codes; documented in cmpiinfo(1).
constexpr int kWell = 0, kProblem = 1, kUsage = 2, kDeadlock = 3;
// Between two looks at a job: what is there in both of them goes on.
constexpr unsigned kBetweenLooksMicroseconds = 200'000;
// A deadlock that is not proven by so many more is not told: its ranks may go on when they get a processor.
constexpr int kMostLooks = 30;

int show_waits(const std::string& which, bool as_json) {
    using namespace viaduct::cmpiinfo;
    const pid_t pid = which == "all" ? 0 : static_cast<pid_t>(std::stol(which));
    std::vector<JobWaits> before, jobs;
    std::map<std::pair<uint32_t, int>, Standstill> standstills;
    Found found = Found::nothing;
    look_at_jobs(pid, &before);
    for (int look = 0;; look++) {
        ::usleep(kBetweenLooksMicroseconds);
        std::vector<JobWaits> now;
        found = look_at_jobs(pid, &now);
        jobs = now;
        keep_lasting(before, &jobs);
        before = std::move(now);
        bool proven = true;
        for (JobWaits& job : jobs) {
            if (standstills[{job.number, job.size}].proven_by(&job)) continue;
            proven = false;
            if (look < kMostLooks) continue;
            job.stuck.clear();
            job.cycle.clear();
        }
        if (proven || look == kMostLooks) break;
    }
    if (pid != 0 && found != Found::jobs) {
        std::fprintf(stderr, "cmpiinfo: process %d %s\n", int(pid),
                     found == Found::no_permission ? "may not be looked at by this user"
                                                   : "is not there, or in no MPI job of this library");
        return kProblem;
    }
    bool stuck = false;
    for (const JobWaits& job : jobs) stuck |= !job.stuck.empty();
    std::fputs((as_json ? json_of(jobs) : text_of(jobs)).c_str(), stdout);
    return stuck ? kDeadlock : kWell;
}

int tool(int argc, char** argv) {
    using namespace viaduct::cmpiinfo;
    CLI::App app{
        "Shows the protocols that carry MPI messages, which one reaches which process, and the parameters in "
        "force."};
    bool as_json = false;
    app.add_flag("-j,--json", as_json, "JSON instead of text");
    std::string job;
    app.add_option("--job", job, "what the ranks of the job of a process (PID), or of all jobs here, wait for")
        ->type_name("PID|all")
        ->check([](const std::string& text) {
            const bool number = !text.empty() && text.size() < 10 && text[0] != '0' &&
                                text.find_first_not_of("0123456789") == std::string::npos;
            return number || text == "all" ? std::string() : "neither a process number nor \"all\": " + text;
        });
    app.set_version_flag("--version", std::string("cmpiinfo (Viaduct) ") + viaduct::kVersion);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kWell : kUsage;
    }
    try {
        if (!job.empty()) return show_waits(job, as_json);
        JobView view;
        if (!take_view(&view)) return kProblem;
        if (view.rank == 0) std::fputs((as_json ? json_of(view) : text_of(view)).c_str(), stdout);
        return kWell;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cmpiinfo: %s\n", error.what());
        return kProblem;
    }
}

}  // namespace

int main(int argc, char** argv) { return viaduct::tools::finish("cmpiinfo", tool(argc, argv)); }
