// SPDX-License-Identifier: BSD-2-Clause
// Wrong arguments are refused with their error class, and a call that was refused was none: the collective calls after
// it match those of the others.
#include <functional>
#include <iterator>
#include <vector>

#include "check.hpp"

namespace {

int rank, size;

void nowhere_to_answer() {
    MPI_Group group;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    EXPECT(MPI_Comm_size(MPI_COMM_WORLD, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Comm_create(MPI_COMM_WORLD, group, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Group_rank(group, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Group_union(group, group, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Group_incl(group, 1, nullptr, &group) == MPI_ERR_ARG);
    EXPECT(MPI_Type_contiguous(3, MPI_INT, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Type_contiguous_c(3, MPI_INT, nullptr) == MPI_ERR_ARG);
    MPI_Aint lb = 0;
    EXPECT(MPI_Type_get_extent(MPI_INT, &lb, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Info_create(nullptr) == MPI_ERR_ARG);
    MPI_Group_free(&group);
}

// What is packed or taken out lies within the packed data; how many bytes it is does not overflow.
void packed() {
    int values[2] = {1, 2};
    char bytes[8];
    int position = 4;
    EXPECT(MPI_Pack(values, 1, MPI_INT, bytes, 8, &position, MPI_COMM_WORLD) == MPI_SUCCESS && position == 8);
    EXPECT(MPI_Pack(values, 1, MPI_INT, bytes, 8, &position, MPI_COMM_WORLD) == MPI_ERR_ARG && position == 8);
    EXPECT(MPI_Unpack(bytes, 8, &position, values, 1, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_ARG);
    position = 4;
    EXPECT(MPI_Unpack(bytes, 8, &position, values + 1, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS && values[1] == 1);
    position = -4;
    EXPECT(MPI_Pack(values, 1, MPI_INT, bytes, 8, &position, MPI_COMM_WORLD) == MPI_ERR_ARG);
    EXPECT(MPI_Unpack(bytes, 8, &position, values, 1, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_ARG);
    MPI_Aint at = -4;
    EXPECT(MPI_Pack_external("external32", values, 1, MPI_INT, bytes, 8, &at) == MPI_ERR_ARG);
    EXPECT(MPI_Unpack_external("external32", bytes, 8, &at, values, 1, MPI_INT) == MPI_ERR_ARG);
    MPI_Count from = 0;
    const MPI_Count most = MPI_Count{1} << 62;
    EXPECT(MPI_Pack_c(values, most, MPI_INT, bytes, 8, &from, MPI_COMM_WORLD) == MPI_ERR_ARG && from == 0);
}

// Elements are those of the type map, whatever their sizes: three of a pair are one pair and the first half of another.
void elements() {
    MPI_Status status = {};
    int elements = 0, items = 0;
    EXPECT(MPI_Status_set_elements(&status, MPI_DOUBLE_INT, 3) == MPI_SUCCESS);
    MPI_Get_elements(&status, MPI_DOUBLE_INT, &elements);
    MPI_Get_count(&status, MPI_DOUBLE_INT, &items);
    EXPECT(elements == 3 && items == MPI_UNDEFINED);
    EXPECT(MPI_Status_set_elements_x(&status, MPI_DOUBLE_INT, 4) == MPI_SUCCESS);
    MPI_Get_elements(&status, MPI_DOUBLE_INT, &elements);
    MPI_Get_count(&status, MPI_DOUBLE_INT, &items);
    EXPECT(elements == 4 && items == 2);
    EXPECT(MPI_Status_set_elements(&status, MPI_INT, -1) == MPI_ERR_COUNT);
}

// A status of no request, or one that is not active, says so in every field; that of a message leaves the error as
// it was.
void empty_statuses() {
    const MPI_Status before = {1, 3, 5, 6, 77};
    const auto is_empty = [](const MPI_Status& status) {
        int items = -1;
        MPI_Get_count(&status, MPI_BYTE, &items);
        return status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG &&
               status.MPI_ERROR == MPI_SUCCESS && items == 0;
    };
    MPI_Request persistent, none = MPI_REQUEST_NULL;
    int v = 0, flag = 0, which = 0;
    MPI_Recv_init(&v, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &persistent);
    for (MPI_Request* request : {&none, &persistent}) {
        MPI_Status status = before;
        EXPECT(MPI_Request_get_status(*request, &flag, &status) == MPI_SUCCESS && flag && is_empty(status));
        status = before;
        EXPECT(MPI_Wait(request, &status) == MPI_SUCCESS && is_empty(status));
        status = before;
        EXPECT(MPI_Test(request, &flag, &status) == MPI_SUCCESS && flag && is_empty(status));
        status = before;
        EXPECT(MPI_Waitany(1, request, &which, &status) == MPI_SUCCESS && which == MPI_UNDEFINED && is_empty(status));
        status = before;
        EXPECT(MPI_Testany(1, request, &which, &flag, &status) == MPI_SUCCESS && flag && is_empty(status));
    }
    MPI_Status status = before;
    MPI_Start(&persistent);
    EXPECT(MPI_Wait(&persistent, &status) == MPI_SUCCESS && status.MPI_SOURCE == MPI_PROC_NULL);
    EXPECT(status.MPI_ERROR == 77);
    MPI_Request_free(&persistent);
    status = before;
    EXPECT(MPI_Sendrecv(&rank, 1, MPI_INT, rank, 1, &v, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    EXPECT(status.MPI_SOURCE == rank && status.MPI_ERROR == 77);

    // Of a generalized request, whose function says nothing of the error either.
    const auto query = [](void*, MPI_Status* told) {
        told->MPI_SOURCE = 8;
        return MPI_Status_set_elements(told, MPI_BYTE, 3);
    };
    MPI_Request general;
    MPI_Grequest_start(
        query, [](void*) { return MPI_SUCCESS; }, [](void*, int) { return MPI_SUCCESS; }, nullptr, &general);
    MPI_Grequest_complete(general);
    status = before;
    EXPECT(MPI_Request_get_status(general, &flag, &status) == MPI_SUCCESS && flag && status.MPI_SOURCE == 8);
    EXPECT(status.MPI_TAG == MPI_ANY_TAG && status.MPI_ERROR == 77);
    status = before;
    EXPECT(MPI_Wait(&general, &status) == MPI_SUCCESS && status.MPI_SOURCE == 8);
    EXPECT(status.MPI_TAG == MPI_ANY_TAG && status.MPI_ERROR == 77);
}

void names() {
    char text[MPI_MAX_OBJECT_NAME];
    int length = 0;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Win win;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    EXPECT(MPI_Comm_set_name(comm, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Comm_get_name(comm, nullptr, &length) == MPI_ERR_ARG);
    EXPECT(MPI_Comm_get_name(comm, text, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Type_set_name(type, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Type_get_name(type, nullptr, &length) == MPI_ERR_ARG);
    EXPECT(MPI_Type_get_name(type, text, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Win_set_name(win, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Win_get_name(win, text, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Win_get_group(win, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Win_get_info(win, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Error_string(MPI_ERR_ARG, nullptr, &length) == MPI_ERR_ARG);
    EXPECT(MPI_Get_processor_name(nullptr, &length) == MPI_ERR_ARG);
    MPI_Win_free(&win);
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
}

void no_place_for_a_request() {
    const MPI_Comm comm = MPI_COMM_WORLD;
    int v = 0, w = 0, flag = 0;
    EXPECT(MPI_Isend(&v, 1, MPI_INT, rank, 1, comm, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Irecv(&v, 1, MPI_INT, rank, 1, comm, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Send_init(&v, 1, MPI_INT, rank, 1, comm, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Ibarrier(comm, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Iallreduce(&v, &w, 1, MPI_INT, MPI_SUM, comm, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Barrier_init(comm, MPI_INFO_NULL, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Start(nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Wait(nullptr, MPI_STATUS_IGNORE) == MPI_ERR_ARG);
    EXPECT(MPI_Test(nullptr, &flag, MPI_STATUS_IGNORE) == MPI_ERR_ARG);
    EXPECT(MPI_Waitall(1, nullptr, MPI_STATUSES_IGNORE) == MPI_ERR_ARG);
    EXPECT(MPI_Waitall(0, nullptr, nullptr) == MPI_SUCCESS);
    EXPECT(MPI_Cancel(nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Request_free(nullptr) == MPI_ERR_ARG);
    // None of them was a message or a collective call.
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE);
    EXPECT(flag == 0);
    EXPECT(MPI_Allreduce(&rank, &w, 1, MPI_INT, MPI_MAX, comm) == MPI_SUCCESS && w == size - 1);
}

void lists_that_are_nowhere() {
    const MPI_Comm comm = MPI_COMM_WORLD;
    std::vector<int> v(size_t(size), rank), counts(size_t(size), 1), at(size_t(size), 0);
    int w = 0;
    EXPECT(MPI_Allgatherv(&w, 1, MPI_INT, v.data(), nullptr, at.data(), MPI_INT, comm) == MPI_ERR_ARG);
    EXPECT(MPI_Allgatherv(&w, 1, MPI_INT, v.data(), counts.data(), nullptr, MPI_INT, comm) == MPI_ERR_ARG);
    EXPECT(MPI_Allreduce(&w, nullptr, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Allreduce(nullptr, &w, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Allreduce(&rank, &w, -1, MPI_INT, MPI_SUM, comm) == MPI_ERR_COUNT);
    EXPECT(MPI_Allreduce(&rank, &w, 1, MPI_DATATYPE_NULL, MPI_SUM, comm) == MPI_ERR_TYPE);
    EXPECT(MPI_Allreduce(&rank, &w, 1, MPI_INT, MPI_REPLACE, comm) == MPI_ERR_OP);
    EXPECT(MPI_Allreduce(&rank, &w, 1, MPI_FLOAT, MPI_BAND, comm) == MPI_ERR_OP);
    EXPECT(MPI_Allreduce(&rank, &w, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_OP);
    EXPECT(MPI_Reduce_scatter(v.data(), &w, nullptr, MPI_INT, MPI_SUM, comm) == MPI_ERR_ARG);
    const std::vector<MPI_Datatype> types(size_t(size), MPI_INT);
    int* const nowhere = nullptr;
    const auto alltoallv = [&](const int* from, int* to) {
        return MPI_Alltoallv(from, counts.data(), at.data(), MPI_INT, to, counts.data(), at.data(), MPI_INT, comm);
    };
    const auto alltoallw = [&](const int* from, int* to) {
        return MPI_Alltoallw(from, counts.data(), at.data(), types.data(), to, counts.data(), at.data(), types.data(),
                             comm);
    };
    EXPECT(MPI_Allgatherv(&w, 1, MPI_INT, nowhere, counts.data(), at.data(), MPI_INT, comm) == MPI_ERR_BUFFER);
    EXPECT(alltoallv(nowhere, v.data()) == MPI_ERR_BUFFER && alltoallv(v.data(), nowhere) == MPI_ERR_BUFFER);
    EXPECT(alltoallw(nowhere, v.data()) == MPI_ERR_BUFFER && alltoallw(v.data(), nowhere) == MPI_ERR_BUFFER);
    if (rank == 0) {  // the root alone names these; refused, it has not taken part
        EXPECT(MPI_Gatherv(&w, 1, MPI_INT, nowhere, counts.data(), at.data(), MPI_INT, 0, comm) == MPI_ERR_BUFFER);
        EXPECT(MPI_Scatterv(nowhere, counts.data(), at.data(), MPI_INT, &w, 1, MPI_INT, 0, comm) == MPI_ERR_BUFFER);
    }
    // Displacements that are addresses are of MPI_BOTTOM.
    int from = rank, to = -1;
    const std::vector<MPI_Count> one(1, 1);
    MPI_Aint sent, received;
    MPI_Get_address(&from, &sent);
    MPI_Get_address(&to, &received);
    const MPI_Datatype ints = MPI_INT;
    EXPECT(MPI_Alltoallw_c(MPI_BOTTOM, one.data(), &sent, &ints, MPI_BOTTOM, one.data(), &received, &ints,
                           MPI_COMM_SELF) == MPI_SUCCESS);
    EXPECT(to == rank);
    MPI_Datatype type;
    EXPECT(MPI_Type_create_struct(1, counts.data(), nullptr, nullptr, &type) == MPI_ERR_ARG);
    EXPECT(MPI_Type_create_struct(0, nullptr, nullptr, nullptr, &type) == MPI_SUCCESS);
    MPI_Type_free(&type);
}

void packed_nowhere() {
    int v = 3, position = 0;
    char room[16];
    MPI_Aint at = 0;
    EXPECT(MPI_Pack(nullptr, 1, MPI_INT, room, 16, &position, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
    EXPECT(MPI_Pack(&v, 1, MPI_INT, nullptr, 16, &position, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
    EXPECT(MPI_Pack(nullptr, 0, MPI_INT, nullptr, 0, &position, MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(MPI_Unpack(nullptr, 16, &position, &v, 1, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
    EXPECT(MPI_Unpack(room, 16, &position, nullptr, 1, MPI_INT, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
    EXPECT(MPI_Pack_external("external32", nullptr, 1, MPI_INT, room, 16, &at) == MPI_ERR_BUFFER);
    EXPECT(MPI_Unpack_external("external32", room, 16, &at, nullptr, 1, MPI_INT) == MPI_ERR_BUFFER);
    EXPECT(position == 0 && at == 0);
}

// Of two groups both are told, also where it is no leader that names the wrong info object.
void wrong_info_of_one_group(MPI_Info wrong) {
    MPI_Group all, sides[2];
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int low[3] = {0, size / 2 - 1, 1}, high[3] = {size / 2, size - 1, 1};
    MPI_Group_range_incl(all, 1, &low, &sides[0]);
    MPI_Group_range_incl(all, 1, &high, &sides[1]);
    const int own = rank < size / 2 ? 0 : 1;
    for (const int at_fault : {0, size / 2 - 1, size / 2, size - 1, -1}) {
        const MPI_Info given = rank == at_fault ? wrong : MPI_INFO_NULL;
        MPI_Comm made;
        const int error = MPI_Intercomm_create_from_groups(sides[own], 0, sides[1 - own], 0, "org.viaduct.wrong-info",
                                                           given, MPI_ERRORS_RETURN, &made);
        EXPECT(error == (at_fault < 0 ? MPI_SUCCESS : MPI_ERR_INFO));
        EXPECT((made == MPI_COMM_NULL) == (at_fault >= 0));
        if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
    }
    for (MPI_Group& side : sides) MPI_Group_free(&side);
    MPI_Group_free(&all);
}

// The processes that name a wrong info object are told so, and the others with them where a communicator is made.
void wrong_info() {
    const MPI_Comm comm = MPI_COMM_WORLD;
    const auto wrong = MPI_Info(3);
    const MPI_Info given = rank == size - 1 ? wrong : MPI_INFO_NULL;
    MPI_Comm made;
    MPI_Request request;
    EXPECT(MPI_Comm_dup_with_info(comm, given, &made) == MPI_ERR_INFO);
    EXPECT(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, given, &made) == MPI_ERR_INFO);
    EXPECT(MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, given, &made) == MPI_ERR_INFO);
    EXPECT(MPI_Dist_graph_create(comm, 0, nullptr, nullptr, nullptr, MPI_UNWEIGHTED, given, 0, &made) == MPI_ERR_INFO);
    EXPECT(MPI_Dist_graph_create_adjacent(comm, 0, nullptr, MPI_UNWEIGHTED, 0, nullptr, MPI_UNWEIGHTED, given, 0,
                                          &made) == MPI_ERR_INFO);
    int error = MPI_Comm_idup_with_info(comm, given, &made, &request);
    if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(error == MPI_ERR_INFO);
    int v = 0;
    void* memory;
    EXPECT(MPI_Barrier_init(comm, wrong, &request) == MPI_ERR_INFO);
    EXPECT(MPI_Bcast_init(&v, 1, MPI_INT, 0, comm, wrong, &request) == MPI_ERR_INFO);
    EXPECT(MPI_Psend_init(&v, 1, 1, MPI_INT, rank, 0, comm, wrong, &request) == MPI_ERR_INFO);
    EXPECT(MPI_Precv_init(&v, 1, 1, MPI_INT, rank, 0, comm, wrong, &request) == MPI_ERR_INFO);
    EXPECT(MPI_Alloc_mem(8, wrong, &memory) == MPI_ERR_INFO);
    MPI_Session session;
    EXPECT(MPI_Session_init(wrong, MPI_ERRORS_RETURN, &session) == MPI_ERR_INFO);
    // The root alone names it.
    EXPECT(MPI_Comm_accept("nowhere", given, size - 1, comm, &made) == MPI_ERR_INFO && made == MPI_COMM_NULL);
    EXPECT(MPI_Comm_connect("nowhere", given, size - 1, comm, &made) == MPI_ERR_INFO && made == MPI_COMM_NULL);
    if (size > 1) wrong_info_of_one_group(wrong);
    EXPECT(MPI_Allreduce(&rank, &v, 1, MPI_INT, MPI_MAX, comm) == MPI_SUCCESS && v == size - 1);
}

void files_and_sessions() {
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    int v = 0, n = 0;
    MPI_Offset offset;
    char datarep[MPI_MAX_DATAREP_STRING];
    MPI_Datatype type;
    EXPECT(MPI_File_iread(file, &v, 1, MPI_INT, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_iwrite_at(file, 0, &v, 1, MPI_INT, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_iread_all(file, &v, 1, MPI_INT, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_write(file, &v, 1, MPI_INT, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_write_all(file, &v, 1, MPI_INT, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_amode(file, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_group(file, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_info(file, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_atomicity(file, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_position(file, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_byte_offset(file, 0, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_type_extent(file, MPI_INT, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_view(file, nullptr, &type, &type, datarep) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_view(file, &offset, nullptr, &type, datarep) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_errhandler(file, nullptr) == MPI_ERR_ARG);
    MPI_File_close(&file);
    MPI_Session session;
    EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, nullptr) == MPI_ERR_ARG);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    EXPECT(MPI_Session_get_info(session, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Session_get_num_psets(session, MPI_INFO_NULL, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, nullptr, datarep) == MPI_ERR_ARG);
    n = 5;
    EXPECT(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &n, nullptr) == MPI_ERR_ARG);
    EXPECT(MPI_Group_from_session_pset(session, "mpi://SELF", nullptr) == MPI_ERR_ARG);
    MPI_Group group;
    EXPECT(MPI_Group_from_session_pset(session, nullptr, &group) == MPI_ERR_ARG);
    MPI_Session_finalize(&session);
}

void no_grid() {
    const int dims[2] = {size, size + 1}, periods[2] = {0, 0};
    MPI_Comm grid = MPI_COMM_SELF;
    EXPECT(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid) != MPI_SUCCESS && grid == MPI_COMM_NULL);
}

// Processes that do not mean the same length by a broadcast: all but the root learn of it, also those that get it from
// one that has less or more than they want, and the next broadcast is one again.
void broadcasts_of_several_lengths() {
    const MPI_Comm comm = MPI_COMM_WORLD;
    int v[10] = {};
    for (const int root_count : {1, 10}) {
        const int count = rank == 0 ? root_count : 11 - root_count;
        EXPECT((MPI_Bcast(v, count, MPI_INT, 0, comm) == MPI_SUCCESS) == (rank == 0));
        MPI_Request request;
        EXPECT(MPI_Ibcast(v, count, MPI_INT, 0, comm, &request) == MPI_SUCCESS);
        EXPECT((MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS) == (rank == 0));
        v[9] = rank == 0 ? root_count : 0;
        EXPECT(MPI_Bcast(v, 10, MPI_INT, 0, comm) == MPI_SUCCESS && v[9] == root_count);
    }
    // The same bytes described in two ways are the same length.
    MPI_Datatype pairs;
    MPI_Type_vector(5, 1, 2, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    EXPECT(MPI_Bcast(v, rank == 0 ? 5 : 1, rank == 0 ? MPI_INT : pairs, 0, comm) == MPI_SUCCESS);
    MPI_Type_free(&pairs);
}

// The same memory given and taken, by every process and by one alone.
void aliases() {
    std::vector<int> v(size_t(size) * 2, rank), counts(size_t(size), 1), at(size_t(size), 0);
    for (int r = 0; r < size; ++r) {
        at[size_t(r)] = r;
    }
    const MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request;
    int* own = v.data() + rank;
    EXPECT(MPI_Allreduce(v.data(), v.data(), 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Iallreduce(v.data(), v.data(), 1, MPI_INT, MPI_SUM, comm, &request) == MPI_ERR_BUFFER);
    EXPECT(MPI_Scan(v.data(), v.data(), 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Reduce_scatter_block(v.data(), v.data(), 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Allgather(own, 1, MPI_INT, v.data(), 1, MPI_INT, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Allgatherv(own, 1, MPI_INT, v.data(), counts.data(), at.data(), MPI_INT, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Alltoall(v.data(), 1, MPI_INT, v.data(), 1, MPI_INT, comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Alltoallv(v.data(), counts.data(), at.data(), MPI_INT, v.data(), counts.data(), at.data(), MPI_INT,
                         comm) == MPI_ERR_BUFFER);
    EXPECT(MPI_Allgather_init(own, 1, MPI_INT, v.data(), 1, MPI_INT, comm, MPI_INFO_NULL, &request) == MPI_ERR_BUFFER);
    EXPECT(MPI_Reduce_local(v.data(), MPI_IN_PLACE, 1, MPI_INT, MPI_SUM) == MPI_ERR_BUFFER);
    if (rank == 0) {  // the others are not asked, and know nothing of it
        EXPECT(MPI_Gather(v.data(), 1, MPI_INT, v.data(), 1, MPI_INT, 0, comm) == MPI_ERR_BUFFER);
        EXPECT(MPI_Scatter(v.data(), 1, MPI_INT, v.data(), 1, MPI_INT, 0, comm) == MPI_ERR_BUFFER);
        EXPECT(MPI_Reduce(v.data(), v.data(), 1, MPI_INT, MPI_SUM, 0, comm) == MPI_ERR_BUFFER);
        EXPECT(MPI_Igatherv(v.data(), 1, MPI_INT, v.data(), counts.data(), at.data(), MPI_INT, 0, comm, &request) ==
               MPI_ERR_BUFFER);
    }
    int sum = -1;
    EXPECT(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == size * (size - 1) / 2);
    // Refused at the root alone: it makes up for it, and its second call is what the others called.
    int error = MPI_Reduce(&rank, rank == 0 ? &rank : nullptr, 1, MPI_INT, MPI_SUM, 0, comm);
    EXPECT(error == (rank == 0 ? MPI_ERR_BUFFER : MPI_SUCCESS));
    if (error) {
        EXPECT(MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, comm) == MPI_SUCCESS && sum == size * (size - 1) / 2);
    }
    // Nothing is nowhere, items without a size are nothing, and parts of one array that do not meet may be given and
    // taken.
    EXPECT(MPI_Allgather(v.data(), 0, MPI_INT, v.data(), 0, MPI_INT, comm) == MPI_SUCCESS);
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    EXPECT(MPI_Allgather(v.data(), 1, empty, v.data(), 1, empty, comm) == MPI_SUCCESS);
    EXPECT(MPI_Gather(v.data(), 1, empty, v.data(), 1, empty, 0, comm) == MPI_SUCCESS);
    EXPECT(MPI_Scatter(v.data(), 1, empty, v.data(), 1, empty, 0, comm) == MPI_SUCCESS);
    EXPECT(MPI_Alltoall(v.data(), 1, empty, v.data(), 1, empty, comm) == MPI_SUCCESS);
    EXPECT(MPI_Alltoallv(v.data(), counts.data(), at.data(), empty, v.data(), counts.data(), at.data(), empty, comm) ==
           MPI_SUCCESS);
    const std::vector<MPI_Datatype> empties(size_t(size), empty);
    EXPECT(MPI_Alltoallw(v.data(), counts.data(), at.data(), empties.data(), v.data(), counts.data(), at.data(),
                         empties.data(), comm) == MPI_SUCCESS);
    MPI_Type_free(&empty);
    std::vector<int> beyond = at;
    for (int& one : beyond) {
        one += size;
    }
    EXPECT(MPI_Alltoallv(v.data(), counts.data(), at.data(), MPI_INT, v.data(), counts.data(), beyond.data(), MPI_INT,
                         comm) == MPI_SUCCESS);
    EXPECT(v[size_t(size)] == 0 && v.back() == size - 1);
}

// A request that has ended is none, also when its record serves another one already; a send that was away at once
// can be asked for, cancelled and freed like any other.
void requests_that_ended() {
    const int other = (rank + 1) % size, before = (rank + size - 1) % size;
    int in[3] = {0, 0, 0}, out = 7, flag = 0;
    MPI_Request requests[3], ended;
    MPI_Status statuses[3];
    MPI_Irecv(&in[0], 1, MPI_INT, before, 5, MPI_COMM_WORLD, &requests[0]);
    ended = requests[0];
    MPI_Send(&out, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
    EXPECT(MPI_Wait(&requests[0], &statuses[0]) == MPI_SUCCESS && requests[0] == MPI_REQUEST_NULL && in[0] == 7);
    EXPECT(MPI_Wait(&ended, &statuses[0]) == MPI_ERR_REQUEST);
    MPI_Irecv(&in[0], 1, MPI_INT, before, 6, MPI_COMM_WORLD, &requests[0]);
    EXPECT(requests[0] != ended && MPI_Test(&ended, &flag, &statuses[0]) == MPI_ERR_REQUEST);
    MPI_Isend(&out, 1, MPI_INT, other, 6, MPI_COMM_WORLD, &requests[1]);
    EXPECT(MPI_Cancel(&requests[1]) == MPI_SUCCESS);
    EXPECT(MPI_Request_get_status(requests[1], &flag, &statuses[1]) == MPI_SUCCESS && requests[1] != MPI_REQUEST_NULL);
    EXPECT(MPI_Request_free(&requests[1]) == MPI_SUCCESS && requests[1] == MPI_REQUEST_NULL);
    EXPECT(MPI_Wait(&requests[0], &statuses[0]) == MPI_SUCCESS && in[0] == 7);
    // In a list a failed request is told from the others.
    const int two[2] = {8, 9};
    MPI_Irecv(&in[0], 1, MPI_INT, before, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&in[1], 2, MPI_INT, before, 8, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(two, 2, MPI_INT, other, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(two, 2, MPI_INT, other, 8, MPI_COMM_WORLD);
    requests[1] = ended;
    EXPECT(MPI_Waitall(3, requests, statuses) == MPI_ERR_REQUEST);
    requests[1] = MPI_REQUEST_NULL;
    EXPECT(MPI_Waitall(3, requests, statuses) == MPI_ERR_IN_STATUS);
    EXPECT(statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE && statuses[1].MPI_ERROR == MPI_SUCCESS &&
           statuses[2].MPI_ERROR == MPI_SUCCESS && statuses[2].MPI_SOURCE == before && in[2] == 9);
    EXPECT(requests[0] == MPI_REQUEST_NULL && requests[2] == MPI_REQUEST_NULL);
}

int told = 0;
void count_errors(MPI_Comm*, int*, ...) { ++told; }

bool is_cancelled(const MPI_Status& status) {
    int flag = -1;
    MPI_Test_cancelled(&status, &flag);
    return flag != 0;
}

// MPI_Cancel is refused while the request is under way and when it is done, and takes nothing away. A persistent
// request is not cancelled before its start either.
void not_cancelled(
    MPI_Request* request, const std::function<void()>& meet = [] {}) {
    MPI_Status status;
    int done = 0;
    EXPECT(MPI_Cancel(request) == MPI_ERR_REQUEST && *request != MPI_REQUEST_NULL);
    meet();
    while (!done) MPI_Request_get_status(*request, &done, &status);
    EXPECT(MPI_Cancel(request) == MPI_ERR_REQUEST && *request != MPI_REQUEST_NULL);
    EXPECT(MPI_Wait(request, &status) == MPI_SUCCESS && !is_cancelled(status));
}

void cancelled_collectives() {
    int sum = 0, all = 1;
    MPI_Comm made = MPI_COMM_NULL;
    using Begin = std::function<int(MPI_Comm, MPI_Request*)>;
    const Begin calls[] = {
        [](MPI_Comm comm, MPI_Request* request) { return MPI_Ibarrier(comm, request); },
        [&](MPI_Comm comm, MPI_Request* request) {
            return MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, request);
        },
        [&](MPI_Comm comm, MPI_Request* request) { return MPI_Comm_idup(comm, &made, request); },
        [&](MPI_Comm comm, MPI_Request* request) { return MPIX_Comm_iagree(comm, &all, request); },
        [](MPI_Comm comm, MPI_Request* request) { return MPI_Barrier_init(comm, MPI_INFO_NULL, request); },
        [&](MPI_Comm comm, MPI_Request* request) {
            return MPI_Allreduce_init_c(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, request);
        }};
    constexpr size_t persistent = 4;
    for (size_t i = 0; i < std::size(calls); ++i) {
        for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
            // That of the world does not end before rank 0 has begun, which it does when the others have cancelled.
            const bool waits = comm == MPI_COMM_WORLD && size > 1;
            int token = 0;
            const auto meet = [&] {
                if (waits && rank != 0) MPI_Send(&token, 1, MPI_INT, 0, 11, comm);
            };
            for (int r = 1; waits && rank == 0 && r < size; ++r) {
                MPI_Recv(&token, 1, MPI_INT, r, 11, comm, MPI_STATUS_IGNORE);
            }
            MPI_Request request = MPI_REQUEST_NULL;
            sum = -1;
            EXPECT(calls[i](comm, &request) == MPI_SUCCESS);
            if (i >= persistent) {
                EXPECT(MPI_Cancel(&request) == MPI_ERR_REQUEST && MPI_Start(&request) == MPI_SUCCESS);
            }
            not_cancelled(&request, meet);
            if (i >= persistent) {
                EXPECT(MPI_Cancel(&request) == MPI_ERR_REQUEST && MPI_Request_free(&request) == MPI_SUCCESS);
            }
            const bool adds = i == 1 || i == persistent + 1;
            EXPECT(sum == (!adds ? -1 : comm == MPI_COMM_SELF ? rank : size * (size - 1) / 2));
            if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
        }
    }
    // Told to the communicator of the operation, which was freed.
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(count_errors, &handler);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Request request;
    MPI_Ibarrier(comm, &request);
    MPI_Comm_free(&comm);
    told = 0;
    EXPECT(MPI_Cancel(&request) == MPI_ERR_REQUEST && told == 1 &&
           MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_Errhandler_free(&handler);
}

// What is no collective operation, and cannot be cancelled either.
void cancelled_others() {
    const int other = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request request;
    MPI_Status status;
    int word = 0, in = -1;
    MPI_Win window;
    MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    for (const int target : {other, rank, MPI_PROC_NULL}) {
        MPI_Rget(&in, 1, MPI_INT, target, 0, 1, MPI_INT, window, &request);
        not_cancelled(&request);
        MPI_Raccumulate(&rank, 1, MPI_INT, target, 0, 1, MPI_INT, MPI_SUM, window, &request);
        not_cancelled(&request);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    EXPECT(word == rank + before);

    MPI_Request receive;
    MPI_Psend_init(&rank, 1, 1, MPI_INT, other, 13, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Precv_init(&in, 1, 1, MPI_INT, before, 13, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    EXPECT(MPI_Cancel(&request) == MPI_ERR_REQUEST && MPI_Cancel(&receive) == MPI_ERR_REQUEST);
    MPI_Start(&request);
    MPI_Start(&receive);
    EXPECT(MPI_Cancel(&receive) == MPI_ERR_REQUEST);
    not_cancelled(&request, [&] { MPI_Pready(0, request); });
    not_cancelled(&receive);
    EXPECT(in == before);
    MPI_Request_free(&request);
    MPI_Request_free(&receive);

    // Two messages: one of them may have arrived already.
    MPI_Isendrecv(&rank, 1, MPI_INT, other, 14, &in, 1, MPI_INT, before, 14, MPI_COMM_WORLD, &request);
    not_cancelled(&request);
    EXPECT(in == before);
    in = rank;
    MPI_Isendrecv_replace(&in, 1, MPI_INT, other, 14, before, 14, MPI_COMM_WORLD, &request);
    not_cancelled(&request);
    EXPECT(in == before);
    // One of them is none: the other one can be.
    MPI_Isendrecv(&rank, 1, MPI_INT, MPI_PROC_NULL, 15, &in, 1, MPI_INT, before, 15, MPI_COMM_WORLD, &request);
    EXPECT(MPI_Cancel(&request) == MPI_SUCCESS && MPI_Wait(&request, &status) == MPI_SUCCESS && is_cancelled(status));
    MPI_Isendrecv_replace(&in, 1, MPI_INT, MPI_PROC_NULL, 15, before, 15, MPI_COMM_WORLD, &request);
    EXPECT(MPI_Cancel(&request) == MPI_SUCCESS && MPI_Wait(&request, &status) == MPI_SUCCESS && is_cancelled(status));
    std::vector<int> out(1 << 18, rank), got(out.size(), -1);
    MPI_Isendrecv_replace(out.data(), int(out.size()), MPI_INT, other, 16, MPI_PROC_NULL, 16, MPI_COMM_WORLD, &request);
    EXPECT(MPI_Cancel(&request) == MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, &status) == MPI_SUCCESS && status.MPI_SOURCE == MPI_PROC_NULL);
    int kept = !is_cancelled(status), comes = 0;
    MPI_Sendrecv(&kept, 1, MPI_INT, other, 17, &comes, 1, MPI_INT, before, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (comes) {
        MPI_Recv(got.data(), int(got.size()), MPI_INT, before, 16, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(got.back() == before);
    }
    EXPECT(out.back() == rank);

    // Of a file: nothing is cancelled.
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, "/dev/zero", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_iread(file, &in, 1, MPI_INT, &request);
    EXPECT(MPI_Cancel(&request) == MPI_SUCCESS && MPI_Wait(&request, &status) == MPI_SUCCESS && !is_cancelled(status));
    EXPECT(in == 0);
    MPI_File_close(&file);
}

// A communicator that was freed lives on in its pending requests, and its error handler is called.
void errors_of_a_freed_communicator() {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(count_errors, &handler);
    enum { waitall, testall, waitsome, testsome, calls };
    for (int call = 0; call < calls; ++call) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        MPI_Comm_set_errhandler(comm, handler);
        const int two[2] = {8, 9};
        int in = 0, flag = 0, count = 0, index = 0;
        MPI_Request request;
        MPI_Status status;
        MPI_Irecv(&in, 1, MPI_INT, 0, 1, comm, &request);
        MPI_Send(two, 2, MPI_INT, 0, 1, comm);
        MPI_Comm_free(&comm);
        told = 0;
        int error = MPI_SUCCESS;
        if (call == waitall) error = MPI_Waitall(1, &request, &status);
        if (call == testall) error = MPI_Testall(1, &request, &flag, &status);
        if (call == waitsome) error = MPI_Waitsome(1, &request, &count, &index, &status);
        if (call == testsome) error = MPI_Testsome(1, &request, &count, &index, &status);
        EXPECT(error == MPI_ERR_IN_STATUS && told == 1 && status.MPI_ERROR == MPI_ERR_TRUNCATE);
        EXPECT(request == MPI_REQUEST_NULL);
    }
    MPI_Errhandler_free(&handler);
}

// All forms of a call with neighbours: blocking, non-blocking and persistent, with counts of int and of 64 bits. Each
// answers its first error, that of its end included.
struct Form {
    const char* name;
    bool starts;
    std::function<int(MPI_Request*)> call;

    int run() const {
        MPI_Request request = MPI_REQUEST_NULL;
        int error = call(&request);
        if (error == MPI_SUCCESS && starts) error = MPI_Start(&request);
        if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
        return error;
    }
};

#define FORMS(Name, SUFFIX, ...)                                                                              \
    Form{"MPI_Neighbor_" #Name #SUFFIX, false,                                                                \
         [&](MPI_Request*) { return MPI_Neighbor_##Name##SUFFIX(__VA_ARGS__, comm); }},                       \
        Form{"MPI_Ineighbor_" #Name #SUFFIX, false,                                                           \
             [&](MPI_Request* request) { return MPI_Ineighbor_##Name##SUFFIX(__VA_ARGS__, comm, request); }}, \
        Form {                                                                                                \
        "MPI_Neighbor_" #Name "_init" #SUFFIX, true, [&](MPI_Request* request) {                              \
            return MPI_Neighbor_##Name##_init##SUFFIX(__VA_ARGS__, comm, MPI_INFO_NULL, request);             \
        }                                                                                                     \
    }

// What one process gives the five calls. Lists have one entry for each neighbour, or are nowhere.
struct Given {
    const int* from;
    int* to;
    MPI_Count sent, received;  // of the calls that have them once
    MPI_Datatype sent_type, received_type;
    int sources, destinations;
};

enum Which : unsigned { allgather = 1, allgatherv = 2, alltoall = 4, alltoallv = 8, alltoallw = 16, all_five = 31 };

template <typename T>
const T* list_or_nowhere(const std::vector<T>& list) {
    return list.empty() ? nullptr : list.data();
}

#define WITH_NEIGHBOURS(FUNCTION, SUFFIX, Count, Offset)                                                            \
    void FUNCTION(MPI_Comm comm, const Given& g, unsigned which, const std::function<void(const Form&)>& look) {    \
        const std::vector<Count> sends(size_t(g.destinations), 1), receives(size_t(g.sources), 1);                  \
        std::vector<Offset> send_at, receive_at;                                                                    \
        std::vector<MPI_Aint> send_bytes, receive_bytes;                                                            \
        for (int i = 0; i < g.destinations; ++i) send_at.push_back(i), send_bytes.push_back(MPI_Aint(4) * i);       \
        for (int i = 0; i < g.sources; ++i) receive_at.push_back(i), receive_bytes.push_back(MPI_Aint(4) * i);      \
        const std::vector<MPI_Datatype> send_types(sends.size(), MPI_INT), receive_types(receives.size(), MPI_INT); \
        const Count sent = Count(g.sent), received = Count(g.received);                                             \
        const Count *const s = list_or_nowhere(sends), *const r = list_or_nowhere(receives);                        \
        const Offset *const sd = list_or_nowhere(send_at), *const rd = list_or_nowhere(receive_at);                 \
        const MPI_Aint *const sb = list_or_nowhere(send_bytes), *const rb = list_or_nowhere(receive_bytes);         \
        const MPI_Datatype *const st = list_or_nowhere(send_types), *const rt = list_or_nowhere(receive_types);     \
        const std::vector<std::vector<Form>> calls = {                                                              \
            {FORMS(allgather, SUFFIX, g.from, sent, g.sent_type, g.to, received, g.received_type)},                 \
            {FORMS(allgatherv, SUFFIX, g.from, sent, g.sent_type, g.to, r, rd, g.received_type)},                   \
            {FORMS(alltoall, SUFFIX, g.from, sent, g.sent_type, g.to, received, g.received_type)},                  \
            {FORMS(alltoallv, SUFFIX, g.from, s, sd, g.sent_type, g.to, r, rd, g.received_type)},                   \
            {FORMS(alltoallw, SUFFIX, g.from, s, sb, st, g.to, r, rb, rt)}};                                        \
        for (size_t i = 0; i < calls.size(); ++i) {                                                                 \
            for (const Form& form : calls[i]) {                                                                     \
                if ((which >> i & 1) != 0) look(form);                                                              \
            }                                                                                                       \
        }                                                                                                           \
    }

WITH_NEIGHBOURS(narrow_neighbours, , int, int)
WITH_NEIGHBOURS(wide_neighbours, _c, MPI_Count, MPI_Aint)

// All forms of the calls answer `error`; `right` looks at what has come.
void answers(
    MPI_Comm comm, const Given& given, unsigned which, int error,
    const std::function<bool()>& right = [] { return true; }) {
    const auto look = [&](const Form& form) {
        const int answer = form.run();
        EXPECT(answer == error && right());
        if (answer != error) std::printf("rank %d: %s answers %d for %d\n", rank, form.name, answer, error);
    };
    narrow_neighbours(comm, given, which, look);
    wide_neighbours(comm, given, which, look);
}

// Without neighbours there is nothing, which may be nowhere; what is wrong all the same is told.
void no_neighbours(MPI_Comm comm) {
    const Given nothing = {nullptr, nullptr, 1, 1, MPI_INT, MPI_INT, 0, 0};
    constexpr unsigned sends_equal = allgather | allgatherv | alltoall, receives_equal = allgather | alltoall;
    answers(comm, nothing, all_five, MPI_SUCCESS);
    Given given = nothing;
    given.sent = -1;
    answers(comm, given, sends_equal, MPI_ERR_COUNT);
    given = nothing;
    given.received = -1;
    answers(comm, given, receives_equal, MPI_ERR_COUNT);
    given = nothing;
    given.sent_type = MPI_DATATYPE_NULL;
    answers(comm, given, sends_equal, MPI_ERR_TYPE);
    given = nothing;
    given.received_type = MPI_DATATYPE_NULL;
    answers(comm, given, receives_equal, MPI_ERR_TYPE);
    given = nothing;
    given.from = static_cast<const int*>(MPI_IN_PLACE);
    answers(comm, given, all_five, MPI_ERR_BUFFER);
    given = nothing;
    given.to = static_cast<int*>(MPI_IN_PLACE);
    answers(comm, given, all_five, MPI_ERR_BUFFER);
}

// Rank 0 sends to all others and receives nothing; they send nothing.
void neighbours_on_one_side() {
    const int here = rank == 0 ? 0 : 1, others = rank == 0 ? size - 1 : 0, root = 0;
    std::vector<int> ranks, data;
    for (int r = 1; r < size; ++r) ranks.push_back(r), data.push_back(100 + r);
    MPI_Comm star;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, here, &root, MPI_UNWEIGHTED, others, ranks.data(), MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &star);
    int got = -1;
    const Given given = {
        rank == 0 ? data.data() : nullptr, rank == 0 ? nullptr : &got, 1, 1, MPI_INT, MPI_INT, here, others};
    const auto is = [&](int value) {
        const bool holds = got == (rank == 0 ? -1 : value);
        got = -1;
        return holds;
    };
    answers(star, given, allgather | allgatherv, MPI_SUCCESS, [&] { return is(101); });
    answers(star, given, alltoall | alltoallv | alltoallw, MPI_SUCCESS, [&] { return is(100 + rank); });
    // The side that has neighbours must be somewhere: refused, it has not taken part.
    Given nowhere = given;
    nowhere.from = nullptr;
    nowhere.to = nullptr;
    if (size > 1) answers(star, nowhere, all_five, MPI_ERR_BUFFER);
    answers(star, given, all_five, MPI_SUCCESS);
    MPI_Comm_free(&star);
}

void nothing_to_neighbours() {
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, nullptr, MPI_UNWEIGHTED, 0, nullptr, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    no_neighbours(comm);
    MPI_Comm_free(&comm);
    const std::vector<int> ends(size_t(size), 0);
    MPI_Graph_create(MPI_COMM_WORLD, size, ends.data(), nullptr, 0, &comm);
    no_neighbours(comm);
    MPI_Comm_free(&comm);
    MPI_Cart_create(MPI_COMM_SELF, 0, nullptr, nullptr, 0, &comm);
    no_neighbours(comm);
    MPI_Comm_free(&comm);
    neighbours_on_one_side();
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    nowhere_to_answer();
    packed();
    elements();
    empty_statuses();
    names();
    no_place_for_a_request();
    lists_that_are_nowhere();
    packed_nowhere();
    wrong_info();
    files_and_sessions();
    no_grid();
    requests_that_ended();
    errors_of_a_freed_communicator();
    broadcasts_of_several_lengths();
    aliases();
    nothing_to_neighbours();
    cancelled_collectives();
    cancelled_others();
    return report();
}
