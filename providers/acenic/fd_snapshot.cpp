// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/fd_snapshot.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "core/text/file_text.hpp"

namespace viaduct::acenic {

namespace {

std::set<int> open_files() {
    std::set<int> found;
    DIR* folder = ::opendir("/proc/self/fd");
    if (folder == nullptr) return found;
    while (const dirent* entry = ::readdir(folder)) {
        const int fd = std::atoi(entry->d_name);
        if (fd > 2 && fd != ::dirfd(folder)) found.insert(fd);
    }
    ::closedir(folder);
    return found;
}

// What the kernel calls it: "anon_inode:[eventpoll]", "pipe:[4711]", a path.
std::string name_of(int fd) {
    char name[256];
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t n = ::readlink(link.c_str(), name, sizeof name);
    return n > 0 ? std::string(name, static_cast<size_t>(n)) : std::string();
}

int domain_of(int fd) {
    int domain = -1;
    socklen_t n = sizeof domain;
    return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 ? domain : -1;
}

bool starts_with(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

// The files that an epoll file watches.
std::set<int> watched_by(int epoll) {
    std::set<int> found;
    std::istringstream info(text_of_file("/proc/self/fdinfo/" + std::to_string(epoll)));
    for (std::string line; std::getline(info, line);) {
        std::istringstream words(line);
        std::string word;
        int fd = -1;
        if (words >> word >> fd && word == "tfd:") found.insert(fd);
    }
    return found;
}

}  // namespace

FdSnapshot::FdSnapshot() : before_(open_files()) {}

std::set<int> FdSnapshot::since() const {
    std::set<int> found;
    for (const int fd : open_files())
        if (before_.count(fd) == 0) found.insert(fd);
    return found;
}

void FdSnapshot::close_on_exec() const {
    const std::set<int> all = since();
    std::set<std::string> pipes;  // both ends of one that a new epoll file watches
    for (const int fd : all)
        if (name_of(fd) == "anon_inode:[eventpoll]")
            for (const int watched : watched_by(fd)) pipes.insert(name_of(watched));
    for (const int fd : all) {
        const std::string name = name_of(fd);
        const bool ours = starts_with(name, "anon_inode:") || name.find("/dpdk/") != std::string::npos ||
                          starts_with(name, "/dev/hugepages") || starts_with(name, "/memfd:") ||
                          (starts_with(name, "pipe:") && pipes.count(name) != 0) || domain_of(fd) == AF_PACKET ||
                          domain_of(fd) == AF_UNIX;
        if (ours) ::fcntl(fd, F_SETFD, ::fcntl(fd, F_GETFD) | FD_CLOEXEC);
    }
}

int FdSnapshot::packet_socket() const {
    for (const int fd : since())
        if (domain_of(fd) == AF_PACKET) return fd;
    return -1;
}

int FdSnapshot::listening_socket(const std::string& path) const {
    for (const int fd : since()) {
        int listens = 0;
        socklen_t n = sizeof listens;
        if (domain_of(fd) != AF_UNIX || ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) != 0 || listens == 0)
            continue;
        sockaddr_un name{};  // a longer path would not have been bound
        n = sizeof name - 1;
        if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &n) == 0 && path == name.sun_path) return fd;
    }
    return -1;
}

}  // namespace viaduct::acenic
