// SPDX-License-Identifier: BSD-2-Clause
// Everything of paramnet that lies in memory shared between processes: the connection segment (two lanes, two
// end records) and the hub of a NIC context. Rules: one writer for each line, 128 bytes between what
// different ends write (adjacent-line prefetch: spec/performance R3), all-zero is a valid beginning, and no
// reader uses a word of it unchecked (docs/data-path.md). Ends of 32 and of 64 bits share it: a 64-bit
// field of a plain struct lies at a multiple of eight by what stands before it, and the assertions below hold in both.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::paramnet {

// What an older end may ignore (kFlagProbe, EndRecord::probes) does not change it: an agent of
// before an upgrade serves on while it has clients.
inline constexpr uint32_t kLayoutVersion = 9;

// ---- lanes
// --------------------------------------------------------------------------------------------------

inline constexpr uint32_t kLines = 256;          // lines of a lane
inline constexpr uint32_t kInlineBytes = 112;    // payload that travels inside a line
inline constexpr uint32_t kUnitBytes = 64;       // allocation unit of the block area
inline constexpr uint32_t kUnits = 4096;         // of a lane: 256 KiB, which stays in a second-level cache
inline constexpr uint32_t kMinFragment = 4096;   // bytes a line points to, of a message that needs several
inline constexpr uint32_t kMaxFragment = 65536;  // bytes a line can point to
// Up to here a message that goes through the caches is one piece: to copy at both ends at once would save
// less than more lines cost.
inline constexpr uint32_t kOnePiece = 16384;
inline constexpr uint32_t kRelayBytes = 65536;   // of a piece that is handed over (relay.cpp)
inline constexpr uint32_t kPublishLines = 64;    // the receiver tells its progress after so many lines,
inline constexpr uint32_t kPublishUnits = 1024;  // or so many units

// What a line says. `more` continues the message begun last by send or write; the others begin something.
enum LineOperation : uint32_t {
    kLineSend = 1,      // a message, or its first fragment; `extra` is the length of the whole
    kLineMore,          // next fragment of the send or write under way
    kLinePull,          // a message that lies in the sender's memory: PullRequest
    kLineImmediate,     // an RDMA write with immediate data whose bytes are already in place
    kLineWrite,         // served RDMA write, first fragment: RemoteRange, `extra` is the length of the whole
    kLineRead,          // served RDMA read: RemoteRange
    kLineReadData,      // answer to it, in fragments
    kLineReadRefused,   // answer to it: no permission
    kLineWriteRefused,  // an RDMA write with immediate data that was not permitted: the receive gets the
                        // error
    kLineAtomic,        // served atomic operation: AtomicRequest; answered as a read of the word is
};

inline constexpr uint32_t kFlagImmediate = 1u << 0;  // the line's `immediate` is valid
inline constexpr uint32_t kFlagAck = 1u << 1;        // counts in EndRecord::placed of the receiver
inline constexpr uint32_t kFlagBlocks = 1u << 2;  // payload lies in the block area, from BlockPlace::unit on
inline constexpr uint32_t kFlagProbe = 1u << 3;   // the receiver reports how long the message took: ProbeMark

// Two lines of a cache, of which a message of up to kOneCacheLine bytes uses one: neighbours that are fetched
// in pairs would be taken away from the end that is about to write the next one, and for the longer ones the
// pair is fetched together.
inline constexpr uint32_t kOneCacheLine = 48;
struct alignas(128) Line {
    std::atomic<uint64_t> word;  // make_word(); stored last, with release
    uint32_t immediate;
    // Of a message inside the line: receives the sender has posted itself, so that a dialogue needs no other
    // line. Otherwise: length of the whole message.
    uint32_t extra;
    std::byte payload[kInlineBytes];
};
static_assert(sizeof(Line) == 128 && offsetof(Line, payload) == 16);

// Positions are free-running; a line's word holds its position plus one, so that neither zeroed memory nor
// the word of an older lap can be taken for the line that is waited for.
inline constexpr uint32_t line_tag(uint32_t position) { return position + 1; }
inline constexpr uint32_t kLengthShift = 40;  // of the length in a word
inline constexpr uint64_t make_meta(uint32_t operation, uint32_t flags, uint32_t length) {
    return uint64_t{operation | flags << 4 | length << (kLengthShift - 32)} << 32;
}
inline constexpr uint64_t make_word(uint32_t position, uint32_t operation, uint32_t flags, uint32_t length) {
    return line_tag(position) | make_meta(operation, flags, length);
}
inline constexpr uint32_t meta_of(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
inline constexpr uint32_t operation_in(uint32_t meta) { return meta & 15; }
inline constexpr uint32_t flags_in(uint32_t meta) { return meta >> 4 & 15; }
inline constexpr uint32_t length_in(uint32_t meta) { return meta >> 8; }

// The payload of lines that do not carry their bytes inside.
struct BlockPlace {
    uint32_t unit;  // offset in the block area, in units
};
struct PullRequest {
    uint64_t address;  // in the sender
    uint32_t
        handle;  // of a region in the sender's arena, which the receiver has mapped; 0: memory of its process
    uint32_t reserved = 0;
};
// Beside one of these two, in the first line of the message.
inline constexpr uint32_t kProbeMarkAt = 32;
// What is learnt of a message that is timed: each has its answers in a word of its own.
enum Probe : uint32_t { kProbeMethod = 0, kProbePrefetch = 1, kProbeKinds };
struct ProbeMark {
    int64_t begun;    // CLOCK_MONOTONIC, ns
    uint32_t number;  // of the trial
    uint32_t kind;    // Probe
};
struct RemoteRange {
    uint32_t unit;  // as BlockPlace (writes)
    uint32_t handle;
    uint64_t address;
};
struct AtomicRequest {
    uint32_t handle;
    uint32_t width;  // of the word: 4 or 8
    uint64_t address;
    uint64_t swaps;      // compare-swap, else fetch-add
    uint64_t operands[2];  // as they lie in the initiator's memory
};
static_assert(sizeof(RemoteRange) == 16 && offsetof(RemoteRange, address) == 8);
static_assert(sizeof(AtomicRequest) == 40 && offsetof(AtomicRequest, address) == 8);
static_assert(sizeof(AtomicRequest) <= kInlineBytes);
static_assert(sizeof(PullRequest) == 16 && offsetof(PullRequest, handle) == 8);
static_assert(sizeof(ProbeMark) == 16 && offsetof(ProbeMark, number) == 8);
static_assert(sizeof(PullRequest) <= kProbeMarkAt && kProbeMarkAt + sizeof(ProbeMark) <= kOneCacheLine);

// What a line holds besides its word can change while we look, if the peer is hostile: it is read once, and
// what was checked is what is used.
template <class Payload>
inline Payload read_payload(const Line& line, uint32_t at = 0) {
    Payload value;
    __builtin_memcpy(&value, line.payload + at, sizeof value);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler must not read it again
    return value;
}
inline uint32_t read_extra(const Line& line) { return *const_cast<const volatile uint32_t*>(&line.extra); }

inline constexpr uint32_t units_for(uint32_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes; }

// ---- end records
// --------------------------------------------------------------------------------------------

// How an end is told of new work. Zero, the safe answer, is `ring`.
enum Mode : uint32_t { kModeRing = 0, kModePolled = 1 };

// What an end has found that concerns the other one (spec/reliability 6.2, spec/errors 8): counters, told by
// a service ring.
enum EventKind : uint32_t {
    kEventNoReceive,
    kEventWriteRefused,
    kEventReadRefused,
    kEventWriteDamaged,
    kEventServe,  // no error: RDMA in the lane waits to be served
    kEventKinds
};

enum Permission : uint32_t { kMayWrite = 1u << 0, kMayRead = 1u << 1 };

// EndRecord::busy_*: memory that no handle of the other end names. No handle has this value.
inline constexpr uint32_t kBusySomewhere = UINT32_MAX;

// One end's words. Its owner writes, the other end reads.
struct alignas(128) EndRecord {
    // Lines and units taken out of the other end's lane: lines | units << 32.
    alignas(128) std::atomic<uint64_t> consumed;
    // Receives posted since the start, and in the upper half whether this end has started: messages | 1
    // << 32.
    alignas(128) std::atomic<uint64_t> posted;
    // Lines with kFlagAck that are done with, and in the upper half what was wrong with the next one (status
    // bits).
    alignas(128) std::atomic<uint64_t> placed;
    // How long the last timed message of each kind took, in ns, and in the upper half the number of its trial.
    std::atomic<uint64_t> probes[kProbeKinds];
    // Written seldom.
    alignas(128) std::atomic<uint32_t> recv_mode;  // how to tell of new lines
    std::atomic<uint32_t> send_mode;  // how to tell of `placed`, and of `consumed` if space_wanted
    std::atomic<uint32_t> space_wanted;
    std::atomic<uint32_t> closed;      // this end has left
    std::atomic<uint32_t> attached;    // has mapped the segment
    std::atomic<uint32_t> link_down;   // fault plan of this end takes the link down
    std::atomic<uint32_t> permission;  // of the VI, for the other end's RDMA
    std::atomic<uint32_t> ptag;
    // Sends from this length up are pulled by this end; 0: none, kLearnt: those for which that is faster.
    std::atomic<uint32_t> pull_from;
    std::atomic<uint32_t> needs_fence;  // this process has no membarrier
    std::atomic<uint32_t> maps_arena;   // this end reaches the other one's arena
    std::atomic<uint32_t> events[kEventKinds];
    // relay.cpp: pieces that this end has asked for of a message it may not fetch; and those that it has handed over.
    std::atomic<uint32_t> relay_wanted;
    std::atomic<uint32_t> relay_handed;
    // What this end has found wrong (told_cause.hpp); read once the other end has seen that the connection breaks.
    std::atomic<uint64_t> cause[5];
    // While this end touches memory that the other end may reclaim: the handle of that memory, its own or
    // ours on its behalf, or kBusySomewhere. Else 0. One word for each side of the VI, because each has a
    // lock of its own.
    alignas(128) std::atomic<uint32_t> busy_send;
    std::atomic<uint32_t> busy_recv;
    // This end has rung the other one's doorbell (called its progress thread) and the other one has not looked yet.
    // The other end takes it back. The words of the hub only say sooner where to look (docs/shared-words.md).
    alignas(128) std::atomic<uint32_t> rung;
    std::atomic<uint32_t> called;
};
static_assert(sizeof(EndRecord) == 768 && offsetof(EndRecord, rung) == 640);
static_assert(offsetof(EndRecord, probes) == 264 && offsetof(EndRecord, relay_handed) == 452 &&
              offsetof(EndRecord, cause) == 456);

// ---- the connection segment
// ---------------------------------------------------------------------------------

inline constexpr uint32_t kSegmentMagic = 0x4C504456;

struct SegmentHeader {
    uint32_t magic;
    uint32_t version;
    uint64_t bytes;
};

// Side 0 is the requester. lines[s], blocks[s], relay[s]: what side s sends.
struct ConnectionSegment {
    alignas(128) SegmentHeader header;
    std::atomic<uint32_t> outcome;  // of the attempt to connect (outcome.hpp); changed once, by either end
    alignas(128) EndRecord ends[2];
    alignas(4096) Line lines[2][kLines];
    alignas(4096) std::byte blocks[2][kUnits * kUnitBytes];
    alignas(4096) std::byte relay[2][kRelayBytes];
};
static_assert(sizeof(SegmentHeader) == 16 && offsetof(SegmentHeader, bytes) == 8);
static_assert(offsetof(ConnectionSegment, outcome) == 16);
static_assert(offsetof(ConnectionSegment, ends) == 128 && offsetof(ConnectionSegment, lines) == 4096);
static_assert(offsetof(ConnectionSegment, blocks) == 4096 + 2 * kLines * 128);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

// ---- the hub of a NIC context
// -------------------------------------------------------------------------------

inline constexpr uint32_t kMaxVi = 1024;  // spec/limits 9
inline constexpr uint32_t kDoorbellWords = kMaxVi / 64;

// Doorbells tell pollers and sleepers of the application which VIs have something; service doorbells tell the
// progress thread. Peers mark their own end record (EndRecord::rung, called), set the bit, bump the counter, then
// wake if the owner's page says that a thread sleeps. All peers can write here, so all of it is checked: a bit
// counts only where the end record of that connection says the same, and a ring that no bit explains makes the
// owner look at the end records of all connections.
struct Hub {
    alignas(128) std::atomic<uint32_t> rings;
    alignas(128) std::atomic<uint64_t> doorbells[kDoorbellWords];
    alignas(128) std::atomic<uint32_t> service_rings;
    alignas(128) std::atomic<uint64_t> services[kDoorbellWords];
    alignas(128)
        std::atomic<int64_t> link_free;  // of the modelled link to this NIC (link_model.hpp); else unused
};
static_assert(sizeof(Hub) == 640 && offsetof(Hub, services) == 384 && offsetof(Hub, link_free) == 512);

// ---- the owner page of a NIC context
// -------------------------------------------------------------------------------

// Behind its region table: peers map it read-only. What steers this context, or tells of it, and no peer may
// change.
struct OwnerPage {
    // Number of the thread that lives as long as the context, while it does (life.hpp); else 0, or with a
    // mark that the kernel makes.
    alignas(128) std::atomic<uint32_t> life;
    alignas(128) std::atomic<uint32_t> sleepers;  // threads asleep on Hub::rings
    std::atomic<uint32_t> service_asleep;         // the progress thread sleeps on Hub::service_rings
};
static_assert(sizeof(OwnerPage) == 256 && offsetof(OwnerPage, sleepers) == 128 &&
              offsetof(OwnerPage, service_asleep) == 132);

// What OpenNic::provider_words hold.
enum ProviderWord : uint32_t {
    kWordVersion = 0,  // kLayoutVersion
    kWordHubBytes = 1,
    kWordProbeAddress = 2,  // where, in the context's process, ...
    kWordArenaBytes = 4,    // of the shared arena; 0: it has none
    kWordProbeValue = 3,    // ... this random value lies: a process that reads it there can reach the process' memory
};

// What ConnRequest and ConnAccept::endpoint_words hold.
enum EndpointWord : uint32_t { kEndSlot = 0 };  // number of the VI in its context

}  // namespace viaduct::paramnet
