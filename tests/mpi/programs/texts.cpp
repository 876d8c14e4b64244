// SPDX-License-Identifier: BSD-2-Clause
// Mistakes of programs, and what MPI_Error_string says of each: the call with its arguments, and which of them is wrong
// with its value and its range. Each mistake is made with MPI_ERRORS_RETURN; one is also told to an error handler.
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

int made = 0;

std::string text_of(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    EXPECT(length == int(std::strlen(text)));
    return text;
}

// The code is of that class, and its text has all of the parts, in their order.
void mistake(int line, int code, int expected_class, const std::vector<std::string>& parts) {
    made++;
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    expect(error_class == expected_class, "the class", line);
    const std::string text = text_of(code);
    size_t at = 0;
    for (const std::string& part : parts) {
        const size_t found = text.find(part, at);
        if (found == std::string::npos) {
            std::printf("line %d: no \"%s\" behind position %zu of\n%s\n", line, part.c_str(), at, text.c_str());
            expect(false, "the text", line);
            return;
        }
        at = found + part.size();
    }
}
#define MISTAKE(...) mistake(__LINE__, __VA_ARGS__)

std::string heard;
void handler(MPI_Comm*, int* code, ...) { heard = text_of(*code); }

void of_messages(int rank, int size) {
    int x[20] = {};
    const std::string range = "must be nonnegative and less than " + std::to_string(size);
    const std::string far = std::to_string(size + 3);
    MISTAKE(MPI_Send(x, 1, MPI_INT, size + 3, 0, MPI_COMM_WORLD), MPI_ERR_RANK,
            {"Invalid rank, error stack:\n", "MPI_Send(buf=0x",
             ", count=1, MPI_INT, dest=" + far + ", tag=0, MPI_COMM_WORLD) failed\n",
             "Invalid rank has value " + far + " but " + range});
    MISTAKE(MPI_Recv(x, 1, MPI_INT, -7, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_RANK,
            {"MPI_Recv(buf=0x", "source=-7", "MPI_STATUS_IGNORE) failed", "Invalid rank has value -7 but " + range});
    MISTAKE(MPI_Send(x, 1, MPI_INT, rank, -5, MPI_COMM_WORLD), MPI_ERR_TAG,
            {"tag=-5", "Invalid tag has value -5 but must be nonnegative"});
    MISTAKE(MPI_Recv(x, 1, MPI_INT, MPI_ANY_SOURCE, -9, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TAG,
            {"source=MPI_ANY_SOURCE, tag=-9", "Invalid tag has value -9 but must be nonnegative, or MPI_ANY_TAG"});
    MISTAKE(MPI_Ssend(x, -3, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_COUNT,
            {"MPI_Ssend(", "count=-3", "Negative count, value of count is -3"});
    MISTAKE(MPI_Send(x, 1, MPI_DATATYPE_NULL, rank, 0, MPI_COMM_WORLD), MPI_ERR_TYPE,
            {"count=1, MPI_DATATYPE_NULL, dest", "Null datatype in datatype (MPI_DATATYPE_NULL)"});
    MISTAKE(MPI_Send(nullptr, 1, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER,
            {"buf=(nil)", "Null buffer pointer in buf although there are items"});
    MISTAKE(MPI_Send(x, 1, MPI_INT, rank, 0, MPI_COMM_NULL), MPI_ERR_COMM,
            {"tag=0, MPI_COMM_NULL) failed", "Null communicator in comm (MPI_COMM_NULL)"});
    MPI_Comm freed = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &freed);
    const MPI_Comm stale = freed;
    MPI_Comm_free(&freed);
    MISTAKE(MPI_Send(x, 1, MPI_INT, rank, 0, stale), MPI_ERR_COMM,
            {"Invalid communicator in comm: 0x", " was freed, or never made"});
    MISTAKE(MPI_Isend(x, 1, MPI_INT, size, 0, MPI_COMM_WORLD, nullptr), MPI_ERR_RANK, {"request=(nil)", range});
    MISTAKE(MPI_Irecv(x, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, nullptr), MPI_ERR_ARG,
            {"MPI_Irecv(", "Null pointer in parameter request"});
    MISTAKE(MPI_Send_c(x, MPI_Count(-1) << 33, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_COUNT,
            {"MPI_Send_c(", "count=-8589934592", "Negative count"});
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    MPI_Request ended = request;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MISTAKE(MPI_Wait(&ended, MPI_STATUS_IGNORE), MPI_ERR_REQUEST,
            {"MPI_Wait(", "Invalid request in *", "has been completed or freed, or was never made"});
    MPI_Request list[2] = {MPI_REQUEST_NULL, ended};
    MISTAKE(MPI_Waitall(2, list, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST, {"MPI_Waitall(count=2", "[1]: 0x"});
    MISTAKE(MPI_Probe(size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_RANK, {"MPI_Probe(", range});
    MISTAKE(MPI_Bsend(x, 4, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER,
            {"MPI_Bsend(", "No buffer is attached: MPI_Buffer_attach one first"});
    char room[MPI_BSEND_OVERHEAD + 8];
    MPI_Buffer_attach(room, sizeof room);
    MISTAKE(MPI_Bsend(x, 4, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER,
            {"MPI_Bsend(", "the message needs " + std::to_string(MPI_BSEND_OVERHEAD + 4 * sizeof(int)) + " bytes",
             "0 of " + std::to_string(sizeof room) + " are in use"});
    MISTAKE(MPI_Buffer_attach(room, sizeof room), MPI_ERR_BUFFER, {"MPI_Buffer_attach(", "is attached already"});
    void* given = nullptr;
    int bytes = 0;
    MPI_Buffer_detach(&given, &bytes);
    MISTAKE(MPI_Init(nullptr, nullptr), MPI_ERR_OTHER, {"MPI_Init(", "MPI was initialised before"});
}

void of_truncation(int rank) {
    int out[10] = {}, in[5] = {};
    const std::string from = std::to_string(rank);
    MPI_Send(out, 10, MPI_INT, rank, 14, MPI_COMM_WORLD);
    MISTAKE(MPI_Recv(in, 5, MPI_INT, rank, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE,
            {"Message truncated", "MPI_Recv(", "tag=14",
             "Message from rank " + from + " and tag 14 truncated; 40 bytes received but buffer size is 20"});
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(in, 1, MPI_INT, rank, 15, MPI_COMM_WORLD, &request);
    MPI_Send(out, 3, MPI_INT, rank, 15, MPI_COMM_WORLD);
    MISTAKE(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE,
            {"MPI_Wait(",
             "Message from rank " + from + " and tag 15 truncated; 12 bytes received but buffer size is 4"});
    // Longer than any message that goes without a handshake.
    std::vector<char> much(3 << 20);
    MPI_Isend(much.data(), int(much.size()), MPI_CHAR, rank, 16, MPI_COMM_WORLD, &request);
    MISTAKE(MPI_Recv(in, 5, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE,
            {"MPI_ANY_SOURCE, tag=MPI_ANY_TAG", "tag 16 truncated; 3145728 bytes received but buffer size is 20"});
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request two[2];
    MPI_Status statuses[2];
    MPI_Irecv(in, 1, MPI_INT, rank, 17, MPI_COMM_WORLD, &two[0]);
    MPI_Irecv(in + 1, 1, MPI_INT, rank, 18, MPI_COMM_WORLD, &two[1]);
    MPI_Send(out, 2, MPI_INT, rank, 17, MPI_COMM_WORLD);
    MPI_Send(out, 4, MPI_INT, rank, 18, MPI_COMM_WORLD);
    MISTAKE(MPI_Waitall(2, two, statuses), MPI_ERR_IN_STATUS,
            {"MPI_Waitall(count=2", "tag 17 truncated; 8 bytes", "tag 18 truncated; 16 bytes"});
    MISTAKE(MPI_Sendrecv(out, 4, MPI_INT, rank, 1, in, 2, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            MPI_ERR_TRUNCATE, {"MPI_Sendrecv(", "16 bytes received but buffer size is 8"});
}

void of_collectives(int rank, int size) {
    int x[4] = {}, y[4] = {};
    MISTAKE(MPI_Bcast(x, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT,
            {"MPI_Bcast(buffer=0x", "root=" + std::to_string(size),
             "Invalid root has value " + std::to_string(size) + " but must be nonnegative and less than ",
             std::to_string(size)});
    MISTAKE(MPI_Reduce(x, y, 1, MPI_DOUBLE, MPI_BAND, 0, MPI_COMM_WORLD), MPI_ERR_OP,
            {"MPI_DOUBLE, MPI_BAND, root=0", "The operator MPI_BAND is not defined for the datatype MPI_DOUBLE"});
    MISTAKE(MPI_Allreduce(x, x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER,
            {"MPI_SUM, MPI_COMM_WORLD", "Buffers must not be aliased: sendbuf and recvbuf are both 0x"});
    MISTAKE(MPI_Allreduce(x, y, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP,
            {"Null operator in op (MPI_OP_NULL)"});
    std::vector<int> counts(size_t(size), 0), at(size_t(size), 0);
    counts.back() = -2;
    MISTAKE(MPI_Allgatherv(x, 0, MPI_INT, y, counts.data(), at.data(), MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT,
            {"MPI_Allgatherv(", "Negative count, value of recvcounts[" + std::to_string(size - 1) + "] is -2"});
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_INT, &type);
    MISTAKE(MPI_Bcast(x, 1, type, 0, MPI_COMM_WORLD), MPI_ERR_TYPE,
            {"has not been committed: call MPI_Type_commit first"});
    MPI_Datatype stale = type;
    MPI_Type_free(&type);
    int bytes = 0;
    MISTAKE(MPI_Type_size(stale, &bytes), MPI_ERR_TYPE,
            {"MPI_Type_size(dtype=0x", "Invalid datatype in datatype: 0x", "was freed, or never made"});
    MISTAKE(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER,
            {"buffer=MPI_IN_PLACE", "buffer must not be MPI_IN_PLACE"});
    (void)rank;
}

void of_objects(int size) {
    MPI_Group group = MPI_GROUP_NULL, made_group = MPI_GROUP_NULL;
    MISTAKE(MPI_Group_size(MPI_GROUP_NULL, &size), MPI_ERR_GROUP,
            {"MPI_Group_size(MPI_GROUP_NULL", "Null group in group"});
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    const int bad[2] = {0, size + 1};
    MISTAKE(MPI_Group_incl(group, 2, bad, &made_group), MPI_ERR_RANK,
            {"Invalid rank in rank array at index 1; value is " + std::to_string(size + 1)});
    MPI_Group_free(&group);
    MISTAKE(MPI_Comm_rank(MPI_COMM_WORLD, nullptr), MPI_ERR_ARG,
            {"MPI_Comm_rank(MPI_COMM_WORLD, rank=(nil)) failed", "Null pointer in parameter rank"});
    MISTAKE(MPI_Info_set(MPI_INFO_NULL, "a", "b"), MPI_ERR_INFO, {"Null info object in info (MPI_INFO_NULL)"});
    int words[4] = {};
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(words, sizeof words, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MISTAKE(MPI_Win_lock(17, 0, 0, win), MPI_ERR_LOCKTYPE, {"MPI_Win_lock(", "Lock type 17 is neither"});
    MISTAKE(MPI_Put(words, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC, {"MPI_Put(", "in no epoch"});
    MPI_Win_fence(0, win);
    MISTAKE(MPI_Put(words, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK,
            {"Invalid rank has value " + std::to_string(size)});
    MISTAKE(MPI_Put(words, 1, MPI_INT, 0, 4, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, {"Displacement 4", "outside"});
    MISTAKE(MPI_Put(words, 1, MPI_INT, 0, -1, 1, MPI_INT, win), MPI_ERR_DISP, {"Displacement -1", "negative"});
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_File file = MPI_FILE_NULL;
    MISTAKE(MPI_File_open(MPI_COMM_SELF, "/tmp/none", 0, MPI_INFO_NULL, &file), MPI_ERR_AMODE,
            {"filename=0x", "amode=0x0", "exactly one of MPI_MODE_RDONLY"});
}

void of_handlers(int size) {
    MPI_Errhandler own = MPI_ERRHANDLER_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "of the ocean");
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(comm, own);
    int x = 0;
    MPI_Send(&x, 1, MPI_INT, size, 2, comm);
    const std::string told = "dest=" + std::to_string(size) + ", tag=2, of the ocean) failed\nInvalid rank";
    EXPECT(heard.find(told) != std::string::npos);
    MPI_Errhandler_free(&own);
    MPI_Comm_free(&comm);
    // A class that this thread had no error of has its own text alone.
    EXPECT(text_of(MPI_ERR_QUOTA) == "Quota exceeded");
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    of_messages(rank, size);
    of_truncation(rank);
    of_collectives(rank, size);
    of_objects(size);
    of_handlers(size);
    EXPECT(made >= 30);
    return report();
}
