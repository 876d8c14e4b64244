/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of all lengths, modes and orders between all ranks: ping-pong, all to all, random with wildcards,
 * floods without a receive, persistent requests, probes, truncation, MPI_PROC_NULL. */
#include "check.h"

enum { LONGEST = 1 << 20 };
static unsigned char *out, *in;

static const int lengths[] = {0, 1, 7, 8, 47, 48, 49, 63, 64, 100, 255, 1000, 4096, 16000, 16384, 16385, 70000, 300000, LONGEST};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static void ping_pong(void) {
    const int other = rank ^ 1;
    if (other >= size) return;
    for (int i = 0; i < LENGTHS; i++) {
        for (int turn = 0; turn < 4; turn++) {
            MPI_Status status;
            int count;
            if (rank < other) {
                fill(out, (size_t)lengths[i], (uint32_t)(rank + turn));
                MPI_Send(out, lengths[i], MPI_BYTE, other, i, MPI_COMM_WORLD);
                MPI_Recv(in, lengths[i], MPI_BYTE, other, i, MPI_COMM_WORLD, &status);
                CHECK(is_filled(in, (size_t)lengths[i], (uint32_t)(rank + turn)));
            } else {
                MPI_Recv(in, LONGEST, MPI_BYTE, other, i, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_BYTE, &count);
                CHECK(count == lengths[i] && status.MPI_SOURCE == other && status.MPI_TAG == i);
                MPI_Ssend(in, lengths[i], MPI_BYTE, other, i, MPI_COMM_WORLD);
                digest_bytes(in, (size_t)lengths[i]);
            }
        }
    }
}

static void all_to_all(int bytes) {
    MPI_Request* requests = malloc(sizeof(MPI_Request) * 2 * (size_t)size);
    unsigned char* to = malloc((size_t)bytes * (size_t)size + 1);
    unsigned char* from = malloc((size_t)bytes * (size_t)size + 1);
    for (int peer = 0; peer < size; peer++)
        MPI_Irecv(from + (size_t)peer * (size_t)bytes, bytes, MPI_BYTE, peer, 77, MPI_COMM_WORLD, &requests[peer]);
    for (int peer = 0; peer < size; peer++) {
        fill(to + (size_t)peer * (size_t)bytes, (size_t)bytes, (uint32_t)(rank * 31 + peer));
        MPI_Isend(to + (size_t)peer * (size_t)bytes, bytes, MPI_BYTE, peer, 77, MPI_COMM_WORLD, &requests[size + peer]);
    }
    MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < size; peer++)
        CHECK(is_filled(from + (size_t)peer * (size_t)bytes, (size_t)bytes, (uint32_t)(peer * 31 + rank)));
    digest_bytes(from, (size_t)bytes * (size_t)size);
    for (int i = 0; i < 2 * size; i++) CHECK(requests[i] == MPI_REQUEST_NULL);
    free(requests);
    free(to);
    free(from);
}

/* All send to all, lengths and tags at random; received in order of arrival, from anywhere, with any tag. */
static void wildcards(int messages) {
    uint32_t mine = (uint32_t)rank + 1;
    uint32_t* theirs = malloc(sizeof(uint32_t) * (size_t)size);
    MPI_Request* sends = malloc(sizeof(MPI_Request) * (size_t)messages * (size_t)size);
    unsigned char** buffers = malloc(sizeof(void*) * (size_t)messages * (size_t)size);
    int sent = 0;
    for (int i = 0; i < size; i++) theirs[i] = (uint32_t)i + 1;
    for (int i = 0; i < messages; i++) {
        const int tag = 1000 + (int)(next_random(&mine) % 1000);
        const int length = (int)(next_random(&mine) % (i % 10 == 0 ? 60000 : 600));
        for (int peer = 0; peer < size; peer++, sent++) {
            buffers[sent] = malloc((size_t)length + 1);
            fill(buffers[sent], (size_t)length, (uint32_t)tag);
            MPI_Isend(buffers[sent], length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &sends[sent]);
        }
    }
    for (int i = 0; i < messages * size; i++) {
        MPI_Status status;
        int count;
        MPI_Recv(in, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        /* The messages of one sender come in the order it sent them. */
        uint32_t* sequence = &theirs[status.MPI_SOURCE];
        const int tag = 1000 + (int)(next_random(sequence) % 1000);
        static int turn[256];
        const int length = (int)(next_random(sequence) % (turn[status.MPI_SOURCE]++ % 10 == 0 ? 60000 : 600));
        if (turn[status.MPI_SOURCE] == messages) turn[status.MPI_SOURCE] = 0;
        CHECK(status.MPI_TAG == tag && count == length);
        CHECK(is_filled(in, (size_t)count, (uint32_t)tag));
    }
    /* A receive that takes anything would take what a faster rank sends next. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(sent, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < sent; i++) free(buffers[i]);
    free(buffers);
    free(sends);
    free(theirs);
}

/* Rank 0 sleeps in another receive while all others flood it; then takes everything, the last tag first. */
static void flood(int messages) {
    int go = 0;
    if (rank == 0) {
        for (int from = 1; from < size; from++) MPI_Recv(&go, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int from = size - 1; from > 0; from--) {
            for (int i = messages - 1; i >= 0; i--) {
                int value[25];
                MPI_Recv(value, 25, MPI_INT, from, 100 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(value[0] == i && value[24] == from);
            }
        }
    } else {
        MPI_Request* requests = malloc(sizeof(MPI_Request) * (size_t)messages);
        int(*values)[25] = calloc((size_t)messages, sizeof *values);
        for (int i = 0; i < messages; i++) {
            values[i][0] = i;
            values[i][24] = rank;
            MPI_Isend(values[i], 25, MPI_INT, 0, 100 + i, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Send(&go, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
        free(values);
        free(requests);
    }
}

static void ring_of_persistent(void) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    int token = rank, got = -1;
    MPI_Request both[2];
    MPI_Send_init(&token, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &both[0]);
    MPI_Recv_init(&got, 1, MPI_INT, last, 5, MPI_COMM_WORLD, &both[1]);
    for (int i = 0; i < size; i++) {
        MPI_Startall(2, both);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        token = got;
    }
    CHECK(token == rank);
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
    CHECK(both[0] == MPI_REQUEST_NULL);
}

static void probes(void) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    int values[3] = {rank, 1, 2}, got[3] = {0, 0, 0}, count, flag = 0;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    MPI_Isend(values, 3, MPI_INT, next, 6, MPI_COMM_WORLD, &request);
    MPI_Probe(last, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 3 && status.MPI_SOURCE == last && status.MPI_TAG == 6);
    while (!flag) MPI_Improbe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &flag, &message, &status);
    MPI_Iprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &flag, &status);
    CHECK(!flag);
    MPI_Barrier(MPI_COMM_WORLD); /* a faster rank uses this tag again later */
    MPI_Mrecv(got, 3, MPI_INT, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL && got[0] == last && got[2] == 2);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void odd_ones(void) {
    MPI_Status status;
    int value = 5, wide[4] = {1, 2, 3, 4}, error, count, flag;
    MPI_Request request;
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && count == 0 && value == 5);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(&value, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, &request);
    MPI_Send(wide, 4, MPI_INT, rank, 8, MPI_COMM_WORLD);
    error = MPI_Wait(&request, &status);
    CHECK(error == MPI_ERR_TRUNCATE && value == 1 && request == MPI_REQUEST_NULL);
    CHECK(MPI_Send(wide, 4, MPI_INT, size, 0, MPI_COMM_WORLD) == MPI_ERR_RANK);
    CHECK(MPI_Send(wide, 4, MPI_INT, 0, -5, MPI_COMM_WORLD) == MPI_ERR_TAG);
    CHECK(MPI_Send(wide, -1, MPI_INT, 0, 0, MPI_COMM_WORLD) == MPI_ERR_COUNT);
    CHECK(MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
    CHECK(MPI_Send(wide, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD) == MPI_ERR_TYPE);
    CHECK(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Send(wide, 1, MPI_INT, 0, 0, MPI_COMM_NULL) == MPI_ERR_COMM);
    request = (MPI_Request)0x98000123;
    CHECK(MPI_Wait(&request, &status) == MPI_ERR_REQUEST);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);

    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
    request = MPI_REQUEST_NULL;
    MPI_Test(&request, &flag, &status);
    CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    MPI_Barrier(MPI_COMM_WORLD); /* a faster rank sends with that tag again */
}

static void buffered(void) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    char* buffer = malloc(100 * (1000 + MPI_BSEND_OVERHEAD));
    void* back;
    int bytes;
    MPI_Buffer_attach(buffer, 100 * (1000 + MPI_BSEND_OVERHEAD));
    for (int i = 0; i < 100; i++) {
        fill(out, 1000, (uint32_t)i);
        MPI_Bsend(out, 1000, MPI_BYTE, next, i, MPI_COMM_WORLD);
    }
    for (int i = 0; i < 100; i++) {
        MPI_Recv(in, 1000, MPI_BYTE, last, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(is_filled(in, 1000, (uint32_t)i));
    }
    MPI_Buffer_detach(&back, &bytes);
    CHECK(back == buffer && bytes == 100 * (1000 + MPI_BSEND_OVERHEAD));
    free(buffer);
}

static void any_of_many(void) {
    enum { MANY = 20 };
    MPI_Request requests[2 * MANY];
    int in_values[MANY], out_values[MANY], seen = 0, index, n, indices[2 * MANY];
    MPI_Status statuses[2 * MANY];
    for (int i = 0; i < MANY; i++)
        MPI_Irecv(&in_values[i], 1, MPI_INT, (rank + 1) % size, 300 + i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < MANY; i++) {
        out_values[i] = i * i;
        MPI_Isend(&out_values[i], 1, MPI_INT, (rank + size - 1) % size, 300 + i, MPI_COMM_WORLD, &requests[MANY + i]);
    }
    MPI_Waitany(2 * MANY, requests, &index, &statuses[0]);
    CHECK(index >= 0 && requests[index] == MPI_REQUEST_NULL);
    for (seen = 1; seen < 2 * MANY; seen += n) {
        MPI_Waitsome(2 * MANY, requests, &n, indices, statuses);
        CHECK(n > 0);
        if (n <= 0) return;
    }
    for (int i = 0; i < MANY; i++) CHECK(in_values[i] == i * i);
    MPI_Waitsome(2 * MANY, requests, &n, indices, statuses);
    CHECK(n == MPI_UNDEFINED);
    MPI_Waitany(2 * MANY, requests, &index, &statuses[0]);
    CHECK(index == MPI_UNDEFINED);
}

int main(int argc, char** argv) {
    start_check(&argc, &argv);
    const int scale = argc > 1 ? atoi(argv[1]) : 1;
    out = malloc(LONGEST);
    in = malloc(LONGEST);
    ping_pong();
    all_to_all(8);
    all_to_all(5000);
    all_to_all(100000);
    wildcards(60 * scale);
    flood(300 * scale);
    ring_of_persistent();
    probes();
    odd_ones();
    buffered();
    any_of_many();
    free(out);
    free(in);
    return end_check();
}
