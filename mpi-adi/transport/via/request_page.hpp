// SPDX-License-Identifier: BSD-2-Clause
// Where peers on this host note that they request a connection: a page of this process that its card offers. Writing a
// note costs the requester no answer, and reading costs this process one load in each idle pass. It serves a process
// that computes, is stopped, or sleeps: the note is there when it next makes progress. Notes are hints; a wrong one
// makes this process request a connection that it does not need. Under the engine's lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/process/offered_memory.hpp"

namespace viaduct::via {

struct RequestNotes;

class RequestPage {
public:
    // Of ranks beyond these none can be noted.
    static constexpr uint32_t kMostRanks = 16384;

    // Without memory nothing is offered, and peers notify the connect listener.
    void open();
    void close();
    const MemoryOffer& offer() const { return offer_; }

    // Something was noted since the last call of take().
    bool is_noted() const;
    // World ranks noted since then, each once, of the ranks below `ranks`. Notes of others stay.
    std::vector<uint32_t> take(size_t ranks);
    // There are more ranks: some of them may have been noted before.
    void look_again() { --seen_; }

    // Notes `rank` in the page that was offered. Anything but ok: it is not noted.
    static Opened note(const MemoryOffer& offer, uint32_t rank);

private:
    Segment memory_;
    MemoryOffer offer_;
    RequestNotes* notes_ = nullptr;
    uint32_t seen_ = 0;
};

// What is shared.
struct RequestNotes {
    OfferedMark mark;
    std::atomic<uint32_t> count;  // grows behind each note
    uint32_t unused;
    std::atomic<uint64_t> asked[RequestPage::kMostRanks / 64];  // a bit for each rank; taken back by the owner
};
static_assert(sizeof(RequestNotes) <= 4096);

inline bool RequestPage::is_noted() const {
    return notes_ != nullptr && notes_->count.load(std::memory_order_relaxed) != seen_;
}

}  // namespace viaduct::via
