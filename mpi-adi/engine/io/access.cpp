// SPDX-License-Identifier: BSD-2-Clause
// Accesses of one process. Writes go piece by piece. To read what lies between the pieces and write it back would be
// faster for small pieces, but would undo what another process writes there meanwhile.
#include "mpi-adi/engine/io/access.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

namespace viaduct::mpi::io {
namespace {

// Room for data that are gathered, scattered or read with gaps; larger accesses go by turns.
constexpr int64_t kRoom = int64_t{4} << 20;
// A gap that is read along costs less than another call of the system.
constexpr int64_t kGap = 4096;

class Room {
public:
    // Null: no memory.
    char* of(int64_t bytes) {
        if (bytes > size_) {
            memory_.reset(new (std::nothrow) char[static_cast<size_t>(bytes)]);
            size_ = memory_ == nullptr ? 0 : bytes;
        }
        return memory_.get();
    }

private:
    std::unique_ptr<char[]> memory_;
    int64_t size_ = 0;
};

// Bytes [at, end) of the stream, from `from`.
int write_extents(Access& access, int64_t at, int64_t end, const char* from) {
    ExtentCursor cursor(*access.view, at, end);
    for (Extent extent; cursor.next(&extent); from += extent.length) {
        uint64_t written = 0;
        const int error =
            access.storage->write(from, static_cast<uint64_t>(extent.length), extent.offset, &written);
        access.moved += written;
        if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

// *complete: the end of the file was not met.
int read_extents(Access& access, int64_t at, int64_t end, char* to, bool* complete) {
    std::vector<Wanted> wanted;
    std::vector<int64_t> got;
    ExtentCursor cursor(*access.view, at, end);
    *complete = true;
    Extent extent;
    bool more = cursor.next(&extent);
    while (more && *complete) {
        // As many at once as make a list of sensible length.
        wanted.clear();
        for (; more && wanted.size() < 4096; more = cursor.next(&extent)) {
            wanted.push_back({extent.offset, extent.length, to});
            to += extent.length;
        }
        if (const int error = read_pieces(*access.storage, wanted, &got)) return error;
        for (size_t i = 0; i < wanted.size() && *complete; i++) {
            access.moved += static_cast<uint64_t>(got[i]);
            *complete = got[i] == wanted[i].length;
        }
    }
    return MPI_SUCCESS;
}

int run_unlocked(Access& access) {
    const int64_t end = access.end();
    if (char* direct = access.memory.direct(0)) {
        bool complete = true;
        return access.writes ? write_extents(access, access.at, end, direct)
                             : read_extents(access, access.at, end, direct, &complete);
    }
    Room room;
    bool complete = true;
    for (int64_t at = access.at; at < end && complete; at += kRoom) {
        const int64_t piece = std::min(kRoom, end - at);
        char* data = room.of(piece);
        if (data == nullptr) return MPI_ERR_NO_MEM;
        const auto position = static_cast<uint64_t>(at - access.at);
        if (access.writes) {
            access.memory.gather(position, static_cast<uint64_t>(piece), data);
            if (const int error = write_extents(access, at, at + piece, data)) return error;
        } else {
            const int error = read_extents(access, at, at + piece, data, &complete);
            access.memory.scatter(position, access.moved - position, data);
            if (error != MPI_SUCCESS) return error;
        }
    }
    return MPI_SUCCESS;
}

// Pieces [first, last), which span `span` bytes of the file.
int read_together(Storage& storage, const std::vector<Wanted>& wanted, size_t first, size_t last,
                  int64_t span, Room& room, std::vector<int64_t>& all_got) {
    uint64_t got = 0;
    if (last - first == 1) {
        const int error = storage.read(wanted[first].to, static_cast<uint64_t>(wanted[first].length),
                                       wanted[first].offset, &got);
        all_got[first] = static_cast<int64_t>(got);
        return error;
    }
    char* data = room.of(span);
    if (data == nullptr) return MPI_ERR_NO_MEM;
    const int64_t begin = wanted[first].offset;
    const int error = storage.read(data, static_cast<uint64_t>(span), begin, &got);
    for (size_t i = first; i < last; i++) {
        const int64_t there = static_cast<int64_t>(got) - (wanted[i].offset - begin);
        all_got[i] = std::clamp<int64_t>(there, 0, wanted[i].length);
        std::memcpy(wanted[i].to, data + (wanted[i].offset - begin), static_cast<size_t>(all_got[i]));
    }
    return error;
}

}  // namespace

int read_pieces(Storage& storage, const std::vector<Wanted>& wanted, std::vector<int64_t>* got) {
    got->assign(wanted.size(), 0);
    Room room;
    for (size_t first = 0; first < wanted.size();) {
        int64_t end = wanted[first].offset + wanted[first].length;
        size_t last = first + 1;
        for (; last < wanted.size(); last++) {
            const Wanted& next = wanted[last];
            const int64_t new_end = std::max(end, next.offset + next.length);
            if (next.offset > end + kGap || new_end - wanted[first].offset > kRoom ||
                next.offset < wanted[first].offset)
                break;
            end = new_end;
        }
        if (const int error =
                read_together(storage, wanted, first, last, end - wanted[first].offset, room, *got))
            return error;
        first = last;
    }
    return MPI_SUCCESS;
}

int run_alone(Access& access) {
    if (access.memory.bytes() == 0) return MPI_SUCCESS;
    if (access.view->empty()) return access.writes ? MPI_ERR_IO : MPI_SUCCESS;
    if (!access.atomic) return run_unlocked(access);
    const int64_t first = access.view->offset_of(access.at);
    const int64_t last = access.view->offset_of(access.end() - 1);
    const Storage::Lock lock(*access.storage, access.writes, first, last + 1);
    return lock.error() != MPI_SUCCESS ? lock.error() : run_unlocked(access);
}

}  // namespace viaduct::mpi::io
