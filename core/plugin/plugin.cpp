// SPDX-License-Identifier: BSD-2-Clause
// Finding and loading shared objects; see plugin.hpp.
#include "core/plugin/plugin.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <memory>

namespace viaduct {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSuffix = ".so";

std::string last_dl_error() {
    const char* text = ::dlerror();
    return text != nullptr ? text : "no reason given";
}

fs::path real_path(const fs::path& file) {
    const std::unique_ptr<char, void (*)(void*)> path(::realpath(file.c_str(), nullptr), std::free);
    return path != nullptr ? path.get() : "";
}

}  // namespace

bool is_plugin_name(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
}

// A program may own the names of calls on files, and the C++ run-time library calls them by name: not
// std::filesystem's.
fs::path library_folder() {
    Dl_info about{};
    fs::path file;
    if (::dladdr(reinterpret_cast<const void*>(&is_plugin_name), &about) != 0 && about.dli_fname != nullptr)
        file = about.dli_fname;
    // When this code is linked into the program, dladdr gives argv[0], which may be relative or a bare name. Without
    // /proc: the path that execve(2) was given.
    if (!file.is_absolute()) {
        char program[PATH_MAX];
        const ssize_t bytes = ::readlink("/proc/self/exe", program, sizeof(program));
        file = bytes > 0 ? std::string(program, static_cast<size_t>(bytes))
                         : std::string(reinterpret_cast<const char*>(::getauxval(AT_EXECFN)));
    }
    if (const fs::path whole = real_path(file); !whole.empty()) return whole.parent_path();
    const fs::path folder = real_path(file.parent_path());
    return folder.empty() ? file.parent_path() : folder;
}

std::vector<PluginFile> plugins_in(const std::vector<fs::path>& folders) {
    std::vector<PluginFile> found;
    for (const fs::path& folder : folders) {
        std::vector<PluginFile> here;
        const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
        while (const dirent* entry = entries != nullptr ? ::readdir(entries.get()) : nullptr) {
            const fs::path path = folder / entry->d_name;
            const std::string name = path.stem().string();
            if (path.extension() != kSuffix || !is_plugin_name(name)) continue;
            const bool known =
                std::any_of(found.begin(), found.end(), [&](const PluginFile& f) { return f.name == name; });
            if (!known) here.push_back({name, path.lexically_normal().string()});
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
