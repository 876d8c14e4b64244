// SPDX-License-Identifier: BSD-2-Clause
#include "core/provider/loader.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/auxv.h>

#include <algorithm>
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

constexpr const char* kSuffix = ".so";

ForkGate gate;
std::map<std::string, LoadedProvider>* loaded = nullptr;  // read by threads that outlive main; behind the gate

// Only such names become part of a path.
bool is_provider_name(const std::string& name) {
    return !name.empty() && name.size() < sizeof(NicInfo::provider) &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
           });
}

// The folder of the file that contains this code: libvipl, vipkad, a tool or a test program.
fs::path own_folder() {
    Dl_info about{};
    std::error_code failed;
    fs::path file;
    if (::dladdr(reinterpret_cast<const void*>(&is_provider_name), &about) != 0 && about.dli_fname != nullptr)
        file = about.dli_fname;
    // For the program itself the linker knows only what it was called, which may be relative or a bare name.
    if (!file.is_absolute()) file = fs::read_symlink("/proc/self/exe", failed);
    // Where no /proc is mounted: the path that execve(2) was given.
    if (failed) file = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    const fs::path whole = fs::weakly_canonical(file, failed);
    return (failed ? file : whole).parent_path();
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
    const fs::path here = own_folder();
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

std::string last_dl_error() {
    const char* text = ::dlerror();
    return text != nullptr ? text : "no reason given";
}

LoadedProvider load_file(const ProviderFile& file) {
    // Never closed: its threads and its code on somebody's stack may outlive any moment we could choose.
    void* object = ::dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr)
        return refuse(fmt::format("{} cannot be loaded: {}", file.path, last_dl_error()),
                      "install the library it names, or install Viaduct again");
    const auto* table = static_cast<const Provider*>(::dlsym(object, kProviderSymbol));
    if (table == nullptr)
        return refuse(fmt::format("{} is no provider: {}", file.path, last_dl_error()),
                      "remove the file from the provider folder");
    if (table->abi != kProviderAbi || table->bytes != sizeof(Provider))
        return refuse(
            fmt::format("{} was built for another Viaduct: interface {} of {} bytes, wanted {} of {}",
                        file.path, table->abi, table->bytes, kProviderAbi, sizeof(Provider)),
            "install provider and library of the same version");
    if (table->name == nullptr || table->name != file.name)
        return refuse(
            fmt::format("{} says its name is {}", file.path, table->name != nullptr ? table->name : "none"),
            "name the file after the provider");
    auto* complete = new Provider(*table);  // lives as long as the object: to the end of the process
    if (complete->description == nullptr) complete->description = "";
    fill_missing_operations(complete);
    return {complete, "", ""};
}

}  // namespace

std::vector<ProviderFile> find_providers() {
    std::vector<ProviderFile> found;
    for (const fs::path& folder : folders()) {
        std::vector<ProviderFile> here;
        std::error_code failed;
        for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
            const std::string name = it->path().stem().string();
            if (it->path().extension() != kSuffix || !is_provider_name(name)) continue;
            const bool known = std::any_of(found.begin(), found.end(),
                                           [&](const ProviderFile& f) { return f.name == name; });
            if (!known) here.push_back({name, it->path().lexically_normal().string()});
        }
        std::sort(here.begin(), here.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
        found.insert(found.end(), here.begin(), here.end());
    }
    return found;
}

void hold_loader_for_fork() { gate.hold(); }

void let_go_of_loader() { gate.let_go(); }

void reset_loader_in_child() {
    if (!gate.reset()) loaded = nullptr;  // the linker says again what it has loaded
}

LoadedProvider load_provider(const std::string& name) {
    const std::scoped_lock lock(gate);
    if (loaded == nullptr) loaded = new std::map<std::string, LoadedProvider>;
    if (const auto known = loaded->find(name); known != loaded->end()) return known->second;
    if (!is_provider_name(name))
        return refuse(fmt::format("\"{}\" cannot be the name of a provider", name),
                      "provider names have small letters, digits, _ and -");
    for (const ProviderFile& file : find_providers()) {
        if (file.name != name) continue;
        const LoadedProvider result = load_file(file);
        if (result.provider != nullptr) loaded->emplace(name, result);
        return result;
    }
    return refuse(fmt::format("there is no provider \"{}\"", name),
                  "install it, or name its folder in VIADUCT_PROVIDER_PATH");
}

}  // namespace viaduct
