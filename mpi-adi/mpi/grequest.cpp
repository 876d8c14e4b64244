// SPDX-License-Identifier: BSD-2-Clause
// Generalized requests, and MPICH's, which the library polls.
#include <vector>

#include "mpi-adi/engine/polled.hpp"
#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

// What MPIX_Grequest_class_create was given; a class is never freed, for there is no call that would.
struct RequestClass {
    MPI_Grequest_query_function* query;
    MPI_Grequest_free_function* free;
    MPI_Grequest_cancel_function* cancel;
    MPIX_Grequest_poll_function* poll;
    MPIX_Grequest_wait_function* wait;
};

std::vector<RequestClass>& classes() {
    static auto& all = *new std::vector<RequestClass>;
    return all;
}

Request* begin(const RequestClass& c, void* extra_state) {
    Request* request = new_request(Request::Kind::generalized);
    request->generalized.reset(new Generalized{c.query, c.free, c.cancel, extra_state});
    if (c.poll != nullptr || c.wait != nullptr) {
        request->generalized->polled.reset(new Polled{c.poll, c.wait, extra_state, request});
        poll_from_now_on(request->generalized->polled);
    }
    return request;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Grequest_start, (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function* free_fn,
                             MPI_Grequest_cancel_function* cancel_fn, void* extra_state, MPI_Request* handle)) {
    Call call("MPI_Grequest_start");
    VIADUCT_MPI_NEED(handle)
    if (!name_is_left()) return call.result(MPI_ERR_NO_MEM);
    return publish(begin({query_fn, free_fn, cancel_fn, nullptr, nullptr}, extra_state), handle);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Grequest_complete, (MPI_Request handle)) {
    Call call("MPI_Grequest_complete");
    Request* request = request_of(handle);
    if (request == nullptr || request->kind != Request::Kind::generalized || request->is_done())
        return call.result(MPI_ERR_REQUEST);
    return complete_generalized(request, MPI_SUCCESS);
} VIADUCT_MPI_CATCH()

VIADUCT_MPIX(Grequest_start, (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function* free_fn,
                              MPI_Grequest_cancel_function* cancel_fn, MPIX_Grequest_poll_function* poll_fn,
                              MPIX_Grequest_wait_function* wait_fn, void* extra_state, MPI_Request* handle)) {
    Call call("MPIX_Grequest_start");
    VIADUCT_MPI_NEED(handle)
    if (!name_is_left()) return call.result(MPI_ERR_NO_MEM);
    return publish(begin({query_fn, free_fn, cancel_fn, poll_fn, wait_fn}, extra_state), handle);
} VIADUCT_MPI_CATCH()

VIADUCT_MPIX(Grequest_class_create,
             (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function* free_fn,
              MPI_Grequest_cancel_function* cancel_fn, MPIX_Grequest_poll_function* poll_fn,
              MPIX_Grequest_wait_function* wait_fn, MPIX_Grequest_class* made)) {
    Call call("MPIX_Grequest_class_create");
    VIADUCT_MPI_NEED(made)
    *made = static_cast<MPIX_Grequest_class>(classes().size());
    classes().push_back({query_fn, free_fn, cancel_fn, poll_fn, wait_fn});
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPIX(Grequest_class_allocate, (MPIX_Grequest_class which, void* extra_state, MPI_Request* handle)) {
    Call call("MPIX_Grequest_class_allocate");
    VIADUCT_MPI_NEED(handle)
    if (which < 0 || static_cast<size_t>(which) >= classes().size()) return call.result(MPI_ERR_ARG);
    if (!name_is_left()) return call.result(MPI_ERR_NO_MEM);
    return publish(begin(classes()[static_cast<size_t>(which)], extra_state), handle);
} VIADUCT_MPI_CATCH()
