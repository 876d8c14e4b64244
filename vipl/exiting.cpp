// SPDX-License-Identifier: BSD-2-Clause
// atexit functions run in reverse order of their registration: ours may come after slow ones of the program.
// But before all of them, exit() destroys the thread-local objects of the thread that calls it. So a thread
// whose object has been destroyed and that still is there is inside exit(); one that has merely ended is gone
// at once.
#include "vipl/exiting.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/clock/clock.hpp"

namespace viaduct::vipl {
namespace {

constexpr int64_t kLongestExit = 60'000'000'000;  // later the number may belong to another thread
constexpr int kSlots = 16;
constexpr int kClaimed = -1;  // a slot that is being filled

std::atomic<bool> handlers_reached{false};

// Threads whose thread-local objects are gone.
struct Leaver {
    std::atomic<int> thread{0};
    std::atomic<int64_t> since{0};
};
Leaver leavers[kSlots];

void note_exit() { handlers_reached.store(true); }

// False for ended threads, and for a first thread that has ended before the others (a zombie until then).
bool is_alive(int thread) {
    char text[256];
    std::snprintf(text, sizeof text, "/proc/self/task/%d/stat", thread);
    const int fd = ::open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t got = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (got <= 0) return false;
    text[got] = '\0';
    const char* name_end = std::strrchr(text, ')');  // the name itself may hold anything
    return name_end != nullptr && name_end[1] == ' ' && name_end[2] != 'Z' && name_end[2] != 'X';
}

// Forgets the ones that have ended; true when one is left.
bool any_leaver_alive() {
    const int64_t now = now_ns();
    bool any = false;
    for (Leaver& leaver : leavers) {
        int thread = leaver.thread.load();
        if (thread <= 0) continue;
        if (now - leaver.since.load() < kLongestExit && is_alive(thread)) {
            any = true;
        } else {
            leaver.thread.compare_exchange_strong(thread, 0);
        }
    }
    return any;
}

struct Sentinel {
    Sentinel() {}
    ~Sentinel() {
        any_leaver_alive();  // makes room
        const int self = static_cast<int>(::syscall(SYS_gettid));
        for (Leaver& leaver : leavers) {
            int free = 0;
            if (!leaver.thread.compare_exchange_strong(free, kClaimed)) continue;
            leaver.since.store(now_ns());
            leaver.thread.store(self);
            return;
        }
    }
    bool watched = false;
};

thread_local Sentinel sentinel;

}  // namespace

bool watch_exit() { return std::atexit(note_exit) == 0; }

void watch_this_thread() { sentinel.watched = true; }

bool process_is_exiting() { return handlers_reached.load() || any_leaver_alive(); }

}  // namespace viaduct::vipl
