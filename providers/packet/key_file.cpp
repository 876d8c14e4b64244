// SPDX-License-Identifier: BSD-2-Clause
#include "providers/packet/key_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/shm/segment.hpp"
#include "providers/wire/auth.hpp"

namespace viaduct::packet {

namespace {

constexpr size_t kMostKeyText = 256;

}  // namespace

bool read_key_file(const char* section, const std::string& path, wire::Key* out, std::string* why, std::string* cure) {
    const std::string name = std::string(section) + ".auth_key_file ";
    char text[kMostKeyText + 1] = {};
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat about {};
    const ssize_t got = file.valid() ? ::read(file.get(), text, kMostKeyText) : -1;
    *cure = "write 32 hexadecimal digits into a file that only its owner may read (chmod 600), the same at all hosts";
    if (got < 0 || ::fstat(file.get(), &about) != 0) {
        *why = name + path + " cannot be read: " + std::strerror(errno);
        return false;
    }
    if (!S_ISREG(about.st_mode) || (about.st_mode & 077) != 0 ||
        (about.st_uid != ::geteuid() && about.st_uid != 0)) {
        *why = name + path + " can be read or written by others";
        return false;
    }
    const bool good = wire::read_key(text, out);
    if (!good) *why = name + path + " has no key in it";
    ::explicit_bzero(text, sizeof text);
    return good;
}

}  // namespace viaduct::packet
