// SPDX-License-Identifier: BSD-2-Clause
// The part of matching that is not on every message's way, and the store of unexpected messages.
#include "mpi-adi/engine/matcher.hpp"

#include <cstdlib>
#include <new>

namespace viaduct::mpi {
namespace {

// Room behind a pooled record; longer messages get memory of their own, which goes back at once.
constexpr size_t kPooledBytes = 512;

List<Unexpected, &Unexpected::of_all> pool;
uint64_t held_bytes = 0;

}  // namespace

void Matcher::add(Unexpected* message) {
    const int source = message->um_env.ev_rank;
    grow(source + 1);
    message->home = this;
    sources_[static_cast<size_t>(source)].messages.push_back(message);
    messages_.push_back(message);
}

void Matcher::remove(Unexpected* message) {
    sources_[static_cast<size_t>(message->um_env.ev_rank)].messages.erase(message);
    messages_.erase(message);
    message->home = nullptr;
}

Request* Matcher::take_receive_of_lost() {
    bool lost_one = false;
    for (int source = 0; peers_ != nullptr && source < size_; source++) {
        if ((peers_[source]->p_flags & MPIP_PROC_TRANSPORTERR) == 0) continue;
        lost_one = true;
        auto& receives = sources_[static_cast<size_t>(source)].receives;
        Request* const first = receives.first();
        if (first == nullptr) continue;
        receives.erase(first);
        return first;
    }
    Request* const anywhere = lost_one ? from_anywhere_.first() : nullptr;
    if (anywhere != nullptr) from_anywhere_.erase(anywhere);
    return anywhere;
}

Unexpected* new_unexpected(size_t bytes) {
    Unexpected* message = pool.first();
    if (message != nullptr && bytes <= kPooledBytes) {
        pool.erase(message);
    } else {
        const size_t room = bytes <= kPooledBytes ? kPooledBytes : bytes;
        void* memory = std::malloc(sizeof(Unexpected) + room);
        if (memory == nullptr) throw std::bad_alloc();
        message = new (memory) Unexpected();
        message->capacity = room;
    }
    held_bytes += sizeof(Unexpected) + message->capacity;
    message->um_buf = nullptr;
    message->um_data = nullptr;
    return message;
}

void free_unexpected(Unexpected* message) {
    held_bytes -= sizeof(Unexpected) + message->capacity;
    if (message->capacity == kPooledBytes)
        pool.push_front(message);  // the next one finds it in the cache
    else
        std::free(message);
}

uint64_t unexpected_bytes() { return held_bytes; }

}  // namespace viaduct::mpi
