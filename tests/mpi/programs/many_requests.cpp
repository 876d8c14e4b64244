// SPDX-License-Identifier: BSD-2-Clause
// More requests than there are handles: the call that finds none left says so and has done nothing - what it would have
// received is there for the next one -, calls that need no handle go on, and every request that is freed makes room.
#include <vector>

#include "check.hpp"

namespace {

constexpr int kTag = 7;
constexpr size_t kFarMore = size_t{3} << 20;

int error_class(int code) {
    int known = -1;
    MPI_Error_class(code, &known);
    return known;
}

// Persistent requests until there is no handle.
std::vector<MPI_Request> take_all() {
    std::vector<MPI_Request> taken;
    int word = 0;
    for (;;) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = MPI_Recv_init(&word, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
        if (code == MPI_SUCCESS) taken.push_back(request);
        if (code == MPI_SUCCESS && taken.size() < kFarMore) continue;
        EXPECT(error_class(code) == MPI_ERR_NO_MEM);
        EXPECT(request == MPI_REQUEST_NULL);
        return taken;
    }
}

template <typename Call>
void refused(Call&& call) {
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT(error_class(call(&request)) == MPI_ERR_NO_MEM);
    EXPECT(request == MPI_REQUEST_NULL);
}

void expect_nothing_begins() {
    int in = -1, out = 1, rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Status status;
    refused([&](MPI_Request* r) { return MPI_Irecv(&in, 1, MPI_INT, 0, kTag, MPI_COMM_SELF, r); });
    refused([&](MPI_Request* r) { return MPI_Issend(&out, 1, MPI_INT, 0, kTag, MPI_COMM_SELF, r); });
    refused([&](MPI_Request* r) { return MPI_Ibarrier(MPI_COMM_WORLD, r); });
    refused([&](MPI_Request* r) { return MPI_Iallreduce(&out, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, r); });
    refused([&](MPI_Request* r) {
        return MPI_Isendrecv(&out, 1, MPI_INT, 0, kTag, &in, 1, MPI_INT, 0, kTag, MPI_COMM_SELF, r);
    });
    // None of these stands in the way of a message, or is one.
    int flag = 1;
    EXPECT(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &status) == MPI_SUCCESS && !flag);
    out = 42;
    EXPECT(MPI_Send(&out, 1, MPI_INT, 0, kTag, MPI_COMM_SELF) == MPI_SUCCESS);
    MPI_Message message = MPI_MESSAGE_NULL;
    EXPECT(error_class(MPI_Mprobe(0, kTag, MPI_COMM_SELF, &message, &status)) == MPI_ERR_NO_MEM);
    EXPECT(error_class(MPI_Improbe(0, kTag, MPI_COMM_SELF, &flag, &message, &status)) == MPI_ERR_NO_MEM);
    EXPECT(in == -1);
    EXPECT(MPI_Recv(&in, 1, MPI_INT, 0, kTag, MPI_COMM_SELF, &status) == MPI_SUCCESS && in == 42);
}

// Without handles, but not without requests.
void others_go_on() {
    int rank = 0, size = 0, sum = 0, one = 1, from = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<int> all(static_cast<size_t>(size)), ranks(static_cast<size_t>(size), rank);
    for (int i = 0; i < 100; i++) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Alltoall(ranks.data(), 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 2, &from, 1, MPI_INT, (rank + size - 1) % size, 2,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(sum == size && all.back() == size - 1 && from == (rank + size - 1) % size);
    }
}

void one_place_is_enough(std::vector<MPI_Request>& taken) {
    int in = -1, out = 5;
    const auto make_room = [&] {
        MPI_Request_free(&taken.back());
        taken.pop_back();
    };
    make_room();
    MPI_Request request = MPI_REQUEST_NULL, second = MPI_REQUEST_NULL;
    EXPECT(MPI_Irecv(&in, 1, MPI_INT, 0, kTag, MPI_COMM_SELF, &request) == MPI_SUCCESS);
    EXPECT(error_class(MPI_Irecv(&in, 1, MPI_INT, 0, kTag, MPI_COMM_SELF, &second)) == MPI_ERR_NO_MEM);
    MPI_Send(&out, 1, MPI_INT, 0, kTag, MPI_COMM_SELF);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && in == 5);
    // Of one call that needs several inside; and of a matched receive, which follows its probe.
    out = 6;
    EXPECT(MPI_Isendrecv(&out, 1, MPI_INT, 0, kTag, &in, 1, MPI_INT, 0, kTag, MPI_COMM_SELF, &request) == MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && in == 6);
    out = 7;
    MPI_Send(&out, 1, MPI_INT, 0, kTag, MPI_COMM_SELF);
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    EXPECT(MPI_Mprobe(0, kTag, MPI_COMM_SELF, &message, &status) == MPI_SUCCESS);
    EXPECT(MPI_Imrecv(&in, 1, MPI_INT, &message, &request) == MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && in == 7);
}

void free_all(std::vector<MPI_Request>& taken) {
    for (MPI_Request& request : taken) MPI_Request_free(&request);
    taken.clear();
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    std::vector<MPI_Request> taken = take_all();
    const size_t most = taken.size();
    EXPECT(most > (size_t{1} << 20) - 1024 && most <= size_t{1} << 20);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_nothing_begins();
    others_go_on();
    one_place_is_enough(taken);
    free_all(taken);
    // As many again: none was lost, and those without a handle have not come among them.
    taken = take_all();
    EXPECT(taken.size() >= most);
    free_all(taken);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    return report();
}
