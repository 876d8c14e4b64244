// SPDX-License-Identifier: BSD-2-Clause
// The MPI functions that read and write files: each is a position, a direction, one or all processes, and a
// way to end.
#include "mpi-adi/mpi/file.hpp"

#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi {
namespace {

using io::Position;

int check_mode(const io::File& file, Position position, bool writes) {
    // The other two need a file in which one can go back.
    if (file.sequential() && position != Position::shared) return MPI_ERR_UNSUPPORTED_OPERATION;
    if (writes && !file.can_write()) return MPI_ERR_READ_ONLY;
    return !writes && !file.can_read() ? MPI_ERR_ACCESS : MPI_SUCCESS;
}

int check_items(const void* buffer, MPI_Count count, MPI_Datatype datatype, const Datatype** type) {
    *type = type_of(datatype);
    if (count < 0) return MPI_ERR_COUNT;
    if (*type == nullptr || !(*type)->committed) return MPI_ERR_TYPE;
    return buffer == nullptr && count > 0 && (*type)->builtin ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

io::Split::Kind kind_of(Position position) {
    switch (position) {
        case Position::given:
            return io::Split::Kind::at;
        case Position::individual:
            return io::Split::Kind::individual;
        default:
            return io::Split::Kind::ordered;
    }
}

}  // namespace

io::Transfer checked_transfer(const io::File& file, Position position, bool writes, bool collective,
                              MPI_Offset offset, const void* buffer, MPI_Count count, MPI_Datatype datatype) {
    io::Transfer what{position, writes,  collective, offset, const_cast<void*>(buffer),
                      count,    nullptr, MPI_SUCCESS};
    what.error = check_items(buffer, count, datatype, &what.type);
    if (what.error == MPI_SUCCESS) what.error = check_mode(file, position, writes);
    if (what.error == MPI_SUCCESS && position == Position::given && offset < 0) what.error = MPI_ERR_ARG;
    // One split collective operation at a time, and no other collective one meanwhile.
    if (what.error == MPI_SUCCESS && collective && file.split.request != nullptr) what.error = MPI_ERR_OTHER;
    return what;
}

int access_now(const char* name, MPI_File fh, Position position, bool writes, bool collective,
               MPI_Offset offset, const void* buffer, MPI_Count count, MPI_Datatype datatype,
               MPI_Status* status) {
    FileCall call(name, fh);
    if (!call.valid()) return call.result(MPI_ERR_FILE);
    io::Transfer what =
        checked_transfer(*call, position, writes, collective, offset, buffer, count, datatype);
    if (what.error == MPI_SUCCESS && status == nullptr) what.error = MPI_ERR_ARG;
    if (what.error != MPI_SUCCESS && !collective) return call.result(what.error);
    return call.result(io::transfer(*call, what, status == nullptr ? MPI_STATUS_IGNORE : status));
}

int access_later(const char* name, MPI_File fh, Position position, bool writes, bool collective,
                 MPI_Offset offset, const void* buffer, MPI_Count count, MPI_Datatype datatype,
                 MPI_Request* request) {
    FileCall call(name, fh);
    if (!call.valid()) return call.result(MPI_ERR_FILE);
    const io::Transfer what =
        checked_transfer(*call, position, writes, collective, offset, buffer, count, datatype);
    if (request == nullptr) return call.result(MPI_ERR_ARG);
    if (!name_is_left()) return call.result(MPI_ERR_NO_MEM);
    Request* started = nullptr;
    const int error = io::start_transfer(*call, what, &started);
    return call.result(error == MPI_SUCCESS ? publish(started, request) : error);
}

int begin_split(const char* name, MPI_File fh, Position position, bool writes, MPI_Offset offset,
                const void* buffer, MPI_Count count, MPI_Datatype datatype) {
    FileCall call(name, fh);
    if (!call.valid()) return call.result(MPI_ERR_FILE);
    if (call->split.request != nullptr) return call.result(MPI_ERR_OTHER);
    const io::Transfer what =
        checked_transfer(*call, position, writes, true, offset, buffer, count, datatype);
    Request* started = nullptr;
    if (const int error = io::start_transfer(*call, what, &started)) return call.result(error);
    call->split = {started, kind_of(position), writes, buffer};
    return MPI_SUCCESS;
}

int end_split(const char* name, MPI_File fh, Position position, bool writes, const void* buffer,
              MPI_Status* status) {
    FileCall call(name, fh);
    if (!call.valid()) return call.result(MPI_ERR_FILE);
    const io::Split begun = call->split;
    const bool fits = begun.request != nullptr && begun.kind == kind_of(position) && begun.writes == writes;
    if (!fits || begun.buffer != buffer) return call.result(MPI_ERR_OTHER);
    if (status == nullptr) return call.result(MPI_ERR_ARG);
    call->split = {};
    return call.result(wait(begun.request, status));
}

}  // namespace viaduct::mpi

using namespace viaduct::mpi;
using viaduct::mpi::io::Position;

// The blocking function and its non-blocking twin.
#define VIADUCT_FILE_ACCESS(name, position, writes, collective, buffer_type, offset_parameter, offset)     \
    VIADUCT_MPI_COUNTED_ON(fh, File_##name,                                                                       \
                        (MPI_File fh, VIADUCT_OPEN offset_parameter buffer_type buf, Count count,          \
                         MPI_Datatype datatype, MPI_Status * status),                                      \
                        {                                                                                  \
                            return access_now("MPI_File_" #name, fh, position, writes, collective, offset, \
                                              buf, count, datatype, status);                               \
                        })                                                                                 \
    VIADUCT_MPI_COUNTED_ON(fh, File_i##name,                                                                      \
                        (MPI_File fh, VIADUCT_OPEN offset_parameter buffer_type buf, Count count,          \
                         MPI_Datatype datatype, MPI_Request * request),                                    \
                        {                                                                                  \
                            return access_later("MPI_File_i" #name, fh, position, writes, collective,      \
                                                offset, buf, count, datatype, request);                    \
                        })
#define VIADUCT_OPEN(...) __VA_ARGS__
#define VIADUCT_AT (MPI_Offset at, )
#define VIADUCT_NO_OFFSET ()

VIADUCT_FILE_ACCESS(read_at, Position::given, false, false, void*, VIADUCT_AT, at)
VIADUCT_FILE_ACCESS(write_at, Position::given, true, false, const void*, VIADUCT_AT, at)
VIADUCT_FILE_ACCESS(read_at_all, Position::given, false, true, void*, VIADUCT_AT, at)
VIADUCT_FILE_ACCESS(write_at_all, Position::given, true, true, const void*, VIADUCT_AT, at)
VIADUCT_FILE_ACCESS(read, Position::individual, false, false, void*, VIADUCT_NO_OFFSET, 0)
VIADUCT_FILE_ACCESS(write, Position::individual, true, false, const void*, VIADUCT_NO_OFFSET, 0)
VIADUCT_FILE_ACCESS(read_all, Position::individual, false, true, void*, VIADUCT_NO_OFFSET, 0)
VIADUCT_FILE_ACCESS(write_all, Position::individual, true, true, const void*, VIADUCT_NO_OFFSET, 0)
VIADUCT_FILE_ACCESS(read_shared, Position::shared, false, false, void*, VIADUCT_NO_OFFSET, 0)
VIADUCT_FILE_ACCESS(write_shared, Position::shared, true, false, const void*, VIADUCT_NO_OFFSET, 0)

// Ordered accesses have no non-blocking form.
#define VIADUCT_FILE_ORDERED(name, writes, buffer_type)                                             \
    VIADUCT_MPI_COUNTED(                                                                            \
        File_##name,                                                                                \
        (MPI_File fh, buffer_type buf, Count count, MPI_Datatype datatype, MPI_Status * status), {  \
            return access_now("MPI_File_" #name, fh, Position::shared, writes, true, 0, buf, count, \
                              datatype, status);                                                    \
        })
VIADUCT_FILE_ORDERED(read_ordered, false, void*)
VIADUCT_FILE_ORDERED(write_ordered, true, const void*)

// Split collective ones.
#define VIADUCT_FILE_SPLIT(name, position, writes, buffer_type, offset_parameter, offset)                   \
    VIADUCT_MPI_COUNTED(                                                                                    \
        File_##name##_begin,                                                                                \
        (MPI_File fh, VIADUCT_OPEN offset_parameter buffer_type buf, Count count, MPI_Datatype datatype), { \
            return begin_split("MPI_File_" #name "_begin", fh, position, writes, offset, buf, count,        \
                               datatype);                                                                   \
        })                                                                                                  \
    VIADUCT_MPI(File_##name##_end, (MPI_File fh, buffer_type buf, MPI_Status * status)) {                   \
        return end_split("MPI_File_" #name "_end", fh, position, writes, buf, status);                      \
    } VIADUCT_MPI_CATCH(fh)
VIADUCT_FILE_SPLIT(read_at_all, Position::given, false, void*, VIADUCT_AT, at)
VIADUCT_FILE_SPLIT(write_at_all, Position::given, true, const void*, VIADUCT_AT, at)
VIADUCT_FILE_SPLIT(read_all, Position::individual, false, void*, VIADUCT_NO_OFFSET, 0)
VIADUCT_FILE_SPLIT(write_all, Position::individual, true, const void*, VIADUCT_NO_OFFSET, 0)
VIADUCT_FILE_SPLIT(read_ordered, Position::shared, false, void*, VIADUCT_NO_OFFSET, 0)
VIADUCT_FILE_SPLIT(write_ordered, Position::shared, true, const void*, VIADUCT_NO_OFFSET, 0)
