// SPDX-License-Identifier: BSD-2-Clause
// See storage.hpp.
#include "mpi-adi/engine/io/storage.hpp"

#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace viaduct::mpi::io {
namespace {

// The system moves a little less than 2 GiB in one call; a round number keeps the pieces aligned.
constexpr uint64_t kLargestPiece = uint64_t{1} << 30;

int last_error() { return error_of_errno(errno); }

}  // namespace

int error_of_errno(int number) {
    switch (number) {
        case 0:
            return MPI_SUCCESS;
        case ENOENT:
            return MPI_ERR_NO_SUCH_FILE;
        case EEXIST:
            return MPI_ERR_FILE_EXISTS;
        case EACCES:
        case EPERM:
            return MPI_ERR_ACCESS;
        case EROFS:
            return MPI_ERR_READ_ONLY;
        case ENOSPC:
            return MPI_ERR_NO_SPACE;
        case EDQUOT:
            return MPI_ERR_QUOTA;
        case EBUSY:
        case ETXTBSY:
            return MPI_ERR_FILE_IN_USE;
        case ENAMETOOLONG:
        case ENOTDIR:
        case EISDIR:
        case ELOOP:
            return MPI_ERR_BAD_FILE;
        case ENOMEM:
            return MPI_ERR_NO_MEM;
        default:
            return MPI_ERR_IO;
    }
}

int Storage::open(const std::string& path, int flags, mode_t permissions, std::shared_ptr<Storage>* made) {
    Fd fd(above_stdio(::open(path.c_str(), flags | O_CLOEXEC, permissions)));
    if (!fd.valid()) return last_error();
    struct stat about {};
    // A directory opens for reading, and every access to it fails.
    if (::fstat(fd.get(), &about) == 0 && S_ISDIR(about.st_mode)) return MPI_ERR_BAD_FILE;
    const bool seekable = ::lseek(fd.get(), 0, SEEK_CUR) >= 0;
    made->reset(new Storage(KeptFd(std::move(fd)), seekable));
    return MPI_SUCCESS;
}

int Storage::write(const char* data, uint64_t bytes, int64_t offset, uint64_t* written) {
    *written = 0;
    while (*written < bytes) {
        const size_t piece = std::min(bytes - *written, kLargestPiece);
        const auto at = static_cast<off_t>(offset + static_cast<int64_t>(*written));
        const ssize_t moved =
            seekable_ ? ::pwrite(fd_.ours(), data + *written, piece, at) : ::write(fd_.ours(), data + *written, piece);
        if (moved < 0 && errno == EINTR) continue;
        if (moved < 0) return last_error();
        if (moved == 0) return MPI_ERR_NO_SPACE;
        *written += static_cast<uint64_t>(moved);
    }
    return MPI_SUCCESS;
}

int Storage::read(char* data, uint64_t bytes, int64_t offset, uint64_t* got) {
    *got = 0;
    while (*got < bytes) {
        const size_t piece = std::min(bytes - *got, kLargestPiece);
        const auto at = static_cast<off_t>(offset + static_cast<int64_t>(*got));
        const ssize_t moved =
            seekable_ ? ::pread(fd_.ours(), data + *got, piece, at) : ::read(fd_.ours(), data + *got, piece);
        if (moved < 0 && errno == EINTR) continue;
        if (moved < 0) return last_error();
        if (moved == 0) break;
        *got += static_cast<uint64_t>(moved);
    }
    return MPI_SUCCESS;
}

int Storage::size(int64_t* bytes) const {
    struct stat about {};
    if (::fstat(fd_.ours(), &about) != 0) return last_error();
    *bytes = about.st_size;
    return MPI_SUCCESS;
}

int Storage::set_size(int64_t bytes) {
    while (::ftruncate(fd_.ours(), bytes) != 0)
        if (errno != EINTR) return last_error();
    return MPI_SUCCESS;
}

int Storage::preallocate(int64_t bytes) {
    if (bytes == 0) return MPI_SUCCESS;
    int number;
    do {
        number = ::posix_fallocate(fd_.ours(), 0, bytes);
    } while (number == EINTR);
    return error_of_errno(number);
}

int Storage::sync() {
    while (::fsync(fd_.ours()) != 0) {
        if (errno == EINVAL || errno == EROFS)
            return MPI_SUCCESS;  // a pipe or a device: nothing is held back
        if (errno != EINTR) return last_error();
    }
    return MPI_SUCCESS;
}

int Storage::set_lock(short kind, int64_t from, int64_t to) {
    struct flock range {};
    range.l_type = kind;
    range.l_whence = SEEK_SET;
    range.l_start = from;
    range.l_len = to - from;
    while (::fcntl(fd_.ours(), F_OFD_SETLKW, &range) != 0)
        if (errno != EINTR) return last_error();
    return MPI_SUCCESS;
}

bool Storage::can_lock() {
    const int mode = ::fcntl(fd_.ours(), F_GETFL) & O_ACCMODE;
    const int error = set_lock(mode == O_RDONLY ? F_RDLCK : F_WRLCK, 0, 1);
    if (error == MPI_SUCCESS) return set_lock(F_UNLCK, 0, 1) == MPI_SUCCESS;
    return false;
}

Storage::Lock::Lock(Storage& storage, bool exclusive, int64_t from, int64_t to)
    : storage_(storage),
      threads_(storage.threads_),
      from_(from),
      to_(to),
      error_(storage.set_lock(exclusive ? F_WRLCK : F_RDLCK, from, to)) {}

Storage::Lock::~Lock() {
    // A lock that cannot be given back ends with the descriptor; what was done under it is done.
    if (error_ == MPI_SUCCESS) (void)storage_.set_lock(F_UNLCK, from_, to_);
}

}  // namespace viaduct::mpi::io
