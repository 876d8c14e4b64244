// SPDX-License-Identifier: BSD-2-Clause
// Which folders are safe; see private_folder.hpp.
#include "core/agent/private_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

namespace viaduct {

namespace {

constexpr const char* kTemporary = "/tmp";
// Of the names of sockets: NAME.netns-NUMBER.sock
constexpr const char* kNamespace = ".netns-";
constexpr std::string_view kSuffix = ".sock";

bool is_safe(const std::string& folder, uid_t user, mode_t forbidden) {
    struct stat s {};
    return ::lstat(folder.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == user && (s.st_mode & forbidden) == 0;
}

// All users may reach root's services, none may change them.
mode_t mode_for(uid_t user) { return user == 0 ? 0755 : 0700; }
mode_t forbidden_for(uid_t user) { return user == 0 ? 0022 : 0077; }

std::string in_temporary(uid_t user) { return std::string(kTemporary) + "/viaduct-" + std::to_string(user); }

// Where they would be, whether they exist or not.
std::vector<std::string> candidates(uid_t user) {
    std::vector<std::string> all;
    if (user == 0) {
        all.push_back("/run/viaduct");
    } else {
        const std::string runtime = "/run/user/" + std::to_string(user);
        if (is_safe(runtime, user, 0077)) all.push_back(runtime + "/viaduct");
    }
    all.push_back(in_temporary(user));
    return all;
}

std::vector<std::string> entries_of(const std::string& folder) {
    std::vector<std::string> all;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
    while (const dirent* entry = entries != nullptr ? ::readdir(entries.get()) : nullptr)
        all.emplace_back(entry->d_name);
    return all;
}

// Another user can take a name of the shared folder, not all of them.
std::vector<std::string> further_ones(uid_t user) {
    std::vector<std::string> all;
    const std::string prefix = "viaduct-" + std::to_string(user) + "-";
    for (const std::string& name : entries_of(kTemporary)) {
        if (!name.starts_with(prefix)) continue;
        std::string path = std::string(kTemporary) + "/" + name;
        if (is_safe(path, user, forbidden_for(user))) all.push_back(std::move(path));
    }
    std::sort(all.begin(), all.end());
    return all;
}

bool exists(const std::string& path) {
    struct stat s {};
    return ::lstat(path.c_str(), &s) == 0;
}

}  // namespace

std::vector<std::string> private_folders(uid_t user) {
    std::vector<std::string> safe;
    for (std::string& folder : candidates(user)) {
        if (is_safe(folder, user, forbidden_for(user))) safe.push_back(std::move(folder));
    }
    for (std::string& folder : further_ones(user)) safe.push_back(std::move(folder));
    return safe;
}

std::string make_private_folder(std::string* why) {
    const uid_t user = ::geteuid();
    std::string problems;
    for (const std::string& folder : candidates(user)) {
        if (::mkdir(folder.c_str(), mode_for(user)) == 0) ::chmod(folder.c_str(), mode_for(user));
        const int error = errno;
        if (is_safe(folder, user, forbidden_for(user))) return folder;
        problems += (problems.empty() ? "" : "; ") + folder + ": " +
                    (exists(folder) ? "another user's, or others may write into it" : std::strerror(error));
    }
    if (const auto further = further_ones(user); !further.empty()) return further.front();
    std::string fresh = in_temporary(user) + "-XXXXXX";
    if (::mkdtemp(fresh.data()) != nullptr && ::chmod(fresh.c_str(), mode_for(user)) == 0) return fresh;
    *why = "there is no folder that only user " + std::to_string(user) + " may write into (" + problems + ")";
    return {};
}

std::string private_path(const std::string& folder, const std::string& name) {
    struct stat space {};
    std::string file = name.substr(1);
    for (char& c : file) {
        if (c == '/' || c == '\0') c = '_';
    }
    const bool known = ::stat("/proc/self/ns/net", &space) == 0;
    return folder + "/" + file + kNamespace + (known ? std::to_string(space.st_ino) : "unknown") + std::string(kSuffix);
}

std::vector<std::string> private_sockets(const std::string& folder) {
    std::vector<std::string> all;
    for (const std::string& name : entries_of(folder))
        if (name.ends_with(kSuffix) && name.find(kNamespace) != name.npos) all.push_back(folder + "/" + name);
    return all;
}

Fd private_lock(const std::string& folder, const std::string& path, int* error) {
    const std::string file = folder + "/locks";
    Fd lock(above_stdio(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)));
    const int open_error = errno;
    uint64_t sum = 0xCBF29CE484222325;  // FNV-1a
    for (const char c : path) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001B3;
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(sum >> 2);  // a place of its own in a file that is empty
    range.l_len = 1;
    *error = !lock.valid() ? open_error : ::fcntl(lock.get(), F_OFD_SETLK, &range) == 0 ? 0 : errno;
    if (*error == EACCES && lock.valid()) *error = EAGAIN;  // fcntl's other word for a lock that is held
    if (*error != 0) lock.reset();
    return lock;
}

}  // namespace viaduct
