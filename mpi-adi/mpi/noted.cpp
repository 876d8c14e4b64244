// SPDX-License-Identifier: BSD-2-Clause
// What the debugging mode learns from calls: see noted.hpp.
#include "mpi-adi/mpi/noted.hpp"

#include <optional>

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/critical.hpp"
#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/mpi/explain.hpp"

namespace viaduct::mpi {
namespace {

std::optional<checking::Kind> kind_of(std::string_view type) {
    if (type == "MPI_Comm") return checking::Kind::comm;
    if (type == "MPI_Datatype") return checking::Kind::datatype;
    if (type == "MPI_Group") return checking::Kind::group;
    if (type == "MPI_Op") return checking::Kind::op;
    if (type == "MPI_Win") return checking::Kind::win;
    if (type == "MPI_Request") return checking::Kind::request;
    if (type == "MPI_Message") return checking::Kind::message;
    if (type == "MPI_Info") return checking::Kind::info;
    if (type == "MPI_Errhandler") return checking::Kind::errhandler;
    if (type == "MPI_Session") return checking::Kind::session;
    return std::nullopt;
}

std::optional<checking::Kind> kind_of(const char* function, const Argument& argument) {
    if (argument.type == "int" && argument.name == "keyval" && makes_a_keyval(function)) return checking::Kind::keyval;
    return kind_of(argument.type);
}

// How many handles an argument has room for and the call has stored. Only MPI_Type_get_contents gives several.
size_t number_of_handles(const char* function, const ArgumentList& arguments) {
    if (without_suffix(function) != "MPI_Type_get_contents") return 1;
    const Datatype* const type = type_of(static_cast<MPI_Datatype>(arguments.front().value.number));
    return type != nullptr ? type->contents.types.size() : 0;
}

// Calls with each object whose handle the call has stored. What is const the call has only read.
template <typename Each>
void for_each_handle(const char* function, const ArgumentList& arguments, Each&& each) {
    const size_t handles = number_of_handles(function, arguments);
    for (const Argument& one : arguments) {
        const auto kind = kind_of(function, one);
        if (!kind || !one.pointer || one.constant || one.value.pointer == nullptr) continue;
        for (size_t i = 0; i < handles; i++) each(*kind, static_cast<const int*>(one.value.pointer)[i]);
    }
}

}  // namespace

void note_made(const char* function, const char* parameters, const Value* values, int count) try {
    const Critical guard;
    if (!checking::is_noting()) return;
    const ArgumentList arguments = arguments_of(parameters, values, count);
    for_each_handle(function, arguments, [&](checking::Kind kind, int handle) {
        checking::note_made(kind, handle, text_of_call(function, arguments));
    });
} catch (const std::bad_alloc&) {
    // An object more that is not looked at.
}

void note_end(std::string_view function, int handle) {
    const Critical guard;
    const auto kind = ends_a_keyval(function) ? std::optional(checking::Kind::keyval)
                                              : kind_of(function.substr(0, function.rfind('_')));
    if (kind) checking::freed(*kind, handle);
}

void before_call(const char* function, const char* parameters, const Value* values, int count) {
    const Critical guard;
    const ArgumentList arguments = arguments_of(parameters, values, count);
    for (const Argument& one : arguments) {
        if (one.type != "MPI_Comm" || one.pointer) continue;
        if (Communicator* const comm = comm_of(static_cast<int>(one.value.number)))
            checking::meet_by_name(*comm, function);
        return;
    }
}

}  // namespace viaduct::mpi
