// SPDX-License-Identifier: BSD-2-Clause
// The file as the system sees it: a descriptor, and reads and writes at offsets that go on until all is done. A
// descriptor that the program has closed is an error (MPI_ERR_IO), whatever file has its number then.
// All results are MPI error classes. Any thread may call; two at once too.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/shm/kept_fd.hpp"

namespace viaduct::mpi::io {

// The MPI error class that says what the system said.
[[nodiscard]] int error_of_errno(int number);

class Storage {
public:
    // `flags` and `permissions` as for open(2); close-on-exec is added.
    [[nodiscard]] static int open(const std::string& path, int flags, mode_t permissions,
                                  std::shared_ptr<Storage>* made);
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;

    // Offsets and sizes in bytes. A pipe or terminal has no offsets: there they are ignored.
    [[nodiscard]] int write(const char* data, uint64_t bytes, int64_t offset, uint64_t* written);
    // Fewer bytes than asked for: the end of the file.
    [[nodiscard]] int read(char* data, uint64_t bytes, int64_t offset, uint64_t* got);

    int size(int64_t* bytes) const;
    [[nodiscard]] int set_size(int64_t bytes);
    // Makes room, and the file at least so long; what is there stays.
    [[nodiscard]] int preallocate(int64_t bytes);
    [[nodiscard]] int sync();

    // Locks between processes are possible on this file system.
    bool can_lock();

    // Bytes [from, to) against other processes and other threads of this one, as long as it lives.
    class Lock {
    public:
        Lock(Storage& storage, bool exclusive, int64_t from, int64_t to);
        ~Lock();
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;
        int error() const { return error_; }

    private:
        Storage& storage_;
        std::lock_guard<std::mutex> threads_;
        int64_t from_, to_;
        int error_;
    };

private:
    Storage(KeptFd fd, bool seekable) : fd_(std::move(fd)), seekable_(seekable) {}
    [[nodiscard]] int set_lock(short kind, int64_t from, int64_t to);

    const KeptFd fd_;
    const bool seekable_;
    // A lock of the system belongs to the descriptor, so it does not keep threads of one process apart.
    std::mutex threads_;
};

}  // namespace viaduct::mpi::io
