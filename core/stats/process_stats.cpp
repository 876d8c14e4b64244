// SPDX-License-Identifier: BSD-2-Clause
#include "core/stats/process_stats.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "core/clock/clock.hpp"
#include "core/config/paths.hpp"
#include "core/shm/own_mapping.hpp"
#include "core/shm/segment.hpp"
#include "core/text/file_text.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace viaduct::stats {

ProcessStats process_stats;

namespace {

constexpr uint32_t kRecordAlignment = 128;

template <size_t size>
void put(char (&to)[size], const char* text) {
    std::strncpy(to, text, size - 1);
}

void add_field(Field* fields, uint32_t* count, const char* name, const char* help, FieldKind kind,
               size_t offset, uint16_t bytes) {
    if (*count == kMostFields) return;
    Field& f = fields[*count];
    put(f.name, name);
    put(f.help, help);
    f.offset = static_cast<uint32_t>(offset);
    f.bytes = bytes;
    f.kind = kind;
    ++*count;
}

std::string own_name() {
    const std::string name = text_of_file("/proc/self/comm");
    return name.substr(0, name.find('\n'));
}

void* map(int fd, size_t at, size_t bytes) {
    void* memory = map_own(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(at));
    // A child would write into its parent's objects; it never touches them (library.cpp).
    if (memory != nullptr) ::madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

}  // namespace

bool ProcessStats::open() {
    const int fd = above_stdio(::memfd_create(kSegmentName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0) return false;
    // It grows, and no process that may open it can shorten it under this process: that would end it by SIGBUS.
    const bool ready = set_size(fd, kRecordsAt) && ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0;
    void* memory = ready ? map(fd, 0, kRecordsAt) : nullptr;
    if (memory == nullptr) {
        ::close(fd);
        return false;
    }
    auto* h = new (memory) StatsHeader{};
    h->version = kVersion;
    h->pid = static_cast<uint32_t>(::getpid());
    put(h->program, own_name().c_str());
    put(h->library, viaduct::kVersion);
    h->started = now_ns();
    h->records_at = kRecordsAt;
    for (size_t i = 0; i < kProcessCountKinds; ++i) {
        add_field(h->process_fields, &h->process_field_count, kProcessCounters[i].name,
                  kProcessCounters[i].help, FieldKind::counter,
                  static_cast<size_t>(reinterpret_cast<std::byte*>(&h->counters[i]) -
                                      reinterpret_cast<std::byte*>(h)),
                  sizeof(uint64_t));
    }
    *fd_ = KeptFd(Fd(fd));
    counters_.store(h->counters, std::memory_order_relaxed);
    header_.store(h, std::memory_order_relaxed);
    move_failures(new (static_cast<std::byte*>(memory) + kFailuresAt) FailureRing{});
    std::atomic_ref<uint64_t>(h->magic).store(kMagic, std::memory_order_release);
    return true;
}

Fd ProcessStats::for_reading() const {
    if (!fd_->is_ours()) return {};
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd_->get());
    return Fd(above_stdio(::open(path, O_RDONLY | O_CLOEXEC)));
}

void ProcessStats::reset_after_fork() {
    counters_.store(unseen_, std::memory_order_relaxed);
    header_.store(nullptr, std::memory_order_relaxed);
    fd_->reset();
    reset_failures();
}

void* ProcessStats::records(uint32_t bytes, uint32_t* count) {
    StatsHeader* h = header();
    if (h == nullptr || bytes % kRecordAlignment != 0) return nullptr;
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const auto step = static_cast<uint32_t>(page / kRecordAlignment);  // so many records end with a page
    *count = (*count + step - 1) / step * step;
    const uint32_t before = h->record_count.load(std::memory_order_relaxed);
    const size_t at = kRecordsAt + size_t{before} * bytes;
    const size_t added = size_t{bytes} * *count;
    // Not only made longer but filled: a page that cannot be had must fail here, not when it is touched.
    if (at % page != 0 || at + added > largest_file() || !fd_->is_ours() ||
        ::fallocate(fd_->get(), 0, static_cast<off_t>(at), static_cast<off_t>(added)) != 0)
        return nullptr;
    void* memory = map(fd_->get(), at, added);
    if (memory == nullptr) return nullptr;
#if defined(__SANITIZE_ADDRESS__)
    __lsan_register_root_region(memory, added);  // objects here own others on the heap
#endif
    h->record_bytes.store(bytes, std::memory_order_relaxed);
    h->record_count.store(before + *count, std::memory_order_release);
    return memory;
}

void ProcessStats::describe(const char* name, const char* help, FieldKind kind, const void* record,
                            const void* field, uint16_t bytes) {
    StatsHeader* h = header();
    if (h == nullptr) return;
    add_field(
        h->vi_fields, &h->vi_field_count, name, help, kind,
        static_cast<size_t>(static_cast<const std::byte*>(field) - static_cast<const std::byte*>(record)),
        bytes);
}

}  // namespace viaduct::stats
