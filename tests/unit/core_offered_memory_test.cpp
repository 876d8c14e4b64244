// SPDX-License-Identifier: BSD-2-Clause
// Memory offered to other processes: what is opened, and what is not although its numbers are right.
#include "core/process/offered_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <iterator>
#include <set>
#include <string>

#include "tests/eventually.hpp"

namespace viaduct {
namespace {

constexpr size_t kBytes = 4096;

Opened try_open(const MemoryOffer& offer, size_t bytes = kBytes) {
    Segment memory = Segment::create("test", kBytes);
    const Opened seen = open_offered(offer, bytes, &memory);
    EXPECT_EQ(memory.valid(), seen == Opened::ok) << "what was there before, or what is refused, stays";
    return seen;
}

// The offer that a process makes of one of its files, whatever it is.
MemoryOffer offer_of(int fd) {
    struct stat about {};
    EXPECT_EQ(::fstat(fd, &about), 0);
    return {about.st_dev, about.st_ino, 1, static_cast<int32_t>(::getpid()), fd};
}

// What a child sees, as its exit status; -1 when it ended otherwise.
int in_child(const std::function<int()>& action) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(action());
    int status = -1;
    return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A process with offered memory: 'c' behind the mark. It stays until it is ended.
class Offering : public testing::Test {
protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        Fd reading(ends[0]);
        Fd writing(ends[1]);
        child_ = ::fork();
        if (child_ == 0) {
            MemoryOffer offer;
            const Segment memory = offer_memory("test", kBytes, &offer);
            if (!memory.valid()) ::_exit(1);
            memory.data()[100] = std::byte{'c'};
            if (::write(writing.get(), &offer, sizeof offer) != sizeof offer) ::_exit(1);
            const auto is_answered = [&] { return memory.data()[101] == std::byte{'p'}; };
            ::_exit(tests::eventually("the parent writes", is_answered) ? 0 : 1);
        }
        ASSERT_GT(child_, 0);
        writing.reset();
        ASSERT_EQ(::read(reading.get(), &offer_, sizeof offer_), ssize_t{sizeof offer_});
    }
    void TearDown() override { end(); }
    void end() {
        if (child_ <= 0) return;
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        child_ = -1;
    }
    pid_t child_ = -1;
    MemoryOffer offer_;
};

TEST_F(Offering, IsOpenedAndShared) {
    Segment memory;
    ASSERT_EQ(open_offered(offer_, kBytes, &memory), Opened::ok);
    EXPECT_EQ(offer_.process, child_);
    EXPECT_EQ(memory.data()[100], std::byte{'c'});
    memory.data()[101] = std::byte{'p'};
    int status = -1;
    ASSERT_EQ(::waitpid(child_, &status, 0), child_);
    child_ = -1;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it does not see what is written here";
    EXPECT_EQ(memory.fd(), -1) << "no descriptor is kept";
}

TEST_F(Offering, IsGoneWithItsProcess) {
    end();
    EXPECT_EQ(try_open(offer_), Opened::gone);
}

TEST(OfferedMemory, WithAnotherMarkIsRefused) {
    MemoryOffer offer;
    const Segment memory = offer_memory("test", kBytes, &offer);
    ASSERT_TRUE(memory.valid());
    EXPECT_EQ(try_open(offer), Opened::ok);
    MemoryOffer other = offer;
    other.mark ^= uint64_t{1} << 40;
    EXPECT_EQ(try_open(other), Opened::wrong_mark);
    MemoryOffer second;
    const Segment further = offer_memory("test", kBytes, &second);
    EXPECT_NE(second.mark, offer.mark);
    second.mark = offer.mark;
    EXPECT_EQ(try_open(second), Opened::wrong_mark);
}

// Device and inode are looked at before it is opened.
TEST(OfferedMemory, IsTheFileThatIsTold) {
    MemoryOffer offer;
    const Segment memory = offer_memory("test", kBytes, &offer);
    MemoryOffer other = offer;
    other.device += 1;
    EXPECT_EQ(try_open(other), Opened::other_file);
    other = offer;
    other.inode += 1;
    EXPECT_EQ(try_open(other), Opened::other_file);
}

// Where a filter forbids getrandom there are marks all the same, each another one.
TEST(OfferedMemory, HasAMarkWithoutTheSystemCallForRandomBytes) {
    const int seen = in_child([] {
        sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        const sock_fprog filter = {std::size(code), code};
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
            return 99;
        MemoryOffer first, second;
        Segment made = offer_memory("test", kBytes, &first), further = offer_memory("test", kBytes, &second), opened;
        if (first.mark <= UINT32_MAX || second.mark <= UINT32_MAX || first.mark == second.mark) return 1;
        return open_offered(first, kBytes, &opened) == Opened::ok ? 0 : 2;
    });
    if (seen == 99) GTEST_SKIP() << "no filter of system calls can be set here";
    EXPECT_EQ(seen, 0);
}

TEST(OfferedMemory, IsGoneOnceItsDescriptorIsClosed) {
    MemoryOffer offer;
    Segment memory = offer_memory("test", kBytes, &offer);
    memory.drop_fd();
    EXPECT_EQ(try_open(offer), Opened::gone);
}

// The number of the descriptor is that of other memory now; its mark is not even looked at.
TEST(OfferedMemory, WhoseNumberIsUsedAgainIsAnotherFile) {
    MemoryOffer offer, other_offer;
    Segment memory = offer_memory("test", kBytes, &offer);
    const Segment other = offer_memory("test", kBytes, &other_offer);
    ASSERT_TRUE(memory.valid() && other.valid());
    std::copy_n(memory.data(), sizeof(OfferedMark), other.data());
    memory.drop_fd();
    const Fd again(::dup3(other.fd(), offer.descriptor, O_CLOEXEC));
    ASSERT_EQ(again.get(), offer.descriptor);
    EXPECT_EQ(try_open(offer), Opened::other_file);
}

// The number of the process is that of a child which has another file there.
TEST(OfferedMemory, OfAnotherProcessOfThatNumberIsAnotherFile) {
    MemoryOffer offer;
    const Segment memory = offer_memory("test", kBytes, &offer);
    const int seen = in_child([&] {
        const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
        if (::dup2(null.get(), offer.descriptor) < 0) return 99;
        MemoryOffer reused = offer;
        reused.process = ::getpid();
        return static_cast<int>(try_open(reused));
    });
    EXPECT_EQ(seen, static_cast<int>(Opened::other_file));
}

TEST(OfferedMemory, IsNoPipeSocketOrDevice) {
    int ends[2], pair[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const Fd files[] = {Fd(ends[0]), Fd(ends[1]), Fd(pair[0]), Fd(pair[1]), Fd(::open("/dev/null", O_RDWR | O_CLOEXEC)),
                        Fd(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC))};
    for (const Fd& file : files) EXPECT_EQ(try_open(offer_of(file.get())), Opened::other_file) << file.get();
}

TEST(OfferedMemory, IsNotWhatItsOwnerCouldShrink) {
    const Fd memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(memory.get(), kBytes), 0);
    MemoryOffer offer = offer_of(memory.get());
    ASSERT_EQ(::pwrite(memory.get(), &offer.mark, sizeof offer.mark, 0), ssize_t{sizeof offer.mark});
    EXPECT_EQ(try_open(offer), Opened::not_sealed);
    const Fd ordinary(::open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (ordinary.valid()) {  // not every file system has files without a name
        ASSERT_EQ(::ftruncate(ordinary.get(), kBytes), 0);
        EXPECT_EQ(try_open(offer_of(ordinary.get())), Opened::not_sealed);
    }
    ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    EXPECT_EQ(try_open(offer), Opened::ok);
}

TEST(OfferedMemory, SmallerThanWhatIsAskedForIsRefused) {
    MemoryOffer offer;
    const Segment memory = offer_memory("test", kBytes, &offer);
    EXPECT_EQ(try_open(offer, memory.size() + 1), Opened::too_small);
    EXPECT_EQ(try_open(offer, SIZE_MAX), Opened::too_small);
    EXPECT_EQ(try_open(offer, sizeof(OfferedMark) - 1), Opened::too_small) << "no room for a mark";
}

TEST(OfferedMemory, ThatNoProcessOffersIsTold) {
    EXPECT_EQ(try_open(MemoryOffer()), Opened::not_offered);
    MemoryOffer offer;
    const Segment memory = offer_memory("test", kBytes, &offer);
    for (const int32_t wrong : {0, -1}) {
        MemoryOffer other = offer;
        other.process = wrong;
        EXPECT_EQ(try_open(other), Opened::not_offered);
    }
    MemoryOffer none = offer;
    EXPECT_FALSE(offer_memory("test", SIZE_MAX, &none).valid());
    EXPECT_EQ(none.mark, 0u);
}

TEST(OfferedMemory, OfAProcessThatMayNotBeLookedAtIsTold) {
    MemoryOffer offer;
    const Segment memory = offer_memory("test", kBytes, &offer);
    ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 0), 0);
    const int seen = in_child([&] {
        if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 99;
        Segment theirs;
        return static_cast<int>(open_offered(offer, kBytes, &theirs));
    });
    ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 1), 0);
    if (seen == 99) GTEST_SKIP() << "this user namespace has no other user";
    EXPECT_EQ(seen, static_cast<int>(Opened::no_permission));
}

TEST(OfferedMemory, WithoutADescriptorLeftIsTold) {
    MemoryOffer offer;
    const Segment memory = offer_memory("test", kBytes, &offer);
    const int seen = in_child([&] {
        const struct rlimit none = {0, 0};
        if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return 99;
        Segment theirs;
        return static_cast<int>(open_offered(offer, kBytes, &theirs));
    });
    EXPECT_EQ(seen, static_cast<int>(Opened::failed));
}

// In a PID namespace of its own, with the /proc of the one above: the first process there is 1, and /proc/1 is
// another.
TEST(OfferedMemory, InAnotherPidNamespaceIsNotMistaken) {
    const int seen = in_child([] {
        if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return 99;
        return in_child([] {
            MemoryOffer offer;
            const Segment memory = offer_memory("test", kBytes, &offer);
            if (!memory.valid() || offer.process != 1) return 98;
            Segment again;
            return static_cast<int>(open_offered(offer, kBytes, &again));
        });
    });
    if (seen == 99) GTEST_SKIP() << "no PID namespace can be made here";
    EXPECT_EQ(seen, static_cast<int>(Opened::no_proc));
}

TEST(OfferedMemory, HasAReasonForEachRefusal) {
    std::set<std::string> reasons;
    for (int why = 0; why <= static_cast<int>(Opened::wrong_mark); ++why) reasons.insert(reason(Opened(why)));
    EXPECT_EQ(reasons.size(), size_t{static_cast<int>(Opened::wrong_mark)} + 1);
    EXPECT_EQ(reasons.count(""), 0u);
}

}  // namespace
}  // namespace viaduct
