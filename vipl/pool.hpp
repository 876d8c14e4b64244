// SPDX-License-Identifier: BSD-2-Clause
// Type-stable memory for objects behind handles: what was once an object of a type stays one for the life of
// the process, so that a caller who found a handle just before it died can still lock the object and look
// again. Used by control calls of any thread.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace viaduct::vipl {

template <class T>
class Pool {
public:
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
    static constexpr size_t kChunk = 16;

    bool grow() try {
        chunks_.reserve(chunks_.size() + 1);
        free_.reserve((chunks_.size() + 1) * kChunk);
        chunks_.push_back(std::make_unique<T[]>(kChunk));
        for (size_t i = kChunk; i != 0; --i) free_.push_back(&chunks_.back()[i - 1]);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }

    std::mutex mutex_;
    std::vector<std::unique_ptr<T[]>> chunks_;
    std::vector<T*> free_;
};

}  // namespace viaduct::vipl
