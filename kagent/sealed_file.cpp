// SPDX-License-Identifier: BSD-2-Clause
// See sealed_file.hpp.
#include "kagent/sealed_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace viaduct::kagent {

namespace {

bool write_all(const Fd& fd, std::span<const std::byte> part) {
    while (!part.empty()) {
        const ssize_t n = ::write(fd.get(), part.data(), part.size());
        if (n <= 0) return false;
        part = part.subspan(static_cast<size_t>(n));
    }
    return true;
}

}  // namespace

Fd sealed_file(const char* label, std::span<const std::span<const std::byte>> parts) {
    Fd fd(::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd.valid()) return {};
    for (const std::span<const std::byte> part : parts)
        if (!write_all(fd, part)) return {};
    ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return fd;
}

}  // namespace viaduct::kagent
