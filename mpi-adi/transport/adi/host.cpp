// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/adi/host.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace viaduct::adi {

uint64_t hash(uint64_t seed, const void* data, size_t bytes) {
    const unsigned char* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; ++i) seed = (seed ^ p[i]) * 0x100000001b3;
    return seed;
}

uint64_t host_number(const char* name_space) {
    uint64_t number = kHashSeed;
    char text[128];
    const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        const ssize_t n = ::read(fd, text, sizeof text);
        if (n > 0) number = hash(number, text, static_cast<size_t>(n));
        ::close(fd);
    }
    const ssize_t n = ::readlink((std::string("/proc/self/ns/") + name_space).c_str(), text, sizeof text);
    return n > 0 ? hash(number, text, static_cast<size_t>(n)) : number;
}

}  // namespace viaduct::adi
