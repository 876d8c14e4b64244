// SPDX-License-Identifier: BSD-2-Clause
// How bytes that do not lie in one piece are gathered and scattered. Point-to-point transfers see a buffer through
// this; derived datatypes implement it.
#pragma once

#include <cstdint>

namespace viaduct::mpi {

class Layout {
  public:
    // Copies `length` bytes, from byte `offset` of the packed form of `count` items at `base`, to `out` (or back).
    virtual void pack(const void* base, uint64_t count, uint64_t offset, uint64_t length, void* out) const = 0;
    virtual void unpack(void* base, uint64_t count, uint64_t offset, uint64_t length, const void* in) const = 0;
    // A transfer under way keeps its layout: the program may free a datatype at any time.
    virtual void retain() const = 0;
    virtual void release() const = 0;

  protected:
    ~Layout() = default;
};

}  // namespace viaduct::mpi
