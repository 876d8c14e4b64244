// SPDX-License-Identifier: BSD-2-Clause
// cmpiinfo: which protocols carry MPI messages here, who reaches whom by which of them, and the parameters in
// force. Alone it tells of this host; under mpiexec or mpirun, of that very job. Wiring only.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "core/config/paths.hpp"
#include "utils/cmpiinfo/job_view.hpp"

namespace {

// Exit codes; documented in cmpiinfo(1).
constexpr int kWell = 0, kProblem = 1, kUsage = 2;

}  // namespace

int main(int argc, char** argv) {
    using namespace viaduct::cmpiinfo;
    CLI::App app{
        "Shows the protocols that carry MPI messages, who reaches whom by which, and the parameters in "
        "force."};
    bool as_json = false;
    app.add_flag("-j,--json", as_json, "JSON instead of text");
    app.set_version_flag("--version", std::string("cmpiinfo (Viaduct) ") + viaduct::kVersion);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kWell : kUsage;
    }
    try {
        JobView view;
        if (!take_view(&view)) return kProblem;
        if (view.rank == 0) std::fputs((as_json ? json_of(view) : text_of(view)).c_str(), stdout);
        return kWell;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cmpiinfo: %s\n", error.what());
        return kProblem;
    }
}
