// SPDX-License-Identifier: BSD-2-Clause
// What one end of the doctor says of itself: version, clock, settings that both ends must agree on, NICs and why others
// are missing, faults of its configuration and of its server. No secret is in it: of a key only that there is one.
#pragma once

#include <string>
#include <vector>

#include "utils/doctor/channel.hpp"

namespace viaduct::doctor {

struct NicLine {
    std::string name, provider, about;
    std::string ip;  // of a NIC of udp; empty: another one
    int64_t mtu = 0;
    bool up = false;
};

struct Report {
    std::string host, version, default_provider, far_provider;
    int64_t clock_us = 0;  // since 1970
    int64_t udp_port = 0;
    bool has_key = false;
    std::string agent_error;
    std::vector<NicLine> nics;
    std::vector<std::string> rejected;  // "udp eth9: reason; cure"
    std::vector<std::string> faults;    // of the configuration, of the server
};

Report own_report();
Json to_json(const Report&);
// Of another end: what is missing or strange in it is left out.
Report report_in(const Json&);

int64_t clock_us();

}  // namespace viaduct::doctor
