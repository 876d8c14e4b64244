// SPDX-License-Identifier: BSD-2-Clause
// The vip_hosts file (**vip_hosts**(5); spec/calls 4.9, spec/compat A10, A12, A15): lines of "address name alias...",
// as in /etc/hosts but with NIC addresses. Upper and lower case of names are the same. A name on several lines has
// several addresses, by index: the NICs of one host. Any thread; no lock; find() reads a file, all else works on text.
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

    // The address may stand before, between or behind the names. '#' begins a comment. Lines without an address or
    // without a name are skipped.
    static HostsFile parse(std::string_view text);
    // Parses the first file that can be opened, of a list separated by ':' ("~/" is the home directory). Without one
    // the result has no lines.
    static HostsFile find(std::string_view search_path);

    // Address number `index`, from 0, of a host; nothing when the name is unknown or has fewer addresses.
    std::optional<NicAddress> address_of(std::string_view name, size_t index) const;
    bool knows(std::string_view name) const { return address_of(name, 0).has_value(); }
    // The official name of an address; empty when unknown.
    std::string name_of(const NicAddress& address) const;
    const std::vector<Line>& lines() const { return lines_; }

private:
    std::vector<Line> lines_;
};

}  // namespace viaduct::vipl
