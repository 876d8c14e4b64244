// SPDX-License-Identifier: BSD-2-Clause
// Memory of another process, read and written by system calls (process_vm_readv, process_vm_writev). A process is not
// known by its number, which the kernel gives to another one after its end, and which stays when it becomes another
// program (execve). So each process that lets others in has a mark: a random word in a page of its own at a random
// address. Each call here names the mark first and the data behind it. The kernel looks up the process' memory once for
// a whole call and ends at the first range that is not there: memory without the mark is not touched, whatever happens
// before or during the call. The mark lies where other programs have nothing. Where it has to lie among other
// mappings, a call that writes is preceded by one that reads the mark. A process that becomes another program just
// between the two is not noticed if that program has memory at the same places.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace viaduct {

struct MemoryMark {
    uint64_t address = 0;  // 0: there is none
    uint64_t value = 0;
};

// This process' mark, made by the first call; a forked child does not have it and makes its own. Any thread.
MemoryMark own_memory_mark();

class ForeignMemory {
public:
    // unreached: some of the memory is not mapped there, does not permit it, or is hidden from other processes;
    // ended: that process has ended or is another program; forbidden: the system does not let us
    enum class Result : uint8_t { ok, unreached, ended, forbidden };

    ForeignMemory() = default;
    ForeignMemory(int pid, MemoryMark mark) : pid_(pid), mark_(mark) {}

    // Between one piece of ours and ranges of the other process, as long as that together; both ends in order. After an
    // error some of it may have moved. errno is left as it was.
    Result read(void* to, std::span<const iovec> from) const;
    Result write(std::span<const iovec> to, const void* from) const;
    // Whether both kinds of calls reach the process now. Nothing is changed.
    Result probe() const;

private:
    Result move(long call, char* here, std::span<const iovec> there) const;

    int pid_ = 0;
    MemoryMark mark_;
};

}  // namespace viaduct
