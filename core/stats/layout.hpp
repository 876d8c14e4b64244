// SPDX-License-Identifier: BSD-2-Clause
// The memory in which a process shows its counters and VIs to permitted readers (vipstat). One memfd for each
// process that has opened a NIC, found as /proc/PID/fd/N -> /memfd:viaduct-stats. It describes itself: a
// reader finds in it where each field lies, so that tools and libraries of different age understand each
// other.
//
//   0               StatsHeader
//   kFailuresAt     FailureRing (failures.hpp): the last failures in words
//   kRecordsAt      records, record_bytes each, record_count of them; those whose field "handle" is 0 are
//                   free. They are the library's own objects: nothing is copied for the reader, and nothing
//                   is to be relied on but the fields that are named.
//
// Only that process can write it: others map it for reading only (GrowingSegment). A reader sees a moving picture:
// numbers of one record may be from different moments.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/stats/failures.hpp"

namespace viaduct::stats {

inline constexpr char kSegmentName[] = "viaduct-stats";
inline constexpr uint64_t kMagic = 0x0153'5441'5344'4956;  // "VIDSTAS" and a 1
inline constexpr uint32_t kVersion = 2;

enum class FieldKind : uint16_t {
    number = 1,   // unsigned, 4 or 8 bytes
    counter = 2,  // likewise, only grows
    time = 3,     // CLOCK_MONOTONIC, ns; 0: never
    text = 4,     // ends with a zero byte
};

struct Field {
    char name[24];
    char help[96];
    uint32_t offset;  // process fields: within the segment; VI fields: within a record
    uint16_t bytes;
    FieldKind kind;
};

inline constexpr uint32_t kMostFields = 48;
inline constexpr uint32_t kMostCounters = 32;

struct StatsHeader {
    uint64_t magic;
    uint32_t version;
    uint32_t pid;
    char program[32];
    char library[16];  // version of the library
    int64_t started;   // CLOCK_MONOTONIC, ns
    uint32_t process_field_count;
    uint32_t vi_field_count;
    uint32_t records_at;
    std::atomic<uint32_t> record_bytes;  // 0: no record yet
    std::atomic<uint32_t> record_count;
    uint32_t reserved;
    std::atomic<uint64_t> counters[kMostCounters];
    Field process_fields[kMostFields];
    Field vi_fields[kMostFields];
};

inline constexpr uint32_t kHeaderBytes = 16384;
inline constexpr uint32_t kFailuresAt = kHeaderBytes;
inline constexpr uint32_t kRecordsAt = 49152;
static_assert(kFailuresAt + sizeof(FailureRing) <= kRecordsAt);
static_assert(sizeof(Field) == 128);
static_assert(offsetof(StatsHeader, counters) == 96 &&
              offsetof(StatsHeader, process_fields) == 96 + 8 * kMostCounters);
static_assert(sizeof(StatsHeader) <= kHeaderBytes);

}  // namespace viaduct::stats
