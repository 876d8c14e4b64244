// SPDX-License-Identifier: BSD-2-Clause
// Entry points of MPI 4.0, 14.3 (views), 14.4.3 (positions) and 14.5 (data representations): they check arguments and
// call engine/io/file.cpp. FileCall (file.hpp) holds the engine lock. set_view and seek_shared are collective: their
// errors are agreed on, so that no process waits for one that has refused.
#include <cstring>

#include "mpi-adi/mpi/file.hpp"

namespace viaduct::mpi {
namespace {

// For the program: the same handle with one more reference, which the program frees; of a predefined type the handle as
// it is.
MPI_Datatype give_type(const Datatype& type) {
    if (type.builtin) return type.handle;
    type.retain();
    return type.handle;
}

bool valid_datarep_name(const char* name) {
    return name != nullptr && *name != '\0' && strnlen(name, MPI_MAX_DATAREP_STRING) < MPI_MAX_DATAREP_STRING;
}

int register_datarep(const char* name, const io::DatarepFunctions& functions) {
    if (!valid_datarep_name(name) || functions.extent == nullptr) return MPI_ERR_ARG;
    return io::register_representation(name, functions);
}

int type_extent(const io::File& file, MPI_Datatype datatype, MPI_Count* extent) {
    if (extent == nullptr) return MPI_ERR_ARG;
    const Datatype* type = type_of(datatype);
    if (type == nullptr) return MPI_ERR_TYPE;
    const Datatype* layout = io::layout_in_file(*type, file.view->representation());
    if (layout == nullptr) return MPI_ERR_CONVERSION;
    *extent = layout->extent();
    layout->release();
    return MPI_SUCCESS;
}

int check_view(const io::File& file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
               const char* datarep, MPI_Info info) {
    if (disp == MPI_DISPLACEMENT_CURRENT ? !file.sequential() : disp < 0) return MPI_ERR_ARG;
    // MPI_MODE_SEQUENTIAL: only MPI_DISPLACEMENT_CURRENT is allowed (MPI 4.0, 14.3).
    if (file.sequential() && disp != MPI_DISPLACEMENT_CURRENT) return MPI_ERR_ARG;
    for (const MPI_Datatype handle : {etype, filetype}) {
        const Datatype* type = type_of(handle);
        if (type == nullptr || !type->committed) return MPI_ERR_TYPE;
    }
    if (!valid_datarep_name(datarep)) return MPI_ERR_UNSUPPORTED_DATAREP;
    return is_info_or_none(info) ? MPI_SUCCESS : MPI_ERR_INFO;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_FILE(set_view,
                 (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                  const char* datarep, MPI_Info info),
                 {
                     if (const int error = check_view(*call, disp, etype, filetype, datarep, info))
                         return io::refuse_view(*call, error);
                     return io::set_view(*call, disp, *type_of(etype), *type_of(filetype), datarep,
                                         info_of(info));
                 })

VIADUCT_MPI_FILE(get_view,
                 (MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype, char* datarep),
                 {
                     if (missing(disp, etype, filetype, datarep)) return MPI_ERR_ARG;
                     const io::View& view = *call->view;
                     *disp = view.displacement();
                     *etype = give_type(view.etype());
                     *filetype = give_type(view.filetype());
                     // The program gives MPI_MAX_DATAREP_STRING bytes; registered names are shorter.
                     std::strcpy(datarep, view.representation().name().c_str());
                     return MPI_SUCCESS;
                 })

VIADUCT_MPI_FILE(seek, (MPI_File fh, MPI_Offset offset, int whence), {
    if (call->sequential()) return MPI_ERR_UNSUPPORTED_OPERATION;
    return io::seek(*call, offset, whence);
})

VIADUCT_MPI_FILE(seek_shared, (MPI_File fh, MPI_Offset offset, int whence), {
    if (call->sequential()) return MPI_ERR_UNSUPPORTED_OPERATION;
    return io::seek_shared(*call, offset, whence);
})

VIADUCT_MPI_FILE(get_position, (MPI_File fh, MPI_Offset* offset), {
    if (offset == nullptr) return MPI_ERR_ARG;
    if (call->sequential()) return MPI_ERR_UNSUPPORTED_OPERATION;
    *offset = call->position;
    return MPI_SUCCESS;
})

VIADUCT_MPI_FILE(get_position_shared, (MPI_File fh, MPI_Offset* offset), {
    if (offset == nullptr) return MPI_ERR_ARG;
    if (call->sequential()) return MPI_ERR_UNSUPPORTED_OPERATION;
    return io::fetch_shared(*call, 0, offset);
})

VIADUCT_MPI_FILE(get_byte_offset, (MPI_File fh, MPI_Offset offset, MPI_Offset* disp), {
    if (disp == nullptr) return MPI_ERR_ARG;
    if (call->sequential()) return MPI_ERR_UNSUPPORTED_OPERATION;
    MPI_Offset at = 0;
    if (offset < 0 || __builtin_mul_overflow(offset, call->view->etype_bytes(), &at)) return MPI_ERR_ARG;
    return call->view->find_offset(at, disp) ? MPI_SUCCESS : MPI_ERR_ARG;
})

VIADUCT_MPI_FILE(get_type_extent, (MPI_File fh, MPI_Datatype datatype, MPI_Aint* extent),
                 { return type_extent(*call, datatype, extent); })
VIADUCT_MPI_FILE(get_type_extent_c, (MPI_File fh, MPI_Datatype datatype, MPI_Count* extent),
                 { return type_extent(*call, datatype, extent); })

VIADUCT_MPI(Register_datarep, (const char* datarep, MPI_Datarep_conversion_function* read_conversion_fn,
                               MPI_Datarep_conversion_function* write_conversion_fn,
                               MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state)) {
    FileCall call("MPI_Register_datarep", MPI_FILE_NULL);
    return call.result(register_datarep(datarep, {read_conversion_fn, write_conversion_fn, nullptr, nullptr,
                                                  dtype_file_extent_fn, extra_state}));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Register_datarep_c, (const char* datarep, MPI_Datarep_conversion_function_c* read_conversion_fn,
                                 MPI_Datarep_conversion_function_c* write_conversion_fn,
                                 MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state)) {
    FileCall call("MPI_Register_datarep_c", MPI_FILE_NULL);
    return call.result(register_datarep(datarep, {nullptr, nullptr, read_conversion_fn, write_conversion_fn,
                                                  dtype_file_extent_fn, extra_state}));
} VIADUCT_MPI_CATCH()
