// SPDX-License-Identifier: BSD-2-Clause
// The vip_hosts file: lines of "address name alias...", as in /etc/hosts but with NIC addresses. Names are
// compared without regard to case, a name may stand on several lines (several NICs of one host, by index).
// Pure: text in, answers out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viaduct/types.hpp"

namespace viaduct::vipl {

// "02:56:00:00:00:01", "02-56-...", or twelve digits without anything between.
std::optional<NicAddress> parse_nic_address(std::string_view text);

class HostsFile {
public:
    struct Line {
        NicAddress address;
        std::vector<std::string> names;  // the first is the official one
    };

    // Either order is taken: address first or name first. '#' begins a comment; lines without an address are
    // skipped.
    static HostsFile parse(std::string_view text);
    // The first of a colon-separated list of files that can be read ("~/" is the home directory); empty when
    // none can.
    static HostsFile find(std::string_view search_path);

    // The address number `index` of a host; nothing when the name is unknown or has fewer.
    std::optional<NicAddress> address_of(std::string_view name, size_t index) const;
    bool knows(std::string_view name) const { return address_of(name, 0).has_value(); }
    // The official name of an address; empty when unknown.
    std::string name_of(const NicAddress& address) const;
    const std::vector<Line>& lines() const { return lines_; }

private:
    std::vector<Line> lines_;
};

}  // namespace viaduct::vipl
