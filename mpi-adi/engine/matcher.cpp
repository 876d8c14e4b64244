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

Request* Matcher::take_any_receive() {
    if (Request* const anywhere = take_receive_from_anywhere()) return anywhere;
    for (Source& source : sources_) {
        Request* const first = source.receives.first();
        if (first == nullptr) continue;
        source.receives.erase(first);
        return first;
    }
    return nullptr;
}

void Matcher::post_again(Request* receive) {
    Request* behind = from_anywhere_.first();
    while (behind != nullptr && behind->order < receive->order) behind = behind->posted.next;
    from_anywhere_.insert_before(receive, behind);
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
