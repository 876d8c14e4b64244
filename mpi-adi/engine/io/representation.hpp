// SPDX-License-Identifier: BSD-2-Clause
// Data representations: how items of a datatype look in the file. "native" and "internal" are as in memory,
// "external32" is that of the MPI standard, others the program registers.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "mpi-adi/engine/datatype.hpp"

namespace viaduct::mpi::io {

class Representation {
public:
    virtual ~Representation() = default;
    explicit Representation(std::string name) : name_(std::move(name)) {}

    const std::string& name() const { return name_; }
    // Whether bytes in the file differ from those in memory; when not, nothing below is called but
    // extent_of().
    virtual bool converts() const { return false; }
    // Calls functions of the program, which have to be called on its own thread.
    virtual bool calls_program() const { return false; }
    // Bytes that a basic element takes in the file, or below 0 when the program's function failed.
    virtual MPI_Aint extent_of(const Datatype& basic) const { return basic.size; }
    // `count` items between memory and their form in the file, which has bytes_of(type) * count bytes. An MPI
    // error class.
    [[nodiscard]] virtual int to_file(const Datatype&, uint64_t, const void* /*memory*/, char* /*file*/) const {
        return MPI_SUCCESS;
    }
    // Only `bytes` bytes of the form are there; *moved is what they made in memory, in bytes of data.
    [[nodiscard]] virtual int from_file(const Datatype&, uint64_t, void* /*memory*/, const char* /*file*/,
                                        uint64_t /*bytes*/, uint64_t* /*moved*/) const {
        return MPI_SUCCESS;
    }

    // Bytes of data that an item has in the file, or below 0.
    MPI_Aint bytes_of(const Datatype& type) const;

private:
    std::string name_;
};

// Null for an unknown name.
std::shared_ptr<const Representation> find_representation(const std::string& name);

// What MPI_Register_datarep was given; the conversion functions are null where nothing is converted. One of
// the two of each pair is null: `_c` are those of MPI_Register_datarep_c.
struct DatarepFunctions {
    MPI_Datarep_conversion_function* read = nullptr;
    MPI_Datarep_conversion_function* write = nullptr;
    MPI_Datarep_conversion_function_c* read_c = nullptr;
    MPI_Datarep_conversion_function_c* write_c = nullptr;
    MPI_Datarep_extent_function* extent = nullptr;
    void* extra_state = nullptr;
};
// MPI_ERR_DUP_DATAREP when the name is taken.
[[nodiscard]] int register_representation(const std::string& name, const DatarepFunctions& functions);

// The layout in the file of a type that lies like `type` in memory: displacements that the program gave in
// items scale with the extents in the file, those in bytes stay (MPI 4.0, 14.5.1). A new reference; null when
// the type cannot be followed, or the program's function failed.
const Datatype* layout_in_file(const Datatype& type, const Representation& representation);

}  // namespace viaduct::mpi::io
