// SPDX-License-Identifier: BSD-2-Clause
#include "core/process/foreign_memory.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "core/process/keep_errno.hpp"
#include "core/shm/own_mapping.hpp"

namespace viaduct {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kRanges = 64;               // of one call, besides the mark
constexpr size_t kBytes = size_t{1} << 30;   // of one call: the kernel cuts off what is above 2 GiB

// Where the kernel maps nothing of its own accord, so that no other program has anything there. The old layout of
// addresses (setarch -L) begins above it, at 0x2aaaaaaab000 on x86-64; what stacks without a limit leave is below it.
constexpr uint64_t kFrom = uint64_t{1} << 45;
constexpr uint64_t kSize = uint64_t{1} << 43;

bool is_apart(uint64_t address) {
    return sizeof(void*) == sizeof address && address >= kFrom && address - kFrom < kSize;
}

// Elsewhere when that range is not to be had (32 bits, kernels with small addresses, the thread sanitizer): the choice
// of the kernel is random too.
void* map_mark(uint64_t random) {
#if UINTPTR_MAX > UINT32_MAX
    void* const wanted = reinterpret_cast<void*>(kFrom + random % kSize / kPage * kPage);
    void* const got = ::mmap(wanted, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == wanted) return got;
    if (got != MAP_FAILED) ::munmap(got, kPage);
#else
    (void)random;
#endif
    return map_own(kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
}

MemoryMark make_mark() {
    const KeepErrno keep;
    uint64_t random[2] = {};
    if (::getrandom(random, sizeof random, 0) != sizeof random) return {};
    void* const page = map_mark(random[0]);
    if (page == nullptr) return {};
    ::madvise(page, kPage, MADV_DONTFORK);
    const uint64_t value = random[1] | 1;
    std::memcpy(page, &value, sizeof value);
    return {reinterpret_cast<uintptr_t>(page), value};
}

ForeignMemory::Result why(int error) {
    switch (error) {
        case ESRCH:
        case EFAULT:  // of the first range, the mark
            return ForeignMemory::Result::ended;
        default:  // EPERM, ENOSYS, or what a seccomp filter answers
            return ForeignMemory::Result::forbidden;
    }
}

// A read brings the mark with the data; a write would put it where it is missing.
ForeignMemory::Result look_at(int pid, const MemoryMark& mark) {
    uint64_t word = 0;
    const iovec local{&word, sizeof word}, remote{reinterpret_cast<void*>(mark.address), sizeof word};
    const long moved = ::syscall(SYS_process_vm_readv, static_cast<long>(pid), &local, 1L, &remote, 1L, 0L);
    if (moved < 0) return why(errno);
    return moved == sizeof word && word == mark.value ? ForeignMemory::Result::ok : ForeignMemory::Result::ended;
}

}  // namespace

MemoryMark own_memory_mark() {
    static std::mutex mutex;
    static MemoryMark mark;
    static pid_t owner = 0;
    const std::lock_guard lock(mutex);
    if (owner != ::getpid()) mark = make_mark();
    owner = ::getpid();
    return mark;
}

// What is here is one piece, so that only the other side has a list.
ForeignMemory::Result ForeignMemory::move(long call, char* here, std::span<const iovec> there) const {
    const KeepErrno keep;
    if (pid_ <= 0 || mark_.address == 0) return Result::ended;
    const bool look_first = call == SYS_process_vm_writev && !is_apart(mark_.address);
    size_t into_first = 0;  // bytes of the first range that are done
    do {
        if (look_first)
            if (const Result seen = look_at(pid_, mark_); seen != Result::ok) return seen;
        uint64_t word = mark_.value;
        iovec remote[1 + kRanges] = {{reinterpret_cast<void*>(mark_.address), sizeof word}};
        size_t ranges = 1, bytes = 0;
        while (ranges <= kRanges && bytes < kBytes && !there.empty()) {
            const iovec& next = there.front();
            const size_t now = std::min(next.iov_len - into_first, kBytes - bytes);
            if (now != 0) remote[ranges++] = {static_cast<char*>(next.iov_base) + into_first, now};
            bytes += now;
            into_first += now;
            if (into_first != next.iov_len) break;
            there = there.subspan(1);
            into_first = 0;
        }
        const iovec local[2] = {{&word, sizeof word}, {here, bytes}};
        const long moved = ::syscall(call, static_cast<long>(pid_), local, bytes == 0 ? 1L : 2L, remote,
                                     static_cast<long>(ranges), 0L);
        if (moved < 0) return why(errno);
        if (word != mark_.value) return Result::ended;
        if (static_cast<size_t>(moved) != sizeof word + bytes) return Result::unreached;
        here += bytes;
    } while (!there.empty());
    return Result::ok;
}

ForeignMemory::Result ForeignMemory::read(void* to, std::span<const iovec> from) const {
    return move(SYS_process_vm_readv, static_cast<char*>(to), from);
}

ForeignMemory::Result ForeignMemory::write(std::span<const iovec> to, const void* from) const {
    return move(SYS_process_vm_writev, const_cast<char*>(static_cast<const char*>(from)), to);
}

ForeignMemory::Result ForeignMemory::probe() const {
    const Result seen = read(nullptr, {});
    return seen == Result::ok ? write({}, nullptr) : seen;
}

}  // namespace viaduct
