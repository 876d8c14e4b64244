// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/cross_copy.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/process/keep_errno.hpp"

namespace viaduct::paramnet {

namespace {

constexpr size_t kPieces = 64;  // local pieces of one call

CrossResult why(long result) {
    switch (result) {
        case kNotPermitted:
        case 0:
            return CrossResult::fault;
        case -EFAULT:  // not mapped, not permitted, or memory that only its owner may touch (memfd_secret)
            return CrossResult::unreached;
        case -ESRCH:
            return CrossResult::ended;
        default:  // EPERM, ENOSYS, EACCES, or whatever a seccomp filter answers
            return CrossResult::forbidden;
    }
}

// A program of 32 bits has no way to name the memory of one of 64 that lies above.
bool can_be_named(uint64_t address, uint64_t n) { return n <= UINTPTR_MAX && address <= UINTPTR_MAX - n; }

// `n` bytes at `address` as one range of the other process, or as two that meet at `last_line`. How many.
long remote_ranges(iovec (&ranges)[2], uint64_t address, uint64_t n, uint64_t last_line) {
    const uint64_t first = address < last_line && last_line - address < n ? last_line - address : n;
    ranges[0] = {reinterpret_cast<void*>(address), static_cast<size_t>(first)};
    ranges[1] = {reinterpret_cast<void*>(address + first), static_cast<size_t>(n - first)};
    return first == n ? 1 : 2;
}

// One system call for up to kPieces pieces, repeated while it moves less than asked for.
CrossResult move_bytes(long call, int pid, SegmentCursor& cursor, uint64_t address, uint64_t n,
                       uint64_t last_line, const Guard& guard) {
    if (!can_be_named(address, n)) return CrossResult::forbidden;
    while (n != 0) {
        iovec local[kPieces];
        size_t pieces = 0;
        uint64_t collected = 0;
        while (pieces < kPieces && collected < n) {
            uint32_t piece = 0;
            std::byte* at =
                cursor.next(static_cast<uint32_t>(std::min<uint64_t>(n - collected, UINT32_MAX)), &piece);
            if (at == nullptr) break;
            local[pieces++] = {at, piece};
            collected += piece;
        }
        if (collected == 0) return CrossResult::fault;  // the descriptor was changed under us
        n -= collected;
        size_t first = 0;
        while (collected != 0) {
            iovec remote[2];
            const long ranges = remote_ranges(remote, address, collected, last_line);
            const long moved = guarded_call(guard, call, pid, local + first,
                                            static_cast<long>(pieces - first), remote, ranges);
            if (moved <= 0) return why(moved);
            address += static_cast<uint64_t>(moved);
            collected -= static_cast<uint64_t>(moved);
            size_t left = static_cast<size_t>(moved);
            while (left != 0 && left >= local[first].iov_len) left -= local[first++].iov_len;
            if (left != 0) {
                local[first].iov_base = static_cast<char*>(local[first].iov_base) + left;
                local[first].iov_len -= left;
            }
        }
    }
    return CrossResult::ok;
}

}  // namespace

bool probe_process(int pid, uint64_t address, uint64_t value) {
    const KeepErrno keep;
    if (pid <= 0 || address == 0 || value == 0 || !can_be_named(address, sizeof value)) return false;
    uint64_t seen = 0;
    const iovec local{&seen, sizeof seen}, remote{reinterpret_cast<void*>(address), sizeof seen};
    return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(sizeof seen) &&
           seen == value;
}

CrossResult cross_write(int pid, SegmentCursor& from, uint64_t address, uint64_t n, const Guard& guard) {
    const KeepErrno keep;
    const uint64_t body = before_last_line(address, n);
#if defined(__x86_64__)
    // The ranges of one call are copied one after the other. In between the kernel counts references to pages
    // by locked instructions, behind which all earlier stores are visible.
    return move_bytes(SYS_process_vm_writev, pid, from, address, n, address + body, guard);
#else
    if (body != 0) {
        const CrossResult first = move_bytes(SYS_process_vm_writev, pid, from, address, body, address, guard);
        if (first != CrossResult::ok) return first;
    }
    return move_bytes(SYS_process_vm_writev, pid, from, address + body, n - body, address, guard);
#endif
}

CrossResult cross_read(int pid, SegmentCursor& to, uint64_t address, uint64_t n, const Guard& guard) {
    const KeepErrno keep;
    return move_bytes(SYS_process_vm_readv, pid, to, address, n, address, guard);
}

}  // namespace viaduct::paramnet
