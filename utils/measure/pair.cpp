// SPDX-License-Identifier: BSD-2-Clause
#include "utils/measure/pair.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/clock/clock.hpp"
#include "core/sync/pause.hpp"
#include "utils/measure/machine.hpp"

namespace viaduct::measure {

struct Shared {
    alignas(128) std::atomic<bool> failed{false};
    alignas(128) std::atomic<uint32_t> arrived{0};
    alignas(128) std::atomic<uint64_t> agreed{0};
    alignas(128) std::atomic<uint32_t> vote[2];
    alignas(128) std::atomic<uint64_t> line[2][16];
};

namespace {

constexpr int64_t kSampleNs = 8'000'000;
constexpr int64_t kWarmUpNs = 1'000'000;
constexpr uint64_t kProbeRounds = 500;
constexpr int kProbeBatches = 5;
constexpr unsigned kWatchdogSeconds = 540;  // a benchmark that hangs ends, and says so by its signal

}  // namespace

void await_word(const std::atomic<uint64_t>& word, uint64_t wanted) {
    while (word.load(std::memory_order_acquire) != wanted) cpu_pause();
}

void spin_for(int64_t ns) {
    const int64_t end = now_ns() + ns;
    while (now_ns() < end) cpu_pause();
}

bool Pair::pick_processors(int* first, int* second) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return false;
    int found[2], count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; ++cpu) {
        if (CPU_ISSET(static_cast<size_t>(cpu), &set)) found[count++] = cpu;
    }
    if (count < 2) return false;
    *first = found[0];
    *second = found[1];
    return true;
}

Pair Pair::split(size_t arena_bytes, int first_cpu, int second_cpu) {
    Pair pair;
    pair.half_ = (arena_bytes + 4095) / 4096 * 4096;
    const size_t head = 4096;
    pair.mapped_ = head + 2 * pair.half_;
    void* memory = ::mmap(nullptr, pair.mapped_, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("cannot share memory");
        std::exit(1);
    }
    static_assert(sizeof(Shared) <= 4096);
    pair.shared_ = new (memory) Shared;
    pair.arena_ = static_cast<std::byte*>(memory) + head;
    pair.cpus_[0] = first_cpu;
    pair.cpus_[1] = second_cpu;
    std::fflush(nullptr);
    pair.follower_ = ::fork();
    if (pair.follower_ < 0) {
        std::perror("cannot fork");
        std::exit(1);
    }
    pair.side_ = pair.follower_ == 0 ? 1 : 0;
    if (pair.side_ == 1) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::alarm(kWatchdogSeconds);
    pin_to(pair.cpus_[pair.side_]);
    pair.meet();
    return pair;
}

Pair::Pair(Pair&& other) noexcept : Pair(static_cast<const Pair&>(other)) { other.shared_ = nullptr; }

Pair::~Pair() {
    if (shared_ == nullptr) return;
    meet();
    if (side_ == 1) {
        std::fflush(nullptr);
        ::_exit(0);
    }
    follower_ended(true);
    ::munmap(shared_, mapped_);
}

bool Pair::follower_ended(bool wait) {
    while (!follower_ended_) {
        const pid_t found = ::waitpid(follower_, &follower_status_, wait ? 0 : WNOHANG);
        follower_ended_ = found == follower_;
        if (found >= 0 || errno != EINTR) break;
    }
    return follower_ended_;
}

int Pair::follower_code(int otherwise) const {
    return follower_ended_ && WIFEXITED(follower_status_) ? WEXITSTATUS(follower_status_) : otherwise;
}

void Pair::keep_watch() { ::alarm(kWatchdogSeconds); }

void Pair::fail(const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", leader() ? "leader" : "follower", why.c_str());
    if (!leader()) {
        ::kill(::getppid(), SIGKILL);
    } else if (!follower_ended(false)) {
        ::kill(follower_, SIGKILL);
        follower_ended(true);
    }
    ::_exit(1);
}

void Pair::leave(const std::string& why, int exit_code) {
    const bool first = !shared_->failed.exchange(true);
    if (first) std::fprintf(stderr, "%s\n", why.c_str());
    std::fflush(nullptr);
    if (!leader()) ::_exit(exit_code);
    if (first && !follower_ended(false)) ::kill(follower_, SIGKILL);
    follower_ended(true);
    ::_exit(first ? exit_code : follower_code(exit_code));
}

void Pair::meet() {
    ++meetings_;
    shared_->arrived.fetch_add(1, std::memory_order_acq_rel);
    for (uint64_t looks = 0; shared_->arrived.load(std::memory_order_acquire) < 2 * meetings_; ++looks) {
        cpu_pause();
        if (looks % 4096 == 4095) {
            ::sched_yield();
            if (leader() && follower_ended(false)) {
                // It may have been here, for the last time.
                if (shared_->arrived.load(std::memory_order_acquire) >= 2 * meetings_) break;
                if (shared_->failed.load()) ::_exit(follower_code(1));
                std::fprintf(stderr, "the other process has ended\n");
                ::_exit(1);
            }
        }
    }
}

uint64_t Pair::agree(uint64_t value) {
    if (leader()) shared_->agreed.store(value, std::memory_order_relaxed);
    meet();
    const uint64_t agreed = shared_->agreed.load(std::memory_order_relaxed);
    meet();
    return agreed;
}

bool Pair::both(bool mine) {
    shared_->vote[side_].store(mine ? 1 : 0, std::memory_order_relaxed);
    meet();
    const bool agreed =
        shared_->vote[0].load(std::memory_order_relaxed) + shared_->vote[1].load(std::memory_order_relaxed) ==
        2;
    meet();
    return agreed;
}

uint64_t Pair::fresh(uint64_t count) {
    const uint64_t first = used_numbers_ + 1;
    used_numbers_ += count;
    return first;
}

double Pair::distance() {
    std::atomic<uint64_t>& mine = shared_->line[side_][0];
    const std::atomic<uint64_t>& theirs = shared_->line[1 - side_][0];
    int64_t quickest = INT64_MAX;  // the distance without what else happened meanwhile
    meet();
    for (int batch = 0; batch < kProbeBatches; ++batch) {
        const uint64_t base = fresh(kProbeRounds);
        const int64_t before = now_ns();
        for (uint64_t i = base; i < base + kProbeRounds; ++i) {
            if (leader()) mine.store(i, std::memory_order_release);
            await_word(theirs, i);
            if (!leader()) mine.store(i, std::memory_order_release);
        }
        quickest = std::min(quickest, now_ns() - before);
    }
    // Both must draw the same conclusions.
    return static_cast<double>(agree(static_cast<uint64_t>(quickest))) /
           static_cast<double>(2 * kProbeRounds);
}

double Pair::ns_per_iteration(const std::function<void(uint64_t)>& body) {
    const auto timed = [&](uint64_t iterations) {
        meet();
        const int64_t before = now_ns();
        body(iterations);
        return static_cast<double>(now_ns() - before) / static_cast<double>(iterations);
    };
    // The second try has warm caches, and finds how many fit into a sample.
    const double cold = timed(4);
    const auto few = static_cast<uint64_t>(static_cast<double>(kWarmUpNs) / std::max(cold, 1.0));
    const double guess = timed(agree(std::clamp<uint64_t>(few, 4, 1000)));
    const auto fitting = static_cast<uint64_t>(static_cast<double>(kSampleNs) / std::max(guess, 1.0));
    return timed(agree(std::clamp<uint64_t>(fitting, 16, 1'000'000)));
}

}  // namespace viaduct::measure
