// SPDX-License-Identifier: BSD-2-Clause
// vipinfo: which NICs there are, what they can do, why others cannot be used, and what stands in the way.
// Wiring only.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "core/config/paths.hpp"
#include "utils/common/output.hpp"
#include "utils/doctor/examine.hpp"
#include "utils/vipinfo/render.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::tools;
using namespace viaduct::vipinfo;

// Exit codes; documented in vipinfo(1).
constexpr int kWell = 0, kProblem = 1, kUsage = 2, kNoAgent = 3;

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

int show_name(const std::string& name, bool as_json, bool attributes) {
    NicInfo nic;
    std::string why;
    const Status status = resolve_name(name, &nic, &why);
    if (status == Status::ok) {
        print(as_json ? json_of_nic(name, nic, why) : text_of_nic(nic, attributes, false));
        if (why.empty()) return kWell;
        std::fprintf(stderr, "vipinfo: \"%s\": %s\n", name.c_str(), why.c_str());
        return kProblem;
    }
    if (as_json) print(json_of_failure(name, why));
    std::fprintf(stderr, "vipinfo: VipOpenNic(\"%s\") would fail: %s\n", name.c_str(), why.c_str());
    return status == Status::unknown_name || status == Status::invalid ? kProblem : kNoAgent;
}

int show_doctor(const std::string& device, bool as_json) {
    const std::vector<Finding> findings = check_host(take_inventory(), device);
    print(as_json ? json(findings) : text_of(findings));
    return has_problem(findings) ? kProblem : kWell;
}

// What is not known as the name of a NIC, or of a provider that may offer none, is a host's.
bool is_host(const std::string& name) {
    if (!provider_meant_by(name).empty()) return false;
    if (name.find_first_of("/:") != std::string::npos || Config::load().nic_of_alias(name) != nullptr) return false;
    NicInfo nic;
    std::string why;
    const bool opens = resolve_name(name, &nic, &why) == Status::ok;
    return opens ? !why.empty() : doctor::is_known_host(name);
}

int show_inventory(const View& view, bool as_json) {
    const Inventory all = take_inventory();
    print(as_json ? json(all, view) : text(all, view));
    if (all.agent_error.empty()) return kWell;
    std::fprintf(stderr, "vipinfo: kernel agent at %s: %s\n", all.agent_address.c_str(),
                 all.agent_error.c_str());
    return kNoAgent;
}

int tool(int argc, char** argv) {
    CLI::App app{"Shows the NICs a VIA program can open, what they can do, and why others cannot be used."};
    std::string name;
    bool as_json = false, examine_all = false, everything = false;
    View view;
    app.add_option("NAME", name,
                   "show which NIC VipOpenNic(NAME) would open; with --doctor: send the message through it, or, of "
                   "another host, look for what keeps it and this one apart");
    app.add_flag("-v,--verbose", view.attributes, "every attribute of every NIC");
    app.add_flag("-p,--providers", view.providers, "providers considered, and why some were rejected");
    app.add_flag("-s,--settings", view.settings, "every setting in force and where it comes from");
    app.add_flag("-l,--links", view.links, "network links of this host");
    app.add_flag("-w,--waiters", view.waiters, "calls that wait to be connected: address, since when, whose");
    app.add_flag("-a,--all", everything, "all of the above");
    app.add_flag("-j,--json", as_json, "JSON instead of text");
    app.add_flag("--doctor", examine_all,
                 "check limits, permissions and versions, send one message; each problem with its cure");
    app.set_version_flag("--version", std::string("vipinfo (Viaduct) ") + kVersion);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kWell : kUsage;
    }
    if (everything) view = {true, true, true, true, true};
    try {
        if (examine_all && !name.empty() && is_host(name)) return doctor::tell_examination("vipinfo", name, as_json);
        if (examine_all) return show_doctor(name.empty() ? "/dev/via_lo" : name, as_json);
        if (!name.empty()) return show_name(name, as_json, view.attributes);
        return show_inventory(view, as_json);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "vipinfo: %s\n", error.what());
        return kProblem;
    }
}

}  // namespace

int main(int argc, char** argv) { return viaduct::tools::finish("vipinfo", tool(argc, argv)); }
