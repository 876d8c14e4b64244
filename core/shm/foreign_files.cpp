// SPDX-License-Identifier: BSD-2-Clause
#include "core/shm/foreign_files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace viaduct {

namespace {

void* close_them(void* files) {
    const std::unique_ptr<std::vector<Fd>> owned(static_cast<std::vector<Fd>*>(files));
    return nullptr;
}

}  // namespace

bool closes_at_once(const Fd& file) {
    if (::fcntl(file.get(), F_GET_SEALS) >= 0) return true;  // memory: memfd_create(2), tmpfs, huge pages
    char target[64];
    const std::string link = "/proc/self/fd/" + std::to_string(file.get());
    const ssize_t n = ::readlink(link.c_str(), target, sizeof target);
    return n > 0 && std::string_view(target, static_cast<size_t>(n)) == "anon_inode:[eventfd]";
}

void close_elsewhere(std::vector<Fd> files) {
    if (files.empty()) return;
    auto owned = std::make_unique<std::vector<Fd>>(std::move(files));
    // Signals are for the threads that expect them: the new one takes over that all are blocked.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_t thread;
    if (::pthread_create(&thread, nullptr, close_them, owned.get()) == 0) {
        owned.release();
        ::pthread_detach(thread);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace viaduct
