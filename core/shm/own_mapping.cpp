// SPDX-License-Identifier: BSD-2-Clause
// See own_mapping.hpp.
#include "core/shm/own_mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <initializer_list>

namespace viaduct {

namespace {

std::atomic<AnyRegistered> any_registered{nullptr};

bool is_registered(const void* begin, size_t bytes) {
    const AnyRegistered ask = any_registered.load(std::memory_order_acquire);
    return ask != nullptr && ask(reinterpret_cast<uintptr_t>(begin), bytes);
}

// Places that the system offers, taken one after another until one holds `bytes` that are registered nowhere. Each is
// twice as large as the one before, so that a region of any size is soon passed. The rest is given back at the end.
class Search {
public:
    explicit Search(size_t bytes) : bytes_(bytes) {}
    ~Search() {
        for (int i = 0; i < taken_; ++i) give_back(places_[i]);
    }
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;

    // Null: there is no such place. It stays mapped, without access.
    std::byte* find() {
        size_t size = bytes_;
        bool grows = true;
        while (taken_ < kMost && found_ == nullptr) {
            void* at = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (at == MAP_FAILED && size == bytes_) break;
            grows = grows && at != MAP_FAILED && size < kLargest;
            if (at != MAP_FAILED) look_at({static_cast<std::byte*>(at), size});
            size = grows ? 2 * size : bytes_;
        }
        return found_;
    }

private:
    struct Place {
        std::byte* at;
        size_t bytes;
    };
    static constexpr int kMost = 128;
    static constexpr size_t kLargest = SIZE_MAX / 1024;

    // The system goes down from above, or up from below.
    void look_at(const Place& place) {
        places_[taken_++] = place;
        for (std::byte* at : {place.at, place.at + (place.bytes - bytes_)})
            if (found_ == nullptr && !is_registered(at, bytes_)) found_ = at;
    }

    void give_back(const Place& place) const {
        std::byte* const end = place.at + place.bytes;
        if (found_ < place.at || found_ >= end) {
            ::munmap(place.at, place.bytes);
            return;
        }
        if (found_ != place.at) ::munmap(place.at, static_cast<size_t>(found_ - place.at));
        if (found_ + bytes_ != end) ::munmap(found_ + bytes_, static_cast<size_t>(end - (found_ + bytes_)));
    }

    const size_t bytes_;
    std::byte* found_ = nullptr;
    Place places_[kMost];
    int taken_ = 0;
};

}  // namespace

void set_registered_memory_check(AnyRegistered ask) { any_registered.store(ask, std::memory_order_release); }

void* map_own(size_t bytes, int protection, int flags, int fd, off_t at) {
    void* mapped = ::mmap(nullptr, bytes, protection, flags, fd, at);
    if (mapped == MAP_FAILED) return nullptr;
    // Behind the mapping: what is registered from here on is not part of it.
    if (!is_registered(mapped, bytes)) return mapped;
    ::munmap(mapped, bytes);

    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t whole = (bytes + page - 1) / page * page;
    std::byte* const place = Search(whole).find();
    if (place == nullptr) {
        errno = ENOMEM;
        return nullptr;
    }
    mapped = ::mmap(place, bytes, protection, flags | MAP_FIXED, fd, at);
    if (mapped != MAP_FAILED) return mapped;
    const int error = errno;
    ::munmap(place, whole);
    errno = error;
    return nullptr;
}

}  // namespace viaduct
