// SPDX-License-Identifier: BSD-2-Clause
// What names mean: names of NICs given to VipOpenNic, and names of hosts given to the name service. Pure
// functions of their arguments; used by Agent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kagent/devices.hpp"
#include "viaduct/types.hpp"

namespace viaduct::kagent {

struct NicNaming {
    const std::vector<NicInfo>* nics = nullptr;
    std::string default_provider;
    bool strict = false;
    const std::vector<std::vector<std::string>>* other_names = nullptr;  // of each NIC, as its provider gives them
    const std::vector<std::string>* providers = nullptr;  // also those that offer no NIC
};

// Index of the NIC that VipOpenNic(name) opens, where the program's own configuration does not say
// (Config::nic_of_alias). In this order: canonical name; "PROVIDER:WHICH"; a path that begins with a canonical name;
// the device names of former times (/dev/via_eth0, /dev/clanvi0, VINIC0, nic0, ...), whose number counts the default
// provider's NICs and must exist, since programs enumerate by counting until it fails; any other name, by the same
// rule, unless `strict`. For a name of a provider (core/provider/provider_name.hpp) no other NIC stands in.
// *guessed, which may be null: it was found by that last rule, from a name that nothing is known of.
std::optional<size_t> find_nic(const NicNaming& naming, std::string_view name, bool* guessed = nullptr);

// Whether the name counts the default provider's NICs: a device name of former times or, unless `strict`, one that
// nothing is known of.
bool counts_default_nics(const NicNaming& naming, std::string_view name);

// The NIC of a name without a provider: number `index` of the default provider. Nothing if that provider offers fewer:
// a NIC of another provider may reach other hosts, so it is no replacement.
std::optional<size_t> default_nic(const NicNaming& naming, uint64_t index = 0);

// True when `name` means this host: its name, short or full, localhost, or a numeric address of an interface.
bool names_this_host(std::string_view name, std::string_view hostname, const std::vector<HostIp>& addresses);

// As the kernel has it; may be a full name.
std::string own_hostname();

}  // namespace viaduct::kagent
