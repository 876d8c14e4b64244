// SPDX-License-Identifier: BSD-2-Clause
// MPI_Wait and MPI_Test, for one request, all, any and some of a list.
#include "mpi-adi/engine/awaited.hpp"
#include "mpi-adi/engine/error.hpp"
#include "mpi-adi/engine/failure.hpp"
#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/mpi/export.hpp"
#include "mpi-adi/mpi/request_ends.hpp"

namespace viaduct::mpi {

namespace {

[[gnu::noinline]] int end_generalized(Request* request, MPI_Request* handle, MPI_Status* status) {
    MPI_Status own;
    MPI_Status* told = status == MPI_STATUS_IGNORE ? &own : status;
    clear_status(told);
    const Generalized g = *request->generalized;
    int error = request->r_error;
    if (const int asked = g.query(told); error == MPI_SUCCESS) error = asked;
    if (const int freed = g.free(); error == MPI_SUCCESS) error = freed;
    free_request(request);
    *handle = MPI_REQUEST_NULL;
    return error;
}

// The request stays.
[[gnu::noinline]] int end_pending(Request* request, MPI_Status* status) {
    fill_status(*request, status);
    robust::wait_on(*request);
    return MPIX_ERR_PROC_FAILED_PENDING;
}

}  // namespace

int end_request(Request* request, MPI_Request* handle, MPI_Status* status) {
    if (request->kind >= Request::Kind::generalized) [[unlikely]]
        return request->kind == Request::Kind::pending ? end_pending(request, status)
                                                       : end_generalized(request, handle, status);
    fill_status(*request, status);
    const int error = request->r_error;
    if (error != MPI_SUCCESS) [[unlikely]]
        note_failed_request(*request);
    if (request->persistent != nullptr) {
        request->persistent->active = false;
    } else {
        free_request(request);
        *handle = MPI_REQUEST_NULL;
    }
    return error;
}

namespace {

MPI_Status* status_at(MPI_Status* statuses, int i) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

// Whether a list of so many has no place.
template <typename... Lists>
bool lacks(int count, Lists... lists) {
    return count > 0 && (... || (lists == nullptr));
}

// The request of a handle in a list; false when it names nothing.
bool look_up(MPI_Request handle, Request** request) {
    *request = handle == MPI_REQUEST_NULL ? nullptr : request_of(handle);
    return handle == MPI_REQUEST_NULL || *request != nullptr;
}

bool all_valid(int count, const MPI_Request* handles) {
    Request* request = nullptr;
    for (int i = 0; i < count; i++)
        if (!look_up(handles[i], &request)) return false;
    return true;
}

// A request stays what it is while we wait for it, and at MPI_THREAD_MULTIPLE other threads free others: so
// handles are turned into requests anew after each pass.
Request* active_request(MPI_Request handle) {
    Request* request = handle == MPI_REQUEST_NULL ? nullptr : request_of(handle);
    return is_idle(request) ? nullptr : request;
}

bool all_done(int count, const MPI_Request* handles) {
    for (int i = 0; i < count; i++) {
        const Request* request = active_request(handles[i]);
        if (request != nullptr && !request->is_done()) return false;
    }
    return true;
}

// The first one that is done, or MPI_UNDEFINED; *active tells whether there is anything to wait for.
int first_done(int count, const MPI_Request* handles, bool* active) {
    *active = false;
    for (int i = 0; i < count; i++) {
        const Request* request = active_request(handles[i]);
        if (request == nullptr) continue;
        *active = true;
        if (request->is_done()) return i;
    }
    return MPI_UNDEFINED;
}

void add_all_of(int count, const MPI_Request* handles, Awaited& what) {
    for (int i = 0; i < count; i++)
        if (const Request* request = active_request(handles[i])) add_awaited(*request, what);
}
// Any of them is enough.
void add_any_of(int count, const MPI_Request* handles, Awaited& what) {
    add_all_of(count, handles, what);
    what.any = true;
}

// One that is not persistent, received or sent: of these alone a list of many is made.
inline int end_plain(Request* request, MPI_Request* handle, MPI_Status* status) {
    if (status != MPI_STATUS_IGNORE) fill_status(*request, status);
    const int error = request->r_error;
    free_request(request);
    *handle = MPI_REQUEST_NULL;
    return error;
}
inline bool is_plain(const Request* request) {
    return request->kind <= Request::Kind::receive && request->persistent == nullptr;
}

// Ends one that is done. The communicator of the first that has failed is kept for its error handler: the
// request may have been the last that held it.
int end_keeping(Request* request, MPI_Request* handle, MPI_Status* status, Comm** of) {
    Comm* const comm = request->comm;
    if (request->r_error != MPI_SUCCESS) [[unlikely]] {
        if (*of == nullptr && comm != nullptr) comm_retain(*(*of = comm));
        if (is_plain(request)) note_failed_request(*request);
    }
    return is_plain(request) ? end_plain(request, handle, status) : end_request(request, handle, status);
}

// Waits for each of them and ends it.
int wait_for_all(int count, MPI_Request* handles, MPI_Status* statuses, Comm** of) {
    bool failed = false;
    for (int i = 0; i < count; i++) {
        MPI_Status* const status = status_at(statuses, i);
        const MPI_Request handle = handles[i];
        Request* const request = handle == MPI_REQUEST_NULL ? nullptr : request_of(handle);
        if (is_idle(request)) {
            fill_empty_status(status);
            continue;
        }
        if (!request->is_done()) progress_until_done(*request);
        const int error = end_keeping(request, &handles[i], status, of);
        failed |= error != MPI_SUCCESS;
        if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error;
    }
    return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

// All of them are done: statuses in order, and MPI_ERR_IN_STATUS when one has failed.
int end_all(int count, MPI_Request* handles, MPI_Status* statuses, Comm** of) {
    bool failed = false;
    for (int i = 0; i < count; i++) {
        MPI_Status* status = status_at(statuses, i);
        int error = MPI_SUCCESS;
        if (Request* request = active_request(handles[i])) {
            error = end_keeping(request, &handles[i], status, of);
        } else {
            fill_empty_status(status);
        }
        failed |= error != MPI_SUCCESS;
        if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error;
    }
    return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int end_some(int count, MPI_Request* handles, int* ended, int* indices, MPI_Status* statuses, Comm** of) {
    bool failed = false;
    *ended = 0;
    for (int i = 0; i < count; i++) {
        Request* request = active_request(handles[i]);
        if (request == nullptr || !request->is_done()) continue;
        MPI_Status* status = status_at(statuses, *ended);
        const int error = end_keeping(request, &handles[i], status, of);
        failed |= error != MPI_SUCCESS;
        if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error;
        indices[(*ended)++] = i;
    }
    return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

// What a call for several answers, and the end of what end_keeping() has kept.
int answer_of_several(int error, Comm* of, const char* function) {
    if (error != MPI_SUCCESS) error = raise(of, error, function);
    if (of != nullptr) comm_release(*of);
    return error;
}

int end_one(MPI_Request* handle, MPI_Status* status, const char* function) {
    Request* request = active_request(*handle);
    if (request == nullptr) {
        fill_empty_status(status);
        return MPI_SUCCESS;
    }
    Comm* const comm = request->comm;
    if (comm == nullptr) {
        const int error = end_request(request, handle, status);
        return error == MPI_SUCCESS ? MPI_SUCCESS : raise(nullptr, error, function);
    }
    comm_retain(*comm);  // the error handler is its own
    int error = end_request(request, handle, status);
    if (error != MPI_SUCCESS) error = raise(comm, error, function);
    comm_release(*comm);
    return error;
}

// One count for MPI_Test, MPI_Testall, MPI_Testany and MPI_Testsome together.
ProgressWait asked;

void progress_once_for_any(int count, const MPI_Request* handles) {
    (void)progress_once(asked, [&](Awaited& what) { add_any_of(count, handles, what); });
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI_ENTRY(MPI_Wait, (MPI_Request* handle, MPI_Status* status)) try {
    Critical guard;
    if (handle == nullptr || status == nullptr) return raise(nullptr, MPI_ERR_ARG, "MPI_Wait");
    Request* request = nullptr;
    if (!look_up(*handle, &request)) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Wait");
    if (!is_idle(request)) progress_until_done(*request);
    return end_one(handle, status, "MPI_Wait");
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Test, (MPI_Request* handle, int* flag, MPI_Status* status)) try {
    Critical guard;
    if (handle == nullptr || flag == nullptr || status == nullptr) return raise(nullptr, MPI_ERR_ARG, "MPI_Test");
    Request* request = nullptr;
    if (!look_up(*handle, &request)) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Test");
    *flag = 1;
    if (!is_idle(request) && !request->is_done()) {
        (void)progress_once(asked, [&](Awaited& what) { add_awaited(*request, what); });
        *flag = request->is_done() ? 1 : 0;
    }
    return *flag != 0 ? end_one(handle, status, "MPI_Test") : MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Waitall, (int count, MPI_Request* handles, MPI_Status* statuses)) try {
    Critical guard;
    if (lacks(count, handles, statuses)) return raise(nullptr, MPI_ERR_ARG, "MPI_Waitall");
    if (count < 0) return raise(nullptr, MPI_ERR_COUNT, "MPI_Waitall");
    if (!all_valid(count, handles)) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Waitall");
    // One after the other: each is looked at until it is done, and not again.
    Comm* of = nullptr;
    const int error = wait_for_all(count, handles, statuses, &of);
    return answer_of_several(error, of, "MPI_Waitall");
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Testall, (int count, MPI_Request* handles, int* flag, MPI_Status* statuses)) try {
    Critical guard;
    if (flag == nullptr || lacks(count, handles, statuses)) return raise(nullptr, MPI_ERR_ARG, "MPI_Testall");
    if (count < 0) return raise(nullptr, MPI_ERR_COUNT, "MPI_Testall");
    if (!all_valid(count, handles)) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Testall");
    if (!all_done(count, handles)) (void)progress_once(asked, [&](Awaited& what) { add_all_of(count, handles, what); });
    *flag = all_done(count, handles) ? 1 : 0;
    if (*flag == 0) return MPI_SUCCESS;
    Comm* of = nullptr;
    const int error = end_all(count, handles, statuses, &of);
    return answer_of_several(error, of, "MPI_Testall");
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Waitany, (int count, MPI_Request* handles, int* index, MPI_Status* status)) try {
    Critical guard;
    if (index == nullptr || status == nullptr || lacks(count, handles))
        return raise(nullptr, MPI_ERR_ARG, "MPI_Waitany");
    if (count < 0) return raise(nullptr, MPI_ERR_COUNT, "MPI_Waitany");
    if (!all_valid(count, handles)) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Waitany");
    bool active = false;
    progress_until_one(
        [&] {
            *index = first_done(count, handles, &active);
            return *index != MPI_UNDEFINED || !active;
        },
        [&](Awaited& what) { add_any_of(count, handles, what); });
    if (*index == MPI_UNDEFINED) {
        fill_empty_status(status);
        return MPI_SUCCESS;
    }
    return end_one(&handles[*index], status, "MPI_Waitany");
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Testany, (int count, MPI_Request* handles, int* index, int* flag, MPI_Status* status)) try {
    Critical guard;
    if (index == nullptr || flag == nullptr || status == nullptr || lacks(count, handles))
        return raise(nullptr, MPI_ERR_ARG, "MPI_Testany");
    if (count < 0) return raise(nullptr, MPI_ERR_COUNT, "MPI_Testany");
    if (!all_valid(count, handles)) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Testany");
    bool active = false;
    *index = first_done(count, handles, &active);
    if (*index == MPI_UNDEFINED && active) {
        progress_once_for_any(count, handles);
        *index = first_done(count, handles, &active);
    }
    *flag = *index != MPI_UNDEFINED || !active ? 1 : 0;
    if (*index != MPI_UNDEFINED) return end_one(&handles[*index], status, "MPI_Testany");
    if (*flag != 0) fill_empty_status(status);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Waitsome, (int count, MPI_Request* handles, int* outcount, int* indices,
                                 MPI_Status* statuses)) try {
    Critical guard;
    if (outcount == nullptr || lacks(count, handles, indices, statuses))
        return raise(nullptr, MPI_ERR_ARG, "MPI_Waitsome");
    if (count < 0) return raise(nullptr, MPI_ERR_COUNT, "MPI_Waitsome");
    if (!all_valid(count, handles)) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Waitsome");
    bool active = false;
    progress_until_one([&] { return first_done(count, handles, &active) != MPI_UNDEFINED || !active; },
                       [&](Awaited& what) { add_any_of(count, handles, what); });
    if (!active) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    Comm* of = nullptr;
    const int error = end_some(count, handles, outcount, indices, statuses, &of);
    return answer_of_several(error, of, "MPI_Waitsome");
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_ENTRY(MPI_Testsome, (int count, MPI_Request* handles, int* outcount, int* indices,
                                 MPI_Status* statuses)) try {
    Critical guard;
    if (outcount == nullptr || lacks(count, handles, indices, statuses))
        return raise(nullptr, MPI_ERR_ARG, "MPI_Testsome");
    if (count < 0) return raise(nullptr, MPI_ERR_COUNT, "MPI_Testsome");
    if (!all_valid(count, handles)) return raise(nullptr, MPI_ERR_REQUEST, "MPI_Testsome");
    bool active = false;
    if (first_done(count, handles, &active) == MPI_UNDEFINED && active) progress_once_for_any(count, handles);
    if (!active) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    Comm* of = nullptr;
    const int error = end_some(count, handles, outcount, indices, statuses, &of);
    return answer_of_several(error, of, "MPI_Testsome");
} VIADUCT_MPI_CATCH()
