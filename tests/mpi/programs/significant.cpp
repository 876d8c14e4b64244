// SPDX-License-Identifier: BSD-2-Clause
// Each collective call reads the arguments that the standard names significant in this process, once, in the call that
// has them. In every row of the tables an argument that is not significant is one that no call could read without an
// error; and the lists, types and operator of a persistent call are spoilt between its making and its start. All rows
// run in all forms: blocking, non-blocking, persistent with three starts; with counts of int and of 64 bits.
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "check.hpp"

namespace {

int rank, size;

// Arguments that are not significant.
const MPI_Datatype kNoType = MPI_Datatype(0x7badbad);
void* const kNowhere = reinterpret_cast<void*>(8);
const int* const kNoInts = static_cast<const int*>(kNowhere);
const MPI_Datatype* const kNoTypes = static_cast<const MPI_Datatype*>(kNowhere);

struct Row {
    std::function<int()> blocking;
    std::function<int(MPI_Request*)> begin, keep;
};

#define ROW(Name, Iname, ...)                                                            \
    Row {                                                                                \
        [&] { return MPI_##Name(__VA_ARGS__, comm); },                                   \
            [&](MPI_Request* request) { return MPI_##Iname(__VA_ARGS__, comm, request); }, \
            [&](MPI_Request* request) {                                                  \
                return MPI_##Name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, request);     \
            }                                                                            \
    }

void pass() {}

// `prepare` fills what the call reads; `spoil` makes it useless once the call has returned; `right` looks at the
// result.
void run(const char* what, const Row& row, const std::function<void()>& prepare, const std::function<bool()>& right,
         const std::function<void()>& spoil = pass) {
    const int before = wrong;
    MPI_Request request = MPI_REQUEST_NULL;
    prepare();
    EXPECT(row.blocking() == MPI_SUCCESS && right());
    prepare();
    EXPECT(row.begin(&request) == MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && right());
    prepare();
    EXPECT(row.keep(&request) == MPI_SUCCESS);
    spoil();
    for (int i = 0; i < 3; ++i) {
        EXPECT(MPI_Start(&request) == MPI_SUCCESS);
        EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && right());
    }
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    if (wrong != before) std::printf("rank %d: %s\n", rank, what);
}

// All forms refuse the call with this error.
void refuse(const char* what, const Row& row, int error) {
    const int before = wrong;
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT(row.blocking() == error);
    EXPECT(row.begin(&request) == error);
    EXPECT(row.keep(&request) == error);
    if (wrong != before) std::printf("rank %d: %s\n", rank, what);
}

// One item from and for each process; `Count` and `Offset` are the numbers of the narrow or the wide calls.
template <typename Count, typename Offset>
struct Lists {
    std::vector<Count> counts;
    std::vector<Offset> items, bytes;
    std::vector<MPI_Aint> addresses;  // in bytes too, as neighbour calls have them
    std::vector<MPI_Datatype> types;
    MPI_Op op = MPI_OP_NULL;

    void fill(int n) {
        spoil();
        counts.assign(size_t(n), 1);
        for (int i = 0; i < n; ++i) {
            items.push_back(i);
            bytes.push_back(Offset(i * int(sizeof(int))));
            addresses.push_back(i * MPI_Aint(sizeof(int)));
            MPI_Datatype type;
            MPI_Type_contiguous(1, MPI_INT, &type);
            MPI_Type_commit(&type);
            types.push_back(type);
        }
        const auto add = [](void* in, void* inout, int* count, MPI_Datatype*) {
            for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
        };
        MPI_Op_create(add, 1, &op);
    }
    // As a program does that frees its lists: what is in them afterwards is anything.
    void spoil() {
        for (MPI_Datatype& type : types) MPI_Type_free(&type);
        if (op != MPI_OP_NULL) MPI_Op_free(&op);
        counts.assign(counts.size(), Count(1) << 28);
        items.assign(items.size(), Offset(1) << 28);
        bytes.assign(bytes.size(), Offset(1) << 28);
        addresses.assign(addresses.size(), std::numeric_limits<MPI_Aint>::max() / 8 + 1);
        types.assign(types.size(), kNoType);
        counts.clear(), items.clear(), bytes.clear(), addresses.clear(), types.clear();
    }
    ~Lists() { spoil(); }
};

struct Data {
    std::vector<int> in, out;
    void fill(int n) {
        in.resize(size_t(n));
        out.assign(size_t(n), -1);
        for (int i = 0; i < n; ++i) in[size_t(i)] = 100 * rank + i;
    }
    // Whether out[i] is `step` * i + `first`, and consumed: the next start has to bring it again.
    bool is(int first, int step, int n) {
        bool all = true;
        for (int i = 0; i < n; ++i) all = all && out[size_t(i)] == first + step * i;
        out.assign(out.size(), -1);
        return all;
    }
};

// The lists of vector calls, narrow or wide: SUFFIX is empty or _c.
#define LIST_ROW(Name, Iname, SUFFIX, ...)                                                          \
    Row {                                                                                           \
        [&] { return MPI_##Name##SUFFIX(__VA_ARGS__, comm); },                                      \
            [&](MPI_Request* request) { return MPI_##Iname##SUFFIX(__VA_ARGS__, comm, request); },  \
            [&](MPI_Request* request) {                                                             \
                return MPI_##Name##_init##SUFFIX(__VA_ARGS__, comm, MPI_INFO_NULL, request);        \
            }                                                                                       \
    }

#define LISTS_ARE_READ_ONCE(FUNCTION, SUFFIX, Count, Offset)                                                          \
    void FUNCTION(MPI_Comm comm, MPI_Comm ring) {                                                                     \
        Lists<Count, Offset> l;                                                                                       \
        Data d;                                                                                                       \
        const int root = size - 1;                                                                                    \
        const auto spoil = [&] { l.spoil(); };                                                                        \
        const auto all = [&] { l.fill(size), d.fill(size); };                                                         \
        const auto columns = [&] { return d.is(rank, 100, size); };                                                   \
        const int sum = 100 * size * (size - 1) / 2;                                                                  \
        run("Gatherv", LIST_ROW(Gatherv, Igatherv, SUFFIX, d.in.data(), 1, l.types[0], d.out.data(), l.counts.data(), \
                                l.items.data(), l.types[0], root), all,                                               \
            [&] { return rank != root || d.is(0, 100, size); }, spoil);                                               \
        run("Scatterv", LIST_ROW(Scatterv, Iscatterv, SUFFIX, d.in.data(), l.counts.data(), l.items.data(),           \
                                 l.types[0], d.out.data(), 1, l.types[0], root), all,                                 \
            [&] { return d.is(100 * root + rank, 0, 1); }, spoil);                                                    \
        run("Allgatherv", LIST_ROW(Allgatherv, Iallgatherv, SUFFIX, d.in.data(), 1, l.types[0], d.out.data(),         \
                                   l.counts.data(), l.items.data(), l.types[0]), all,                                 \
            [&] { return d.is(0, 100, size); }, spoil);                                                               \
        run("Alltoallv", LIST_ROW(Alltoallv, Ialltoallv, SUFFIX, d.in.data(), l.counts.data(), l.items.data(),        \
                                  l.types[0], d.out.data(), l.counts.data(), l.items.data(), l.types[0]), all,        \
            columns, spoil);                                                                                          \
        run("Alltoallw", LIST_ROW(Alltoallw, Ialltoallw, SUFFIX, d.in.data(), l.counts.data(), l.bytes.data(),        \
                                  l.types.data(), d.out.data(), l.counts.data(), l.bytes.data(), l.types.data()),     \
            all, columns, spoil);                                                                                     \
        run("Reduce_scatter", LIST_ROW(Reduce_scatter, Ireduce_scatter, SUFFIX, d.in.data(), d.out.data(),            \
                                       l.counts.data(), l.types[0], l.op), all,                                       \
            [&] { return d.is(sum + rank * size, 0, 1); }, spoil);                                                    \
        run("Allreduce", LIST_ROW(Allreduce, Iallreduce, SUFFIX, d.in.data(), d.out.data(), 1, l.types[0], l.op),     \
            all, [&] { return d.is(sum, 0, 1); }, spoil);                                                             \
        run("Scan", LIST_ROW(Scan, Iscan, SUFFIX, d.in.data(), d.out.data(), 1, l.types[0], l.op), all,               \
            [&] { return d.is(100 * rank * (rank + 1) / 2, 0, 1); }, spoil);                                          \
        comm = ring;                                                                                                  \
        const int left = (rank + size - 1) % size, right = (rank + 1) % size;                                         \
        const auto two = [&] { l.fill(2), d.fill(2); };                                                               \
        const auto ends = [&](int from_left, int from_right) {                                                        \
            const bool holds = d.out[0] == from_left && d.out[1] == from_right;                                       \
            return d.is(0, 0, 0) && holds;                                                                            \
        };                                                                                                            \
        run("Neighbor_allgatherv", LIST_ROW(Neighbor_allgatherv, Ineighbor_allgatherv, SUFFIX, d.in.data(), 1,        \
                                            l.types[0], d.out.data(), l.counts.data(), l.items.data(), l.types[0]),   \
            two, [&] { return ends(100 * left, 100 * right); }, spoil);                                               \
        run("Neighbor_alltoallv", LIST_ROW(Neighbor_alltoallv, Ineighbor_alltoallv, SUFFIX, d.in.data(),              \
                                           l.counts.data(), l.items.data(), l.types[0], d.out.data(),                 \
                                           l.counts.data(), l.items.data(), l.types[0]),                              \
            two, [&] { return ends(100 * left + 1, 100 * right); }, spoil);                                           \
        run("Neighbor_alltoallw", LIST_ROW(Neighbor_alltoallw, Ineighbor_alltoallw, SUFFIX, d.in.data(),              \
                                           l.counts.data(), l.addresses.data(), l.types.data(), d.out.data(),         \
                                           l.counts.data(), l.addresses.data(), l.types.data()),                      \
            two, [&] { return ends(100 * left + 1, 100 * right); }, spoil);                                           \
    }

LISTS_ARE_READ_ONCE(narrow_lists, , int, int)
LISTS_ARE_READ_ONCE(wide_lists, _c, MPI_Count, MPI_Aint)

// Within one group: what the root alone reads, what MPI_IN_PLACE makes void.
void beside_the_root(MPI_Comm comm) {
    Data d;
    std::vector<int> ones(size_t(size), 1), items;
    for (int i = 0; i < size; ++i) items.push_back(i);
    for (const int root : {0, size - 1}) {
        const bool here = rank == root;
        const auto fill = [&] { d.fill(size); };
        const auto in_place = [&] {
            d.fill(size);
            if (here) d.out[size_t(rank)] = d.in[0];
        };
        // Only the first start finds the own share in place; it stays there.
        const auto gathered = [&] {
            bool all = true;
            for (int i = 0; i < size && here; ++i) all = all && d.out[size_t(i)] == 100 * i;
            return all;
        };
        run("Gather", here ? ROW(Gather, Igather, d.in.data(), 1, MPI_INT, d.out.data(), 1, MPI_INT, root)
                           : ROW(Gather, Igather, d.in.data(), 1, MPI_INT, kNowhere, -3, kNoType, root),
            fill, gathered);
        run("Gather in place", here ? ROW(Gather, Igather, MPI_IN_PLACE, -3, kNoType, d.out.data(), 1, MPI_INT, root)
                                    : ROW(Gather, Igather, d.in.data(), 1, MPI_INT, kNowhere, -3, kNoType, root),
            in_place, gathered);
        run("Gatherv", here ? ROW(Gatherv, Igatherv, MPI_IN_PLACE, -3, kNoType, d.out.data(), ones.data(),
                                  items.data(), MPI_INT, root)
                            : ROW(Gatherv, Igatherv, d.in.data(), 1, MPI_INT, kNowhere, kNoInts, kNoInts, kNoType,
                                  root),
            in_place, gathered);
        const auto dealt = [&] { return here || d.is(100 * root + rank, 0, 1); };
        run("Scatter", here ? ROW(Scatter, Iscatter, d.in.data(), 1, MPI_INT, MPI_IN_PLACE, -3, kNoType, root)
                            : ROW(Scatter, Iscatter, kNowhere, -3, kNoType, d.out.data(), 1, MPI_INT, root),
            fill, dealt);
        run("Scatterv", here ? ROW(Scatterv, Iscatterv, d.in.data(), ones.data(), items.data(), MPI_INT,
                                   MPI_IN_PLACE, -3, kNoType, root)
                             : ROW(Scatterv, Iscatterv, kNowhere, kNoInts, kNoInts, kNoType, d.out.data(), 1,
                                   MPI_INT, root),
            fill, dealt);
        run("Reduce", ROW(Reduce, Ireduce, d.in.data(), here ? d.out.data() : static_cast<int*>(kNowhere), 1, MPI_INT,
                          MPI_SUM, root),
            fill, [&] { return !here || d.is(100 * size * (size - 1) / 2, 0, 1); });
        // The result of the first process is not defined: not even that its place is another one.
        run("Exscan", ROW(Exscan, Iexscan, d.in.data(), rank == 0 ? d.in.data() : d.out.data(), 1, MPI_INT, MPI_SUM),
            fill, [&] { return rank == 0 || d.is(100 * rank * (rank - 1) / 2, 0, 1); });
        run("Exscan to nowhere", ROW(Exscan, Iexscan, d.in.data(), rank == 0 ? kNowhere : d.out.data(), 1, MPI_INT,
                                     MPI_SUM),
            fill, [&] { return rank == 0 || d.is(100 * rank * (rank - 1) / 2, 0, 1); });
    }
    const auto own_share = [&] {
        d.fill(size);
        d.out[size_t(rank)] = 100 * rank;
    };
    const auto gathered = [&] {
        bool all = true;
        for (int i = 0; i < size; ++i) all = all && d.out[size_t(i)] == 100 * i;
        return all;
    };
    run("Allgather", ROW(Allgather, Iallgather, MPI_IN_PLACE, -3, kNoType, d.out.data(), 1, MPI_INT), own_share,
        gathered);
    run("Allgatherv", ROW(Allgatherv, Iallgatherv, MPI_IN_PLACE, -3, kNoType, d.out.data(), ones.data(), items.data(),
                          MPI_INT),
        own_share, gathered);
    // The same in both directions, so that every start finds and leaves it.
    const std::vector<MPI_Datatype> types(size_t(size), MPI_INT);
    std::vector<int> bytes;
    for (const int item : items) bytes.push_back(item * int(sizeof(int)));
    const auto symmetric = [&] {
        d.fill(size);
        for (int i = 0; i < size; ++i) d.out[size_t(i)] = rank + i;
    };
    const auto transposed = [&] {
        bool all = true;
        for (int i = 0; i < size; ++i) all = all && d.out[size_t(i)] == rank + i;
        return all;
    };
    run("Alltoall", ROW(Alltoall, Ialltoall, MPI_IN_PLACE, -3, kNoType, d.out.data(), 1, MPI_INT), symmetric,
        transposed);
    run("Alltoallv", ROW(Alltoallv, Ialltoallv, MPI_IN_PLACE, kNoInts, kNoInts, kNoType, d.out.data(), ones.data(),
                         items.data(), MPI_INT),
        symmetric, transposed);
    run("Alltoallw", ROW(Alltoallw, Ialltoallw, MPI_IN_PLACE, kNoInts, kNoInts, kNoTypes, d.out.data(), ones.data(),
                         bytes.data(), types.data()),
        symmetric, transposed);
}

// Displacements of nothing may be nowhere.
void empty_lists(MPI_Comm comm) {
    Data d;
    const std::vector<int> none(size_t(size), 0);
    const int* const counts = none.data();
    const int* const nowhere = nullptr;
    const auto fill = [&] { d.fill(size); };
    const auto untouched = [&] { return d.is(-1, 0, size); };
    for (const int root : {0, size - 1}) {
        run("empty Gatherv", ROW(Gatherv, Igatherv, d.in.data(), 0, MPI_INT, d.out.data(), counts, nowhere, MPI_INT,
                                 root),
            fill, untouched);
        run("empty Scatterv", ROW(Scatterv, Iscatterv, d.in.data(), counts, nowhere, MPI_INT, d.out.data(), 0, MPI_INT,
                                  root),
            fill, untouched);
    }
    run("empty Allgatherv", ROW(Allgatherv, Iallgatherv, d.in.data(), 0, MPI_INT, d.out.data(), counts, nowhere,
                                MPI_INT),
        fill, untouched);
    run("empty Alltoallv", ROW(Alltoallv, Ialltoallv, d.in.data(), counts, nowhere, MPI_INT, d.out.data(), counts,
                               nowhere, MPI_INT),
        fill, untouched);
    run("empty Alltoallv in place", ROW(Alltoallv, Ialltoallv, MPI_IN_PLACE, counts, nowhere, MPI_INT, d.out.data(),
                                        counts, nowhere, MPI_INT),
        fill, untouched);
}

// MPI_IN_PLACE is for the root, or for all: elsewhere it is no buffer. Only the process that is wrong is told.
void in_place_elsewhere() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const int root = rank == 0 ? 1 : 0;
    std::vector<int> v(size_t(size), 0), ones(size_t(size), 1);
    if (size > 1) {
        MPI_Datatype wrapped;
        MPI_Type_contiguous(1, MPI_INT, &wrapped);
        MPI_Type_commit(&wrapped);
        for (const MPI_Datatype type : {MPI_INT, wrapped}) {
            refuse("Gather", ROW(Gather, Igather, MPI_IN_PLACE, 1, type, v.data(), 1, type, root), MPI_ERR_BUFFER);
            refuse("Gatherv", ROW(Gatherv, Igatherv, MPI_IN_PLACE, 1, type, v.data(), ones.data(), ones.data(), type,
                                  root),
                   MPI_ERR_BUFFER);
            refuse("Scatter", ROW(Scatter, Iscatter, v.data(), 1, type, MPI_IN_PLACE, 1, type, root), MPI_ERR_BUFFER);
            refuse("Scatterv", ROW(Scatterv, Iscatterv, v.data(), ones.data(), ones.data(), type, MPI_IN_PLACE, 1,
                                   type, root),
                   MPI_ERR_BUFFER);
            refuse("Bcast", ROW(Bcast, Ibcast, MPI_IN_PLACE, 1, type, root), MPI_ERR_BUFFER);
            refuse("Allgather", ROW(Allgather, Iallgather, v.data(), 1, type, MPI_IN_PLACE, 1, type), MPI_ERR_BUFFER);
            refuse("Alltoall", ROW(Alltoall, Ialltoall, v.data(), 1, type, MPI_IN_PLACE, 1, type), MPI_ERR_BUFFER);
        }
        refuse("Reduce", ROW(Reduce, Ireduce, MPI_IN_PLACE, v.data(), 1, MPI_INT, MPI_SUM, root), MPI_ERR_BUFFER);
        refuse("Allreduce", ROW(Allreduce, Iallreduce, v.data(), MPI_IN_PLACE, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
        MPI_Type_free(&wrapped);
    }
    MPI_Comm_free(&comm);
}

// Between two groups: the root reads only what it sends, or what it receives; its neighbours read nothing.
void between_groups() {
    const int half = size / 2;
    const bool low = rank < half;
    MPI_Comm local, comm;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, low ? half : 0, 0, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int beside = 0, across = 0;
    MPI_Comm_rank(comm, &beside);
    MPI_Comm_remote_size(comm, &across);
    Data d;
    const std::vector<int> ones(size_t(across), 1);
    std::vector<int> items;
    for (int i = 0; i < across; ++i) items.push_back(i);
    for (const bool low_has_root : {true, false}) {
        const int first = low_has_root ? half : 0;       // of the group that has no root
        const int root_in_world = low_has_root ? 0 : half;
        const int root = low != low_has_root ? 0 : beside == 0 ? MPI_ROOT : MPI_PROC_NULL;
        const auto fill = [&] { d.fill(size); };
        const auto whole = [&] { return root != MPI_ROOT || d.is(100 * first, 100, across); };
        const auto dealt = [&] { return root != 0 || d.is(100 * root_in_world + beside, 0, 1); };
        const auto nothing = [&](auto root_row, auto sender_row, auto bystander_row) {
            return root == MPI_ROOT ? root_row : root == 0 ? sender_row : bystander_row;
        };
        run("inter Gather",
            nothing(ROW(Gather, Igather, kNowhere, -3, kNoType, d.out.data(), 1, MPI_INT, root),
                    ROW(Gather, Igather, d.in.data(), 1, MPI_INT, kNowhere, -3, kNoType, root),
                    ROW(Gather, Igather, kNowhere, -3, kNoType, kNowhere, -3, kNoType, root)),
            fill, whole);
        run("inter Gatherv",
            nothing(ROW(Gatherv, Igatherv, kNowhere, -3, kNoType, d.out.data(), ones.data(), items.data(), MPI_INT,
                        root),
                    ROW(Gatherv, Igatherv, d.in.data(), 1, MPI_INT, kNowhere, kNoInts, kNoInts, kNoType, root),
                    ROW(Gatherv, Igatherv, kNowhere, -3, kNoType, kNowhere, kNoInts, kNoInts, kNoType, root)),
            fill, whole);
        run("inter Scatter",
            nothing(ROW(Scatter, Iscatter, d.in.data(), 1, MPI_INT, kNowhere, -3, kNoType, root),
                    ROW(Scatter, Iscatter, kNowhere, -3, kNoType, d.out.data(), 1, MPI_INT, root),
                    ROW(Scatter, Iscatter, kNowhere, -3, kNoType, kNowhere, -3, kNoType, root)),
            fill, dealt);
        run("inter Scatterv",
            nothing(ROW(Scatterv, Iscatterv, d.in.data(), ones.data(), items.data(), MPI_INT, kNowhere, -3, kNoType,
                        root),
                    ROW(Scatterv, Iscatterv, kNowhere, kNoInts, kNoInts, kNoType, d.out.data(), 1, MPI_INT, root),
                    ROW(Scatterv, Iscatterv, kNowhere, kNoInts, kNoInts, kNoType, kNowhere, -3, kNoType, root)),
            fill, dealt);
        run("inter Reduce",
            nothing(ROW(Reduce, Ireduce, kNowhere, d.out.data(), 1, MPI_INT, MPI_SUM, root),
                    ROW(Reduce, Ireduce, d.in.data(), kNowhere, 1, MPI_INT, MPI_SUM, root),
                    ROW(Reduce, Ireduce, kNowhere, kNowhere, -3, kNoType, MPI_OP_NULL, root)),
            fill, [&] {
                int sum = 0;
                for (int i = 0; i < across; ++i) sum += 100 * (first + i);
                return root != MPI_ROOT || d.is(sum, 0, 1);
            });
        run("inter Bcast",
            nothing(ROW(Bcast, Ibcast, d.in.data(), 1, MPI_INT, root),
                    ROW(Bcast, Ibcast, d.out.data(), 1, MPI_INT, root),
                    ROW(Bcast, Ibcast, kNowhere, -3, kNoType, root)),
            fill, [&] { return root != 0 || d.is(100 * root_in_world, 0, 1); });
    }
    MPI_Comm_free(&comm);
    MPI_Comm_free(&local);
}

// Messages of the program that are under way while the collective calls are made.
class Beside {
public:
    Beside() {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
        for (int i = 0; i < kMessages; ++i) {
            out_[i] = 1000 * rank + i;
            MPI_Irecv(&in_[i], 1, MPI_INT, (rank + size - 1) % size, i, comm_, &receives_[i]);
        }
    }
    void end() {
        for (int i = 0; i < kMessages; ++i) MPI_Send(&out_[i], 1, MPI_INT, (rank + 1) % size, i, comm_);
        EXPECT(MPI_Waitall(kMessages, receives_, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        for (int i = 0; i < kMessages; ++i) EXPECT(in_[i] == 1000 * ((rank + size - 1) % size) + i);
        MPI_Comm_free(&comm_);
    }

private:
    static constexpr int kMessages = 16;
    MPI_Comm comm_;
    int in_[kMessages] = {}, out_[kMessages];
    MPI_Request receives_[kMessages];
};

// Persistent calls are made in one order everywhere, and may be started in any: each finds its own messages.
void started_in_any_order(MPI_Comm comm) {
    constexpr int kCalls = 6;
    int in[kCalls], out[kCalls];
    MPI_Request requests[kCalls];
    for (int i = 0; i < kCalls; ++i) {
        in[i] = rank + 1000 * i;
        MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, i % 2 ? MPI_SUM : MPI_MAX, comm, MPI_INFO_NULL, &requests[i]);
    }
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < kCalls; ++i) out[i] = -1;
        for (int i = 0; i < kCalls; ++i) EXPECT(MPI_Start(&requests[(i + rank + round) % kCalls]) == MPI_SUCCESS);
        EXPECT(MPI_Waitall(kCalls, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        for (int i = 0; i < kCalls; ++i) {
            const int most = size - 1 + 1000 * i, sum = size * (size - 1) / 2 + 1000 * i * size;
            EXPECT(out[i] == (i % 2 ? sum : most));
        }
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    Beside beside;
    MPI_Comm ring;
    const int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    narrow_lists(MPI_COMM_WORLD, ring);
    wide_lists(MPI_COMM_WORLD, ring);
    MPI_Comm_free(&ring);
    beside_the_root(MPI_COMM_WORLD);
    empty_lists(MPI_COMM_WORLD);
    in_place_elsewhere();
    if (size > 1) between_groups();
    started_in_any_order(MPI_COMM_WORLD);
    beside.end();
    return report();
}
