// SPDX-License-Identifier: BSD-2-Clause
// See offered_memory.hpp.
#include "core/process/offered_memory.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace viaduct {

namespace {

// Never 0. Where the system call is forbidden it comes from the 16 random bytes that the kernel gives each program,
// mixed so that they cannot be computed from it; `inode` makes the marks of one program differ.
uint64_t random_mark(uint64_t inode) {
    uint64_t mark = 0;
    if (::getrandom(&mark, sizeof mark, GRND_NONBLOCK) == sizeof mark) return mark | 1;
    uint64_t given[2] = {};
    const auto* const at = reinterpret_cast<const void*>(::getauxval(AT_RANDOM));
    if (at != nullptr) std::memcpy(given, at, sizeof given);
    mark = inode;
    for (const uint64_t word : given) {
        mark = (mark ^ word) * 0x9e3779b97f4a7c15;
        mark ^= mark >> 29;
    }
    return mark | 1;
}

// Numbers of processes are those of /proc here: its "self" has our number.
bool proc_is_ours() {
    char text[32] = {};
    const ssize_t n = ::readlink("/proc/self", text, sizeof text - 1);
    return n > 0 && std::strtol(text, nullptr, 10) == static_cast<long>(::getpid());
}

Opened why_not(int error) {
    switch (error) {
        case ENOENT:
        case ESRCH:
            return Opened::gone;
        case EACCES:
        case EPERM:
            return Opened::no_permission;
        default:
            return Opened::failed;
    }
}

// Holds what the numbers stand for now, of whatever kind it is, without opening it (O_PATH): a FIFO or a device may
// wait or act when it is opened.
Opened find_offered(const MemoryOffer& offer, Fd* found) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", offer.process, offer.descriptor);
    *found = Fd(above_stdio(::open(path, O_PATH | O_CLOEXEC)));
    if (!found->valid()) return why_not(errno);
    struct stat about {};
    if (::fstat(found->get(), &about) != 0) return Opened::failed;
    const bool same = S_ISREG(about.st_mode) && about.st_dev == offer.device && about.st_ino == offer.inode;
    return same ? Opened::ok : Opened::other_file;
}

// The same file, for reading and writing.
Opened open_found(const Fd& found, size_t bytes, Fd* file) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", found.get());
    *file = Fd(above_stdio(::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)));
    if (!file->valid()) return errno == EACCES || errno == EPERM ? Opened::no_permission : Opened::failed;
    const int seals = ::fcntl(file->get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return Opened::not_sealed;
    struct stat about {};
    if (::fstat(file->get(), &about) != 0) return Opened::failed;
    return about.st_size >= 0 && static_cast<uint64_t>(about.st_size) >= bytes ? Opened::ok : Opened::too_small;
}

}  // namespace

Segment offer_memory(const char* label, size_t bytes, MemoryOffer* offer) {
    *offer = {};
    Segment memory = Segment::create(label, bytes < sizeof(OfferedMark) ? sizeof(OfferedMark) : bytes);
    struct stat about {};
    if (!memory.valid() || ::fstat(memory.fd(), &about) != 0) return {};
    *offer = {about.st_dev, about.st_ino, random_mark(about.st_ino), static_cast<int32_t>(::getpid()), memory.fd()};
    reinterpret_cast<OfferedMark*>(memory.data())->value = offer->mark;
    return memory;
}

Opened open_offered(const MemoryOffer& offer, size_t bytes, Segment* memory) {
    memory->reset();
    if (offer.mark == 0 || offer.process <= 0 || offer.descriptor < 0) return Opened::not_offered;
    if (bytes < sizeof(OfferedMark)) return Opened::too_small;
    Fd found, file;
    Opened result = find_offered(offer, &found);
    if (result != Opened::ok) return proc_is_ours() ? result : Opened::no_proc;
    result = open_found(found, bytes, &file);
    if (result != Opened::ok) return result;
    Segment mapped = Segment::map(std::move(file), bytes, Segment::Access::read_write);
    if (!mapped.valid()) return Opened::failed;
    if (reinterpret_cast<const OfferedMark*>(mapped.data())->value != offer.mark) return Opened::wrong_mark;
    *memory = std::move(mapped);
    return Opened::ok;
}

const char* reason(Opened why) {
    switch (why) {
        case Opened::ok:
            return "nothing is wrong with it";
        case Opened::not_offered:
            return "it offers none";
        case Opened::no_proc:
            return "/proc is not there, or is that of another PID namespace";
        case Opened::gone:
            return "the process has ended or has closed it";
        case Opened::no_permission:
            return "the system does not permit to look at that process";
        case Opened::failed:
            return "no descriptor or no memory is left, or a filter forbids a system call";
        case Opened::other_file:
            return "its numbers stand for another process or another file";
        case Opened::not_sealed:
            return "it is no memory of a fixed size";
        case Opened::too_small:
            return "it is smaller than expected";
        case Opened::wrong_mark:
            return "it is not the memory of a process of this job";
    }
    return "unknown reason";
}

}  // namespace viaduct
