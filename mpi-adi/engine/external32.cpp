// SPDX-License-Identifier: BSD-2-Clause
// See external32.hpp. Sizes are those of the machine except where the standard fixes another one.
#include "mpi-adi/engine/external32.hpp"

#include <cstring>

namespace viaduct::mpi {
namespace {

// Bytes that are turned round together: a complex number is two numbers.
int unit_of(const Datatype& type) {
    return type.basic == BasicClass::complex ? int(type.size / 2) : type.basic == BasicClass::byte ? 1 : int(type.size);
}

void reversed(const char* from, char* to, int n) {
    for (int i = 0; i < n; ++i) {
        to[i] = from[n - 1 - i];
    }
}

// An x87 extended number is not an IEEE quadruple; as one it keeps value and sign.
__extension__ using Quad = __float128;
bool is_extended(const Datatype& type) {
    return unit_of(type) == 16 && type.handle != MPI_REAL16 && type.handle != MPI_COMPLEX32;
}

void element_out(const Datatype& type, const char* from, char* to) {
    // Narrower outside than here: the low bytes, which lie first.
    if (const int width = external_size(type); width < int(type.size)) {
        reversed(from, to, width);
        return;
    }
    const int unit = unit_of(type);
    for (int at = 0; at < int(type.size); at += unit) {
        if (is_extended(type)) {
            long double value;
            std::memcpy(&value, from + at, sizeof value);
            Quad wide = value;
            reversed(reinterpret_cast<const char*>(&wide), to + at, unit);
        } else {
            reversed(from + at, to + at, unit);
        }
    }
}

void element_in(const Datatype& type, const char* from, char* to) {
    if (const int width = external_size(type); width < int(type.size)) {
        const bool negative = type.basic == BasicClass::signed_integer && (from[0] & 0x80);
        reversed(from, to, width);
        std::memset(to + width, negative ? -1 : 0, size_t(type.size - width));
        return;
    }
    const int unit = unit_of(type);
    for (int at = 0; at < int(type.size); at += unit) {
        if (is_extended(type)) {
            Quad wide;
            reversed(from + at, reinterpret_cast<char*>(&wide), unit);
            long double value = static_cast<long double>(wide);
            std::memcpy(to + at, &value, sizeof value);
        } else {
            reversed(from + at, to + at, unit);
        }
    }
}

}  // namespace

// MPI 3.1, table 13.2.
int external_size(const Datatype& basic) {
    switch (basic.handle) {
        case MPI_WCHAR: return 2;
        case MPI_LONG:
        case MPI_UNSIGNED_LONG: return 4;
        case MPI_PACKED: return 1;
        default: return int(basic.size);
    }
}

MPI_Aint external_bytes(const Datatype& type, MPI_Count count) {
    MPI_Aint bytes = 0;
    for_each_basic(type, 0, [&](const Datatype& basic, MPI_Aint, MPI_Count n) { bytes += n * external_size(basic); });
    return bytes * count;
}

void external_pack(const Datatype& type, MPI_Count count, const void* base, char* out) {
    char* from = static_cast<char*>(const_cast<void*>(base));
    for (MPI_Count i = 0; i < count; ++i) {
        for_each_basic(type, i * type.extent(), [&](const Datatype& basic, MPI_Aint at, MPI_Count n) {
            for (; n > 0; --n, at += basic.size, out += external_size(basic)) {
                element_out(basic, from + at, out);
            }
        });
    }
}

uint64_t external_unpack(const Datatype& type, MPI_Count count, void* base, const char* in, uint64_t bytes) {
    uint64_t made = 0;
    bool ended = false;
    char* to = static_cast<char*>(base);
    for (MPI_Count i = 0; i < count && !ended; ++i) {
        for_each_basic(type, i * type.extent(), [&](const Datatype& basic, MPI_Aint at, MPI_Count n) {
            const auto width = uint64_t(external_size(basic));
            for (; n > 0 && !ended; --n, at += basic.size) {
                ended = bytes < width;
                if (!ended) {
                    element_in(basic, in, to + at);
                    in += width;
                    bytes -= width;
                    made += uint64_t(basic.size);
                }
            }
        });
    }
    return made;
}

}  // namespace viaduct::mpi
