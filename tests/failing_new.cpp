// SPDX-License-Identifier: BSD-2-Clause
// See failing_new.hpp.
#include "tests/failing_new.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> allocations_left{-1};  // below 0: all succeed
std::atomic<bool> has_failed{false};

bool may_allocate() {
    for (long left = allocations_left.load(); left >= 0;) {
        if (!allocations_left.compare_exchange_weak(left, left - 1)) continue;
        if (left > 0) return true;
        has_failed.store(true);
        return false;
    }
    return true;
}

void* allocate(size_t bytes) {
    void* memory = may_allocate() ? std::malloc(bytes) : nullptr;
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

void fail_allocation_after(long allocations) {
    has_failed.store(false);
    allocations_left.store(allocations);
}

bool allocation_has_failed() {
    allocations_left.store(-1);
    return has_failed.load();
}

void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
    return may_allocate() ? std::malloc(bytes) : nullptr;
}
// The other forms for such objects call these.
void* operator new(size_t bytes, std::align_val_t alignment) {
    const auto unit = static_cast<size_t>(alignment);
    void* memory = may_allocate() ? std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit) : nullptr;
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
