// SPDX-License-Identifier: BSD-2-Clause
// One access to a file by one process: data of a view, from or to a buffer. It does not depend on what waits for
// it; it runs in the caller, or, for a non-blocking operation, in the worker.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi-adi/engine/io/memory_side.hpp"
#include "mpi-adi/engine/io/storage.hpp"
#include "mpi-adi/engine/io/view.hpp"

namespace viaduct::mpi::io {

struct Access {
    Access(std::shared_ptr<Storage> in, std::shared_ptr<const View> seen, bool writing, int64_t from,
           void* buffer, uint64_t count, const Datatype& type)
        : storage(std::move(in)),
          view(std::move(seen)),
          writes(writing),
          at(from),
          memory(buffer, count, type, view->representation()) {}

    const std::shared_ptr<Storage> storage;
    const std::shared_ptr<const View> view;
    const bool writes;
    bool atomic = false;
    const int64_t at;  // the first byte, in the data of the view
    MemorySide memory;

    uint64_t moved = 0;  // bytes of the stream, so far

    int64_t end() const { return at + static_cast<int64_t>(memory.bytes()); }
};

// Does the whole access in this process. An MPI error class; what was moved before an error counts.
[[nodiscard]] int run_alone(Access& access);

// Bytes of the file to be read into memory.
struct Wanted {
    int64_t offset;
    int64_t length;
    char* to;
};
// Reads all of them, which are in the order of the file and may overlap; pieces that lie near each other by
// one call of the system. *got tells of each how many bytes there were before the end of the file.
[[nodiscard]] int read_pieces(Storage& storage, const std::vector<Wanted>& wanted, std::vector<int64_t>* got);

}  // namespace viaduct::mpi::io
