// SPDX-License-Identifier: BSD-2-Clause
#include "core/stats/process_stats.hpp"

#include <unistd.h>

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/config/paths.hpp"
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

}  // namespace

bool ProcessStats::open() {
    if (header() != nullptr) return true;    // made by a start of the library that failed later
    const std::string program = own_name();  // first: it may throw
    GrowingSegment made(kSegmentName, kRecordsAt);
    if (!made.valid()) return false;
    std::byte* const memory = made.data();
    auto* h = new (memory) StatsHeader{};
    h->version = kVersion;
    h->pid = static_cast<uint32_t>(::getpid());
    put(h->program, program.c_str());
    put(h->library, viaduct::kVersion);
    h->started = now_ns();
    h->records_at = static_cast<uint32_t>(made.size());
    for (size_t i = 0; i < kProcessCountKinds; ++i) {
        add_field(h->process_fields, &h->process_field_count, kProcessCounters[i].name,
                  kProcessCounters[i].help, FieldKind::counter,
                  static_cast<size_t>(reinterpret_cast<std::byte*>(&h->counters[i]) -
                                      reinterpret_cast<std::byte*>(h)),
                  sizeof(uint64_t));
    }
    *segment_ = std::move(made);
    counters_.store(h->counters, std::memory_order_relaxed);
    header_.store(h, std::memory_order_relaxed);
    move_failures(new (memory + kFailuresAt) FailureRing{});
    std::atomic_ref<uint64_t>(h->magic).store(kMagic, std::memory_order_release);
    return true;
}

void ProcessStats::reset_after_fork() {
    counters_.store(unseen_, std::memory_order_relaxed);
    header_.store(nullptr, std::memory_order_relaxed);
    segment_->reset_after_fork();
    reset_failures();
}

void* ProcessStats::records(uint32_t bytes, uint32_t* count) {
    StatsHeader* h = header();
    if (h == nullptr || bytes % kRecordAlignment != 0) return nullptr;
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const auto step = static_cast<uint32_t>(page / kRecordAlignment);  // so many records end with a page
    *count = (*count + step - 1) / step * step;
    const size_t added = size_t{bytes} * *count;
    void* const memory = segment_->grow(added);
    if (memory == nullptr) return nullptr;
#if defined(__SANITIZE_ADDRESS__)
    __lsan_register_root_region(memory, added);  // objects here own others on the heap
#endif
    h->record_bytes.store(bytes, std::memory_order_relaxed);
    h->record_count.store(h->record_count.load(std::memory_order_relaxed) + *count, std::memory_order_release);
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
