// SPDX-License-Identifier: BSD-2-Clause
// What processes of a window send each other, on the private communicator of the window. Every request is one
// message under kRequestTag, of one of two forms:
// - an InlineOp, for what is no operation and for operations on up to kInlineOpBytes in one piece: with its data it
// is
//   short enough to travel in one line of the protocol modules. What it brings back is an InlineOp as well;
// - a Head, the layout of the target's items as runs, and up to kInlineBytes of data. Longer data follows in
// a
//   message of its own under kDataTag, so that it lands where it belongs without a copy. What it brings back
//   comes under a tag that the origin has chosen.
// Requests of one sender are served in the order in which they were sent; that is what orders accumulates,
// and lets `flush`, `complete` and `unlock` mean "all before this".
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace viaduct::mpi::rma {

constexpr int kRequestTag = 0;
constexpr int kDataTag = 1;
// Data that an operation asks for comes back under a tag the origin chose, from here on.
constexpr int kFirstReplyTag = 16;
constexpr int kReplyTags = 0x3fffff00;

// Data up to this length travels with its request: one packet of the protocol modules holds both.
constexpr size_t kInlineBytes = 8 << 10;

// All in the byte order of the machine: the modules connect like with like.

// Data of an InlineOp: an item, or the two of a compare-and-swap.
constexpr size_t kInlineOpBytes = 16;

enum class Kind : uint8_t {
    put,  // with a Head
    get,
    accumulate,
    get_accumulate,

    inline_put,  // with an InlineOp, as all that follow
    inline_get,
    inline_accumulate,
    inline_get_accumulate,
    compare_swap,  // data: the new value, then the one to compare with
    answer,        // to the three before, in their order: what was there; code: an error
    flush,         // answered by flushed when all before it is done
    flushed,       // number: of the flush; code: error of what was done since the last one
    lock_shared,   // answered by granted when the lock is held
    lock_exclusive,
    granted,
    unlock,   // answered by flushed
    post,     // active target: the sender exposes its window to the receiver
    complete  // the sender's operations of this epoch are all before this
};
inline bool is_inline(Kind kind) { return kind > Kind::get_accumulate; }

struct InlineOp {
    Kind kind{};
    uint8_t bytes = 0;     // of an operation's item
    uint16_t op = 0;       // of accumulates, low half: the high one is the same for all predefined operators
    int32_t code = 0;      // MPI_Datatype of accumulates; an error
    uint64_t number = 0;   // of a flush; of puts and accumulates: of one right behind, or 0
    uint64_t address = 0;  // in the target's process
};
static_assert(sizeof(InlineOp) == 24);

// An InlineOp and the data behind it, as they are sent.
struct InlineMessage {
    InlineOp inline_op;
    char data[kInlineOpBytes] = {};
};
static_assert(sizeof(InlineMessage) == sizeof(InlineOp) + kInlineOpBytes);

constexpr MPI_Op kPredefinedOps = MPI_REPLACE & ~0xffff;

struct Head {
    Kind kind{};
    uint8_t unused[7] = {};
    int32_t op = 0;       // MPI_Op of accumulates
    int32_t element = 0;  // MPI_Datatype of the basic items of accumulates
    uint32_t reply_tag = 0;
    uint32_t runs = 0;     // of the layout behind the head
    uint64_t number = 0;   // of puts and accumulates: of a flush right behind, or 0
    uint64_t address = 0;  // in the target's process
    uint64_t count = 0;    // items of the layout
    int64_t extent = 0;    // bytes from item to item
    uint64_t bytes = 0;    // of data: behind the runs, in the data message, or wanted back
};
static_assert(sizeof(Head) == 64);

// Whether data of the origin belongs to a request, behind it or in a message of its own.
inline bool carries_data(const Head& head) {
    return head.kind == Kind::put || head.kind == Kind::accumulate ||
           (head.kind == Kind::get_accumulate && head.op != MPI_NO_OP);
}

// `count` pieces of `length` bytes, `stride` apart, the first at `offset` of the item.
struct WireRun {
    int64_t offset;
    int64_t length;
    int64_t count;
    int64_t stride;
};

}  // namespace viaduct::mpi::rma
