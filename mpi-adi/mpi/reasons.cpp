// SPDX-License-Identifier: BSD-2-Clause
// Which argument makes an error of a class. The checks of the MPI functions say the class; here the arguments of a call
// that has failed are looked at once more, and the first one that can be the cause is told with value and range.
#include "mpi-adi/mpi/reasons.hpp"

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/info.hpp"
#include "mpi-adi/engine/op.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi {
namespace {

const Argument* first_of_type(const ArgumentList& all, std::string_view type) {
    for (const Argument& one : all)
        if (one.type == type && !one.pointer) return &one;
    return nullptr;
}

const Communicator* comm_among(const ArgumentList& all) {
    const Argument* one = first_of_type(all, "MPI_Comm");
    return one != nullptr ? comm_of(int(one->value.number)) : nullptr;
}

// How many processes a rank may name; 0 when that cannot be told.
int processes_of(const ArgumentList& all) {
    if (const Argument* win = first_of_type(all, "MPI_Win"))
        if (const rma::Window* found = rma::win_of(int(win->value.number))) return found->group_size();
    if (const Communicator* comm = comm_among(all)) return comm->remote_size;
    if (const Argument* group = first_of_type(all, "MPI_Group"))
        if (const Group* found = group_of(int(group->value.number))) return found->size();
    return 0;
}

std::string named(const Argument& one) { return std::string(one.name.empty() ? one.type : one.name); }

bool is_number(const Argument& one) { return !one.pointer && one.value.pointer == nullptr; }

bool is_rank(const Argument& one) {
    for (const std::string_view name : {"dest", "source", "rank", "leader"})
        if (contains(one.name, name) && (one.type == "int" || one.type == "Count")) return true;
    return false;
}

std::string of_rank(const ArgumentList& all) {
    const int most = processes_of(all);
    for (const Argument& one : all) {
        if (!is_rank(one) || most == 0) continue;
        const std::string range = " but must be nonnegative and less than " + std::to_string(most);
        if (is_number(one)) {
            const long long rank = one.value.number;
            const bool may = rank == MPI_PROC_NULL || (rank == MPI_ANY_SOURCE && contains(one.name, "source"));
            if ((rank < 0 && !may) || rank >= most)
                return "Invalid rank has value " + std::to_string(rank) + range;
        } else if (one.name == "ranks" && one.value.pointer != nullptr) {
            const auto* ranks = static_cast<const int*>(one.value.pointer);
            for (const Argument& n : all)
                for (int i = 0; n.name == "n" && i < n.value.number; i++)
                    if (ranks[i] < 0 || ranks[i] >= most)
                        return "Invalid rank in rank array at index " + std::to_string(i) + "; value is " +
                               std::to_string(ranks[i]) + range;
        }
    }
    return {};
}

std::string of_root(const ArgumentList& all) {
    for (const Argument& one : all)
        if (one.name == "root")
            return "Invalid root has value " + std::to_string(one.value.number) +
                   " but must be nonnegative and less than " + std::to_string(processes_of(all));
    return {};
}

std::string of_tag(const char* function, const ArgumentList& all) {
    const bool receives = contains(function, "ecv") || contains(function, "robe");
    for (const Argument& one : all) {
        if (!contains(one.name, "tag") || !is_number(one) || one.value.number >= 0) continue;
        const bool any = receives && !contains(one.name, "send");
        if (any && one.value.number == MPI_ANY_TAG) continue;
        return "Invalid tag has value " + std::to_string(one.value.number) + " but must be nonnegative" +
               (any ? ", or MPI_ANY_TAG" : "");
    }
    return {};
}

std::string of_count(const char* function, const ArgumentList& all) {
    const bool wide = std::string_view(function).ends_with("_c");
    for (const Argument& one : all) {
        if (is_number(one) && one.value.number < 0 && (one.type == "Count" || contains(one.name, "count")))
            return "Negative count, value of " + named(one) + " is " + std::to_string(one.value.number);
        if (one.pointer && one.type == "Count" && contains(one.name, "counts") && one.value.pointer != nullptr) {
            for (int i = 0; i < processes_of(all); i++) {
                const long long count = wide ? static_cast<const MPI_Count*>(one.value.pointer)[i]
                                             : static_cast<const int*>(one.value.pointer)[i];
                if (count < 0)
                    return "Negative count, value of " + named(one) + "[" + std::to_string(i) + "] is " +
                           std::to_string(count);
            }
        }
    }
    return {};
}

std::string of_datatype(const ArgumentList& all) {
    for (const Argument& one : all) {
        if (one.type != "MPI_Datatype") continue;
        if (one.pointer && one.value.pointer == nullptr) continue;
        const int handle = one.pointer ? *static_cast<const int*>(one.value.pointer) : int(one.value.number);
        if (handle == MPI_DATATYPE_NULL) return "Null datatype in " + named(one) + " (MPI_DATATYPE_NULL)";
        const Datatype* type = type_of(handle);
        if (type == nullptr)
            return "Invalid datatype in " + named(one) + ": " + hexadecimal(handle) + " was freed, or never made";
        if (!type->committed)
            return "Datatype in " + named(one) + " (" + hexadecimal(handle) +
                   ") has not been committed: call MPI_Type_commit first";
    }
    return {};
}

// An object of a type whose handle is null or names nothing.
template <typename Find>
std::string of_handle(const ArgumentList& all, std::string_view type, const char* what, int null, const char* null_name,
                      Find&& find) {
    for (const Argument& one : all) {
        if (one.type != type || (one.pointer && one.value.pointer == nullptr)) continue;
        const int handle = one.pointer ? *static_cast<const int*>(one.value.pointer) : int(one.value.number);
        if (handle == null) return std::string("Null ") + what + " in " + named(one) + " (" + null_name + ")";
        if (!find(handle))
            return std::string("Invalid ") + what + " in " + named(one) + ": " + hexadecimal(handle) +
                   " was freed, or never made";
    }
    return {};
}

std::string of_comm(const ArgumentList& all) {
    std::string text = of_handle(all, "MPI_Comm", "communicator", MPI_COMM_NULL, "MPI_COMM_NULL",
                                 [](int handle) { return comm_of(handle) != nullptr; });
    const Communicator* comm = comm_among(all);
    if (!text.empty() || comm == nullptr) return text;
    return std::string("The communicator is an ") + (comm->inter ? "inter" : "intra") +
           "communicator, which this call does not take";
}

// Requests stand alone behind a pointer, or in a list with its length in front.
std::string of_request(const ArgumentList& all) {
    for (const Argument& one : all) {
        if (one.type != "MPI_Request" || !one.pointer || one.value.pointer == nullptr) continue;
        const auto* handles = static_cast<const MPI_Request*>(one.value.pointer);
        const bool list = !all.empty() && all[0].name == "count";
        for (int i = 0; i < (list ? all[0].value.number : 1); i++) {
            if (request_of(handles[i]) != nullptr) continue;
            const std::string place = list ? named(one) + "[" + std::to_string(i) + "]" : "*" + named(one);
            if (handles[i] == MPI_REQUEST_NULL && list) continue;
            if (handles[i] == MPI_REQUEST_NULL) return "Null request in " + place + " (MPI_REQUEST_NULL)";
            return "Invalid request in " + place + ": " + hexadecimal(handles[i]) +
                   " has been completed or freed, or was never made";
        }
        return "The request is persistent and active, or not of the kind that the call takes";
    }
    return {};
}

std::string of_op(const ArgumentList& all) {
    const Argument* op = first_of_type(all, "MPI_Op");
    if (op == nullptr) return {};
    std::string text = of_handle(all, "MPI_Op", "operator", MPI_OP_NULL, "MPI_OP_NULL",
                                 [](int handle) { return op_of(handle) != nullptr; });
    if (!text.empty()) return text;
    const Argument* type = first_of_type(all, "MPI_Datatype");
    return "The operator " + name_of_handle(*op) + " is not defined for " +
           (type != nullptr ? "the datatype " + name_of_handle(*type) : "this call");
}

std::string of_buffer(const ArgumentList& all) {
    const Argument* other = nullptr;
    for (const Argument& one : all) {
        if (one.type != "void" || !one.pointer) continue;
        if (one.value.pointer == nullptr) return "Null buffer pointer in " + named(one) + " although there are items";
        if (other != nullptr && one.value.pointer == other->value.pointer && one.value.pointer != MPI_IN_PLACE)
            return "Buffers must not be aliased: " + named(*other) + " and " + named(one) + " are both " +
                   text_of_pointer(one) + "; MPI_IN_PLACE is for that";
        other = &one;
    }
    for (const Argument& one : all)
        if (one.pointer && one.value.pointer == MPI_IN_PLACE)
            return named(one) + " must not be MPI_IN_PLACE in this call of this process";
    return {};
}

std::string of_any(const ArgumentList& all) {
    for (const Argument& one : all)
        if (one.pointer && one.value.pointer == nullptr) return "Null pointer in parameter " + named(one);
    for (const Argument& one : all)
        if (is_number(one) && one.value.number < 0 && name_of_handle(one).empty())
            return "Invalid value of parameter " + named(one) + ": " + std::to_string(one.value.number);
    return {};
}

// One number, and what it is.
std::string of_value(const ArgumentList& all, std::string_view name, const char* what, const char* rule) {
    for (const Argument& one : all)
        if (contains(one.name, name)) return std::string(what) + " " + text_of_number(one) + rule;
    return {};
}

// Of a target in a window, or the unit in which a window counts.
std::string of_displacement(const ArgumentList& all) {
    const std::string unit = of_value(all, "disp_unit", "Unit", " is not from 1 to 2^31 - 1");
    return !unit.empty() ? unit : of_value(all, "disp", "Displacement", " is negative");
}

std::string of_window_range(const ArgumentList& all) {
    return of_value(all, "disp", "Displacement", ": the target's items begin or end outside of the window's memory");
}

}  // namespace

std::string reason_of(const char* function, int error_class, const ArgumentList& all) {
    switch (error_class) {
        case MPI_ERR_RANK: return of_rank(all);
        case MPI_ERR_ROOT: return of_root(all);
        case MPI_ERR_TAG: return of_tag(function, all);
        case MPI_ERR_COUNT: return of_count(function, all);
        case MPI_ERR_TYPE: return of_datatype(all);
        case MPI_ERR_COMM: return of_comm(all);
        case MPI_ERR_REQUEST: return of_request(all);
        case MPI_ERR_OP: return of_op(all);
        case MPI_ERR_BUFFER: return of_buffer(all);
        case MPI_ERR_ARG: return of_any(all);
        case MPI_ERR_GROUP:
            return of_handle(all, "MPI_Group", "group", MPI_GROUP_NULL, "MPI_GROUP_NULL",
                             [](int handle) { return group_of(handle) != nullptr; });
        case MPI_ERR_WIN:
            return of_handle(all, "MPI_Win", "window", MPI_WIN_NULL, "MPI_WIN_NULL",
                             [](int handle) { return rma::win_of(handle) != nullptr; });
        case MPI_ERR_INFO:
            return of_handle(all, "MPI_Info", "info object", MPI_INFO_NULL, "MPI_INFO_NULL",
                             [](int handle) { return info_of(handle) != nullptr; });
        case MPI_ERR_KEYVAL: return of_value(all, "keyval", "Attribute key", " was freed, or never made");
        case MPI_ERR_LOCKTYPE:
            return of_value(all, "lock_type", "Lock type", " is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE");
        case MPI_ERR_ASSERT: return of_value(all, "assert", "Assertion", " has bits that this call does not have");
        case MPI_ERR_AMODE:
            return of_value(all, "amode", "Access mode",
                            " needs exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR");
        case MPI_ERR_DISP: return of_displacement(all);
        case MPI_ERR_RMA_RANGE: return of_window_range(all);
        case MPI_ERR_RMA_SYNC:
            return "The window is in no epoch that allows this call: see MPI_Win_fence, MPI_Win_start, MPI_Win_lock";
        case MPI_ERR_OTHER:
            if (std::string_view(function).starts_with("MPI_Init"))
                return "MPI was initialised before: a process calls MPI_Init or MPI_Init_thread once, also after "
                       "MPI_Finalize";
            return {};
        default: return {};
    }
}

}  // namespace viaduct::mpi
