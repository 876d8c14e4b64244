// SPDX-License-Identifier: BSD-2-Clause
// Files between processes: every byte that views, positions and collective accesses put into a file is
// compared with what plain reads see there, and what they read with what was written. Works in the current
// directory and leaves nothing.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "check.hpp"

// Not in mpi.h: it is for the packaged layer for C++.
extern "C" void MPII_Errhandler_set_cxx(MPI_Errhandler errhandler, void (*proxy)());

namespace {

int rank, size;
std::string name;  // of the file, the same everywhere

std::vector<int> contents() {
    std::ifstream in(name, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    std::vector<int> numbers(bytes.size() / sizeof(int));
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(int));
    return numbers;
}

MPI_File open_new(int amode = MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_Info info = MPI_INFO_NULL) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) ::unlink(name.c_str());
    MPI_File fh;
    EXPECT(MPI_File_open(MPI_COMM_WORLD, name.c_str(), amode, info, &fh) == MPI_SUCCESS);
    return fh;
}

int count_of(const MPI_Status& status) {
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    return count;
}

void modes() {
    MPI_File fh;
    const char* file = name.c_str();
    EXPECT(MPI_File_open(MPI_COMM_WORLD, file, 0, MPI_INFO_NULL, &fh) == MPI_ERR_AMODE &&
           fh == MPI_FILE_NULL);
    EXPECT(MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh) ==
           MPI_ERR_AMODE);
    EXPECT(MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &fh) ==
           MPI_ERR_AMODE);
    EXPECT(MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &fh) ==
           MPI_ERR_AMODE);
    EXPECT(MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_RDWR, MPI_INFO_NULL, &fh) == MPI_ERR_NO_SUCH_FILE);
    EXPECT(MPI_File_open(MPI_COMM_WORLD, "", MPI_MODE_RDWR, MPI_INFO_NULL, &fh) == MPI_ERR_BAD_FILE);
    EXPECT(MPI_File_open(MPI_COMM_WORLD, "/", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh) == MPI_ERR_BAD_FILE);
    EXPECT(MPI_File_delete(file, MPI_INFO_NULL) == MPI_ERR_NO_SUCH_FILE);

    fh = open_new(MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL);
    int x = 0, amode = 0;
    MPI_File_get_amode(fh, &amode);
    EXPECT(amode == (MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL));
    EXPECT(MPI_File_read_at(fh, 0, &x, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_ACCESS);
    EXPECT(MPI_File_read_at_all(fh, 0, &x, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_ACCESS);
    EXPECT(MPI_File_preallocate(fh, 4096) == MPI_SUCCESS);
    MPI_Offset bytes = 0;
    MPI_File_get_size(fh, &bytes);
    EXPECT(bytes == 4096);
    EXPECT(MPI_File_set_size(fh, 40) == MPI_SUCCESS && MPI_File_set_size(fh, -1) == MPI_ERR_ARG);
    if (size > 1) EXPECT(MPI_File_set_size(fh, 100 + rank) == MPI_ERR_NOT_SAME);
    EXPECT(MPI_File_close(&fh) == MPI_SUCCESS && fh == MPI_FILE_NULL);
    EXPECT(MPI_File_close(&fh) == MPI_ERR_FILE);
    EXPECT(MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL,
                         &fh) == MPI_ERR_FILE_EXISTS);

    EXPECT(MPI_File_open(MPI_COMM_WORLD, ("ufs:" + name).c_str(), MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE,
                         MPI_INFO_NULL, &fh) == MPI_SUCCESS);
    MPI_File_get_size(fh, &bytes);
    EXPECT(bytes == 40);
    EXPECT(MPI_File_write(fh, &x, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_READ_ONLY);
    EXPECT(MPI_File_set_size(fh, 0) == MPI_ERR_READ_ONLY);
    MPI_File_close(&fh);
    EXPECT(::access(file, F_OK) != 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (size > 1)
        EXPECT(MPI_File_open(MPI_COMM_WORLD, file,
                             MPI_MODE_CREATE | (rank == 0 ? MPI_MODE_RDWR : MPI_MODE_WRONLY), MPI_INFO_NULL,
                             &fh) == MPI_ERR_NOT_SAME);
}

// Every process removes the old file by itself, the last one late: the new one is made when all have come.
void removed_by_each() {
    MPI_File fh = MPI_FILE_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) ::usleep(20'000);  // sleeps: the last process is late
    ::unlink(name.c_str());
    EXPECT(MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &fh) ==
           MPI_SUCCESS);
    if (fh == MPI_FILE_NULL) return;
    EXPECT(MPI_File_close(&fh) == MPI_SUCCESS);
    EXPECT(::access(name.c_str(), F_OK) == 0);
}

// Each rank has every size-th block of `block` ints; collectively or alone, from memory with or without gaps.
void strided(int block, int blocks, bool collective, bool gaps, const char* buffering) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", buffering);
    MPI_Info_set(info, "romio_cb_read", buffering);
    MPI_Info_set(info, "cb_buffer_size", "4096");  // so that there are several rounds
    MPI_Info_set(info, "unknown_hint", "1");
    MPI_File fh = open_new(MPI_MODE_RDWR | MPI_MODE_CREATE, info);
    MPI_Info_free(&info);
    MPI_File_get_info(fh, &info);
    char value[32] = "";
    int flag = 0;
    MPI_Info_get(info, "romio_cb_write", 31, value, &flag);
    EXPECT(flag && std::string(value) == buffering);
    MPI_Info_get(info, "unknown_hint", 31, value, &flag);
    EXPECT(!flag);
    MPI_Info_free(&info);

    constexpr MPI_Offset kHead = 20;  // bytes before the view
    MPI_Datatype filetype, memory;
    MPI_Type_vector(1, block, 1, MPI_INT, &memory);
    MPI_Type_create_resized(memory, 0, MPI_Aint(sizeof(int)) * block * size, &filetype);
    MPI_Type_free(&memory);
    MPI_Type_commit(&filetype);
    MPI_Type_vector(block * blocks, 1, gaps ? 2 : 1, MPI_INT, &memory);
    MPI_Type_commit(&memory);
    const int step = gaps ? 2 : 1, n = block * blocks;
    EXPECT(MPI_File_set_view(fh, kHead + MPI_Offset(sizeof(int)) * block * rank, MPI_INT, filetype, "native",
                             MPI_INFO_NULL) == MPI_SUCCESS);
    auto place = [&](int i) { return int(kHead / 4) + (i / block * size + rank) * block + i % block; };
    std::vector<int> out(n * step), in(n * step, -1);
    for (int i = 0; i < n; ++i) out[i * step] = place(i);
    MPI_Status status;
    auto put = collective ? MPI_File_write_at_all : MPI_File_write_at;
    auto get = collective ? MPI_File_read_at_all : MPI_File_read_at;
    EXPECT(put(fh, 0, out.data(), 1, memory, &status) == MPI_SUCCESS && count_of(status) == n);
    EXPECT(MPI_File_sync(fh) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    const std::vector<int> all = contents();
    EXPECT(int(all.size()) == int(kHead / 4) + n * size);
    bool right = true;
    for (size_t i = kHead / 4; i < all.size(); ++i) right &= all[i] == int(i);
    EXPECT(right);

    EXPECT(get(fh, 0, in.data(), 1, memory, &status) == MPI_SUCCESS && count_of(status) == n);
    right = true;
    for (int i = 0; i < n; ++i) right &= in[i * step] == place(i);
    EXPECT(right);
    // The second half, and beyond the end.
    std::fill(in.begin(), in.end(), -1);
    EXPECT(get(fh, n / 2, in.data(), 1, memory, &status) == MPI_SUCCESS && count_of(status) == n - n / 2);
    right = true;
    for (int i = 0; i < n; ++i) right &= in[i * step] == (i < n - n / 2 ? place(n / 2 + i) : -1);
    EXPECT(right);
    MPI_Offset end = 0;
    EXPECT(MPI_File_seek(fh, 0, MPI_SEEK_END) == MPI_SUCCESS);
    MPI_File_get_position(fh, &end);
    EXPECT(end == n);
    MPI_File_get_byte_offset(fh, n - 1, &end);
    EXPECT(end == 4 * MPI_Offset(place(n - 1)));
    EXPECT(get(fh, n, in.data(), 1, memory, &status) == MPI_SUCCESS && count_of(status) == 0);
    MPI_File_close(&fh);
    MPI_Type_free(&memory);
    MPI_Type_free(&filetype);
}

void positions() {
    MPI_File fh = open_new();
    MPI_Status status;
    MPI_Offset at = -1;
    int x = 100 + rank, y = -1;
    EXPECT(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    // In turn, then in any order.
    status.MPI_ERROR = 77;  // calls with one status leave it alone
    EXPECT(MPI_File_write_ordered(fh, &x, 1, MPI_INT, &status) == MPI_SUCCESS && count_of(status) == 1);
    EXPECT(status.MPI_ERROR == 77);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_position_shared(fh, &at);
    EXPECT(at == size);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 50; ++i) {
        x = 1000 * rank + i;
        EXPECT(MPI_File_write_shared(fh, &x, 1, MPI_INT, &status) == MPI_SUCCESS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::vector<int> all = contents(), want;
    EXPECT(int(all.size()) == 51 * size);
    for (int r = 0; r < size; ++r) EXPECT(all[r] == 100 + r);
    for (int r = 0; r < size; ++r)
        for (int i = 0; i < 50; ++i) want.push_back(1000 * r + i);
    std::sort(all.begin() + size, all.end());
    EXPECT(std::equal(want.begin(), want.end(), all.begin() + size));

    EXPECT(MPI_File_seek_shared(fh, -size, MPI_SEEK_END) == MPI_SUCCESS);
    MPI_File_get_position_shared(fh, &at);
    EXPECT(at == 50 * size);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET) == MPI_SUCCESS);
    EXPECT(MPI_File_read_ordered(fh, &y, 1, MPI_INT, &status) == MPI_SUCCESS && y == 100 + rank);
    EXPECT(MPI_File_seek_shared(fh, -1000000, MPI_SEEK_CUR) == MPI_ERR_ARG);

    // Of each its own.
    EXPECT(MPI_File_seek(fh, rank, MPI_SEEK_SET) == MPI_SUCCESS);
    EXPECT(MPI_File_read(fh, &y, 1, MPI_INT, &status) == MPI_SUCCESS && y == 100 + rank);
    MPI_File_get_position(fh, &at);
    EXPECT(at == rank + 1);
    EXPECT(MPI_File_seek(fh, -2 - rank, MPI_SEEK_CUR) == MPI_ERR_ARG &&
           MPI_File_seek(fh, 0, 7) == MPI_ERR_ARG);
    MPI_File_get_position(fh, &at);
    EXPECT(at == rank + 1);
    MPI_File_close(&fh);

    // Everything behind what is there.
    EXPECT(MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL,
                         &fh) == MPI_SUCCESS);
    MPI_File_get_position(fh, &at);
    EXPECT(at == 4 * 51 * size);
    EXPECT(MPI_File_write_ordered(fh, &rank, 1, MPI_INT, &status) == MPI_SUCCESS);
    MPI_File_close(&fh);
    all = contents();
    EXPECT(int(all.size()) == 52 * size && all[51 * size + rank] == rank);

    EXPECT(MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL,
                         &fh) == MPI_SUCCESS);
    EXPECT(MPI_File_read_at(fh, 0, &y, 1, MPI_INT, &status) == MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(MPI_File_seek(fh, 0, MPI_SEEK_SET) == MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_ERR_ARG);
    EXPECT(MPI_File_read_ordered(fh, &y, 1, MPI_INT, &status) == MPI_SUCCESS && y == 100 + rank);
    MPI_File_close(&fh);
}

void without_waiting() {
    MPI_File fh = open_new();
    constexpr int kPieces = 20, kInts = 5000;
    MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    std::vector<std::vector<int>> out(kPieces), in(kPieces);
    std::vector<MPI_Request> requests(kPieces);
    std::vector<MPI_Status> statuses(kPieces);
    auto offset = [](int i) { return MPI_Offset(i * size + rank) * kInts; };
    for (int i = 0; i < kPieces; ++i) {
        out[i].assign(kInts, i * size + rank);
        EXPECT(MPI_File_iwrite_at(fh, offset(i), out[i].data(), kInts, MPI_INT, &requests[i]) == MPI_SUCCESS);
    }
    EXPECT(MPI_Waitall(kPieces, requests.data(), statuses.data()) == MPI_SUCCESS);
    for (const MPI_Status& status : statuses) EXPECT(count_of(status) == kInts);
    for (int i = 0; i < kPieces; ++i) {
        in[i].assign(kInts, -1);
        EXPECT(MPI_File_iread_at(fh, offset(i), in[i].data(), kInts, MPI_INT, &requests[i]) == MPI_SUCCESS);
    }
    MPI_Waitall(kPieces, requests.data(), statuses.data());
    EXPECT(in == out);

    // Collective ones, several at a time, with the individual position, then the shared one without order.
    MPI_Datatype filetype;
    MPI_Type_create_resized(MPI_INT, 0, 4 * size, &filetype);
    MPI_Type_commit(&filetype);
    EXPECT(MPI_File_set_view(fh, 4 * rank, MPI_INT, filetype, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    for (int i = 0; i < 4; ++i) {
        out[i].assign(kInts, 7 * i + rank);
        EXPECT(MPI_File_iwrite_all(fh, out[i].data(), kInts, MPI_INT, &requests[i]) == MPI_SUCCESS);
    }
    EXPECT(MPI_Waitall(4, requests.data(), statuses.data()) == MPI_SUCCESS && count_of(statuses[3]) == kInts);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek(fh, 0, MPI_SEEK_SET);
    for (int i = 0; i < 4; ++i)
        EXPECT(MPI_File_iread_all(fh, in[i].data(), kInts, MPI_INT, &requests[i]) == MPI_SUCCESS);
    EXPECT(MPI_Waitall(4, requests.data(), statuses.data()) == MPI_SUCCESS && count_of(statuses[3]) == kInts);
    for (int i = 0; i < 4; ++i) EXPECT(in[i] == out[i]);
    const std::vector<int> all = contents();
    for (int r = 0; r < size; ++r) EXPECT(all[kInts * size + r] == 7 + r);

    // In two halves; the second must fit the first.
    MPI_Status status;
    EXPECT(MPI_File_read_at_all_begin(fh, 0, in[0].data(), kInts, MPI_INT) == MPI_SUCCESS);
    EXPECT(MPI_File_read_at_all_begin(fh, 0, in[1].data(), kInts, MPI_INT) == MPI_ERR_OTHER);
    EXPECT(MPI_File_read_all_end(fh, in[0].data(), &status) == MPI_ERR_OTHER);
    EXPECT(MPI_File_read_at_all_end(fh, in[1].data(), &status) == MPI_ERR_OTHER);
    EXPECT(MPI_File_read_at_all_end(fh, in[0].data(), &status) == MPI_SUCCESS && count_of(status) == kInts);
    EXPECT(in[0] == out[0]);
    EXPECT(MPI_File_read_at_all_end(fh, in[0].data(), &status) == MPI_ERR_OTHER);
    MPI_File_seek(fh, 0, MPI_SEEK_SET);
    EXPECT(MPI_File_write_all_begin(fh, out[1].data(), kInts, MPI_INT) == MPI_SUCCESS);
    EXPECT(MPI_File_write_all_end(fh, out[1].data(), &status) == MPI_SUCCESS && count_of(status) == kInts);
    EXPECT(MPI_File_read_at_all(fh, 0, in[0].data(), kInts, MPI_INT, &status) == MPI_SUCCESS &&
           in[0] == out[1]);
    EXPECT(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    EXPECT(MPI_File_write_ordered_begin(fh, &rank, 1, MPI_INT) == MPI_SUCCESS);
    EXPECT(MPI_File_write_ordered_end(fh, &rank, &status) == MPI_SUCCESS && count_of(status) == 1);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(contents()[rank] == rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request request;
    int x = -5, y = 0;
    EXPECT(MPI_File_iwrite_shared(fh, &x, 1, MPI_INT, &request) == MPI_SUCCESS &&
           MPI_Wait(&request, &status) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(MPI_File_read_at_c(fh, size + rank, &y, 1, MPI_INT, &status) == MPI_SUCCESS && y == -5);
    MPI_File_close(&fh);
    MPI_Type_free(&filetype);
}

int conversions;

// In the file each int is 8 bytes: the number, and its complement.
int widen(void* user, MPI_Datatype, int count, void* file, MPI_Offset position, void*) {
    conversions++;
    for (int i = 0; i < count; ++i) {
        static_cast<int*>(file)[2 * i] = static_cast<int*>(user)[position + i];
        static_cast<int*>(file)[2 * i + 1] = ~static_cast<int*>(user)[position + i];
    }
    return MPI_SUCCESS;
}
int narrow(void* user, MPI_Datatype, int count, void* file, MPI_Offset position, void*) {
    conversions++;
    for (int i = 0; i < count; ++i) static_cast<int*>(user)[position + i] = static_cast<int*>(file)[2 * i];
    return MPI_SUCCESS;
}
int twice(MPI_Datatype type, MPI_Aint* extent, void*) {
    MPI_Aint lb;
    MPI_Type_get_extent(type, &lb, extent);
    *extent *= 2;
    return MPI_SUCCESS;
}

void representations() {
    MPI_File fh = open_new();
    MPI_Status status;
    MPI_Aint extent = 0;
    EXPECT(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "unknown", MPI_INFO_NULL) ==
           MPI_ERR_UNSUPPORTED_DATAREP);

    // Every other long: 4 bytes in the file, and the gap is one of 4 too.
    MPI_Datatype filetype;
    MPI_Type_vector(2, 1, 2, MPI_LONG, &filetype);
    MPI_Type_commit(&filetype);
    EXPECT(MPI_File_set_view(fh, 12 * rank, MPI_LONG, filetype, "external32", MPI_INFO_NULL) == MPI_SUCCESS);
    EXPECT(MPI_File_get_type_extent(fh, MPI_LONG, &extent) == MPI_SUCCESS && extent == 4);
    const long out[2] = {0x01020304 + rank, -2};
    long in[3] = {0, 0, 0};
    EXPECT(MPI_File_write_at(fh, 0, out, 2, MPI_LONG, &status) == MPI_SUCCESS);
    int count = 0;
    MPI_Get_count(&status, MPI_LONG, &count);
    EXPECT(count == 2);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(contents()[3 * rank] == int(__builtin_bswap32(0x01020304 + unsigned(rank))));
    EXPECT(MPI_File_read_at_all(fh, 0, in, rank == size - 1 ? 3 : 2, MPI_LONG, &status) == MPI_SUCCESS);
    MPI_Get_count(&status, MPI_LONG, &count);
    EXPECT(count == 2 && in[0] == out[0] && in[1] == -2);
    MPI_Type_free(&filetype);

    EXPECT(MPI_Register_datarep("doubled", narrow, widen, twice, nullptr) == MPI_SUCCESS);
    EXPECT(MPI_Register_datarep("doubled", narrow, widen, twice, nullptr) == MPI_ERR_DUP_DATAREP);
    EXPECT(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "doubled", MPI_INFO_NULL) == MPI_SUCCESS);
    char datarep[MPI_MAX_DATAREP_STRING] = "";
    MPI_Offset displacement = -1;
    MPI_Datatype etype;
    EXPECT(MPI_File_get_view(fh, &displacement, &etype, &filetype, datarep) == MPI_SUCCESS);
    EXPECT(displacement == 0 && etype == MPI_INT && filetype == MPI_INT && std::string(datarep) == "doubled");
    MPI_File_set_size(fh, 0);
    const int numbers[2] = {10 + rank, 20 + rank};
    int back[2] = {0, 0};
    EXPECT(MPI_File_write_at_all(fh, 2 * rank, numbers, 2, MPI_INT, &status) == MPI_SUCCESS &&
           count_of(status) == 2);
    MPI_Barrier(MPI_COMM_WORLD);
    const std::vector<int> all = contents();
    EXPECT(int(all.size()) == 4 * size && all[4 * rank] == 10 + rank && all[4 * rank + 3] == ~(20 + rank));
    EXPECT(MPI_File_read_at(fh, 2 * rank, back, 2, MPI_INT, &status) == MPI_SUCCESS && count_of(status) == 2);
    EXPECT(back[0] == 10 + rank && back[1] == 20 + rank && conversions == 2);
    MPI_File_close(&fh);
}

// Overlapping writes: the file holds what one of the processes wrote, and not some of each.
void atomic_writes() {
    MPI_File fh = open_new();
    int flag = -1;
    EXPECT(MPI_File_get_atomicity(fh, &flag) == MPI_SUCCESS && flag == 0);
    EXPECT(MPI_File_set_atomicity(fh, 1) == MPI_SUCCESS);
    MPI_File_get_atomicity(fh, &flag);
    EXPECT(flag == 1);
    constexpr int kInts = 20000;
    MPI_Datatype filetype;
    MPI_Type_vector(kInts / 10, 10, 20, MPI_INT, &filetype);
    MPI_Type_commit(&filetype);
    MPI_File_set_view(fh, 0, MPI_INT, filetype, "native", MPI_INFO_NULL);
    for (int turn = 0; turn < 5; ++turn) {
        const std::vector<int> out(kInts, rank * 10 + turn);
        std::vector<int> in(kInts, -1);
        EXPECT(MPI_File_write_at_all(fh, 0, out.data(), kInts, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        EXPECT(MPI_File_read_at(fh, 0, in.data(), kInts, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        EXPECT(std::count(in.begin(), in.end(), in[0]) == kInts);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&filetype);
    MPI_File_close(&fh);
}

// An argument that is wrong in one process: no process waits for ever, and nothing changes.
void wrong_in_one() {
    const bool wrong = rank == size - 1;
    MPI_File fh = open_new();
    auto view = [&](MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep,
                    MPI_Info info = MPI_INFO_NULL) {
        return MPI_File_set_view(fh, disp, etype, filetype, datarep, info);
    };
    EXPECT(view(8, MPI_INT, MPI_INT, "native") == MPI_SUCCESS);
    EXPECT(view(wrong ? -1 : 0, MPI_BYTE, MPI_BYTE, "native") == MPI_ERR_ARG);
    EXPECT(view(0, wrong ? MPI_DATATYPE_NULL : MPI_BYTE, MPI_BYTE, "native") == MPI_ERR_TYPE);
    EXPECT(view(0, MPI_BYTE, wrong ? MPI_DATATYPE_NULL : MPI_BYTE, "native") == MPI_ERR_TYPE);
    const std::string too_long(MPI_MAX_DATAREP_STRING, 'x');
    for (const char* datarep : {"", "unknown", too_long.c_str()})
        EXPECT(view(0, MPI_BYTE, MPI_BYTE, wrong ? datarep : "native") == MPI_ERR_UNSUPPORTED_DATAREP);
    MPI_Info freed, alias;
    MPI_Info_create(&freed);
    alias = freed;
    MPI_Info_free(&freed);
    EXPECT(view(0, MPI_BYTE, MPI_BYTE, "native", wrong ? alias : MPI_INFO_NULL) == MPI_ERR_INFO);
    EXPECT(MPI_File_set_info(fh, wrong ? alias : MPI_INFO_NULL) == (wrong ? MPI_ERR_INFO : MPI_SUCCESS));
    const int differs = size > 1 ? MPI_ERR_NOT_SAME : MPI_ERR_ARG;
    EXPECT(MPI_File_set_size(fh, wrong ? -1 : 40) == differs);
    EXPECT(MPI_File_preallocate(fh, wrong ? -1 : 40) == differs);
    EXPECT(MPI_File_seek_shared(fh, 0, wrong ? 7 : MPI_SEEK_SET) == differs);

    char datarep[MPI_MAX_DATAREP_STRING] = "";
    MPI_Offset disp = -1, bytes = -1;
    MPI_Datatype etype, filetype;
    EXPECT(MPI_File_get_view(fh, &disp, &etype, &filetype, datarep) == MPI_SUCCESS);
    EXPECT(disp == 8 && etype == MPI_INT && filetype == MPI_INT && std::string(datarep) == "native");
    EXPECT(MPI_File_get_size(fh, &bytes) == MPI_SUCCESS && bytes == 0);
    EXPECT(MPI_File_write_at_all(fh, rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_File_close(&fh);
}

// By the extent of the filetype, and data behind its extent: of addresses of 64 bits, so a template.
template <typename Address>
void beyond_all_files_by_extents(MPI_File fh) {
    MPI_Offset at = -1;
    int x = 0;
    MPI_Datatype wide, late;
    MPI_Type_create_resized(MPI_INT, 0, Address{1} << 40, &wide);
    MPI_Type_commit(&wide);
    EXPECT(MPI_File_set_view(fh, 0, MPI_INT, wide, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    EXPECT(MPI_File_get_byte_offset(fh, 1 << 22, &at) == MPI_SUCCESS && at == MPI_Offset{1} << 62);
    EXPECT(MPI_File_get_byte_offset(fh, 1 << 23, &at) == MPI_ERR_ARG);
    EXPECT(MPI_File_read_at(fh, 1 << 23, &x, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_ARG);

    // One int, far behind the extent of its type.
    const int length = 1;
    const Address place = Address{1} << 62;
    MPI_Datatype far;
    MPI_Type_create_hindexed(1, &length, &place, MPI_INT, &far);
    MPI_Type_create_resized(far, 0, 1, &late);
    MPI_Type_commit(&late);
    EXPECT(MPI_File_set_view(fh, place, MPI_INT, late, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    EXPECT(MPI_File_get_byte_offset(fh, 0, &at) == MPI_ERR_ARG);
    EXPECT(MPI_File_read_at(fh, 0, &x, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_ARG);
    EXPECT(MPI_File_seek(fh, 0, MPI_SEEK_END) == MPI_SUCCESS && MPI_File_get_position(fh, &at) == MPI_SUCCESS);
    EXPECT(at == 0);
    MPI_Type_free(&wide);
    MPI_Type_free(&far);
    MPI_Type_free(&late);
}

// Offsets that no file has.
void beyond_all_files() {
    MPI_File fh = open_new(MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_Offset at = -1;
    int x = 0;
    EXPECT(MPI_File_set_size(fh, 1 << 20) == MPI_SUCCESS);
    EXPECT(MPI_File_set_view(fh, INT64_MAX - 10, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    EXPECT(MPI_File_get_byte_offset(fh, 10, &at) == MPI_SUCCESS && at == INT64_MAX);
    EXPECT(MPI_File_get_byte_offset(fh, 11, &at) == MPI_ERR_ARG);
    EXPECT(MPI_File_seek(fh, 0, MPI_SEEK_END) == MPI_SUCCESS && MPI_File_get_position(fh, &at) == MPI_SUCCESS);
    EXPECT(at == 0);

    EXPECT(MPI_File_seek(fh, INT64_MAX, MPI_SEEK_SET) == MPI_SUCCESS);
    EXPECT(MPI_File_read(fh, &x, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_position(fh, &at) == MPI_SUCCESS && at == INT64_MAX);

    // The shared position stays where it is, too, and goes from there to anywhere.
    EXPECT(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    EXPECT(MPI_File_seek_shared(fh, INT64_MAX, MPI_SEEK_SET) == MPI_SUCCESS);
    EXPECT(MPI_File_read_shared(fh, &x, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_ARG);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(MPI_File_get_position_shared(fh, &at) == MPI_SUCCESS && at == INT64_MAX);
    EXPECT(MPI_File_read_ordered(fh, &x, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_ARG);
    EXPECT(MPI_File_get_position_shared(fh, &at) == MPI_SUCCESS && at == INT64_MAX);
    EXPECT(MPI_File_seek_shared(fh, 1, MPI_SEEK_CUR) == MPI_ERR_ARG);
    EXPECT(MPI_File_seek_shared(fh, -INT64_MAX, MPI_SEEK_CUR) == MPI_SUCCESS);
    EXPECT(MPI_File_get_position_shared(fh, &at) == MPI_SUCCESS && at == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(MPI_File_seek_shared(fh, INT64_MAX, MPI_SEEK_SET) == MPI_SUCCESS);
    EXPECT(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    EXPECT(MPI_File_get_position_shared(fh, &at) == MPI_SUCCESS && at == 0);

    if constexpr (sizeof(MPI_Aint) == 8) beyond_all_files_by_extents<MPI_Aint>(fh);
    MPI_File_close(&fh);
}

int handled;
MPI_File handled_file;
void handler(MPI_File* file, int* code, ...) {
    handled = *code;
    handled_file = *file;
}

int called_like_cxx = 0;

void call_like_cxx(int, int*, int*, void (*)()) { called_like_cxx++; }

void handlers() {
    MPI_Errhandler made, found;
    MPI_File fh = open_new();
    EXPECT(MPI_File_get_errhandler(fh, &found) == MPI_SUCCESS && found == MPI_ERRORS_RETURN);
    EXPECT(MPI_File_create_errhandler(handler, &made) == MPI_SUCCESS);
    EXPECT(MPI_File_set_errhandler(fh, made) == MPI_SUCCESS);
    int x = 0;
    EXPECT(MPI_File_read_at(fh, -1, &x, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_ARG);
    EXPECT(handled == MPI_ERR_ARG && handled_file == fh);
    EXPECT(MPI_File_read_at(fh, 0, &x, -1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_COUNT);
    EXPECT(MPI_File_read_at(fh, 0, &x, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE) == MPI_ERR_TYPE);
    EXPECT(MPI_File_read_at(fh, INT64_MAX - 2, &x, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_ERR_ARG);
    // One process is wrong: it is told, and the others are not kept.
    const int error =
        MPI_File_write_at_all(fh, 4 * rank, &rank, rank == 0 ? -1 : 1, MPI_INT, MPI_STATUS_IGNORE);
    EXPECT(error == (rank == 0 ? MPI_ERR_COUNT : MPI_SUCCESS));
    EXPECT(MPI_File_call_errhandler(fh, MPI_ERR_QUOTA) == MPI_SUCCESS && handled == MPI_ERR_QUOTA);
    EXPECT(MPI_File_set_errhandler(MPI_FILE_NULL, made) == MPI_SUCCESS);
    EXPECT(MPI_File_delete("/nowhere/at all", MPI_INFO_NULL) == MPI_ERR_NO_SUCH_FILE &&
           handled == MPI_ERR_NO_SUCH_FILE);
    EXPECT(handled_file == MPI_FILE_NULL);
    // What the layer for C++ does: it hands over how to call the handler, and asks it by itself about every code
    // that it is given. So it is given none of those that the handler has had.
    MPII_Errhandler_set_cxx(made, reinterpret_cast<void (*)()>(call_like_cxx));
    EXPECT(MPI_File_delete("/nowhere/at all", MPI_INFO_NULL) == MPI_SUCCESS && called_like_cxx == 1);
    EXPECT(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_QUOTA) == MPI_SUCCESS && called_like_cxx == 2);
    EXPECT(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    MPI_Errhandler_free(&made);

    EXPECT(MPI_File_c2f(MPI_FILE_NULL) == 0 && MPI_File_f2c(0) == MPI_FILE_NULL &&
           MPI_File_f2c(999) == MPI_FILE_NULL);
    EXPECT(MPI_File_f2c(MPI_File_c2f(fh)) == fh);
    MPI_Group group;
    int members = 0;
    MPI_File_get_group(fh, &group);
    MPI_Group_size(group, &members);
    EXPECT(members == size);
    MPI_Group_free(&group);
    MPI_File stale = fh;
    MPI_File_close(&fh);
    MPI_Offset bytes;
    EXPECT(MPI_File_get_size(stale, &bytes) == MPI_ERR_FILE);
}

}  // namespace

int main(int argc, char** argv) {
    // With "threads", blocking accesses too run beside their caller.
    const bool threads = argc > 1 && std::string(argv[1]) == "threads";
    int provided = 0;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int number = int(::getpid());
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    name = "mpi-files-" + std::to_string(number);
    modes();
    removed_by_each();
    for (const char* buffering : {"enable", "disable", "automatic"})
        for (const bool gaps : {false, true}) {
            strided(1, 3000, true, gaps, buffering);
            strided(700, 6, true, gaps, buffering);
            strided(3, 500, false, gaps, buffering);
        }
    positions();
    without_waiting();
    representations();
    atomic_writes();
    wrong_in_one();
    beyond_all_files();
    handlers();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) EXPECT(MPI_File_delete(name.c_str(), MPI_INFO_NULL) == MPI_SUCCESS);
    return report();
}
