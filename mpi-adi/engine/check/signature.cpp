// SPDX-License-Identifier: BSD-2-Clause
// See signature.hpp.
#include "mpi-adi/engine/check/signature.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/op.hpp"

namespace viaduct::mpi::checking {
namespace {

std::string text_of_op(MPI_Op op) {
    if (op == kOpOfProgram) return "one of the program";
    const char* const name = op_name(op);
    return name != nullptr ? name : "none";
}

std::string text_of(int64_t bytes, MPI_Datatype basic) {
    const Datatype* const type = basic == MPI_DATATYPE_NULL ? nullptr : type_of(basic);
    if (type == nullptr || type->size == 0) return std::to_string(bytes) + " bytes";
    return std::to_string(bytes / type->size) + " " + type->name + " (" + std::to_string(bytes) + " bytes)";
}

// Bytes fit every type: programs send them for what they know the form of.
bool types_fit(MPI_Datatype a, MPI_Datatype b) {
    const Datatype* const one = a == MPI_DATATYPE_NULL ? nullptr : type_of(a);
    const Datatype* const other = b == MPI_DATATYPE_NULL ? nullptr : type_of(b);
    if (one == nullptr || other == nullptr) return true;
    if (one->basic == BasicClass::byte || other->basic == BasicClass::byte) return true;
    return one->basic == other->basic && one->size == other->size;
}

}  // namespace

std::string plain_name(const char* function) {
    std::string_view name = function;
    if (name.ends_with("_c")) name.remove_suffix(2);
    return std::string(name);
}

std::string text_of_comm(const Comm& comm) {
    const std::string name = name_of_context(comm.recv_context);
    return name.empty() ? "a communicator of the library" : name;
}

std::string text_of_rank(const Communicator& comm, int rank) {
    std::string text = "rank " + std::to_string(rank);
    const int known = world_rank_of(*comm.peers[rank]);
    if (known != rank) text += " (" + std::to_string(known) + " in MPI_COMM_WORLD)";
    return text;
}

Signature signature_for(int peer, const std::string& function, bool waits, const Description& own) {
    Signature one{};
    function.copy(one.function, sizeof one.function - 1);
    one.root = own.root;
    one.op = own.op;
    one.waits = waits ? 1 : 0;
    const Flow flow = own.gives.empty() ? Flow{} : own.gives[static_cast<size_t>(peer)];
    one.bytes = flow.bytes;
    one.basic = flow.basic;
    return one;
}

std::string difference(const Communicator& comm, const std::string& function, const Description& own, int peer,
                       const Signature& theirs) {
    const std::string their_function(theirs.function, strnlen(theirs.function, sizeof theirs.function));
    const std::string rank = text_of_rank(comm, peer);
    const std::string where = " on " + text_of_comm(comm);
    if (their_function != function)
        return "this process calls " + function + where + ", " + rank + " calls " + their_function +
               ". All members of a communicator make the same collective calls in the same order: look where the two "
               "ranks go different ways";
    if (!comm.inter && theirs.root != own.root)
        return function + where + ": root is " + std::to_string(own.root) + " here and " + std::to_string(theirs.root) +
               " at " + rank + ". All members name the same root";
    // Between two groups a member that passes MPI_PROC_NULL as the root takes no part, and names no operation.
    const bool known = own.op != MPI_OP_NULL && theirs.op != MPI_OP_NULL;
    if (known && theirs.op != own.op)
        return function + where + ": the operation is " + text_of_op(own.op) + " here and " + text_of_op(theirs.op) +
               " at " + rank + ". All members name the same operation";
    const Flow flow = own.takes.empty() ? Flow{} : own.takes[static_cast<size_t>(peer)];
    if (flow.bytes < 0 || theirs.bytes < 0) return {};
    if (flow.bytes != theirs.bytes)
        return function + where + ": " + rank + " gives " + text_of(theirs.bytes, theirs.basic) +
               " to this process, which takes " + text_of(flow.bytes, flow.basic) +
               ". Count and datatype must describe as much at both ends";
    if (!types_fit(flow.basic, theirs.basic))
        return function + where + ": " + rank + " gives " + text_of(theirs.bytes, theirs.basic) +
               " to this process, which takes " + text_of(flow.bytes, flow.basic) +
               ". The datatypes must be made of the same basic types";
    return {};
}

}  // namespace viaduct::mpi::checking
