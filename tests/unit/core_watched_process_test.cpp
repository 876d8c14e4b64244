// SPDX-License-Identifier: BSD-2-Clause
// A process is taken for ended when it has ended, whatever becomes of our descriptor of it and of its number; and one
// that becomes another program is known by a mapping that it has no more.
#include "core/process/watched_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>

#include "core/process/process_age.hpp"
#include "tests/eventually.hpp"

namespace viaduct {
namespace {

using ProcessState = WatchedProcess::State;

// A child that lives until it is killed, or until it becomes another program when the byte is set.
class WatchedChild {
public:
    explicit WatchedChild(const volatile char* becomes_other = nullptr) : number_(::fork()) {
        if (number_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (becomes_other == nullptr) ::pause();
        (void)tests::eventually("the parent lets it exec", [&] { return *becomes_other != 0; });
        ::execl("/bin/sleep", "sleep", "60", nullptr);
        ::_exit(1);
    }
    ~WatchedChild() {
        kill();
        ::waitpid(number_, nullptr, 0);
    }
    WatchedChild(const WatchedChild&) = delete;
    WatchedChild& operator=(const WatchedChild&) = delete;

    // It stays as a zombie.
    void kill() const {
        siginfo_t info;
        ::kill(number_, SIGKILL);
        ::waitid(P_PID, static_cast<id_t>(number_), &info, WEXITED | WNOWAIT);
    }
    pid_t number() const { return number_; }

private:
    const pid_t number_;
};

// In a process of its own; 0: what it returned.
int alone(int (*body)()) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
}

// Each free number above those of stdio, up to 40, is then that of a pipe with something to read.
void take_all_numbers() {
    ::syscall(SYS_close_range, 3U, ~0U, 0U);
    int ends[2];
    do {
        if (::pipe(ends) != 0 || ::write(ends[1], "x", 1) != 1) ::_exit(90);
    } while (ends[1] < 40);
}

bool all_numbers_are_open() {
    for (int fd = 3; fd <= 40; ++fd) {
        if (::fcntl(fd, F_GETFD) < 0) return false;
    }
    return true;
}

// From now on the system refuses pidfd_open(2).
bool forbid_pidfds() {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {sizeof code / sizeof *code, code};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(WatchedProcess, HasEndedWhenItIsAZombieAndWhenItIsGone) {
    WatchedProcess watched;
    EXPECT_EQ(watched.state(), ProcessState::unseen);
    {
        const WatchedChild child;
        watched = WatchedProcess(child.number(), boot_ticks());
        EXPECT_EQ(watched.state(), ProcessState::lives);
        child.kill();
        EXPECT_EQ(watched.state(), ProcessState::ended);
        EXPECT_EQ(WatchedProcess(child.number(), boot_ticks()).state(), ProcessState::ended);
    }
    EXPECT_EQ(watched.state(), ProcessState::ended);
}

TEST(WatchedProcess, ANumberThatIsUsedAgainIsNotIt) {
    const uint64_t moment = boot_ticks();
    ASSERT_TRUE(tests::eventually("the next tick but one", [moment] { return boot_ticks() > moment + 1; }));
    const WatchedChild child;
    EXPECT_EQ(WatchedProcess(child.number(), moment).state(), ProcessState::ended);
}

TEST(WatchedProcess, ADescriptorThatTheProgramHasClosedIsNoEnd) {
    EXPECT_EQ(alone([] {
                  const WatchedChild child;
                  {
                      WatchedProcess watched(child.number(), boot_ticks());
                      ::syscall(SYS_close_range, 3U, ~0U, 0U);
                      if (watched.state() != ProcessState::lives) return 1;
                      take_all_numbers();
                      if (watched.state() != ProcessState::lives) return 2;
                      child.kill();
                      if (watched.state() != ProcessState::ended) return 3;
                  }
                  return all_numbers_are_open() ? 0 : 4;
              }),
              0);
}

TEST(WatchedProcess, IsSeenWithoutADescriptor) {
    EXPECT_EQ(alone([] {
                  const WatchedChild child;
                  if (!forbid_pidfds() || ::syscall(SYS_pidfd_open, ::getpid(), 0) >= 0) return 1;
                  WatchedProcess watched(child.number(), boot_ticks());
                  if (watched.state() != ProcessState::lives) return 2;
                  child.kill();
                  return watched.state() == ProcessState::ended ? 0 : 3;
              }),
              0);
}

TEST(WatchedProcess, ThatHasBecomeAnotherProgramHasLostItsMapping) {
    // Without randomized addresses the program `sleep` may have a mapping of one page at the same place.
    constexpr size_t kBytes = 61 * size_t{4096};
    void* const at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    auto* const becomes_other = static_cast<volatile char*>(at);
    {
        const WatchedChild child(becomes_other);
        WatchedProcess watched(child.number(), boot_ticks());
        const bool seen = watched.note_mapping(reinterpret_cast<uintptr_t>(at), kBytes);
        EXPECT_FALSE(watched.has_lost_mapping());
        *becomes_other = 1;
        const auto is_lost = [&] { return !seen || watched.has_lost_mapping(); };
        EXPECT_TRUE(tests::eventually("the mapping is lost", is_lost));
        EXPECT_TRUE(watched.has_lost_mapping());
        EXPECT_EQ(watched.state(), ProcessState::lives);
        EXPECT_FALSE(watched.note_mapping(reinterpret_cast<uintptr_t>(at), kBytes));
        EXPECT_FALSE(watched.has_lost_mapping());
    }
    ::munmap(at, kBytes);
}

}  // namespace
}  // namespace viaduct
