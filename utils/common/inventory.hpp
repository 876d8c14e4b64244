// SPDX-License-Identifier: BSD-2-Clause
// What the tools show of this host, gathered once: NICs, providers considered, settings,
// the agent.
#pragma once

#include <string>
#include <vector>

#include "core/agent/link.hpp"
#include "core/config/config.hpp"
#include "viaduct/types.hpp"

namespace viaduct::tools {

struct ProviderRow {
    std::string name;
    std::string path;
    std::string description;
    std::string version;
    std::string error;  // empty: usable
    std::string cure;
};

struct RejectedNic {
    std::string provider;
    std::string name;
    std::string reason;
    std::string cure;
};

struct SettingRow {
    std::string section;
    std::string key;
    std::string value;
    std::string origin;
    std::string help;
};

struct Inventory {
    // the agent
    std::string agent_address;
    std::string agent_origin;
    std::string agent_error;  // empty: it answered
    std::string agent_version;
    uint32_t agent_pid = 0;
    uint32_t protocol = 0;
    // what it contains
    std::vector<NicInfo> nics;
    std::string default_nic;  // of this program; empty: its default provider offers none
    std::vector<RejectedNic> rejected;
    std::string agent_configuration;  // fingerprint of the settings it runs with; empty: not known
    std::string own_configuration;    // of those in force here
    std::string status_json;  // links and sessions, as the agent tells them; empty when it does not answer
    // what this process sees by itself
    std::vector<ProviderRow> providers;
    std::vector<SettingRow> settings;
    std::vector<std::string> config_problems;
};

// Queries the agent (starts it when none listens) and the system. Never fails: what could not be had says
// why.
Inventory take_inventory();

// Which NIC VipOpenNic(name) would open. ok | unknown_name | broken and so on, with the reason in *why. ok with a
// reason: nothing is known of the name, and the default NIC stands in.
Status resolve_name(const std::string& given, NicInfo* nic, std::string* why);

// The installed provider of that name, or the one whose NIC the name means (verbs, verbs0, verbs:rxe0). Empty: none.
std::string provider_meant_by(const std::string& name);

std::string address_text(const NicAddress&);

}  // namespace viaduct::tools
