// SPDX-License-Identifier: BSD-2-Clause
// Type-stable memory for objects behind handles: what was once an object of a type stays one for the life of
// the process, so that a caller that found a handle just before it died can still lock the object and check
// again. Used by control calls of any thread.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace viaduct::vipl {

template <class T>
class Pool {
public:
    // Memory for at least *count objects of so many bytes, of which it says how many; nullptr: take the heap.
    using Source = void* (*)(uint32_t bytes, uint32_t* count);
    explicit Pool(Source source = nullptr) : source_(source) {}

    // nullptr when memory is short.
    T* take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty() && !grow()) return nullptr;
        T* object = free_.back();
        free_.pop_back();
        return object;
    }

    void give_back(T* object) {
        const std::lock_guard lock(mutex_);
        free_.push_back(object);  // never allocates: grow() has reserved the room
    }

private:
    static constexpr uint32_t kChunk = 16;

    bool grow() try {
        uint32_t count = kChunk;
        void* memory = source_ != nullptr ? source_(sizeof(T), &count) : nullptr;
        if (memory == nullptr) count = kChunk;
        free_.reserve(size_ + count);
        T* objects;
        if (memory != nullptr) {
            objects = static_cast<T*>(memory);  // lives as long as the process
            std::uninitialized_value_construct_n(objects, count);
        } else {
            chunks_.reserve(chunks_.size() + 1);
            chunks_.push_back(std::make_unique<T[]>(count));
            objects = chunks_.back().get();
        }
        size_ += count;
        for (size_t i = count; i != 0; --i) free_.push_back(&objects[i - 1]);
        return true;
    } catch (const std::exception&) {
        return false;
    }

    Source source_;
    size_t size_ = 0;
    std::mutex mutex_;
    std::vector<std::unique_ptr<T[]>> chunks_;
    std::vector<T*> free_;
};

}  // namespace viaduct::vipl
