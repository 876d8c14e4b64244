// SPDX-License-Identifier: BSD-2-Clause
#include "core/provider/loader.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/config/paths.hpp"
#include "core/log/log.hpp"
#include "core/provider/defaults.hpp"
#include "core/sync/fork_gate.hpp"

namespace viaduct {

namespace fs = std::filesystem;

namespace {

ForkGate gate;
std::map<std::string, LoadedProvider>* loaded = nullptr;  // read by threads that outlive main; behind the gate

bool is_provider_name(const std::string& name) {
    return name.size() < sizeof(NicInfo::provider) && is_plugin_name(name);
}

std::vector<fs::path> folders() {
    std::vector<fs::path> all;
    if (const char* list = ::secure_getenv("VIADUCT_PROVIDER_PATH")) {
        std::string_view rest(list);
        while (!rest.empty()) {
            const size_t colon = rest.find(':');
            if (colon != 0) all.emplace_back(rest.substr(0, colon));
            rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
        }
    }
    const fs::path here = library_folder();
    const fs::path from_tools = fs::path(paths::kBindirToLibdir) / paths::kLibdirToProviders;
    all.push_back(here / paths::kLibdirToProviders);
    all.push_back(here / paths::kSbindirToProviders);
    all.push_back(here / from_tools);
    all.push_back(here / ".." / from_tools);  // test programs of a build tree lie deeper
    all.emplace_back(paths::kProviderDir);
    return all;
}

LoadedProvider refuse(std::string error, std::string cure) {
    VIADUCT_LOG(warn, "loader", "%s", error.c_str());
    return {nullptr, std::move(error), std::move(cure)};
}

LoadedProvider load_file(const ProviderFile& file) {
    const PluginTable object = load_plugin(file, kProviderSymbol, "provider");
    if (object.table == nullptr)
        return refuse(object.error,
                      "install the library it names or Viaduct again, or remove the file from the provider folder");
    const auto* table = static_cast<const Provider*>(object.table);
    if (table->abi != kProviderAbi || table->bytes != sizeof(Provider))
        return refuse(
            fmt::format("{} was built for another Viaduct: interface {} of {} bytes, wanted {} of {}",
                        file.path, table->abi, table->bytes, kProviderAbi, sizeof(Provider)),
            "install provider and library of the same version");
    if (table->name == nullptr || table->name != file.name)
        return refuse(
            fmt::format("{} says its name is {}", file.path, table->name != nullptr ? table->name : "none"),
            "name the file after the provider");
    auto* complete = new Provider(*table);  // lives as long as the object
    if (complete->description == nullptr) complete->description = "";
    fill_missing_operations(complete);
    return {complete, "", ""};
}

}  // namespace

std::vector<ProviderFile> find_providers() {
    std::vector<ProviderFile> found = plugins_in(folders());
    std::erase_if(found, [](const ProviderFile& file) { return !is_provider_name(file.name); });
    return found;
}

void hold_loader_for_fork() { gate.hold(); }

void let_go_of_loader() { gate.let_go(); }

void reset_loader_in_child() {
    if (!gate.reset()) loaded = nullptr;  // the linker has its own list of loaded files
}

LoadedProvider load_provider(const std::string& name) {
    const std::scoped_lock lock(gate);
    if (loaded == nullptr) loaded = new std::map<std::string, LoadedProvider>;
    if (const auto known = loaded->find(name); known != loaded->end() && known->second.provider != nullptr)
        return known->second;
    if (!is_provider_name(name))
        return refuse(fmt::format("\"{}\" cannot be the name of a provider", name),
                      "provider names have small letters, digits, _ and -");
    for (const ProviderFile& file : find_providers()) {
        if (file.name != name) continue;
        LoadedProvider& place = (*loaded)[name];  // first: a failed allocation must not lose a loaded provider
        LoadedProvider result = load_file(file);
        if (result.provider != nullptr) place = result;
        return result;
    }
    return refuse(fmt::format("there is no provider \"{}\"", name),
                  "install it, or name its folder in VIADUCT_PROVIDER_PATH");
}

}  // namespace viaduct
