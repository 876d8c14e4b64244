// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that move data between buffers by datatype (pack, unpack), and that count what a status tells.
#include <bit>
#include <cstring>
#include <limits>

#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/external32.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

// What does not fit is undefined, as the functions without large counts say it.
template <typename Count>
Count as(MPI_Count value) {
    return value > std::numeric_limits<Count>::max() ? MPI_UNDEFINED : Count(value);
}

void set_bytes(MPI_Status& status, MPI_Count bytes) {
    status.count_lo = int(bytes & 0xffffffff);
    status.count_hi_and_cancelled = int(unsigned(bytes >> 32) << 1) | (status.count_hi_and_cancelled & 1);
}

// Whole items of the type, or MPI_UNDEFINED when the message ends inside one.
MPI_Count count_items(const Datatype& type, MPI_Count bytes) {
    if (type.size == 0) {
        return bytes == 0 ? 0 : MPI_UNDEFINED;
    }
    return bytes % type.size ? MPI_UNDEFINED : bytes / type.size;
}

MPI_Count elements_or_undefined(const Datatype& type, MPI_Count bytes) {
    MPI_Count elements = count_elements(type, bytes);
    return elements < 0 ? MPI_UNDEFINED : elements;
}

// Whether so many bytes are behind a position in packed data of that size.
bool fits(MPI_Count bytes, MPI_Count position, MPI_Count size) { return position >= 0 && bytes <= size - position; }

// What packing and unpacking ask of their arguments, and how many bytes they move.
int check_packed(MPI_Comm comm, MPI_Count count, const Datatype* type, MPI_Count position, MPI_Count size,
                 MPI_Count* bytes) {
    if (!comm_of(comm)) {
        return MPI_ERR_COMM;
    }
    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    if (!type || !type->committed) {
        return MPI_ERR_TYPE;
    }
    const bool counted = !__builtin_mul_overflow(count, type->size, bytes);
    return counted && fits(*bytes, position, size) ? MPI_SUCCESS : MPI_ERR_ARG;
}

// Data that is nowhere. Items of a type that the program has made may lie at addresses of their own (MPI_BOTTOM).
int check_places(const Datatype& type, MPI_Count bytes, const void* items, const void* packed) {
    return bytes > 0 && (!packed || (!items && type.builtin)) ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

bool is_external32(const char* name) { return std::strcmp(name, "external32") == 0; }

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_COUNTED(Get_count, (const MPI_Status* status, MPI_Datatype datatype, Count* count), {
    Call call("MPI_Get_count");
    VIADUCT_MPI_NEED(status, count)
    const Datatype* type = type_of(datatype);
    if (!type) {
        return call.result(MPI_ERR_TYPE);
    }
    *count = as<Count>(count_items(*type, bytes_of(*status)));
    return MPI_SUCCESS;
})

VIADUCT_MPI_COUNTED(Get_elements, (const MPI_Status* status, MPI_Datatype datatype, Count* count), {
    Call call("MPI_Get_elements");
    VIADUCT_MPI_NEED(status, count)
    const Datatype* type = type_of(datatype);
    if (!type) {
        return call.result(MPI_ERR_TYPE);
    }
    *count = as<Count>(elements_or_undefined(*type, bytes_of(*status)));
    return MPI_SUCCESS;
})

VIADUCT_MPI(Get_elements_x, (const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count)) {
    Call call("MPI_Get_elements_x");
    VIADUCT_MPI_NEED(status, count)
    const Datatype* type = type_of(datatype);
    if (!type) {
        return call.result(MPI_ERR_TYPE);
    }
    *count = elements_or_undefined(*type, bytes_of(*status));
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Status_set_elements_x, (MPI_Status * status, MPI_Datatype datatype, MPI_Count count)) {
    Call call("MPI_Status_set_elements_x");
    VIADUCT_MPI_NEED(status)
    const Datatype* type = type_of(datatype);
    if (!type) {
        return call.result(MPI_ERR_TYPE);
    }
    if (count < 0) {
        return call.result(MPI_ERR_COUNT);
    }
    set_bytes(*status, bytes_of_elements(*type, count));
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Status_set_elements, (MPI_Status * status, MPI_Datatype datatype, int count)) {
    Call call("MPI_Status_set_elements");
    VIADUCT_MPI_NEED(status)
    const Datatype* type = type_of(datatype);
    if (!type) {
        return call.result(MPI_ERR_TYPE);
    }
    if (count < 0) {
        return call.result(MPI_ERR_COUNT);
    }
    set_bytes(*status, bytes_of_elements(*type, count));
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_COUNTED_ON(comm, Pack,
                       (const void* inbuf, Count incount, MPI_Datatype datatype, void* outbuf, Count outsize,
                        Count* position, MPI_Comm comm),
                       {
                           Call call("MPI_Pack", comm_of(comm));
                           VIADUCT_MPI_NEED(position)
                           const Datatype* type = type_of(datatype);
                           MPI_Count bytes = 0;
                           if (const int error = check_packed(comm, incount, type, *position, outsize, &bytes)) {
                               return call.result(error);
                           }
                           if (const int error = check_places(*type, bytes, inbuf, outbuf)) {
                               return call.result(error);
                           }
                           type->pack(inbuf, uint64_t(incount), 0, uint64_t(bytes),
                                      static_cast<char*>(outbuf) + *position);
                           *position += Count(bytes);
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COUNTED_ON(comm, Unpack,
                       (const void* inbuf, Count insize, Count* position, void* outbuf, Count outcount,
                        MPI_Datatype datatype, MPI_Comm comm),
                       {
                           Call call("MPI_Unpack", comm_of(comm));
                           VIADUCT_MPI_NEED(position)
                           const Datatype* type = type_of(datatype);
                           MPI_Count bytes = 0;
                           if (const int error = check_packed(comm, outcount, type, *position, insize, &bytes)) {
                               return call.result(error);
                           }
                           if (const int error = check_places(*type, bytes, outbuf, inbuf)) {
                               return call.result(error);
                           }
                           type->unpack(outbuf, uint64_t(outcount), 0, uint64_t(bytes),
                                        static_cast<const char*>(inbuf) + *position);
                           *position += Count(bytes);
                           return MPI_SUCCESS;
                       })

VIADUCT_MPI_COUNTED_ON(comm, Pack_size, (Count incount, MPI_Datatype datatype, MPI_Comm comm, Count* size), {
    Call call("MPI_Pack_size", comm_of(comm));
    VIADUCT_MPI_NEED(size)
    const Datatype* type = type_of(datatype);
    if (!comm_of(comm)) {
        return call.result(MPI_ERR_COMM);
    }
    if (incount < 0) {
        return call.result(MPI_ERR_COUNT);
    }
    if (!type) {
        return call.result(MPI_ERR_TYPE);
    }
    *size = as<Count>(incount * type->size);
    return MPI_SUCCESS;
})

VIADUCT_MPI_COUNTED(Pack_external_size, (const char* datarep, Count incount, MPI_Datatype datatype, MPI_Aint* size), {
    Call call("MPI_Pack_external_size");
    VIADUCT_MPI_NEED(datarep, size)
    const Datatype* type = type_of(datatype);
    if (!type) {
        return call.result(MPI_ERR_TYPE);
    }
    if (!is_external32(datarep) || incount < 0) {
        return call.result(MPI_ERR_ARG);
    }
    *size = external_bytes(*type, incount);
    return MPI_SUCCESS;
})

VIADUCT_MPI_COUNTED(Pack_external,
                    (const char datarep[], const void* inbuf, Count incount, MPI_Datatype datatype, void* outbuf,
                     MPI_Aint outsize, MPI_Aint* position),
                    {
                        Call call("MPI_Pack_external");
                        VIADUCT_MPI_NEED(datarep, position)
                        const Datatype* type = type_of(datatype);
                        if (!type || !type->committed) {
                            return call.result(MPI_ERR_TYPE);
                        }
                        if (!is_external32(datarep) || incount < 0 ||
                            !fits(external_bytes(*type, incount), *position, outsize)) {
                            return call.result(MPI_ERR_ARG);
                        }
                        const MPI_Aint bytes = external_bytes(*type, incount);
                        if (const int error = check_places(*type, bytes, inbuf, outbuf)) {
                            return call.result(error);
                        }
                        external_pack(*type, incount, inbuf, static_cast<char*>(outbuf) + *position);
                        *position += bytes;
                        return MPI_SUCCESS;
                    })

VIADUCT_MPI_COUNTED(Unpack_external,
                    (const char datarep[], const void* inbuf, MPI_Aint insize, MPI_Aint* position, void* outbuf,
                     Count outcount, MPI_Datatype datatype),
                    {
                        Call call("MPI_Unpack_external");
                        VIADUCT_MPI_NEED(datarep, position)
                        const Datatype* type = type_of(datatype);
                        if (!type || !type->committed) {
                            return call.result(MPI_ERR_TYPE);
                        }
                        if (!is_external32(datarep) || outcount < 0 ||
                            !fits(external_bytes(*type, outcount), *position, insize)) {
                            return call.result(MPI_ERR_ARG);
                        }
                        const MPI_Aint bytes = external_bytes(*type, outcount);
                        if (const int error = check_places(*type, bytes, outbuf, inbuf)) {
                            return call.result(error);
                        }
                        external_unpack(*type, outcount, outbuf, static_cast<const char*>(inbuf) + *position,
                                        uint64_t(bytes));
                        *position += bytes;
                        return MPI_SUCCESS;
                    })

VIADUCT_MPI(Get_address, (const void* location, MPI_Aint* address)) {
    if (address == nullptr) return Call("MPI_Get_address").result(MPI_ERR_ARG);
    *address = std::bit_cast<MPI_Aint>(location);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Address, (void* location, MPI_Aint* address)) {
    if (address == nullptr) return Call("MPI_Address").result(MPI_ERR_ARG);
    *address = std::bit_cast<MPI_Aint>(location);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()
