// SPDX-License-Identifier: BSD-2-Clause
// The representations there are, and those that the program adds.
#include "mpi-adi/engine/io/representation.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "mpi-adi/engine/external32.hpp"

namespace viaduct::mpi::io {
namespace {

class External32 final : public Representation {
public:
    External32() : Representation("external32") {}
    bool converts() const override { return true; }
    MPI_Aint extent_of(const Datatype& basic) const override { return external_size(basic); }
    int to_file(const Datatype& type, uint64_t count, const void* memory, char* file) const override {
        external_pack(type, static_cast<MPI_Count>(count), memory, file);
        return MPI_SUCCESS;
    }
    int from_file(const Datatype& type, uint64_t count, void* memory, const char* file, uint64_t bytes,
                  uint64_t* moved) const override {
        *moved = external_unpack(type, static_cast<MPI_Count>(count), memory, file, bytes);
        return MPI_SUCCESS;
    }
};

class Registered final : public Representation {
public:
    Registered(const std::string& name, const DatarepFunctions& functions)
        : Representation(name), functions_(functions) {}
    bool converts() const override {
        return functions_.read || functions_.write || functions_.read_c || functions_.write_c;
    }
    bool calls_program() const override { return true; }
    MPI_Aint extent_of(const Datatype& basic) const override {
        if (!converts()) return basic.size;
        MPI_Aint extent = -1;
        return functions_.extent(basic.handle, &extent, functions_.extra_state) == MPI_SUCCESS ? extent : -1;
    }
    int to_file(const Datatype& type, uint64_t count, const void* memory, char* file) const override {
        return convert(functions_.write, functions_.write_c, type, count, const_cast<void*>(memory), file,
                       true);
    }
    int from_file(const Datatype& type, uint64_t count, void* memory, const char* file, uint64_t bytes,
                  uint64_t* moved) const override {
        const MPI_Aint item = bytes_of(type);
        if (item < 0) return MPI_ERR_CONVERSION;
        // The program converts whole items only.
        const uint64_t whole = item == 0 ? 0 : std::min(count, bytes / static_cast<uint64_t>(item));
        *moved = whole * static_cast<uint64_t>(type.size);
        return convert(functions_.read, functions_.read_c, type, whole, memory, const_cast<char*>(file),
                       false);
    }

private:
    int convert(MPI_Datarep_conversion_function* function, MPI_Datarep_conversion_function_c* function_c,
                const Datatype& type, uint64_t count, void* memory, char* file, bool writes) const {
        if (count == 0) return MPI_SUCCESS;
        if (function_c) {
            const int error = function_c(memory, type.handle, static_cast<MPI_Count>(count), file, 0,
                                         functions_.extra_state);
            return error == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_CONVERSION;
        }
        if (!function) {
            const uint64_t bytes = count * static_cast<uint64_t>(type.size);
            if (writes)
                type.pack(memory, count, 0, bytes, file);
            else
                type.unpack(memory, count, 0, bytes, file);
            return MPI_SUCCESS;
        }
        // `position` counts the items of the user's buffer that lie before those to be converted.
        constexpr uint64_t kMost = std::numeric_limits<int>::max();
        const auto item = static_cast<uint64_t>(bytes_of(type));
        for (uint64_t at = 0; at < count; at += kMost) {
            const int n = static_cast<int>(std::min(kMost, count - at));
            if (function(memory, type.handle, n, file + at * item, static_cast<MPI_Offset>(at),
                         functions_.extra_state) != MPI_SUCCESS)
                return MPI_ERR_CONVERSION;
        }
        return MPI_SUCCESS;
    }

    const DatarepFunctions functions_;
};

using Known = std::map<std::string, std::shared_ptr<const Representation>>;

// Never destroyed: a program may leave from anywhere.
Known& known() {
    static auto* all = new Known{{"native", std::make_shared<Representation>("native")},
                                 {"internal", std::make_shared<Representation>("internal")},
                                 {"external32", std::make_shared<External32>()}};
    return *all;
}

}  // namespace

MPI_Aint Representation::bytes_of(const Datatype& type) const {
    if (!converts()) return type.size;
    MPI_Aint bytes = 0;
    bool failed = false;
    for_each_basic(type, 0, [&](const Datatype& basic, MPI_Aint, MPI_Count n) {
        const MPI_Aint one = extent_of(basic);
        failed |= one < 0;
        bytes += n * one;
    });
    return failed ? -1 : bytes;
}

std::shared_ptr<const Representation> find_representation(const std::string& name) {
    const auto found = known().find(name);
    return found == known().end() ? nullptr : found->second;
}

int register_representation(const std::string& name, const DatarepFunctions& functions) {
    const bool added = known().emplace(name, std::make_shared<Registered>(name, functions)).second;
    return added ? MPI_SUCCESS : MPI_ERR_DUP_DATAREP;
}

}  // namespace viaduct::mpi::io
