// SPDX-License-Identifier: BSD-2-Clause
// The descriptor of a file that the program has closed, or that has its number of standard output.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "mpi-adi/engine/io/storage.hpp"

namespace viaduct::mpi {
namespace {

class StorageFile : public testing::Test {
protected:
    StorageFile() {
        const int fd = ::mkstemp(path_.data());
        EXPECT_GE(fd, 0);
        ::close(fd);
    }
    ~StorageFile() override { ::unlink(path_.c_str()); }

    std::shared_ptr<io::Storage> opened() const {
        std::shared_ptr<io::Storage> made;
        EXPECT_EQ(io::Storage::open(path_, O_RDWR, 0600, &made), MPI_SUCCESS);
        return made;
    }
    // The number of the descriptor of the file; -1: it is not open.
    int number() const {
        struct stat file {}, about {};
        EXPECT_EQ(::stat(path_.c_str(), &file), 0);
        for (int fd = 0; fd < 1000; ++fd) {
            if (::fstat(fd, &about) == 0 && about.st_dev == file.st_dev && about.st_ino == file.st_ino) return fd;
        }
        return -1;
    }

    std::string path_ = testing::TempDir() + "viaduct-storage-XXXXXX";
};

TEST_F(StorageFile, LiesAboveTheStandardThree) {
    const int kept = ::fcntl(0, F_DUPFD_CLOEXEC, 100);
    ::close(0);
    const auto storage = opened();
    EXPECT_GT(number(), 2);
    if (kept >= 0) ::dup2(kept, 0);
    ::close(kept);
}

TEST_F(StorageFile, LeavesAFileOfTheProgramAloneThatHasItsNumber) {
    auto storage = opened();
    uint64_t moved = 0;
    EXPECT_EQ(storage->write("abc", 3, 0, &moved), MPI_SUCCESS);
    const int fd = number();
    ASSERT_GT(fd, 2);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::dup2(ends[1], fd), fd);
    ::close(ends[1]);
    char data[3];
    int64_t size = 0;
    EXPECT_EQ(storage->write("xyz", 3, 0, &moved), MPI_ERR_IO);
    EXPECT_EQ(storage->read(data, 3, 0, &moved), MPI_ERR_IO);
    EXPECT_EQ(storage->size(&size), MPI_ERR_IO);
    EXPECT_EQ(storage->set_size(1), MPI_ERR_IO);
    EXPECT_EQ(storage->preallocate(1), MPI_ERR_IO);
    EXPECT_EQ(storage->sync(), MPI_ERR_IO);
    EXPECT_FALSE(storage->can_lock());
    storage.reset();
    EXPECT_EQ(::write(fd, "k", 1), 1);
    EXPECT_EQ(::read(ends[0], data, 3), 1);  // and nothing else has come
    ::close(fd);
    ::close(ends[0]);
}

}  // namespace
}  // namespace viaduct::mpi
