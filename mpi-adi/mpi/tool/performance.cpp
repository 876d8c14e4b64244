// SPDX-License-Identifier: BSD-2-Clause
// Performance variables: sessions, and handles within them. A counter counts for each handle apart, from 0,
// while the handle is started; the other variables always show what is, and can be neither started nor
// written.
#include <algorithm>
#include <cstring>
#include <memory>

#include "mpi-adi/mpi/tool/tool.hpp"
#include "mpi-adi/mpi/tool/variables.hpp"

struct MPIR_T_pvar_handle_s {
    const viaduct::mpi::tool::Performance* variable;
    bool started = false;
    uint64_t base = 0;   // the variable when it was started
    uint64_t saved = 0;  // counted before that

    uint64_t value() const {
        return !variable->counts() ? variable->now() : saved + (started ? variable->now() - base : 0);
    }
    void start() {
        if (!started) {
            base = variable->now();
            started = true;
        }
    }
    void stop() {
        saved = value();
        started = false;
    }
    void set(uint64_t to) {
        saved = to;
        base = variable->now();
    }
};

struct MPIR_T_pvar_session_s {
    std::vector<std::unique_ptr<MPIR_T_pvar_handle_s>> handles;
};

namespace viaduct::mpi::tool {
namespace {

using Sessions = std::vector<std::unique_ptr<MPIR_T_pvar_session_s>>;

Sessions& open_sessions() {
    static auto* all = new Sessions();
    return *all;
}

// What a handle variable `all` points to; never used as a handle itself.
MPIR_T_pvar_handle_s all_handles{nullptr};

template <typename Owned, typename Pointer>
auto find(std::vector<std::unique_ptr<Owned>>& all, Pointer one) {
    return std::find_if(all.begin(), all.end(), [one](const auto& owned) { return owned.get() == one; });
}

bool is_known(MPI_T_pvar_session session) { return find(open_sessions(), session) != open_sessions().end(); }

// A code, or MPI_SUCCESS when `handle` is one of the session.
int check(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    if (!is_known(session)) {
        return MPI_T_ERR_INVALID_SESSION;
    }
    return find(session->handles, handle) == session->handles.end() ? MPI_T_ERR_INVALID_HANDLE : MPI_SUCCESS;
}

// Does something to one counter, or to all of a session; what are no counters are then left out.
template <typename Action>
int each_counter(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int refusal, Action action) {
    if (handle == MPI_T_PVAR_ALL_HANDLES) {
        if (!is_known(session)) {
            return MPI_T_ERR_INVALID_SESSION;
        }
        for (auto& one : session->handles) {
            if (one->variable->counts()) {
                action(*one);
            }
        }
        return MPI_SUCCESS;
    }
    if (int error = check(session, handle)) {
        return error;
    }
    if (!handle->variable->counts()) {
        return refusal;
    }
    action(*handle);
    return MPI_SUCCESS;
}

void store(const MPIR_T_pvar_handle_s& handle, void* buf) {
    const uint64_t value = handle.value();
    if (handle.variable->datatype == MPI_INT) {
        const int narrow = int(value);
        std::memcpy(buf, &narrow, sizeof narrow);
    } else {
        std::memcpy(buf, &value, sizeof value);
    }
}

const Performance* variable_at(int index) {
    const auto& all = performances();
    return index < 0 || size_t(index) >= all.size() ? nullptr : &all[size_t(index)];
}

}  // namespace

void clear_pvar_sessions() { open_sessions().clear(); }

}  // namespace viaduct::mpi::tool

using namespace viaduct::mpi::tool;

extern "C" {
struct MPIR_T_pvar_handle_s* const MPI_T_PVAR_ALL_HANDLES = &all_handles;
}

VIADUCT_MPI_EXPORT(MPI_T_pvar_get_num)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_get_num(int* num_pvar) try {
    VIADUCT_TOOL_CALL()
    give(num_pvar, performances().size());
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_get_info)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity,
                                          int* var_class, MPI_Datatype* datatype, MPI_T_enum* enumtype,
                                          char* desc, int* desc_len, int* bind, int* readonly,
                                          int* continuous, int* atomic) try {
    VIADUCT_TOOL_CALL()
    const Performance* one = variable_at(pvar_index);
    if (!one) {
        return MPI_T_ERR_INVALID_INDEX;
    }
    give_text(one->name, name, name_len);
    give(verbosity, one->protocol < 0 ? MPI_T_VERBOSITY_USER_BASIC : MPI_T_VERBOSITY_TUNER_DETAIL);
    give(var_class, one->var_class);
    give(datatype, one->datatype);
    give(enumtype, one->items);
    give_text(one->description, desc, desc_len);
    give(bind, MPI_T_BIND_NO_OBJECT);
    give(readonly, !one->counts());
    give(continuous, !one->counts());
    give(atomic, one->counts());
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_get_index)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_get_index(const char* name, int var_class, int* pvar_index) try {
    VIADUCT_TOOL_CALL()
    const auto& all = performances();
    for (size_t i = 0; name && i < all.size(); ++i) {
        if (all[i].name == name && all[i].var_class == var_class) {
            give(pvar_index, i);
            return MPI_SUCCESS;
        }
    }
    return MPI_T_ERR_INVALID_NAME;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_session_create)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_session_create(MPI_T_pvar_session* session) try {
    VIADUCT_TOOL_CALL()
    if (!session) {
        return MPI_T_ERR_INVALID;
    }
    open_sessions().push_back(std::make_unique<MPIR_T_pvar_session_s>());
    *session = open_sessions().back().get();
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_session_free)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_session_free(MPI_T_pvar_session* session) try {
    VIADUCT_TOOL_CALL()
    if (!session || !is_known(*session)) {
        return MPI_T_ERR_INVALID_SESSION;
    }
    open_sessions().erase(find(open_sessions(), *session));
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_handle_alloc)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void*,
                                              MPI_T_pvar_handle* handle, int* count) try {
    VIADUCT_TOOL_CALL()
    if (!is_known(session)) {
        return MPI_T_ERR_INVALID_SESSION;
    }
    const Performance* one = variable_at(pvar_index);
    if (!one) {
        return MPI_T_ERR_INVALID_INDEX;
    }
    if (!handle) {
        return MPI_T_ERR_INVALID;
    }
    session->handles.push_back(std::make_unique<MPIR_T_pvar_handle_s>(MPIR_T_pvar_handle_s{one}));
    *handle = session->handles.back().get();
    give(count, 1);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_handle_free)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) try {
    VIADUCT_TOOL_CALL()
    if (!handle) {
        return MPI_T_ERR_INVALID_HANDLE;
    }
    if (int error = check(session, *handle)) {
        return error;
    }
    session->handles.erase(find(session->handles, *handle));
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_start)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) try {
    VIADUCT_TOOL_CALL()
    return each_counter(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, [](auto& one) { one.start(); });
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_stop)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) try {
    VIADUCT_TOOL_CALL()
    return each_counter(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, [](auto& one) { one.stop(); });
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_read)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) try {
    VIADUCT_TOOL_CALL()
    if (int error = check(session, handle)) {
        return error;
    }
    if (!buf) {
        return MPI_T_ERR_INVALID;
    }
    store(*handle, buf);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_write)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                                       const void* buf) try {
    VIADUCT_TOOL_CALL()
    if (int error = check(session, handle)) {
        return error;
    }
    if (!handle->variable->counts()) {
        return MPI_T_ERR_PVAR_NO_WRITE;
    }
    if (!buf) {
        return MPI_T_ERR_INVALID;
    }
    uint64_t value;
    std::memcpy(&value, buf, sizeof value);
    handle->set(value);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_reset)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) try {
    VIADUCT_TOOL_CALL()
    return each_counter(session, handle, MPI_T_ERR_PVAR_NO_WRITE, [](auto& one) { one.set(0); });
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_pvar_readreset)
VIADUCT_MPI_FUNCTION PMPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) try {
    VIADUCT_TOOL_CALL()
    if (int error = check(session, handle)) {
        return error;
    }
    if (!handle->variable->counts()) {
        return MPI_T_ERR_PVAR_NO_ATOMIC;
    }
    if (!buf) {
        return MPI_T_ERR_INVALID;
    }
    store(*handle, buf);
    handle->set(0);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()
