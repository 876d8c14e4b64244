// SPDX-License-Identifier: BSD-2-Clause
// What a recorded process writes, into a file or into memory that viptrace has given it: a header, then a ring of
// events of equal size, the newest over the oldest. viptrace reads it and trusts nothing in it. See docs/tracing.md.
//
//   0              Header
//   kEventsAt      capacity events
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::trace {

inline constexpr uint64_t kRecordMagic = 0x0145'4341'5254'5056;   // "VPTRACE" and a 1
inline constexpr uint64_t kRefusedMagic = 0x0045'4341'5254'5056;  // in its place: this process is recorded already
inline constexpr uint32_t kRecordVersion = 1;
inline constexpr char kFolderVariable[] = "VIPTRACE_FOLDER";
inline constexpr char kEventsVariable[] = "VIPTRACE_EVENTS";
inline constexpr char kSuffix[] = ".viptrace";
inline constexpr uint64_t kEventsUnlessGiven = 1 << 18;
inline constexpr uint32_t kMostEventBits = 28;  // of how many there is room for

enum class What : uint8_t {
    none,
    open_nic,         // value of the end: nothing
    close_nic,        //
    register_mem,     // bytes
    deregister_mem,   //
    create_vi,        // object of the end: the VI
    destroy_vi,       //
    post_send,        // bytes, control word << 32
    post_recv,        // likewise
    send_done,        // bytes, status << 32: fetched by a call that does not wait
    recv_done,        //
    send_wait,        // the end likewise
    recv_wait,        //
    cq_wait,          // object of the end: the VI
    connect_wait,     // object of the end: the request; value: hashes of the local (<< 32) and the remote discriminator
    connect_accept,   // object: the VI; value: the request
    connect_reject,   // object: the request
    connect_request,  // value: hashes of the local (<< 32) and the remote discriminator
    peer_request,     // likewise
    peer_wait,        //
    peer_done,        // connected, found by a call that does not wait
    disconnect,       //
    async_error,      // the code
    send_notify,      // bytes, status << 32: fetched for the program's handler
    recv_notify,      //
    write_now,        // bytes
    connection,       // was there when recording began; value: hashes as above
    made,             // that connection; value: when, CLOCK_MONOTONIC
    count_
};

enum class Phase : uint8_t { instant, begin, end };

// One event. `at` is written last: an event whose time is 0 was never finished.
struct Event {
    std::atomic<uint64_t> at;  // ticks
    What what;
    Phase phase;
    uint8_t result;  // VIP_RETURN; of a begin 0
    uint8_t reserved;
    uint32_t thread;  // from 1 on
    uint64_t object;  // handle, or address (register_mem, deregister_mem)
    uint64_t value;
};
static_assert(sizeof(Event) == 32);

// One instant on both clocks.
struct Moment {
    uint64_t ticks;
    int64_t ns;  // CLOCK_MONOTONIC
};

struct Header {
    uint64_t magic;
    uint32_t version;
    uint32_t pid;
    char program[32];
    char host[64];
    uint64_t capacity;
    Moment begin;
    Moment later;                               // from time to time, and at the end
    int64_t begin_real_ns;                      // CLOCK_REALTIME
    uint32_t rank_plus_one;                     // of an MPI process, as its launcher has told it; 0: of none
    std::atomic<uint32_t> ended;                // 1: no event will follow
    alignas(64) std::atomic<uint64_t> written;  // events so far
};
inline constexpr size_t kEventsAt = 4096;
static_assert(sizeof(Header) <= kEventsAt);

}  // namespace viaduct::trace
