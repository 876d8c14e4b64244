// SPDX-License-Identifier: BSD-2-Clause
// Texts of error classes, and the classes, codes and texts that a program adds.
#include <algorithm>
#include <map>

#include "mpi-adi/engine/any_time.hpp"
#include "mpi-adi/engine/error.hpp"
#include "mpi-adi/engine/failure.hpp"

namespace viaduct::mpi {
namespace {

struct Text {
    int code;
    const char* text;
};

constexpr Text kTexts[] = {
    {MPI_SUCCESS, "No MPI error"},
    {MPI_ERR_BUFFER, "Invalid buffer pointer"},
    {MPI_ERR_COUNT, "Invalid count"},
    {MPI_ERR_TYPE, "Invalid datatype"},
    {MPI_ERR_TAG, "Invalid tag"},
    {MPI_ERR_COMM, "Invalid communicator"},
    {MPI_ERR_RANK, "Invalid rank"},
    {MPI_ERR_ROOT, "Invalid root"},
    {MPI_ERR_GROUP, "Invalid group"},
    {MPI_ERR_OP, "Invalid operator, or operator that the datatype does not have"},
    {MPI_ERR_TOPOLOGY, "Invalid topology, or communicator without one"},
    {MPI_ERR_DIMS, "Invalid dimensions"},
    {MPI_ERR_ARG, "Invalid argument"},
    {MPI_ERR_UNKNOWN, "Unknown error"},
    {MPI_ERR_TRUNCATE, "Message truncated: it is longer than the receive buffer"},
    {MPI_ERR_OTHER, "Error that belongs to no other class"},
    {MPI_ERR_INTERN, "Internal error of the library"},
    {MPI_ERR_IN_STATUS, "Error codes are in the statuses"},
    {MPI_ERR_PENDING, "Request neither failed nor completed"},
    {MPI_ERR_REQUEST, "Invalid request"},
    {MPI_ERR_ACCESS, "Permission denied"},
    {MPI_ERR_AMODE, "Invalid access mode of a file"},
    {MPI_ERR_BAD_FILE, "Invalid file name"},
    {MPI_ERR_CONVERSION, "Error in a data conversion function"},
    {MPI_ERR_DUP_DATAREP, "Data representation is already defined"},
    {MPI_ERR_FILE_EXISTS, "File exists"},
    {MPI_ERR_FILE_IN_USE, "File is in use"},
    {MPI_ERR_FILE, "Invalid file handle"},
    {MPI_ERR_INFO, "Invalid info object"},
    {MPI_ERR_INFO_KEY, "Invalid info key: empty or too long"},
    {MPI_ERR_INFO_VALUE, "Invalid info value: empty or too long"},
    {MPI_ERR_INFO_NOKEY, "Info object has no such key"},
    {MPI_ERR_IO, "Input or output error"},
    {MPI_ERR_NAME, "Service name is not published"},
    {MPI_ERR_NO_MEM, "Out of memory"},
    {MPI_ERR_NOT_SAME, "Argument differs between processes"},
    {MPI_ERR_NO_SPACE, "No space left"},
    {MPI_ERR_NO_SUCH_FILE, "No such file"},
    {MPI_ERR_PORT, "Invalid port name"},
    {MPI_ERR_QUOTA, "Quota exceeded"},
    {MPI_ERR_READ_ONLY, "File is read-only"},
    {MPI_ERR_SERVICE, "Invalid service name"},
    {MPI_ERR_SPAWN, "Processes could not be started"},
    {MPI_ERR_UNSUPPORTED_DATAREP, "Unsupported data representation"},
    {MPI_ERR_UNSUPPORTED_OPERATION, "Unsupported operation"},
    {MPI_ERR_WIN, "Invalid window"},
    {MPI_ERR_BASE, "Invalid base address"},
    {MPI_ERR_LOCKTYPE, "Invalid lock type"},
    {MPI_ERR_KEYVAL, "Invalid attribute key"},
    {MPI_ERR_RMA_CONFLICT, "Conflicting accesses to a window"},
    {MPI_ERR_RMA_SYNC, "Wrong synchronisation of a window"},
    {MPI_ERR_SIZE, "Invalid size"},
    {MPI_ERR_DISP, "Invalid displacement"},
    {MPI_ERR_ASSERT, "Invalid assertion"},
    {MPI_ERR_RMA_RANGE, "Target memory is not part of the window"},
    {MPI_ERR_RMA_ATTACH, "Memory cannot be attached"},
    {MPI_ERR_RMA_SHARED, "Memory cannot be shared"},
    {MPI_ERR_RMA_FLAVOR, "Wrong flavor of window"},
    {MPI_T_ERR_MEMORY, "Tools interface: out of memory"},
    {MPI_T_ERR_NOT_INITIALIZED, "Tools interface: not initialised"},
    {MPI_T_ERR_CANNOT_INIT, "Tools interface: cannot be initialised now"},
    {MPI_T_ERR_INVALID_INDEX, "Tools interface: invalid index"},
    {MPI_T_ERR_INVALID_ITEM, "Tools interface: invalid item of an enumeration"},
    {MPI_T_ERR_INVALID_HANDLE, "Tools interface: invalid handle"},
    {MPI_T_ERR_OUT_OF_HANDLES, "Tools interface: no more handles"},
    {MPI_T_ERR_OUT_OF_SESSIONS, "Tools interface: no more sessions"},
    {MPI_T_ERR_INVALID_SESSION, "Tools interface: invalid session"},
    {MPI_T_ERR_CVAR_SET_NOT_NOW, "Tools interface: the variable cannot be set now"},
    {MPI_T_ERR_CVAR_SET_NEVER, "Tools interface: the variable cannot be set any more"},
    {MPI_T_ERR_PVAR_NO_STARTSTOP, "Tools interface: the variable cannot be started or stopped"},
    {MPI_T_ERR_PVAR_NO_WRITE, "Tools interface: the variable cannot be written or reset"},
    {MPI_T_ERR_PVAR_NO_ATOMIC, "Tools interface: the variable cannot be read and reset in one"},
    {MPI_T_ERR_INVALID_NAME, "Tools interface: no such name"},
    {MPI_T_ERR_INVALID, "Tools interface: invalid argument"},
    {MPI_ERR_SESSION, "Invalid session"},
    {MPI_ERR_PROC_ABORTED, "A process that took part has ended"},
    {MPI_ERR_VALUE_TOO_LARGE, "Value does not fit its variable"},
    {MPI_T_ERR_NOT_SUPPORTED, "Tools interface: not supported"},
    {MPIX_ERR_PROC_FAILED, "A process that took part, or the way to it, has failed"},
    {MPIX_ERR_PROC_FAILED_PENDING, "A process that may take part has failed"},
    {MPIX_ERR_REVOKED, "The communicator has been revoked"},
    {MPIX_ERR_EAGAIN, "Cannot be begun now"},
    {MPIX_ERR_NOREQ, "No request can be made"},
};

constexpr int kFirstAdded = MPI_ERR_LASTCODE + 1;

struct Added {
    int error_class;
    std::string text;
};

// Classes and codes that the program made, by code.
std::map<int, Added>& added() {
    static auto* all = new std::map<int, Added>();
    return *all;
}

int last_used = MPI_ERR_LASTCODE;

int next_code() {
    int code = added().empty() ? kFirstAdded : added().rbegin()->first + 1;
    return code;
}

}  // namespace

int* last_used_code() {
    const AnyTime tables;
    last_used = added().empty() ? kFirstAdded - 1 : added().rbegin()->first;
    return &last_used;
}

int error_class_of(int code) {
    const AnyTime tables;
    auto made = added().find(code);
    if (made != added().end()) {
        return made->second.error_class;
    }
    auto known = std::find_if(std::begin(kTexts), std::end(kTexts), [&](const Text& t) { return t.code == code; });
    return known == std::end(kTexts) ? -1 : code;
}

const char* class_text(int error_class) {
    auto known =
        std::find_if(std::begin(kTexts), std::end(kTexts), [&](const Text& t) { return t.code == error_class; });
    return known == std::end(kTexts) ? nullptr : known->text;
}

std::string error_text(int code) {
    const AnyTime tables;
    auto made = added().find(code);
    if (made != added().end()) {
        return made->second.text;
    }
    if (const std::string* own = failure_text(code)) {
        return *own;
    }
    const char* known = class_text(code);
    return known ? known : "Unknown error code " + std::to_string(code);
}

int add_error_class() {
    const AnyTime tables;
    int code = next_code();
    added()[code] = {code, ""};
    return code;
}

int add_error_code(int error_class) {
    const AnyTime tables;
    if (error_class_of(error_class) != error_class) {
        return -1;
    }
    int code = next_code();
    added()[code] = {error_class, ""};
    return code;
}

bool set_error_text(int code, const char* text) {
    const AnyTime tables;
    auto made = added().find(code);
    if (made == added().end()) {
        return false;
    }
    made->second.text = text;
    return true;
}

bool delete_error_code(int code) {
    const AnyTime tables;
    auto made = added().find(code);
    if (made == added().end() || made->second.error_class == code) {
        return false;
    }
    added().erase(made);
    return true;
}

bool delete_error_class(int error_class) {
    const AnyTime tables;
    auto used = [&](const auto& one) { return one.second.error_class == error_class && one.first != error_class; };
    return !std::any_of(added().begin(), added().end(), used) && added().erase(error_class) > 0;
}

}  // namespace viaduct::mpi
