// SPDX-License-Identifier: BSD-2-Clause
// A program that closes every descriptor, as daemons do, and gets the library's numbers for files of its own: no peer
// on its host is taken for lost, the end of one is still noticed, and no file of the program is closed.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.hpp"

namespace viaduct::adi_test {
namespace {

constexpr int kCloser = 0;
constexpr int kVictim = 1;
constexpr int kNumbers = 200;  // more than the library has
constexpr int kSeveralLooks = 600;  // milliseconds

// Each has something to read.
void take_all_numbers() {
    ::syscall(SYS_close_range, 3U, ~0U, 0U);
    int ends[2] = {};
    while (ends[1] < kNumbers) CHECK(::pipe(ends) == 0 && ::write(ends[1], "x", 1) == 1);
}

bool all_numbers_are_open() {
    for (int fd = 3; fd <= kNumbers; ++fd) {
        if (::fcntl(fd, F_GETFD) < 0) return false;
    }
    return true;
}

void closed_descriptors(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    e.barrier();
    job.barrier();  // nothing is under way
    if (e.rank() == kCloser) take_all_numbers();
    e.progress_for(kSeveralLooks);
    CHECK(e.failed().empty());
    e.barrier();
    CHECK(e.failed().empty());
    job.barrier();
    if (e.rank() == kVictim) ::kill(::getpid(), SIGKILL);
    while (e.failed().empty()) e.progress();  // the time limit of the case ends it
    CHECK(e.failed().size() == 1 && e.failed()[0] == kVictim);
    const int other = e.size() - 1;
    char in[8];
    if (e.rank() == kCloser) e.send(other, 1, "abc", 3);
    if (e.rank() == other) CHECK(e.receive(kCloser, 1, in, sizeof in) == 3);
    e.finalize();
    if (e.rank() == kCloser) CHECK(all_numbers_are_open());
}

// Its connections are gone with the descriptors: all its peers are lost, and the others go on.
void closed_sockets(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    e.barrier();
    job.barrier();
    if (e.rank() == kCloser) take_all_numbers();
    const size_t lost = e.rank() == kCloser ? 2 : 1;
    while (e.failed().size() < lost) e.progress();  // the time limit of the case ends it
    CHECK(e.rank() == kCloser || e.failed()[0] == kCloser);
    char in[8];
    if (e.rank() == 1) e.send(2, 1, "abc", 3);
    if (e.rank() == 2) CHECK(e.receive(1, 1, in, sizeof in) == 3);
    e.finalize();
    if (e.rank() == kCloser) CHECK(all_numbers_are_open());
}

}  // namespace

std::vector<Case> descriptor_cases() {
    std::vector<Case> all = {{"closed-descriptors", closed_sockets, 3, 20, "tcp"}};
    for (const char* one : {"shm", "via", "rails"})
        all.push_back({"closed-descriptors", closed_descriptors, 3, 20, one, {}, {kVictim}});
    return all;
}

}  // namespace viaduct::adi_test
