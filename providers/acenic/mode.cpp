// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/mode.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/shm/segment.hpp"
#include "providers/wire/auth.hpp"

namespace viaduct::acenic {

namespace {

constexpr size_t kMostKeyText = 256;

// What is in the file is said to nobody.
bool read_key_file(const std::string& path, wire::Key* out, std::string* why, std::string* cure) {
    char text[kMostKeyText + 1] = {};
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat about {};
    const ssize_t got = file.valid() ? ::read(file.get(), text, kMostKeyText) : -1;
    *cure = "write 32 hexadecimal digits into a file that only its owner may read (chmod 600), the same at all hosts";
    if (got < 0 || ::fstat(file.get(), &about) != 0) {
        *why = "acenic.auth_key_file " + path + " cannot be read: " + std::strerror(errno);
        return false;
    }
    if (!S_ISREG(about.st_mode) || (about.st_mode & 077) != 0 ||
        (about.st_uid != ::geteuid() && about.st_uid != 0)) {
        *why = "acenic.auth_key_file " + path + " can be read or written by others";
        return false;
    }
    const bool good = wire::read_key(text, out);
    if (!good) *why = "acenic.auth_key_file " + path + " has no key in it";
    ::explicit_bzero(text, sizeof text);
    return good;
}

}  // namespace

bool read_mode(const Settings& settings, ModeChoice* out, std::string* why, std::string* cure) {
    out->engine = settings.get("engine", "");
    const std::string mode = settings.get("mode", "auto");
    if (mode == "auto") {
        out->mode = Mode::automatic;
    } else if (mode == "shared") {
        out->mode = Mode::shared;
    } else if (mode == "exclusive") {
        out->mode = Mode::exclusive;
    } else {
        *why = "acenic.mode is \"" + mode + "\"";
        *cure = "write auto, shared or exclusive";
        return false;
    }
    const std::string file = settings.get("auth_key_file", "");
    if (file.empty()) return true;
    if (out->mode == Mode::shared) {
        *why = "acenic.auth_key_file is set, and acenic.mode is shared";
        *cure = "frames are authenticated in exclusive mode only: set acenic.mode to exclusive or auto";
        return false;
    }
    out->mode = Mode::exclusive;
    out->key.emplace();
    if (!read_key_file(file, &*out->key, why, cure)) return false;
    return true;
}

}  // namespace viaduct::acenic
