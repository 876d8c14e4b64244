// SPDX-License-Identifier: BSD-2-Clause
// Programs of one user meet at one place, whatever another user does with abstract names and with folders in /tmp.
#include "core/agent/meeting_point.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "agent_testing.hpp"
#include "core/agent/find_agent.hpp"
#include "core/agent/name_holder.hpp"
#include "core/agent/private_folder.hpp"
#include "tests/moved_clock.hpp"
#include "tests/thread_sleeps.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

constexpr uid_t kVictim = 4343, kAttacker = 4242;
constexpr const char* kMeetingName = "@viaduct-unit-meeting";

// The process does that as its user, and then stays until it is told to end: the victim may not kill it.
class OtherProcess {
public:
    OtherProcess(uid_t user, const std::function<bool()>& act) {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        pid_ = ::fork();
        char said = 0;
        if (pid_ == 0) {
            ::close(ends[0]);
            const bool done = ::setresuid(user, user, user) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && act();
            if (::write(ends[1], done ? "y" : "n", 1) == 1 && ::read(ends[1], &said, 1) >= 0) ::_exit(0);
            ::_exit(1);
        }
        ::close(ends[1]);
        life_ = Fd(ends[0]);
        EXPECT_EQ(::read(life_.get(), &said, 1), 1);
        EXPECT_EQ(said, 'y');
    }
    ~OtherProcess() { end(); }
    void end() {
        if (pid_ <= 0 || ::send(life_.get(), "e", 1, MSG_NOSIGNAL) > 1) return;
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

private:
    Fd life_;
    pid_t pid_ = -1;
};

int bound_socket(const std::string& name, int type) {
    sockaddr_un a;
    const socklen_t n = fill(name, &a);
    const int fd = ::socket(AF_UNIX, type, 0);
    return ::bind(fd, reinterpret_cast<sockaddr*>(&a), n) == 0 ? fd : -1;
}

bool connects(int fd, const std::string& name) {
    sockaddr_un a;
    const socklen_t n = fill(name, &a);
    return ::connect(fd, reinterpret_cast<sockaddr*>(&a), n) == 0;
}

bool holds_connected(const std::string& name) {
    const int listener = bound_socket(name + "-elsewhere", SOCK_SEQPACKET);
    const int holder = bound_socket(name, SOCK_SEQPACKET);
    return holder >= 0 && ::listen(listener, 8) == 0 && connects(holder, name + "-elsewhere");
}

bool holds_datagram_connected(const std::string& name) {
    const int holder = bound_socket(name, SOCK_DGRAM);
    return holder >= 0 && connects(holder, name);
}

bool holds_listening(const std::string& name) { return ::listen(bound_socket(name, SOCK_SEQPACKET), 8) == 0; }

bool holds_full(const std::string& name) {
    if (::listen(bound_socket(name, SOCK_SEQPACKET), 0) != 0) return false;
    for (int i = 0; i < 16; ++i) {
        const int client = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
        if (!connects(client, name)) return errno == EAGAIN;
    }
    return false;
}

// As a seccomp filter or RestrictAddressFamilies= of a unit: the kernel is not asked whose a socket is.
// (On i386 the C library's socket() is socketcall(), whose arguments lie where no filter reads.)
bool forbid_netlink() {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof program / sizeof program[0], program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

bool give_folder(const std::string& path, uid_t user, mode_t mode = 0700) {
    return ::mkdir(path.c_str(), mode) == 0 && ::chmod(path.c_str(), mode) == 0 &&
           ::chown(path.c_str(), user, user) == 0;
}

// Each test is a process of its own with its own network, /tmp and /run, begins as root, and is the victim from
// become_victim() on.
class MeetingTest : public ::testing::Test {
protected:
    static bool may_be_alone() {
        const pid_t pid = ::fork();
        if (pid == 0) ::_exit(::unshare(CLONE_NEWNS | CLONE_NEWNET) == 0 ? 0 : 1);
        int status = -1;
        ::waitpid(pid, &status, 0);
        return status == 0;
    }
    void alone(const std::function<void()>& body) {
        if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
        if (!may_be_alone()) GTEST_SKIP() << "needs namespaces of its own (CAP_SYS_ADMIN)";
        const pid_t pid = ::fork();
        if (pid == 0) {
            EXPECT_EQ(::unshare(CLONE_NEWNS | CLONE_NEWNET), 0);
            EXPECT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
            EXPECT_EQ(::mount("none", "/tmp", "tmpfs", 0, "mode=1777"), 0);
            EXPECT_EQ(::mount("none", "/run", "tmpfs", 0, "mode=755"), 0);
            ::unsetenv("VIADUCT_AGENT");
            ::unsetenv("XDG_RUNTIME_DIR");
            if (!HasFailure()) body();
            ::_exit(HasFailure() ? 1 : 0);
        }
        int status = -1;
        ::waitpid(pid, &status, 0);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    static void become_victim() { ASSERT_EQ(::setresuid(kVictim, kVictim, kVictim), 0); }
    static Status listens(Fd* out, std::string* place) {
        std::string error;
        const Status s = listen_at(kMeetingName, false, out, place, &error);
        EXPECT_TRUE(s == Status::ok || s == Status::not_done) << error;
        return s;
    }
    static bool has_its_turn(const std::string& name) {
        Fd listener(bound_socket(name, SOCK_SEQPACKET));
        EXPECT_EQ(::fcntl(listener.get(), F_SETFL, O_NONBLOCK), 0);
        EXPECT_EQ(::listen(listener.get(), 0), 0);
        const Fd fills_the_queue = connect_to(name);
        std::atomic<pid_t> waiting[4]{};
        std::atomic<int> first{-1}, connected{0};
        const auto sleeps = [&](int i) { return waiting[i] != 0 && tests::sleeps_now(waiting[i]); };
        const auto come = [&](int i, const std::function<void()>& connects) {
            return std::thread([&, i, connects] {
                waiting[i] = ::gettid();
                connects();
                int none = -1;
                first.compare_exchange_strong(none, i);
                ++connected;
            });
        };
        std::vector<std::thread> threads;
        threads.push_back(come(0, [&] {
            Fd fd;
            AgentSearch search;
            std::string why;
            const Deadline end = now_ns() + 20000 * kMs;
            EXPECT_EQ(connect_agent({name, "test", false}, false, end, &search, &fd, &why), Status::ok) << why;
        }));
        EXPECT_TRUE(eventually("the client waits", [&] { return sleeps(0); }));
        for (int i = 1; i < 4; ++i) threads.push_back(come(i, [&] { (void)connect_to(name); }));
        EXPECT_TRUE(eventually("three more wait", [&] { return sleeps(1) && sleeps(2) && sleeps(3); }));
        const Fd taken(::accept(listener.get(), nullptr, nullptr));
        EXPECT_TRUE(eventually("one has the place", [&] { return first != -1; }));
        const bool in_turn = first == 0;
        EXPECT_TRUE(eventually("all have had a place", [&] {
            const Fd next(::accept(listener.get(), nullptr, nullptr));
            return connected == 4;
        }));
        listener.reset();  // no thread waits for ever
        for (std::thread& thread : threads) thread.join();
        if (name[0] == '/') ::unlink(name.c_str());
        return in_turn;
    }
    static int meets() {
        Fd fd;
        std::string in_the_way;
        return meet(kMeetingName, ::geteuid(), &fd, &in_the_way, 0);
    }
};

TEST_F(MeetingTest, TheHolderOfANameIsKnownWhereItsSocketIsConnected) {
    alone([] {
        const OtherProcess attacker(
            kAttacker, [] { return holds_connected(kMeetingName) && holds_datagram_connected(kMeetingName); });
        become_victim();
        EXPECT_EQ(holder_of(kMeetingName, SOCK_DGRAM), std::optional<uid_t>(kAttacker));
        EXPECT_EQ(holder_of(kMeetingName, SOCK_SEQPACKET), std::optional<uid_t>(kAttacker));
    });
}

// What a listener has in its queue belongs to user 0 by the kernel's word, what it has accepted to who has accepted it.
TEST_F(MeetingTest, AConnectedSocketIsNoProofOfATrustedHolder) {
    alone([] {
        const OtherProcess full(kAttacker, [] { return holds_full(kMeetingName); });
        const std::string left = std::string(kMeetingName) + "-left";
        const Fd client(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
        Fd listener(bound_socket(left, SOCK_SEQPACKET));
        ASSERT_EQ(::listen(listener.get(), 8), 0);
        ASSERT_TRUE(connects(client.get(), left));
        const Fd accepted(::accept(listener.get(), nullptr, nullptr));
        listener.reset();
        EXPECT_FALSE(holder_of(left, SOCK_SEQPACKET));
        const OtherProcess attacker(kAttacker, [&left] { return holds_connected(left); });
        EXPECT_EQ(holder_of(left, SOCK_SEQPACKET), std::optional<uid_t>(kAttacker));
        EXPECT_EQ(holder_of(kMeetingName, SOCK_SEQPACKET), std::optional<uid_t>(kAttacker));
    });
}

TEST_F(MeetingTest, ConnectedSocketsHeldByAnotherUserKeepNoProgramFromStartingAnAgent) {
    alone([] {
        const OtherProcess attacker(kAttacker, [] {
            return holds_connected(kMeetingName) && holds_datagram_connected(std::string(kMeetingName) + ".starting");
        });
        become_victim();
        AgentSearch first, second;
        first.begin(kMeetingName);
        second.begin(kMeetingName);
        EXPECT_TRUE(first.may_start());
        EXPECT_FALSE(second.may_start()) << "one at a time";
        Fd listener;
        std::string place;
        EXPECT_EQ(listens(&listener, &place), Status::ok);
        EXPECT_EQ(meets(), 0);
    });
}

TEST(AgentSearchTest, AProgramOfWorseLimitsStartsAnAgentLater) {
    const std::string address = "@viaduct-search-" + std::to_string(::getpid());
    tests::MovedClock clock;
    AgentSearch search, other;
    search.begin(address);
    search.let_others_first(1000);
    EXPECT_FALSE(search.may_start());
    other.begin(address);
    EXPECT_TRUE(other.may_start());
    other.let_go();
    clock.move(std::chrono::nanoseconds(1000));
    EXPECT_TRUE(search.may_start());
    search.let_go();
}

TEST_F(MeetingTest, NamesHeldByAnotherUserKeepNoProgramOutWhereTheKernelDoesNotSayWhoseTheyAre) {
#ifdef __i386__
    GTEST_SKIP() << "no filter sees which family a socketcall() asks for";
#endif
    alone([] {
        const OtherProcess attacker(kAttacker, [] {
            return holds_full(kMeetingName) && holds_datagram_connected(std::string(kMeetingName) + ".starting");
        });
        become_victim();
        ASSERT_TRUE(forbid_netlink());
        EXPECT_EQ(meets(), EBUSY);
        AgentSearch search;
        search.begin(kMeetingName);
        EXPECT_TRUE(search.may_start());
        Fd listener, second;
        std::string place;
        EXPECT_EQ(listens(&listener, &place), Status::ok);
        EXPECT_EQ(meets(), 0);
        EXPECT_EQ(listens(&second, &place), Status::not_done);
    });
}

TEST_F(MeetingTest, AFullServerOfOursIsNotReplacedWhereTheKernelSaysWhoseItIs) {
    alone([] {
        become_victim();
        const OtherProcess ours(kVictim, [] { return holds_full(kMeetingName); });
        EXPECT_EQ(meets(), EAGAIN);
        Fd listener;
        std::string place;
        EXPECT_EQ(listens(&listener, &place), Status::not_done);
    });
}

// The queue is full, a client waits, and three more connect after it. The server takes one: the place is the client's.
// One time says little: a client that was kept from the processor for a second waits anew.
TEST_F(MeetingTest, AClientHasItsTurnInAQueueThatOthersKeepFull) {
    alone([] {
        become_victim();
        for (const std::string& name : {std::string(kMeetingName), std::string("/tmp/viaduct-unit-meeting")}) {
            constexpr int kTimes = 10;
            int in_turn = 0;
            for (int i = 0; i < kTimes; ++i) in_turn += has_its_turn(name);
            EXPECT_GE(in_turn, kTimes / 2) << name;
        }
    });
}

// Another user can make /tmp/viaduct-UID before its user does, and take it away at any moment.
TEST_F(MeetingTest, AFolderTakenAndGivenBackByAnotherUserDoesNotPartTheEnds) {
    alone([] {
        ASSERT_TRUE(give_folder("/tmp/viaduct-4343", kAttacker));
        const OtherProcess attacker(kAttacker, [] { return holds_listening(kMeetingName); });
        const OtherProcess server(kVictim, [] {
            static Fd listener;
            std::string place;
            return listens(&listener, &place) == Status::ok && place.rfind("/tmp/viaduct-4343-", 0) == 0;
        });
        ASSERT_EQ(::rmdir("/tmp/viaduct-4343"), 0);
        become_victim();
        EXPECT_EQ(meets(), 0);
        Fd second;
        std::string place;
        EXPECT_EQ(listens(&second, &place), Status::not_done) << place;
        EXPECT_EQ(private_folders(kVictim).size(), 2U) << "that one and the one it would have served in";
    });
}

// A server with its own folder is between its turn and its listening.
TEST_F(MeetingTest, ServersWithDifferentFoldersTakeTurns) {
    alone([] {
        ASSERT_TRUE(give_folder("/tmp/viaduct-4343-abcdef", kVictim));
        const OtherProcess attacker(kAttacker, [] { return holds_listening(kMeetingName); });
        become_victim();
        int error = -1;
        const std::string folder = "/tmp/viaduct-4343-abcdef";
        Fd turn = private_lock(folder, private_path(folder, kMeetingName), &error);
        ASSERT_EQ(error, 0);
        Fd listener;
        std::string place;
        EXPECT_EQ(listens(&listener, &place), Status::not_done);
        turn.reset();
        EXPECT_EQ(listens(&listener, &place), Status::ok);
    });
}

TEST_F(MeetingTest, EndsWithDifferentEnvironmentsMeet) {
    alone([] {
        ASSERT_TRUE(give_folder("/run/x1", kVictim));
        OtherProcess attacker(kAttacker, [] { return holds_listening(kMeetingName); });
        become_victim();
        ::setenv("XDG_RUNTIME_DIR", "/run/x1", 1);
        Fd listener, second;
        std::string place;
        EXPECT_EQ(listens(&listener, &place), Status::ok);
        ::unsetenv("XDG_RUNTIME_DIR");
        EXPECT_EQ(meets(), 0) << place;
        EXPECT_EQ(listens(&second, &place), Status::not_done) << place;
    });
}

// Any user may fill the queue of root's server; it is one all the same.
TEST_F(MeetingTest, AFullServerInAFolderIsNotReplaced) {
    alone([] {
        OtherProcess attacker(kAttacker, [] { return holds_listening(kMeetingName); });
        Fd listener, second;
        std::string place, error;
        ASSERT_EQ(listen_at(kMeetingName, true, &listener, &place, &error), Status::ok) << error;
        ASSERT_EQ(::listen(listener.get(), 0), 0);
        const OtherProcess flood(kAttacker, [&place] {
            for (int i = 0; i < 16; ++i) {
                if (!connects(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0), place)) return errno == EAGAIN;
            }
            return false;
        });
        attacker.end();
        EXPECT_EQ(meets(), EAGAIN);
        EXPECT_EQ(listens(&second, &place), Status::not_done) << place;
    });
}

// Also sockets of other names and network namespaces. A socket that serves or is being made stays, and so does any
// other file.
TEST_F(MeetingTest, SocketsOfKilledServersAreRemovedByTheNextStart) {
    alone([] {
        const std::string folder = "/tmp/viaduct-4343";
        const auto path_of = [&folder](const char* name) { return folder + "/" + name; };
        ASSERT_TRUE(give_folder(folder, kVictim));
        become_victim();
        const std::string left = path_of("left.netns-1.sock"), left_too = path_of("left.netns-2.sock");
        const std::string serves = path_of("serves.netns-1.sock"), made = path_of("made.netns-1.sock");
        for (const std::string& path : {left, left_too}) ::close(bound_socket(path, SOCK_SEQPACKET));
        ASSERT_TRUE(holds_listening(serves));
        const Fd not_yet(bound_socket(made, SOCK_SEQPACKET));
        const Fd other(bound_socket(path_of("other.sock"), SOCK_SEQPACKET));
        int error = -1;
        const Fd turn = private_lock(folder, made, &error);
        ASSERT_EQ(error, 0);

        Fd listener;
        std::string place;
        EXPECT_EQ(listens(&listener, &place), Status::ok);
        EXPECT_EQ(place, kMeetingName);
        EXPECT_FALSE(std::filesystem::exists(left));
        EXPECT_FALSE(std::filesystem::exists(left_too));
        for (const std::string& path : {serves, made, path_of("other.sock"), path_of("locks")})
            EXPECT_TRUE(std::filesystem::exists(path)) << path;
    });
}

TEST_F(MeetingTest, AFullServiceOfTheSystemIsThePlaceOfAllPrograms) {
    alone([] {
        ASSERT_TRUE(give_folder("/run/viaduct", 0, 0755));
        const std::string path = kagent::kSystemSocket;
        EXPECT_NE(agent_place().address, path);
        ASSERT_TRUE(holds_full(path));
        ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
        become_victim();
        EXPECT_EQ(agent_place().address, path);
    });
}

}  // namespace
}  // namespace viaduct
