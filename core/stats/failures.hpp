// SPDX-License-Identifier: BSD-2-Clause
// The ring of failure records of a process: why a call failed, a descriptor completed in error, a connection broke. It
// lies in the statistics segment (layout.hpp), where vipstat and the agent read it. Written on failing paths only, by
// any thread, without an allocation; a thread waits while another one holds the ring, 250 ms at most.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::stats {

enum class FailureKind : uint32_t { call, descriptor, connection, notice };

// As it lies in shared memory; texts end with a zero byte.
struct FailureRecord {
    std::atomic<uint64_t> number;  // from 1, the greatest is the newest; 0: free, or being written
    int64_t at;                    // CLOCK_MONOTONIC, ns; of the last one, when it happened several times
    uint64_t object;               // handle
    uint32_t code;                 // VIP_RETURN of a call, status bits of a descriptor, VIP_ERROR_CODE of a connection
    FailureKind kind;
    uint32_t times;
    uint32_t reserved;
    char call[32];
    char peer[64];
    char text[320];  // what is wrong: object, field, value, limit
    char said[224];  // what the other end has found
    char cure[224];
};
static_assert(sizeof(FailureRecord) == 904);

inline constexpr uint32_t kFailureRecords = 32;

struct FailureRing {
    std::atomic<uint64_t> written;  // numbers given so far
    std::atomic<uint32_t> busy;     // the thread (gettid) that holds the ring; 0: none
    uint32_t reserved;
    FailureRecord records[kFailureRecords];
};

struct Failure {
    FailureKind kind = FailureKind::call;
    const char* call = "";
    const void* object = nullptr;
    uint32_t code = 0;
    const char* peer = "";
    const char* text = "";
    const char* said = "";
    const char* cure = "";
};

// Keeps a record, and writes it to the log (warn) and, with VIADUCT_WHY, to standard error. A failure that repeats a
// record (object, call, code, peer, texts) is counted there, and makes the record the newest: a program that polls two
// NICs in turn keeps the records of its other failures. A repetition of the newest record is not written again.
void record_failure(const Failure&);

// The newest record of that object; of any, for null. False: there is none.
bool last_failure(const void* object, FailureRecord* out);

// One line without its end: "VipCreateVi: VIP_INVALID_MTU: ...". At most `bytes` with the zero behind it; returns the
// length of the whole.
size_t write_failure(const FailureRecord&, char* text, size_t bytes);
inline constexpr size_t kFailureLineBytes = 1024;

// Where records go from now on, with those that are there; null: into this process' ordinary memory.
void move_failures(FailureRing* to);
// In a forked child: the records are its parent's, and the segment is not there.
void reset_failures();
bool failures_are_in_segment();

}  // namespace viaduct::stats
