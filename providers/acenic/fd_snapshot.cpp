// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/fd_snapshot.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "core/text/file_text.hpp"

namespace viaduct::acenic {

namespace {

std::set<int> open_files() {
    std::set<int> found;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
    while (const dirent* entry = folder != nullptr ? ::readdir(folder.get()) : nullptr) {
        const int fd = std::atoi(entry->d_name);
        if (fd > 2 && fd != ::dirfd(folder.get())) found.insert(fd);
    }
    return found;
}

// What the kernel calls it: "anon_inode:[eventpoll]", "pipe:[4711]", a path.
std::string name_of(int fd) {
    char name[256];
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t n = ::readlink(link.c_str(), name, sizeof name);
    return n > 0 ? std::string(name, static_cast<size_t>(n)) : std::string();
}

// -1: it is no socket.
int option_of(int fd, int option) {
    int value = -1;
    socklen_t n = sizeof value;
    return ::getsockopt(fd, SOL_SOCKET, option, &value, &n) == 0 ? value : -1;
}

int domain_of(int fd) { return option_of(fd, SO_DOMAIN); }

// One end of a connection as memif makes it.
bool is_connected(int fd) {
    return domain_of(fd) == AF_UNIX && option_of(fd, SO_TYPE) == SOCK_SEQPACKET && option_of(fd, SO_ACCEPTCONN) == 0;
}

// A Unix socket with that path, or with that abstract name behind its null byte.
bool has_name(int fd, const std::string& name) {
    sockaddr_un bound{};
    socklen_t n = sizeof bound - 1;  // a longer path is not bound
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &n) != 0 || bound.sun_family != AF_UNIX) return false;
    return !name.empty() && (name == bound.sun_path || (bound.sun_path[0] == '\0' && name == bound.sun_path + 1));
}

int single(const std::set<int>& found) { return found.size() == 1 ? *found.begin() : -1; }

bool starts_with(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

// The files that an epoll file watches.
std::set<int> watched_by(int epoll) {
    std::set<int> found;
    std::istringstream info(text_of_file("/proc/self/fdinfo/" + std::to_string(epoll)));
    info.exceptions(std::ios::badbit);
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

int FdSnapshot::calling_socket() const {
    std::set<int> found;
    for (const int fd : since())
        if (is_connected(fd)) found.insert(fd);
    return single(found);
}

int listening_socket(const std::string& name) {
    for (const int fd : open_files())
        if (domain_of(fd) == AF_UNIX && option_of(fd, SO_ACCEPTCONN) == 1 && has_name(fd, name)) return fd;
    return -1;
}

int accepted_socket(const std::string& name) {
    std::set<int> found;
    for (const int fd : open_files())
        if (is_connected(fd) && has_name(fd, name)) found.insert(fd);
    return single(found);
}

bool stop_watching(int fd) {
    bool was_watched = false;
    for (const int epoll : open_files())
        if (name_of(epoll) == "anon_inode:[eventpoll]")
            was_watched |= ::epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr) == 0;
    return was_watched;
}

}  // namespace viaduct::acenic
