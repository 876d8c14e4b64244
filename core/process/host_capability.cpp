// SPDX-License-Identifier: BSD-2-Clause
#include "core/process/host_capability.hpp"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace viaduct {

namespace {

constexpr ino_t kFirstUserNamespace = 0xEFFFFFFD;  // PROC_USER_INIT_INO of the kernel

}  // namespace

bool has_host_capability(int capability) {
    struct stat space {};
    if (::stat("/proc/self/ns/user", &space) != 0 || space.st_ino != kFirstUserNamespace) return false;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    return ::syscall(SYS_capget, &header, data) == 0 &&
           (data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

}  // namespace viaduct
