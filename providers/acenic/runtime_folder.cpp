// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/runtime_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

#include "core/shm/fd.hpp"

namespace viaduct::acenic {

namespace {

constexpr time_t kOld = 60;  // seconds

using Path = char[PATH_MAX];
using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

// Set before on_exit registers remove_own_folder, and never changed.
Path own_folder;
pid_t folder_owner = 0;

bool join(const char* folder, const char* name, Path& out) {
    const int n = std::snprintf(out, sizeof out, "%s/%s", folder, name);
    return n > 0 && static_cast<size_t>(n) < sizeof out;
}

// DPDK puts files into it and no folders. A file that cannot be removed stays.
void remove_folder(const char* folder) {
    {
        const Folder entries(::opendir(folder), ::closedir);
        while (const dirent* entry = entries != nullptr ? ::readdir(entries.get()) : nullptr)
            if (Path path; join(folder, entry->d_name, path)) ::unlink(path);
    }
    std::remove(folder);
}

// A process that is just starting has no lock yet.
bool is_old(const char* folder) {
    struct stat about {};
    timespec now{};
    return ::stat(folder, &about) == 0 && ::clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           now.tv_sec - about.st_mtim.tv_sec > kOld;
}

bool is_abandoned(const char* folder) {
    Path file;
    if (!join(folder, "config", file)) return false;
    const Fd config(::open(file, O_RDWR | O_CLOEXEC));
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (!config.valid()) return errno == ENOENT && is_old(folder);
    return ::fcntl(config.get(), F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK && is_old(folder);
}

void remove_own_folder(int, void*) {
    if (folder_owner == ::getpid()) remove_folder(own_folder);
}

}  // namespace

void keep_runtime_folder(const char* folder) {
    const size_t length = std::strlen(folder);
    const char* const name = std::strrchr(folder, '/');
    if (name == nullptr || length >= sizeof own_folder) return;
    std::memcpy(own_folder, folder, length + 1);
    folder_owner = ::getpid();
    ::on_exit(remove_own_folder, nullptr);

    Path parent;
    std::memcpy(parent, folder, length + 1);
    parent[name - folder] = '\0';
    const Folder entries(::opendir(parent), ::closedir);
    while (const dirent* entry = entries != nullptr ? ::readdir(entries.get()) : nullptr) {
        Path path;
        if (std::strncmp(entry->d_name, kRuntimePrefix, std::strlen(kRuntimePrefix)) == 0 &&
            join(parent, entry->d_name, path) && std::strcmp(path, own_folder) != 0 && is_abandoned(path))
            remove_folder(path);
    }
}

}  // namespace viaduct::acenic
