// SPDX-License-Identifier: BSD-2-Clause
// See failing_new.hpp.
#include "failing_new.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

long allocations_left = -1;  // below 0: all succeed
bool has_failed = false;

bool may_allocate() {
    if (allocations_left < 0 || allocations_left-- > 0) return true;
    allocations_left = -1;
    return !(has_failed = true);
}

void* allocate(size_t bytes) {
    void* memory = may_allocate() ? std::malloc(bytes) : nullptr;
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

void fail_allocation_after(long allocations) {
    has_failed = false;
    allocations_left = allocations;
}

bool allocation_has_failed() {
    allocations_left = -1;
    return has_failed;
}

void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
    return may_allocate() ? std::malloc(bytes) : nullptr;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
