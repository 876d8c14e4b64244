// SPDX-License-Identifier: BSD-2-Clause
// Whether another process still is what it was when it was met: it has not ended and has not become another program
// (execve). Its number may be used again, and the program may close our descriptor of it at any time: neither of them
// is taken for its end. Slow path: a few system calls for each question. One thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/shm/kept_fd.hpp"

namespace viaduct {

class WatchedProcess {
public:
    // unseen: the system does not say
    enum class State : uint8_t { lives, ended, unseen };

    WatchedProcess() = default;  // of none: unseen
    // The process of that number in our PID namespace which lived at `moment` (boot_ticks()).
    WatchedProcess(pid_t number, uint64_t moment);

    // A process that its parent has not waited for has ended. One whose main() has called pthread_exit() lives with its
    // other threads.
    State state();

    // A mapping of a file in its memory, which it keeps until it leaves the job or is another program. It is known by
    // its place and its size, so the size is best one that nothing else has. False: it is not there, or we may not see
    // it; then it is not looked for again.
    bool note_mapping(uint64_t address, size_t bytes);
    // That mapping has not been there at any call for a quarter of a second: the process has become another program,
    // has ended, or has left. For a moment it may be in exit(2) of the thread that runs main().
    bool has_lost_mapping();

private:
    void open();

    pid_t number_ = 0;
    uint64_t moment_ = 0;
    KeptFd pidfd_;  // where the system gives one
    bool ended_ = false;
    std::string mapping_;  // as /proc names it
    std::chrono::steady_clock::time_point missing_since_;  // 0: it was there at the last call
};

}  // namespace viaduct
