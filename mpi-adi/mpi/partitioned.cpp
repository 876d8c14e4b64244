// SPDX-License-Identifier: BSD-2-Clause
// MPI functions of partitioned communication.
#include "mpi-adi/engine/partitioned.hpp"

#include "mpi-adi/engine/request.hpp"
#include "mpi-adi/mpi/call.hpp"
#include "mpi-adi/mpi/p2p_arguments.hpp"

namespace viaduct::mpi {
namespace {

int publish_parts(Communicator& comm, std::shared_ptr<Partitioned> parts, MPI_Request* handle) {
    Partitioned* shown = parts.get();
    Request* const request = make_persistent(comm, [shown] { return shown->begin(); });
    const int answer = publish(request, handle);
    request->persistent->parts = std::move(parts);
    shown->belongs_to(request);
    return answer;
}

// Partitions of nothing may come without a type.
const Datatype& type_or_bytes(MPI_Datatype datatype) {
    const Datatype* type = type_of(datatype);
    return type ? *type : *type_of(MPI_BYTE);
}

int check(int partitions, const Arguments& all) {
    if (all.error) {
        return all.error;
    }
    return partitions < 1 || partitions > kMaxOwnTag ? MPI_ERR_ARG : MPI_SUCCESS;
}

// The started partitioned request of a handle that sends or receives, as asked; null when it is something else.
Partitioned* parts_of(MPI_Request handle, bool sends, bool* active) {
    Request* request = request_of(handle);
    if (!request || !request->persistent || !request->persistent->parts) {
        return nullptr;
    }
    *active = request->persistent->active;
    Partitioned* parts = request->persistent->parts.get();
    return parts->sends() == sends ? parts : nullptr;
}

// Hands over the n partitions that number(0) to number(n - 1) name.
template <typename Number>
int hand_over(MPI_Request request, int n, Number&& number) {
    bool active = false;
    Partitioned* parts = parts_of(request, true, &active);
    if (!parts || !active) {
        return MPI_ERR_REQUEST;
    }
    for (int i = 0; i < n; ++i) {
        const int partition = number(i);
        if (partition < 0 || partition >= parts->partitions() || !parts->ready(partition)) {
            return MPI_ERR_ARG;
        }
    }
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Psend_init, (const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                         MPI_Comm comm, MPI_Info info, MPI_Request* request)) {
    Communicator* members = comm_of(comm);
    Call call("MPI_Psend_init", members);
    VIADUCT_MPI_NEED(request)
    if (int error = check(partitions, for_send(buf, count, datatype, dest, tag, comm))) {
        return call.result(error);
    }
    if (!is_info_or_none(info)) {
        return call.result(MPI_ERR_INFO);
    }
    if (!name_is_left()) {
        return call.result(MPI_ERR_NO_MEM);
    }
    return publish_parts(
        *members, Partitioned::send(*members, dest, tag, buf, partitions, count, type_or_bytes(datatype)), request);
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Precv_init, (void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                         MPI_Comm comm, MPI_Info info, MPI_Request* request)) {
    Communicator* members = comm_of(comm);
    Call call("MPI_Precv_init", members);
    VIADUCT_MPI_NEED(request)
    const Arguments all = for_receive(buf, count, datatype, source, tag, comm);
    if (int error = check(partitions, all)) {
        return call.result(error);
    }
    if (source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG) {
        return call.result(source == MPI_ANY_SOURCE ? MPI_ERR_RANK : MPI_ERR_TAG);
    }
    if (!is_info_or_none(info)) {
        return call.result(MPI_ERR_INFO);
    }
    if (!name_is_left()) {
        return call.result(MPI_ERR_NO_MEM);
    }
    return publish_parts(
        *members, Partitioned::receive(*members, source, tag, buf, partitions, count, type_or_bytes(datatype)),
        request);
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Pready, (int partition, MPI_Request request)) {
    Call call("MPI_Pready");
    return call.result(hand_over(request, 1, [&](int) { return partition; }));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Pready_range, (int partition_low, int partition_high, MPI_Request request)) {
    Call call("MPI_Pready_range");
    return call.result(
        hand_over(request, partition_high - partition_low + 1, [&](int i) { return partition_low + i; }));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Pready_list, (int length, const int partitions[], MPI_Request request)) {
    Call call("MPI_Pready_list");
    if (length > 0) {
        VIADUCT_MPI_NEED(partitions)
    }
    return call.result(hand_over(request, length, [&](int i) { return partitions[i]; }));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Parrived, (MPI_Request request, int partition, int* flag)) {
    Call call("MPI_Parrived");
    VIADUCT_MPI_NEED(flag)
    if (request == MPI_REQUEST_NULL) {  // complete, as everywhere
        *flag = 1;
        return MPI_SUCCESS;
    }
    bool active = false;
    Partitioned* parts = parts_of(request, false, &active);
    if (!parts) {
        return call.result(MPI_ERR_REQUEST);
    }
    if (partition < 0 || partition >= parts->partitions()) {
        return call.result(MPI_ERR_ARG);
    }
    *flag = !active || parts->arrived(partition);
    if (!*flag) {
        static ProgressWait asked;
        (void)progress_once(asked, [&](Awaited& what) { parts->add_awaited(what); });
        *flag = parts->arrived(partition);
    }
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()
