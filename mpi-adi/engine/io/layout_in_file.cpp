// SPDX-License-Identifier: BSD-2-Clause
// How a datatype lies in a file whose elements have other sizes than those in memory: it is made again, in
// the way it was made, out of elements of the file's sizes.
#include <algorithm>

#include "mpi-adi/engine/io/representation.hpp"

namespace viaduct::mpi::io {
namespace {

// A reference that is let go of at the end.
class Held {
public:
    explicit Held(const Datatype* type) : type_(type) {}
    ~Held() {
        if (type_ != nullptr) type_->release();
    }
    Held(Held&& other) noexcept : type_(other.type_) { other.type_ = nullptr; }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    const Datatype* get() const { return type_; }

private:
    const Datatype* type_;
};

// Whether every element has the same size in the file.
bool same_sizes(const Datatype& type, const Representation& representation) {
    bool same = true;
    for_each_basic(type, 0, [&](const Datatype& basic, MPI_Aint, MPI_Count) {
        same = same && representation.extent_of(basic) == basic.size;
    });
    return same;
}

const Datatype* element(const Datatype& type, const Representation& representation) {
    const MPI_Aint bytes = representation.bytes_of(type);
    return bytes < 0 ? nullptr : make_repeated(1, bytes, 0, *type_of(MPI_BYTE));
}

std::vector<MPI_Count> wide(const std::vector<int>& numbers, size_t from, size_t n) {
    return {numbers.begin() + static_cast<std::ptrdiff_t>(from),
            numbers.begin() + static_cast<std::ptrdiff_t>(from + n)};
}

std::span<const int> part(const std::vector<int>& numbers, size_t from, size_t n) {
    return {numbers.data() + from, n};
}

// Blocks of one type: lengths and displacements follow the count in the integers, or one length for all does.
const Datatype* blocks(const Datatype::Contents& made, const Datatype& old, bool one_length, bool in_bytes) {
    const auto count = static_cast<size_t>(made.integers[0]);
    std::vector<Datatype::Part> parts(count);
    for (size_t i = 0; i < count; i++) {
        const size_t first_displacement = one_length ? 2 : 1 + count;
        parts[i].blocklength = made.integers[one_length ? 1 : 1 + i];
        parts[i].offset = in_bytes ? made.addresses[i] : made.integers[first_displacement + i] * old.extent();
        parts[i].type = &old;
    }
    return make_blocks(std::move(parts), false);
}

const Datatype* structure(const Datatype::Contents& made, const Representation& representation) {
    const auto count = static_cast<size_t>(made.integers[0]);
    std::vector<Held> members;
    std::vector<Datatype::Part> parts(count);
    for (size_t i = 0; i < count; i++) {
        const Datatype* member = type_of(made.types[i]);
        members.emplace_back(member == nullptr ? nullptr : layout_in_file(*member, representation));
        if (members.back().get() == nullptr) return nullptr;
        parts[i] = {made.addresses[i], made.integers[1 + i], members.back().get()};
    }
    return make_blocks(std::move(parts), false);
}

const Datatype* darray(const Datatype::Contents& made, const Datatype& old) {
    const auto n = static_cast<size_t>(made.integers[2]);
    const std::vector<MPI_Count> sizes = wide(made.integers, 3, n);
    Datatype* built = nullptr;
    const int error = make_darray(made.integers[0], made.integers[1], sizes, part(made.integers, 3 + n, n),
                                  part(made.integers, 3 + 2 * n, n), part(made.integers, 3 + 3 * n, n),
                                  made.integers[3 + 4 * n], old, &built);
    return error == MPI_SUCCESS ? built : nullptr;
}

const Datatype* again(const Datatype::Contents& made, const Datatype& old) {
    const std::vector<int>& numbers = made.integers;
    switch (made.combiner) {
        case MPI_COMBINER_DUP:
            old.retain();
            return &old;
        case MPI_COMBINER_CONTIGUOUS:
            return make_repeated(1, numbers[0], 0, old);
        case MPI_COMBINER_VECTOR:
            return make_repeated(numbers[0], numbers[1], numbers[2] * old.extent(), old);
        case MPI_COMBINER_HVECTOR:
        case MPI_COMBINER_HVECTOR_INTEGER:
            return make_repeated(numbers[0], numbers[1], made.addresses[0], old);
        case MPI_COMBINER_INDEXED:
            return blocks(made, old, false, false);
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_HINDEXED_INTEGER:
            return blocks(made, old, false, true);
        case MPI_COMBINER_INDEXED_BLOCK:
            return blocks(made, old, true, false);
        case MPI_COMBINER_HINDEXED_BLOCK:
            return blocks(made, old, true, true);
        case MPI_COMBINER_RESIZED:
            return make_resized(old, made.addresses[0], made.addresses[1]);
        case MPI_COMBINER_SUBARRAY: {
            const auto n = static_cast<size_t>(numbers[0]);
            return make_subarray(wide(numbers, 1, n), wide(numbers, 1 + n, n), wide(numbers, 1 + 2 * n, n),
                                 numbers[1 + 3 * n], old);
        }
        case MPI_COMBINER_DARRAY:
            return darray(made, old);
        default:
            return nullptr;
    }
}

}  // namespace

const Datatype* layout_in_file(const Datatype& type, const Representation& representation) {
    if (!representation.converts() || same_sizes(type, representation)) {
        type.retain();
        return &type;
    }
    const Datatype::Contents& made = type.contents;
    if (made.combiner == MPI_COMBINER_NAMED || made.types.empty()) return element(type, representation);
    // A type made by a function for large counts keeps its numbers otherwise.
    if (!made.large_counts.empty()) return nullptr;
    if (made.combiner == MPI_COMBINER_STRUCT || made.combiner == MPI_COMBINER_STRUCT_INTEGER)
        return structure(made, representation);
    const Datatype* old = type_of(made.types[0]);
    const Held scaled(old == nullptr ? nullptr : layout_in_file(*old, representation));
    return scaled.get() == nullptr ? nullptr : again(made, *scaled.get());
}

}  // namespace viaduct::mpi::io
