// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <exception>
#include <iterator>
#include <utility>

#include "core/log/log.hpp"
#include "core/shm/own_mapping.hpp"

namespace viaduct::paramnet {

namespace {

// Room, not memory: pages come with allocations. Enough for any program, little of a 47-bit address space.
constexpr uint64_t kArenaBytes = sizeof(void*) == 8 ? uint64_t{64} << 30 : uint64_t{256} << 20;
// Of all peers' arenas together: where addresses are few, the program needs them more than it needs plain copies.
constexpr uint64_t kMappedMost = sizeof(void*) == 8 ? UINT64_MAX : uint64_t{512} << 20;
std::atomic<uint64_t> mapped_of_peers{0};
constexpr uint64_t kMaxAlignment = uint64_t{1} << 30;

uint64_t page_bytes() {
    static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

// Maps [offset, offset + bytes) of the file at an aligned address; nullptr when there is no room.
void* map_aligned(int fd, uint64_t offset, uint64_t bytes, uint64_t alignment) {
    const uint64_t slack = alignment > page_bytes() ? alignment : 0;
    void* reserved = map_own(bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (reserved == nullptr) return nullptr;
    const auto begin = reinterpret_cast<uintptr_t>(reserved);
    const uint64_t at = (begin + alignment - 1) & ~(alignment - 1);
    void* mapped = ::mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED || ::madvise(mapped, bytes, MADV_DONTFORK) != 0) {
        ::munmap(reserved, bytes + slack);
        return nullptr;
    }
    if (at != begin) ::munmap(reserved, at - begin);
    if (at - begin != slack) ::munmap(reinterpret_cast<void*>(at + bytes), begin + slack - at);
    return mapped;
}

}  // namespace

Arena::Arena() {
    const uint64_t bytes = std::min(kArenaBytes, largest_file() / page_bytes() * page_bytes());
    const Segment made = Segment::reserve("viaduct-arena", bytes);
    if (bytes == 0 || made.fd() < 0) return;
    fd_ = KeptFd(made.duplicate(Segment::Access::read_write));
    if (!fd_.valid()) return;
    bytes_ = bytes;
    free_.emplace(0, bytes);
}

Fd Arena::duplicate() const { return Fd(fd_.is_ours() ? ::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3) : -1); }

// First fit. mutex_ held.
bool Arena::take(uint64_t bytes, uint64_t* offset) {
    for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
        if (hole->second < bytes) continue;
        *offset = hole->first;
        const uint64_t rest = hole->second - bytes;
        auto node = free_.extract(hole);  // and put back for the rest: take() allocates nothing
        if (rest == 0) return true;
        node.key() = *offset + bytes;
        node.mapped() = rest;
        free_.insert(std::move(node));
        return true;
    }
    return false;
}

// mutex_ held. Throws nothing, as the end of a NIC calls it: a range whose entry cannot be allocated stays unused.
void Arena::give_back(uint64_t offset, uint64_t bytes) try {
    auto after = free_.lower_bound(offset);
    if (after != free_.end() && offset + bytes == after->first) {
        bytes += after->second;
        after = free_.erase(after);
    }
    if (after != free_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == offset) {
            before->second += bytes;
            return;
        }
    }
    free_.emplace(offset, bytes);
} catch (const std::exception&) {
    VIADUCT_LOG(warn, "paramnet", "no memory: a range of the arena stays unused until the NIC is closed");
}

Status Arena::allocate(uint64_t bytes, uint64_t alignment, Region* out) {
    const uint64_t page = page_bytes();
    if (alignment < page) alignment = page;
    if (bytes == 0 || !std::has_single_bit(alignment) || alignment > kMaxAlignment) return Status::invalid;
    if (bytes > bytes_) return Status::out_of_resources;  // also where there is no arena
    const uint64_t whole = (bytes + page - 1) / page * page;
    const std::scoped_lock lock(mutex_);
    if (!fd_.is_ours()) return Status::out_of_resources;  // the program has closed it
    uint64_t offset = 0;
    if (!take(whole, &offset)) return Status::out_of_resources;
    // Pages now: memory that runs short is told here, not by a signal at the first touch.
    void* mapped = nullptr;
    if (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(whole)) ==
        0)
        mapped = map_aligned(fd_.get(), offset, whole, alignment);
    if (mapped == nullptr) {
        ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(whole));
        give_back(offset, whole);
        return Status::out_of_resources;
    }
    out->base = reinterpret_cast<uintptr_t>(mapped);
    out->length = whole;
    out->arena = kArena;
    out->arena_offset = offset;
    return Status::ok;
}

void Arena::release(const Region& region) {
    const std::scoped_lock lock(mutex_);
    ::munmap(reinterpret_cast<void*>(region.base), region.length);
    // The pages stay where the program has closed the file: the number may be that of one of its own.
    if (fd_.is_ours())
        ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(region.arena_offset), static_cast<off_t>(region.length));
    give_back(region.arena_offset, region.length);
}

void MappedArena::map(Fd fd, uint64_t bytes) {
    if (bytes == 0 || bytes > kArenaBytes) return;
    if (mapped_of_peers.fetch_add(bytes, std::memory_order_relaxed) <= kMappedMost - bytes)
        segment_ = Segment::map(std::move(fd), bytes, Segment::Access::sparse);
    if (!segment_.valid()) mapped_of_peers.fetch_sub(bytes, std::memory_order_relaxed);
    // Memory of another process: no part of our core file.
    if (segment_.valid()) ::madvise(segment_.data(), segment_.size(), MADV_DONTDUMP);
}

MappedArena::~MappedArena() { mapped_of_peers.fetch_sub(segment_.size(), std::memory_order_relaxed); }

}  // namespace viaduct::paramnet
