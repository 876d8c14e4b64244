// SPDX-License-Identifier: BSD-2-Clause
// See memory_side.hpp.
#include "mpi-adi/engine/io/memory_side.hpp"

#include <new>

namespace viaduct::mpi::io {

MemorySide::MemorySide(void* base, uint64_t count, const Datatype& type, const Representation& representation)
    : base_(base), count_(count), type_(type), representation_(representation) {
    type_.retain();
    bytes_ = count_ * static_cast<uint64_t>(type_.size);
    if (type_.contiguous) direct_ = static_cast<char*>(base_) + type_.true_lb;
}

MemorySide::~MemorySide() { type_.release(); }

int MemorySide::begin(bool writes) {
    if (!representation_.converts()) return MPI_SUCCESS;
    const MPI_Aint item = representation_.bytes_of(type_);
    if (item < 0) return MPI_ERR_CONVERSION;
    bytes_ = count_ * static_cast<uint64_t>(item);
    converted_.reset(new (std::nothrow) char[bytes_]);
    if (converted_ == nullptr) return MPI_ERR_NO_MEM;
    direct_ = converted_.get();
    return writes ? representation_.to_file(type_, count_, base_, direct_) : MPI_SUCCESS;
}

void MemorySide::gather(uint64_t at, uint64_t length, char* to) const {
    type_.pack(base_, count_, at, length, to);
}

void MemorySide::scatter(uint64_t at, uint64_t length, const char* from) {
    type_.unpack(base_, count_, at, length, from);
}

int MemorySide::end(bool writes, uint64_t moved, uint64_t* data) {
    *data = moved;
    if (converted_ == nullptr) return MPI_SUCCESS;
    if (!writes) return representation_.from_file(type_, count_, base_, direct_, moved, data);
    const MPI_Aint item = representation_.bytes_of(type_);
    if (item < 0) return MPI_ERR_CONVERSION;
    *data = item == 0 ? 0 : moved / static_cast<uint64_t>(item) * static_cast<uint64_t>(type_.size);
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi::io
