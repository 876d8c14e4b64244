// SPDX-License-Identifier: BSD-2-Clause
// The protocol tables of this process, bound by name.
#include <algorithm>
#include <cstring>
#include <string>

#include "mpi-adi/transport/adi/device.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/modules.hpp"
#include "mpi-adi/transport/adi/params.hpp"

using viaduct::adi::fail;
using viaduct::adi::modules;

namespace {

// CMPI_PROTOCOL has to name a module. What is wrong with it; empty: nothing.
std::string wrong_protocol() {
    const std::string wanted = viaduct::adi::param_text(viaduct::adi::Param::protocol);
    std::vector<std::string> names;
    for (const auto& module : modules()) names.emplace_back(module.name);
    names.erase(names.begin());  // self does not reach other processes
    if (wanted.empty() || std::find(names.begin(), names.end(), wanted) != names.end()) return {};
    std::sort(names.begin(), names.end());
    std::string text = "is not one of ";
    for (const std::string& name : names) text += (&name == &names.front() ? "" : "|") + name;
    text += ", or empty";
    for (const std::string& refused : viaduct::adi::refused_modules()) text += "; " + refused;
    return text;
}

}  // namespace

extern "C" {

int mpip_protocol_count(void) { return static_cast<int>(modules().size()); }

const char* mpip_protocol_name(int number) {
    return number >= 0 && number < mpip_protocol_count() ? modules()[static_cast<size_t>(number)].name : "";
}

int mpip_set_upcalls(const struct mpip_upcalls* upcalls) {
    if (upcalls->version != CMPI_ADI_VERSION) {
        return fail(MPIP_ERR_ARG, "the engine was built for version %u of the device, this is %d",
                    upcalls->version, CMPI_ADI_VERSION);
    }
    if (upcalls->arrived == nullptr || upcalls->completed == nullptr || upcalls->peer_failed == nullptr ||
        upcalls->withdraw == nullptr || upcalls->release == nullptr || upcalls->post == nullptr ||
        upcalls->progress == nullptr) {
        return fail(MPIP_ERR_ARG, "the engine left an upcall out");
    }
    if (const std::string wrong = viaduct::adi::wrong_variables(); !wrong.empty())
        return fail(MPIP_ERR_ARG, "%s", wrong.c_str());
    if (const std::string wrong = wrong_protocol(); !wrong.empty()) {
        using viaduct::adi::Param;
        if (viaduct::adi::param_from_environment(Param::protocol))
            return fail(MPIP_ERR_ARG, "CMPI_PROTOCOL=%s %s", viaduct::adi::param_text(Param::protocol), wrong.c_str());
        viaduct::adi::use_default(Param::protocol, wrong);
    }
    mpip_up = *upcalls;
    return MPIP_SUCCESS;
}

const char* mpip_param_problem(size_t number) {
    const auto& own = viaduct::adi::param_problems();
    const auto& refused = viaduct::adi::refused_modules();
    if (number < own.size()) return own[number].c_str();
    return number - own.size() < refused.size() ? refused[number - own.size()].c_str() : nullptr;
}

int mpip_map_functions(const char* pmname, struct protocol* table) {
    *table = {};
    table->pt_number = -1;
    table->pt_name = "";
    for (int number = 0; number < mpip_protocol_count(); ++number) {
        if (std::strcmp(pmname, mpip_protocol_name(number)) != 0) continue;
        table->pt_number = number;
        table->pt_name = mpip_protocol_name(number);
        modules()[static_cast<size_t>(number)].bind(&viaduct::adi::device, table);
        table->pt_loaded = 1;
        return MPIP_SUCCESS;
    }
    return fail(MPIP_ERR_ARG, "there is no protocol module named '%s'", pmname);
}
}
