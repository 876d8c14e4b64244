// SPDX-License-Identifier: BSD-2-Clause
// No rank comes back from MPI_Init before all the others have opened its memory: from there a program may end at once,
// and its memory ends with it. Ranks other than 0 are held up where they open that of a process; rank 0 then looks
// whether they are done.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>

#include "check.hpp"
#include "time_limit.hpp"

namespace {

constexpr unsigned kMostSeconds = 60;
constexpr unsigned kHeldUp = 300'000;  // microseconds

int asked_rank() {
    const char* number = std::getenv("PMI_RANK");
    return number != nullptr ? std::atoi(number) : 0;
}

int asked_size() {
    const char* number = std::getenv("PMI_SIZE");
    return number != nullptr ? std::atoi(number) : 1;
}

// There once that rank has opened the memory of all others. Ranks of a host are children of one process of the
// launcher.
std::string mark_of(int rank) {
    const char* folder = std::getenv("TMPDIR");
    return std::string(folder != nullptr ? folder : "/tmp") + "/viaduct-early-" + std::to_string(::getppid()) + "-" +
           std::to_string(rank);
}

int opened = 0;

}  // namespace

// In front of the system library's.
extern "C" __attribute__((visibility("default"))) int open(const char* path, int flags, ...) {
    using Open = int (*)(const char*, int, ...);
    static const Open next = reinterpret_cast<Open>(::dlsym(RTLD_NEXT, "open"));
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    const bool memory_of_a_peer = std::strncmp(path, "/proc/", 6) == 0 && std::strstr(path, "/fd/") != nullptr &&
                                  std::strncmp(path, "/proc/self/", 11) != 0;
    // sleeps: the rank is late
    if (memory_of_a_peer && asked_rank() != 0 && opened == 0) ::usleep(kHeldUp);
    const int fd = next(path, flags, mode);
    if (memory_of_a_peer && fd >= 0 && ++opened == asked_size() - 1)
        ::close(next(mark_of(asked_rank()).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    return fd;
}

int main(int argc, char** argv) {
    time_limit::begin(kMostSeconds);
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        for (int other = 1; other < size; ++other)
            expect(::access(mark_of(other).c_str(), F_OK) == 0, "MPI_Init ends before another has connected", __LINE__);
    MPI_Barrier(MPI_COMM_WORLD);
    ::unlink(mark_of(rank).c_str());
    return report();
}
