// SPDX-License-Identifier: BSD-2-Clause
// Finding and loading shared objects; see plugin.hpp.
#include "core/plugin/plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/auxv.h>

#include <algorithm>

namespace viaduct {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSuffix = ".so";

std::string last_dl_error() {
    const char* text = ::dlerror();
    return text != nullptr ? text : "no reason given";
}

}  // namespace

bool is_plugin_name(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
}

fs::path library_folder() {
    Dl_info about{};
    std::error_code failed;
    fs::path file;
    if (::dladdr(reinterpret_cast<const void*>(&is_plugin_name), &about) != 0 && about.dli_fname != nullptr)
        file = about.dli_fname;
    // When this code is linked into the program, dladdr gives argv[0], which may be relative or a bare name.
    if (!file.is_absolute()) file = fs::read_symlink("/proc/self/exe", failed);
    // Without /proc: the path that execve(2) was given.
    if (failed) file = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    const fs::path whole = fs::weakly_canonical(file, failed);
    return (failed ? file : whole).parent_path();
}

std::vector<PluginFile> plugins_in(const std::vector<fs::path>& folders) {
    std::vector<PluginFile> found;
    for (const fs::path& folder : folders) {
        std::vector<PluginFile> here;
        std::error_code failed;
        for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
            const std::string name = it->path().stem().string();
            if (it->path().extension() != kSuffix || !is_plugin_name(name)) continue;
            const bool known =
                std::any_of(found.begin(), found.end(), [&](const PluginFile& f) { return f.name == name; });
            if (!known) here.push_back({name, it->path().lexically_normal().string()});
        }
        std::sort(here.begin(), here.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
        found.insert(found.end(), here.begin(), here.end());
    }
    return found;
}

PluginTable load_plugin(const PluginFile& file, const char* symbol, const char* kind) {
    void* object = ::dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) return {nullptr, fmt::format("{} cannot be loaded: {}", file.path, last_dl_error())};
    const void* table = ::dlsym(object, symbol);
    if (table == nullptr) return {nullptr, fmt::format("{} is no {}: {}", file.path, kind, last_dl_error())};
    return {table, {}};
}

}  // namespace viaduct
