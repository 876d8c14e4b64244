// SPDX-License-Identifier: BSD-2-Clause
// Datatypes as one-sided operations see them: which single basic type an accumulate works on, its items as
// they lie in memory, and the flattened form that travels to the target and becomes a datatype again there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/rma/wire.hpp"

namespace viaduct::mpi::rma {

// Keeps a datatype, and lets go of it.
class TypeRef {
public:
    TypeRef() = default;
    // Takes over one reference.
    explicit TypeRef(const Datatype* type) : type_(type) {}
    static TypeRef share(const Datatype& type) {
        type.retain();
        return TypeRef(&type);
    }
    TypeRef(TypeRef&& other) noexcept : type_(std::exchange(other.type_, nullptr)) {}
    TypeRef& operator=(TypeRef&& other) noexcept {
        std::swap(type_, other.type_);
        return *this;
    }
    ~TypeRef() {
        if (type_ != nullptr) type_->release();
    }
    const Datatype* get() const { return type_; }
    const Datatype& operator*() const { return *type_; }
    const Datatype* operator->() const { return type_; }

private:
    const Datatype* type_ = nullptr;
};

// The predefined type that a datatype consists of, pairs of a value and an index counted as one; null when it
// consists of several, or of none.
const Datatype* element_of(const Datatype& type);

// The same items, in which an element is all the bytes from it to the next: pairs have holes, which the
// operators' loops step over as C does. The type itself unless it is made of such pairs.
TypeRef whole_elements(const Datatype& type);

// The flattened form and back. A layout from elsewhere is null when it contradicts itself.
std::vector<WireRun> flatten(const Datatype& type);
TypeRef unflatten(std::span<const WireRun> runs, int64_t extent);

// The lowest and the highest byte that `count` items at address 0 touch; both 0 for nothing. False when that
// is beyond what an address can say.
[[nodiscard]] bool bounds_of(const Datatype& type, int64_t count, int64_t* low, int64_t* high);

// Whether the items that a request names have room for the data it speaks of: what lies within their bounds
// is all that serving it touches.
bool has_room(const Head& head, const Datatype& layout);

// Calls visit(address, bytes) for the pieces of `count` items at `base` in the order of their data, until
// `bytes` bytes are done.
template <typename Visit>
void for_each_piece(const Datatype& type, char* base, int64_t count, uint64_t bytes, Visit&& visit) {
    if (type.contiguous) {
        if (bytes > 0) visit(base + type.true_lb, bytes);
        return;
    }
    for (int64_t item = 0; item < count && bytes > 0; item++, base += type.extent()) {
        for (const Run& run : type.runs) {
            char* at = base + run.offset;
            for (MPI_Count i = 0; i < run.count && bytes > 0; i++, at += run.stride) {
                const uint64_t piece = std::min<uint64_t>(static_cast<uint64_t>(run.length), bytes);
                visit(at, piece);
                bytes -= piece;
            }
        }
    }
}

}  // namespace viaduct::mpi::rma
