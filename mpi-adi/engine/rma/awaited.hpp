// SPDX-License-Identifier: BSD-2-Clause
// What one member has been asked for by inline operations and has not answered yet. Its answers come in the
// order of the requests, so that none of them needs a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi::rma {

struct Awaited {
    void* result = nullptr;
    uint8_t bytes = 0;
    Request* mine = nullptr;  // the program's request, completed with the answer, or null
};

// First in, first out. Does not allocate any more when it has once been as long.
class AwaitedQueue {
public:
    bool empty() const { return first_ == items_.size(); }
    void push(const Awaited& one) {
        if (items_.size() == items_.capacity() && 2 * first_ > items_.size()) {
            items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
            first_ = 0;
        }
        items_.push_back(one);
    }
    Awaited pop() {
        const Awaited one = items_[first_++];
        if (empty()) {
            items_.clear();
            first_ = 0;
        }
        return one;
    }

private:
    std::vector<Awaited> items_;
    size_t first_ = 0;
};

}  // namespace viaduct::mpi::rma
