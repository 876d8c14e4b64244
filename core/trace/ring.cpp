// SPDX-License-Identifier: BSD-2-Clause
// See ring.hpp. The memory of a record that has ended is taken back while threads may still be about to write there:
// other memory, which holds nothing, comes into its place. So each size of ring has one place in the address space for
// good.
#include "core/trace/ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "core/shm/fd.hpp"
#include "core/shm/own_mapping.hpp"
#include "core/shm/segment.hpp"

// What argv[0] ends in. Its other name, program_invocation_short_name, is one that a program may own.
extern "C" char* __progname;

namespace viaduct::trace {

std::atomic<const Ring*> ring{nullptr};
thread_local uint32_t own_thread = 0;

namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Place {
    std::byte* at = nullptr;
    Ring ring;
};
Place places[kMostEventBits + 1];  // by the logarithm of how many events
Place* given = nullptr;            // the place of memory that another process has given, until free_memory()
std::atomic<uint32_t> threads{0};
pid_t owner = 0;  // the process that has mapped what `ring` says
uint32_t rank_plus_one = 0;
std::mutex making;

int64_t clock_ns(clockid_t clock) {
    timespec t{};
    ::clock_gettime(clock, &t);
    return t.tv_sec * kSecond + t.tv_nsec;
}

Moment moment() { return {ticks(), clock_ns(CLOCK_MONOTONIC)}; }

uint64_t wanted_events() {
    constexpr uint64_t kMost = uint64_t{1} << kMostEventBits;
    const char* const text = ::secure_getenv(kEventsVariable);
    const uint64_t wanted = text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
    if (wanted == 0) return kEventsUnlessGiven;
    return std::bit_ceil(wanted < kMost ? wanted : kMost);
}

// A process number may come again, by an exec too: a file that is there is another process'.
int make_file(const char* folder) {
    for (int turn = 0; turn < 100; ++turn) {
        char path[4096];
        const int n =
            std::snprintf(path, sizeof path, "%s/%d.%d%s", folder, static_cast<int>(::getpid()), turn, kSuffix);
        if (n < 0 || static_cast<size_t>(n) >= sizeof path) return -1;
        const int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

void fill(Header* h, uint64_t capacity, Moment begin) {
    h->version = kRecordVersion;
    h->pid = static_cast<uint32_t>(::getpid());
    std::snprintf(h->program, sizeof h->program, "%s", __progname);
    (void)::gethostname(h->host, sizeof h->host - 1);
    h->capacity = capacity;
    h->begin = begin;
    h->later = moment();
    h->begin_real_ns = clock_ns(CLOCK_REALTIME);
    h->rank_plus_one = rank_plus_one;
    std::atomic_ref<uint64_t>(h->magic).store(kRecordMagic, std::memory_order_release);
}

// Whether a ring of so many events, and what is before them, has room in the address space: not each has with 32 bits.
bool has_room(uint64_t capacity) { return capacity <= (SIZE_MAX - kEventsAt) / sizeof(Event); }

// Maps other memory in place of what is there. The kernel may have unmapped that when it refuses a mapping at a given
// address, and threads may write there: so the memory is mapped elsewhere, and moved.
bool map_over(std::byte* at, size_t bytes, int flags, int fd) {
    void* const fresh = map_own(bytes, PROT_READ | PROT_WRITE, flags, fd);
    if (fresh == nullptr) return false;
    if (::mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != MAP_FAILED) return true;
    ::munmap(fresh, bytes);
    return false;
}

// Puts the file into the place of that size. Null: nothing will be recorded.
Place* map_file(int fd, uint64_t capacity) {
    if (!has_room(capacity)) return nullptr;
    const Moment begin = moment();
    const size_t bytes = kEventsAt + capacity * sizeof(Event);
    Place& place = places[std::bit_width(capacity) - 1];
    void* memory = nullptr;
    if (place.at == nullptr) {
        memory = map_own(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    } else if (map_over(place.at, bytes, MAP_SHARED, fd)) {
        memory = place.at;
    }
    if (memory == nullptr) return nullptr;
    ::madvise(memory, bytes, MADV_DONTFORK);
#ifdef MADV_POPULATE_WRITE
    ::madvise(memory, bytes, MADV_POPULATE_WRITE);
#endif
    auto* const at = static_cast<std::byte*>(memory);
    auto* const header = new (at) Header{};
    if (place.at == nullptr) {
        place.at = at;
        place.ring = {header, reinterpret_cast<Event*>(at + kEventsAt), capacity - 1};
    }
    fill(header, capacity, begin);
    owner = ::getpid();
    ring.store(&place.ring, std::memory_order_release);
    return &place;
}

// Of a ring that fills a file of so many bytes; 0: no ring does.
uint64_t capacity_of(uint64_t bytes) {
    if (bytes <= kEventsAt || (bytes - kEventsAt) % sizeof(Event) != 0) return 0;
    const uint64_t capacity = (bytes - kEventsAt) / sizeof(Event);
    return std::has_single_bit(capacity) && std::bit_width(capacity) - 1 <= int{kMostEventBits} ? capacity : 0;
}

void note_end(const Ring& r) {
    note_moment(r);
    r.header->ended.store(1, std::memory_order_release);
}

// Not in a child that has not been told of the fork (_Fork): it does not have the memory.
[[gnu::destructor]] void note_end_of_process() {
    if (const Ring* r = ring.load(std::memory_order_acquire); r != nullptr && owner == ::getpid()) note_end(*r);
}

}  // namespace

void look_at_environment() {
    rank_plus_one = 0;
    for (const char* name : {"PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
        if (const char* const text = ::getenv(name); text != nullptr && *text >= '0' && *text <= '9') {
            rank_plus_one = static_cast<uint32_t>(std::strtoul(text, nullptr, 10)) + 1;
            return;
        }
}

void begin_as_told() {
    const std::lock_guard lock(making);
    const char* const folder = ::secure_getenv(kFolderVariable);
    if (folder == nullptr || on()) return;
    const int before = errno;
    const uint64_t capacity = wanted_events();
    const Fd fd(has_room(capacity) ? make_file(folder) : -1);
    // Filled, not only made longer: a page that cannot be had must fail here, not when an event is written.
    if (fd.valid() && ::posix_fallocate(fd.get(), 0, static_cast<off_t>(kEventsAt + capacity * sizeof(Event))) == 0)
        map_file(fd.get(), capacity);
    errno = before;
}

bool begin(int fd) {
    const std::lock_guard lock(making);
    struct stat file {};
    if (::fstat(fd, &file) != 0) return false;
    const uint64_t capacity = capacity_of(static_cast<uint64_t>(file.st_size));
    if (capacity == 0 || !has_room(capacity)) return false;
    // It is mapped for a moment, with all checks there are.
    if (!Segment::map(Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)), static_cast<size_t>(file.st_size), Segment::Access::sparse)
             .valid())
        return false;
    if (on() || given != nullptr) {
        (void)!::pwrite(fd, &kRefusedMagic, sizeof kRefusedMagic, 0);
        return false;
    }
    given = map_file(fd, capacity);
    return given != nullptr;
}

void end() {
    const std::lock_guard lock(making);
    if (given != nullptr && ring.exchange(nullptr, std::memory_order_acq_rel) != nullptr) note_end(given->ring);
}

void free_memory() {
    const std::lock_guard lock(making);
    if (given == nullptr || on()) return;
    const size_t bytes = kEventsAt + (given->ring.mask + 1) * sizeof(Event);
    if (map_over(given->at, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1))
        ::madvise(given->at, bytes, MADV_DONTFORK);
    given = nullptr;
}

void reset_after_fork() {
    new (&making) std::mutex;
    ring.store(nullptr, std::memory_order_release);
    own_thread = 0;
    given = nullptr;
    for (Place& place : places) place = {};
}

uint32_t number_thread() { return threads.fetch_add(1, std::memory_order_relaxed) + 1; }

// Two threads may do so at a time: then a moment has parts of both, a few microseconds apart.
void note_moment(const Ring& r) { r.header->later = moment(); }

}  // namespace viaduct::trace
