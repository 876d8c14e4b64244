// SPDX-License-Identifier: BSD-2-Clause
// Gathering and scattering: from a buffer with holes to a packed one and back, from any byte to any byte of the packed
// form, so that a long message is packed piece by piece while it is sent.
#include <algorithm>
#include <cstring>
#include <memory>

#include "mpi-adi/engine/datatype.hpp"

namespace viaduct::mpi {
namespace {

// Pieces of a size known to the compiler are moved by one load and one store.
template <size_t kLength, bool kPack>
void copy_fixed(char* packed, char* at, MPI_Aint stride, MPI_Count count) {
    for (MPI_Count i = 0; i < count; ++i, packed += kLength, at += stride) {
        std::memcpy(kPack ? packed : at, kPack ? at : packed, kLength);
    }
}

template <bool kPack>
void copy_strided(char* packed, char* at, MPI_Aint length, MPI_Aint stride, MPI_Count count) {
    switch (length) {
        case 1: return copy_fixed<1, kPack>(packed, at, stride, count);
        case 2: return copy_fixed<2, kPack>(packed, at, stride, count);
        case 4: return copy_fixed<4, kPack>(packed, at, stride, count);
        case 8: return copy_fixed<8, kPack>(packed, at, stride, count);
        case 16: return copy_fixed<16, kPack>(packed, at, stride, count);
        default:
            for (MPI_Count i = 0; i < count; ++i, packed += length, at += stride) {
                std::memcpy(kPack ? packed : at, kPack ? at : packed, size_t(length));
            }
    }
}

// The part of one run from byte `skip` of it on, at most `length` bytes; tells how many it moved.
template <bool kPack>
MPI_Count copy_run(const Run& run, char* item, MPI_Count skip, MPI_Count length, char* packed) {
    MPI_Count piece = skip / run.length;
    MPI_Aint within = skip % run.length;
    MPI_Count moved = 0;
    char* at = item + run.offset + piece * run.stride;
    if (within) {
        MPI_Count n = std::min<MPI_Count>(run.length - within, length);
        std::memcpy(kPack ? packed : at + within, kPack ? at + within : packed, size_t(n));
        moved = n;
        ++piece;
        at += run.stride;
    }
    MPI_Count whole = std::min<MPI_Count>(run.count - piece, (length - moved) / run.length);
    copy_strided<kPack>(packed + moved, at, run.length, run.stride, whole);
    moved += whole * run.length;
    piece += whole;
    at += whole * run.stride;
    MPI_Count rest = length - moved;
    if (rest > 0 && piece < run.count) {
        std::memcpy(kPack ? packed + moved : at, kPack ? at : packed + moved, size_t(rest));
        moved += rest;
    }
    return moved;
}

template <bool kPack>
void copy(const Datatype& type, char* base, uint64_t count, uint64_t offset, uint64_t length, char* packed) {
    if (length == 0) {
        return;
    }
    if (type.contiguous) {
        char* at = base + type.true_lb + offset;
        std::memcpy(kPack ? packed : at, kPack ? at : packed, length);
        return;
    }
    const std::vector<Run>& runs = type.runs;
    uint64_t item = offset / uint64_t(type.size);
    MPI_Count within = MPI_Count(offset % uint64_t(type.size));
    // The run that holds the first byte: the last one that starts at or before it.
    size_t r = 0;
    if (within) {
        r = size_t(std::upper_bound(runs.begin(), runs.end(), within,
                                    [](MPI_Count at, const Run& run) { return at < run.packed; }) -
                   runs.begin()) - 1;
        within -= runs[r].packed;
    }
    char* at = base + MPI_Aint(item) * type.extent();
    while (length > 0 && item < count) {
        for (; r < runs.size() && length > 0; ++r, within = 0) {
            MPI_Count n = copy_run<kPack>(runs[r], at, within, MPI_Count(length), packed);
            packed += n;
            length -= uint64_t(n);
        }
        r = 0;
        ++item;
        at += type.extent();
    }
}

// See mpip_type::d_pieces.
size_t pieces_of_items(const Datatype& type, char* base, size_t count, size_t bytes, mpip_piece* pieces,
                       size_t room) {
    size_t n = 0;
    for (size_t item = 0; item < count && bytes > 0; ++item, base += type.extent()) {
        for (const Run& run : type.runs) {
            char* at = base + run.offset;
            for (MPI_Count i = 0; i < run.count && bytes > 0; ++i, at += run.stride) {
                const size_t now = std::min(size_t(run.length), bytes);
                bytes -= now;
                if (n > 0 && static_cast<char*>(pieces[n - 1].pc_at) + pieces[n - 1].pc_bytes == at) {
                    pieces[n - 1].pc_bytes += now;
                    continue;
                }
                if (n == room) return 0;
                pieces[n++] = {at, now};
            }
        }
    }
    return n;
}

}  // namespace

Datatype::Datatype() : mpip_type{} {
    d_pack = [](const mpip_type_t* type, const void* base, size_t count, size_t offset, void* to, size_t bytes) {
        static_cast<const Datatype*>(type)->pack(base, count, offset, bytes, to);
    };
    d_unpack = [](const mpip_type_t* type, void* base, size_t count, size_t offset, const void* from, size_t bytes) {
        static_cast<const Datatype*>(type)->unpack(base, count, offset, bytes, from);
    };
    d_pieces = [](const mpip_type_t* type, void* base, size_t count, size_t bytes, mpip_piece* pieces,
                  size_t room) {
        const Datatype& own = *static_cast<const Datatype*>(type);
        return pieces_of_items(own, static_cast<char*>(base), count, bytes, pieces, room);
    };
}

void Datatype::seal() {
    d_size = size_t(size);
    d_flags = contiguous && true_lb == 0 ? MPIP_TYPE_CONTIG : 0;
}

void Datatype::pack(const void* base, uint64_t count, uint64_t offset, uint64_t length, void* out) const {
    copy<true>(*this, const_cast<char*>(static_cast<const char*>(base)), count, offset, length,
               static_cast<char*>(out));
}

void Datatype::unpack(void* base, uint64_t count, uint64_t offset, uint64_t length, const void* in) const {
    copy<false>(*this, static_cast<char*>(base), count, offset, length,
                const_cast<char*>(static_cast<const char*>(in)));
}

bool copy_typed(const void* in, MPI_Count in_count, const Datatype& in_type, void* out, MPI_Count out_count,
                const Datatype& out_type) {
    uint64_t bytes = uint64_t(in_count * in_type.size);
    uint64_t room = uint64_t(out_count * out_type.size);
    bool fits = bytes <= room;
    bytes = std::min(bytes, room);
    if (bytes == 0) {
        return fits;
    }
    if (in_type.contiguous) {
        out_type.unpack(out, uint64_t(out_count), 0, bytes, static_cast<const char*>(in) + in_type.true_lb);
    } else if (out_type.contiguous) {
        in_type.pack(in, uint64_t(in_count), 0, bytes, static_cast<char*>(out) + out_type.true_lb);
    } else {
        constexpr uint64_t kPiece = 64 << 10;
        auto piece = std::make_unique_for_overwrite<char[]>(std::min(bytes, kPiece));
        for (uint64_t at = 0; at < bytes; at += kPiece) {
            uint64_t n = std::min(kPiece, bytes - at);
            in_type.pack(in, uint64_t(in_count), at, n, piece.get());
            out_type.unpack(out, uint64_t(out_count), at, n, piece.get());
        }
    }
    return fits;
}

MPI_Count count_elements(const Datatype& type, MPI_Count bytes) {
    if (type.size == 0) {
        return bytes == 0 ? 0 : -1;
    }
    MPI_Count total = bytes / type.size * type.elements;
    bytes %= type.size;
    if (bytes == 0) {
        return total;
    }
    if (type.parts.empty()) {
        return -1;  // ends inside a basic element
    }
    for (MPI_Count r = 0; r < type.repeats; ++r) {
        for (const Datatype::Part& part : type.parts) {
            MPI_Count block = part.blocklength * part.type->size;
            if (bytes < block) {
                MPI_Count inside = count_elements(*part.type, bytes);
                return inside < 0 ? -1 : total + inside;
            }
            total += part.blocklength * part.type->elements;
            bytes -= block;
            if (bytes == 0) {
                return total;
            }
        }
    }
    return total;
}

MPI_Count bytes_of_elements(const Datatype& type, MPI_Count elements) {
    if (type.elements == 0) {
        return 0;
    }
    MPI_Count bytes = elements / type.elements * type.size;
    elements %= type.elements;
    for (MPI_Count r = 0; elements > 0 && r < type.repeats; ++r) {
        for (const Datatype::Part& part : type.parts) {
            const MPI_Count block = part.blocklength * part.type->elements;
            if (elements < block) {
                return bytes + bytes_of_elements(*part.type, elements);
            }
            bytes += part.blocklength * part.type->size;
            elements -= block;
        }
    }
    return bytes;
}

}  // namespace viaduct::mpi
