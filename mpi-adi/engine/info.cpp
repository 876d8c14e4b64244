// SPDX-License-Identifier: BSD-2-Clause
// Info objects by handle. MPI_INFO_ENV tells what is known of how the program was started.
#include "mpi-adi/engine/info.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/any_time.hpp"
#include "mpi-adi/engine/handle.hpp"

namespace viaduct::mpi {
namespace {

NeverDestroyed<ObjectTable<Info, HandleType::info>> infos;

Info* environment() {
    static Info* env = [] {
        auto* made = new Info{MPI_INFO_ENV, {}};
        char path[4096];
        ssize_t n = readlink("/proc/self/exe", path, sizeof path);
        if (n > 0) {
            made->set("command", std::string(path, size_t(n)));
        }
        if (getcwd(path, sizeof path)) {
            made->set("wdir", path);
        }
        return made;
    }();
    return env;
}

}  // namespace

const std::string* Info::find(const std::string& key) const {
    auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == key; });
    return found == entries.end() ? nullptr : &found->second;
}

void Info::set(const std::string& key, const std::string& value) {
    auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == key; });
    if (found == entries.end()) {
        entries.emplace_back(key, value);
    } else {
        found->second = value;
    }
}

bool Info::erase(const std::string& key) {
    return std::erase_if(entries, [&](const auto& e) { return e.first == key; }) > 0;
}

Info* info_of(MPI_Info handle) { return handle == MPI_INFO_ENV ? environment() : infos->find(handle); }

Info* info_create() {
    const AnyTime tables;
    return infos->keep(std::make_unique<Info>());
}

void info_destroy(Info* info) {
    const AnyTime tables;
    infos->remove(info->handle);
    delete info;
}

}  // namespace viaduct::mpi
