// SPDX-License-Identifier: BSD-2-Clause
// System calls that fail from some moment on, as under the filter of a container: netlink sockets, and threads. For a
// child process: a filter stays.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "core/shm/fd.hpp"

namespace viaduct::tests {

// The C library tries clone alone only if clone3 is unknown. On i386 a C library may make sockets by socketcall, unless
// it is unknown.
inline bool forbid_netlink(bool and_threads) {
    std::vector<sock_filter> code;
    const auto refuse_call = [&code](uint32_t number, uint32_t error) {
        code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
        code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
    };
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    if (and_threads) refuse_call(SYS_clone3, EPERM);
#ifdef SYS_socketcall
    refuse_call(SYS_socketcall, ENOSYS);
#endif
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3));
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)));
    refuse_call(AF_NETLINK, EAFNOSUPPORT);
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program = {static_cast<unsigned short>(code.size()), code.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

inline bool netlink_is_refused() { return !Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)).valid(); }

inline bool threads_are_refused() {
    pthread_t thread{};
    const auto nothing = [](void*) -> void* { return nullptr; };
    if (::pthread_create(&thread, nullptr, nothing, nullptr) != 0) return true;
    ::pthread_join(thread, nullptr);
    return false;
}

}  // namespace viaduct::tests
