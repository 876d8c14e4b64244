// SPDX-License-Identifier: BSD-2-Clause
// Finds and loads provider objects; checks their ABI; fills missing operations with ones that answer "not
// supported". Used by the user agent (data half) and the kernel agent (control half).
#pragma once

#include <string>
#include <vector>

#include "core/plugin/plugin.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

using ProviderFile = PluginFile;

// Folders searched, first wins: VIADUCT_PROVIDER_PATH (colon-separated), the folder beside the running
// libvipl or vipkad (relative as installed), the configured one.
std::vector<ProviderFile> find_providers();

struct LoadedProvider {
    const Provider* provider = nullptr;  // complete: no operation is null
    std::string error;                   // why not, for people
    std::string cure;
};

// Loaded objects stay for the life of the process. Thread-safe; loading twice gives the same table.
LoadedProvider load_provider(const std::string& name);

// For the fork handlers of libraries that load providers (core/sync/fork_gate.hpp): in a child no load is under way.
void hold_loader_for_fork();
void let_go_of_loader();
void reset_loader_in_child();

}  // namespace viaduct
