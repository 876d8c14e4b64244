// SPDX-License-Identifier: BSD-2-Clause
// See progress_thread.hpp.
#include "mpi-adi/engine/progress_thread.hpp"

#include <cxxabi.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/process/helper_threads.hpp"
#include "core/sync/futex.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/engine/waits.hpp"

namespace viaduct::mpi {
namespace {

// How long no call comes before the thread works unasked. It looks after the first; each time a call has come
// meanwhile it waits twice as long, up to the second.
constexpr int64_t kShortestPauseNs = 100'000;
constexpr int64_t kLongestPauseNs = 2'000'000;
// Shorter messages take less time than waking the thread.
constexpr uint64_t kLongMessage = 256 * 1024;

std::atomic<bool> there{false};
std::atomic<bool> over{false};
std::atomic<uint32_t> asleep{0};  // 1: it sleeps on this word, until a call makes it 0
bool wanted = false;              // guarded by the lock
pthread_t thread;

// True: a call has woken it.
bool sleep_until_woken(int64_t at_most) {
    asleep.store(1, std::memory_order_seq_cst);
    if (!over.load(std::memory_order_seq_cst)) futex_wait(asleep, 1, at_most, false);
    return asleep.exchange(0, std::memory_order_seq_cst) == 0;
}

// A program whose main() has called pthread_exit() ends with its last thread, and this one is none of its own. It takes
// the signals that have waited for a thread.
class WatchOfProgram {
public:
    bool has_ended() {
        const int64_t now = viaduct::now_ns();
        if (now < next_look_) return false;
        next_look_ = now + kLongestProgressNs;
        if (!only_helpers_are_left()) return false;
        sigset_t none;
        ::sigemptyset(&none);
        ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
        return true;
    }

private:
    int64_t next_look_ = 0;
};

void work() {
    int64_t pause = kShortestPauseNs;
    uint32_t seen = EngineLock::calls();
    WatchOfProgram program;
    while (!over.load(std::memory_order_relaxed) && !program.has_ended()) {
        const bool woken = sleep_until_woken(pause);
        const uint32_t calls = EngineLock::calls();
        if (!woken && calls != std::exchange(seen, calls)) {
            pause = std::min(2 * pause, kLongestPauseNs);
            continue;
        }
        pause = kShortestPauseNs;
        EngineLock::take_back(1);
        seen = EngineLock::calls();
        progress_between_calls(over);
        (void)EngineLock::let_go();
    }
}

void* run(void*) try {
    work();
    return nullptr;
} catch (abi::__forced_unwind&) {
    throw;
} catch (...) {
    end_job(MPI_ERR_OTHER, "an exception of the program's function ends the progress thread");
}

// Signals are for the program's threads.
int create(const pthread_attr_t& attributes) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = ::pthread_create(&thread, &attributes, run, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return failed;
}

}  // namespace

std::vector<size_t> processors_of(const std::string& list) {
    std::vector<size_t> numbers;
    const char* at = list.data();
    const char* const end = at + list.size();
    while (at != end) {
        size_t first = 0;
        auto [rest, failed] = std::from_chars(at, end, first);
        if (failed != std::errc() || first >= CPU_SETSIZE) return {};
        size_t last = first;
        if (rest != end && *rest == '-') {
            const auto second = std::from_chars(rest + 1, end, last);
            if (second.ec != std::errc() || last < first || last >= CPU_SETSIZE) return {};
            rest = second.ptr;
        }
        for (size_t number = first; number <= last; number++) numbers.push_back(number);
        if (rest != end && (*rest != ',' || ++rest == end)) return {};
        at = rest;
    }
    return numbers;
}

std::string start_progress_thread(const std::string& processors) {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    if (!processors.empty()) {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (const size_t number : processors_of(processors)) CPU_SET(number, &set);
        if (CPU_COUNT(&set) == 0) return "CMPI_PROGRESS_CPUS=" + processors + " is no list of processors, as 0,2-3 is";
        ::pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    }
    EngineLock::enable();
    over.store(false, std::memory_order_relaxed);
    const int failed = create(attributes);
    ::pthread_attr_destroy(&attributes);
    if (failed == EINVAL) return "none of the processors of CMPI_PROGRESS_CPUS=" + processors + " may be used here";
    if (failed != 0) return std::string("the progress thread cannot be started: ") + std::strerror(failed);
    ::pthread_setname_np(thread, "vipl-progress");  // a helper (core/process/helper_threads.hpp)
    there.store(true, std::memory_order_relaxed);
    return {};
}

void stop_progress_thread() {
    if (!there.exchange(false, std::memory_order_relaxed)) return;
    const uint32_t depth = EngineLock::is_mine() ? EngineLock::let_go() : 0;
    over.store(true, std::memory_order_seq_cst);
    wake_progress_thread();
    ::pthread_join(thread, nullptr);
    if (depth != 0) EngineLock::take_back(depth);
}

void leave_to_progress_thread(const Request& request) {
    if (!there.load(std::memory_order_relaxed) || request.is_done()) return;
    const bool message = request.kind == Request::Kind::send || request.kind == Request::Kind::receive;
    if (!message || request.r_bytes >= kLongMessage) wanted = true;
}

bool progress_thread_is_wanted() { return std::exchange(wanted, false); }

void wake_progress_thread() {
    if (asleep.load(std::memory_order_relaxed) != 0 && asleep.exchange(0, std::memory_order_seq_cst) != 0)
        futex_wake(asleep, 1, false);
}

}  // namespace viaduct::mpi
