// SPDX-License-Identifier: BSD-2-Clause
// vipkad as a process: its socket, what it does with bytes that are no messages, when it comes and when it
// goes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <random>

#include "agent_testing.hpp"
#include "core/shm/foreign_files.hpp"
#include "fake_provider/fake_control.hpp"
#include "kagent/limits.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;
using kagent::MailHeader;
using kagent::Type;

// Sends raw bytes as one packet, with descriptors.
bool send_raw(int fd, const void* bytes, size_t size, int descriptors = 0) {
    iovec piece{const_cast<void*>(bytes), size};
    std::vector<char> control(CMSG_SPACE(sizeof(int) * static_cast<size_t>(descriptors)) + 1);
    msghdr m{};
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    std::vector<Fd> sent;
    if (descriptors > 0) {
        m.msg_control = control.data();
        m.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<size_t>(descriptors));
        cmsghdr* c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<size_t>(descriptors));
        for (int i = 0; i < descriptors; ++i) {
            sent.emplace_back(::eventfd(0, EFD_CLOEXEC));
            const int n = sent.back().get();
            std::memcpy(CMSG_DATA(c) + static_cast<size_t>(i) * sizeof n, &n, sizeof n);
        }
    }
    return ::sendmsg(fd, &m, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool is_closed(int fd) {
    Mail m;
    return receive_mail(fd, &m) == Status::closed;
}

size_t open_files(pid_t pid) {
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
}

class VipkadTest : public ::testing::Test {
protected:
    VipkadTest() : daemon(place.address, {"--linger-ms", "-1"}) {}
    void SetUp() override { ASSERT_TRUE(daemon.up); }
    Fd join(uint32_t flags = 0) {
        Fd fd = connect_to(place.address);
        EXPECT_EQ(hello(fd.get(), flags).type(), Type::kWelcome);
        return fd;
    }
    Mail ask(int fd, const Mail& request) {
        EXPECT_EQ(send_mail(fd, request), Status::ok);
        Mail m;
        EXPECT_EQ(receive_mail(fd, &m), Status::ok);
        return m;
    }
    void expect_well() {
        const Fd fd = join();
        kagent::NameText n;
        std::strcpy(n.name, "fake1");
        EXPECT_EQ(ask(fd.get(), Mail::of(Type::kResolveName, n, 7)).type(), Type::kNicEntry);
    }
    Place place;
    Daemon daemon;
};

TEST_F(VipkadTest, PacketsThatAreNoMessagesEndTheirSender) {
    MailHeader good;
    good.type = static_cast<uint16_t>(Type::kListNics);
    good.ticket = 5;
    std::vector<std::vector<uint8_t>> packets;
    const auto add = [&](const MailHeader& h, size_t payload, size_t cut = 0) {
        std::vector<uint8_t> p(sizeof h + payload);
        std::memcpy(p.data(), &h, sizeof h);
        p.resize(p.size() - cut);
        packets.push_back(p);
    };
    add(good, 0, 1);   // truncated header
    add(good, 0, 15);  // one byte
    MailHeader h = good;
    h.magic ^= 1;
    add(h, 0);
    h = good;
    h.version = 99;
    add(h, 0);
    h = good;
    h.bytes = 10;
    add(h, 9);  // shorter than it says
    add(h, 11);
    h.bytes = 0xFFFFFFFF;
    add(h, 0);
    h.bytes = kagent::kMaxMessage + 1;
    add(h, kagent::kMaxMessage + 1);  // longer than allowed
    for (const auto& p : packets) {
        const Fd fd = join();
        ASSERT_TRUE(send_raw(fd.get(), p.data(), p.size()));
        EXPECT_TRUE(is_closed(fd.get())) << p.size();
    }
    expect_well();
}

TEST_F(VipkadTest, UnknownAndMisshapenRequestsAreAnsweredAndTheClientStays) {
    const Fd fd = join();
    for (const uint16_t type : {0, 19, 60, 99, 101, 65535}) {
        EXPECT_EQ(status_of(ask(fd.get(), Mail(static_cast<Type>(type), 3))), Status::invalid) << type;
    }
    EXPECT_EQ(status_of(ask(fd.get(), Mail(Type::kOpenNic, 4))), Status::invalid);
    EXPECT_EQ(ask(fd.get(), Mail(Type::kStatus, 5)).type(), Type::kStatusText);
}

// A socket whose closing takes half a minute: bytes that are not read, and SO_LINGER.
Fd lingering_socket(Fd* other_end) {
    const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    *other_end = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::vector<char> bytes(1 << 16);
    while (::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    const linger half_a_minute{1, 30};
    EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &half_a_minute, sizeof half_a_minute), 0);
    return socket;
}

TEST_F(VipkadTest, AFileThatTakesLongToCloseDelaysNoClient) {
    const Fd witness = join();
    Fd far_end;
    for (const Type type : {Type::kOpenNic, Type::kListNics, Type::kHello}) {
        Fd fd = join();
        kagent::OpenNic open;
        std::strcpy(open.device, "fake0");
        open.context_id = 77;
        Mail mail = type == Type::kOpenNic ? Mail::of(type, open, 3) : Mail(type, 3);
        if (type == Type::kHello) mail.header.version = 0;  // no message at all
        mail.descriptors.push_back(lingering_socket(&far_end));
        // The process that closes it last has to wait; stopped, the agent cannot be the first.
        ASSERT_EQ(::kill(daemon.pid, SIGSTOP), 0);
        const Status sent = send_mail(fd.get(), mail);
        mail.descriptors.clear();
        ASSERT_EQ(::kill(daemon.pid, SIGCONT), 0);
        ASSERT_EQ(sent, Status::ok);
        EXPECT_TRUE(is_closed(fd.get())) << "a sender of such a file is no client";
        const int64_t begin = now_ns();
        EXPECT_EQ(ask(witness.get(), Mail(Type::kStatus, 5)).type(), Type::kStatusText);
        EXPECT_LT(now_ns() - begin, 5'000 * kMs);
    }
    expect_well();
}

TEST_F(VipkadTest, ManyFilesThatTakeLongToCloseTakeFewThreads) {
    const Fd witness = join();
    const auto threads = [this] {
        const std::filesystem::directory_iterator all("/proc/" + std::to_string(daemon.pid) + "/task");
        return static_cast<size_t>(std::distance(begin(all), end(all)));
    };
    const size_t before = threads();  // a sanitizer has one of its own
    std::vector<Fd> far_ends(100), clients;
    ASSERT_EQ(::kill(daemon.pid, SIGSTOP), 0);
    for (Fd& far : far_ends) {
        clients.push_back(connect_to(place.address, false));
        Mail mail(Type::kListNics, 3);
        mail.descriptors.push_back(lingering_socket(&far));
        ASSERT_EQ(send_mail(clients.back().get(), mail), Status::ok);
    }
    ASSERT_EQ(::kill(daemon.pid, SIGCONT), 0);
    size_t most = 0;
    EXPECT_TRUE(eventually(
        [&] {
            most = std::max(most, threads());
            Mail m;
            return std::all_of(clients.begin(), clients.end(),
                               [&](const Fd& fd) { return receive_mail(fd.get(), &m) == Status::closed; });
        },
        20'000))
        << "all of them are turned away";
    // One that is done may not have ended yet when the next begins. The files are 100.
    EXPECT_LE(most, before + 2 * Closers::kThreads);
    EXPECT_EQ(ask(witness.get(), Mail(Type::kStatus, 5)).type(), Type::kStatusText);
    expect_well();
}

TEST_F(VipkadTest, OfOneUsersSilentSocketsTheOldestGoFirstButNoneThatHasSpoken) {
    const Fd early = join();
    std::vector<Fd> silent;
    for (uint64_t i = 0; i < kagent::kSilentOfOneUser + 20; ++i)
        silent.push_back(connect_to(place.address, false));
    const auto lives = [](const Fd& fd) {
        Mail m;
        return fd.valid() && receive_mail(fd.get(), &m) == Status::not_done;
    };
    EXPECT_TRUE(eventually([&] { return std::none_of(silent.begin(), silent.begin() + 20, lives); }));
    EXPECT_TRUE(std::all_of(silent.begin() + 20, silent.end(), lives));
    EXPECT_EQ(ask(early.get(), Mail(Type::kStatus, 5)).type(), Type::kStatusText);
    expect_well();  // and a new client with a hello is served
}

// Answers with files that are not taken are in flight: the system lets the agent have so many of them at a
// time.
TEST_F(VipkadTest, FilesThatAClientDoesNotTakeAreCounted) {
    std::vector<Fd> clients;
    for (int i = 0; i < 120; ++i) clients.push_back(join());  // their status is longer than a message
    const Fd stalled = connect_to(place.address, false);
    ASSERT_EQ(send_mail(stalled.get(), Mail::of(Type::kHello, kagent::Hello{}, 1)), Status::ok);
    const auto used = [&] {
        Mail m = ask(clients[0].get(), Mail(Type::kStatus, 5));
        const std::string text(reinterpret_cast<const char*>(m.payload.data()), m.payload.size());
        const size_t at = text.find("\"descriptors\":{");
        const size_t number = text.find("\"used\":", at);
        return at == std::string::npos ? 0 : std::atol(text.c_str() + number + 7);
    };
    const long before = used();
    for (uint32_t i = 0; i < 10; ++i)
        ASSERT_EQ(send_mail(stalled.get(), Mail(Type::kStatus, 2 + i)), Status::ok);
    EXPECT_TRUE(eventually([&] { return used() >= before + 10; })) << before << " " << used();
    Mail m;
    EXPECT_TRUE(eventually([&] {
        while (receive_mail(stalled.get(), &m) == Status::ok) {
        }
        return used() <= before + 1;
    })) << before
        << " " << used();
}

TEST_F(VipkadTest, DescriptorsNeverStayWithTheAgent) {
    const Fd witness = join();
    const size_t before = open_files(daemon.pid);
    MailHeader h;
    h.type = static_cast<uint16_t>(Type::kListNics);
    h.ticket = 9;
    {
        const Fd fd = join();
        for (int i = 0; i < 10; ++i) {  // few: refused, and the client stays
            ASSERT_TRUE(send_raw(fd.get(), &h, sizeof h, 3));
            Mail m;
            ASSERT_EQ(receive_mail(fd.get(), &m), Status::ok);
            EXPECT_EQ(status_of(m), Status::invalid);
        }
    }
    for (const int n : {9, 60, 250}) {  // more than a message may carry: dropped
        const Fd fd = join();
        ASSERT_TRUE(send_raw(fd.get(), &h, sizeof h, n));
        EXPECT_TRUE(is_closed(fd.get()));
    }
    EXPECT_TRUE(eventually([&] { return open_files(daemon.pid) == before; }))
        << open_files(daemon.pid) << " not " << before;
    expect_well();
}

TEST_F(VipkadTest, RandomBytesDoNoHarm) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        const Fd fd = connect_to(place.address);
        ASSERT_TRUE(fd.valid());
        if (round % 2 == 0) hello(fd.get());
        std::array<uint8_t, 600> bytes;
        for (auto& b : bytes) b = static_cast<uint8_t>(random());
        if (round % 3 == 0) {  // a good frame around it
            MailHeader h;
            h.type = static_cast<uint16_t>(random() % 20);
            h.ticket = 1;
            h.bytes = static_cast<uint32_t>(bytes.size() - sizeof h);
            std::memcpy(bytes.data(), &h, sizeof h);
        }
        if (round % 7 == 0) {  // never ask it to leave, though
            bytes[6] = 1;
        }
        MailHeader h;
        std::memcpy(&h, bytes.data(), sizeof h);
        if (h.type == static_cast<uint16_t>(Type::kShutdown)) continue;
        send_raw(fd.get(), bytes.data(), 1 + random() % bytes.size());
    }
    expect_well();
    EXPECT_EQ(daemon.wait_now(), -1);
}

TEST_F(VipkadTest, VersionIsNegotiated) {
    const Fd old = connect_to(place.address);
    const Mail refused = hello(old.get(), 0, 77, 78);
    EXPECT_EQ(status_of(refused), Status::version);
    EXPECT_TRUE(is_closed(old.get()));
    const Fd wide = connect_to(place.address);
    const Mail m = hello(wide.get(), 0, 1, 1000);
    kagent::Welcome w;
    ASSERT_TRUE(m.get(&w));
    EXPECT_EQ(w.version, kagent::kVersionMax);
    EXPECT_EQ(static_cast<pid_t>(w.agent_pid), daemon.pid);
}

TEST_F(VipkadTest, ClientThatDoesNotReadIsPausedAndLaterDropped) {
    const Fd stalled = connect_to(place.address, false);
    Mail m;
    kagent::Hello h;
    ASSERT_EQ(send_mail(stalled.get(), Mail::of(Type::kHello, h, 1)), Status::ok);
    // It asks and asks; the agent stops listening to it, so its own sends begin to fail: no other client suffers.
    Status s = Status::ok;
    EXPECT_TRUE(eventually([&] {
        for (int i = 0; i < 1000 && s == Status::ok; ++i) s = send_mail(stalled.get(), Mail(Type::kListNics, 2));
        return s != Status::ok;
    }));
    EXPECT_EQ(s, Status::not_done);
    expect_well();
    // When it reads at last, everything is there.
    int answers = 0;
    EXPECT_TRUE(eventually([&] {
        while (receive_mail(stalled.get(), &m) == Status::ok) ++answers;
        return answers > 100;
    }));
}

TEST(VipkadLifeTest, ClientThatNeverReadsIsDropped) {
    Place place;
    place.set("VIADUCT_AGENT_DEAF_MS", "200");
    Daemon daemon(place.address, {"--linger-ms", "-1"});
    ASSERT_TRUE(daemon.up);
    const Fd witness = connect_to(place.address);
    ASSERT_EQ(hello(witness.get()).type(), Type::kWelcome);
    const size_t before = open_files(daemon.pid);
    const Fd stalled = connect_to(place.address, false), slow = connect_to(place.address, false);
    for (const Fd* fd : {&stalled, &slow}) {
        ASSERT_EQ(send_mail(fd->get(), Mail::of(Type::kHello, kagent::Hello{}, 1)), Status::ok);
        Status s = Status::ok;
        EXPECT_TRUE(eventually([&] {
            while (s == Status::ok) s = send_mail(fd->get(), Mail(Type::kListNics, 2));
            if (s == Status::not_done) nap_ms(20);  // it may only be slow to take them
            s = send_mail(fd->get(), Mail(Type::kListNics, 2));
            return s == Status::not_done;
        }));
    }
    // One takes nothing at all, the other a little now and then.
    Mail m;
    int64_t closed_after = 0;
    const int64_t begun = now_ns();
    EXPECT_TRUE(eventually([&] {
        (void)!static_cast<int>(receive_mail(slow.get(), &m));
        nap_ms(20);
        if (closed_after == 0 && send_mail(stalled.get(), Mail(Type::kListNics, 2)) == Status::closed)
            closed_after = now_ns() - begun;
        return closed_after != 0;
    }));
    EXPECT_GE(closed_after, 150 * kMs);
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(receive_mail(slow.get(), &m), Status::ok) << "a client that reads, however slowly, stays";
        nap_ms(20);
    }
    EXPECT_EQ(open_files(daemon.pid), before + 3) << "the agent holds nothing of it any more";
}

TEST(VipkadLifeTest, OneUserCannotTakeAllDescriptors) {
    Place place;
    place.set("VIADUCT_AGENT_MAX_DESCRIPTORS", "30");
    Daemon daemon(place.address, {"--linger-ms", "-1"});
    ASSERT_TRUE(daemon.up);
    std::vector<Fd> silent;
    size_t open = 0;
    EXPECT_TRUE(eventually([&] {
        for (int i = 0; i < 15; ++i) silent.push_back(connect_to(place.address, false));
        nap_ms(50);
        open = 0;
        for (const Fd& fd : silent) {
            Mail m;
            open += fd.valid() && receive_mail(fd.get(), &m) == Status::not_done ? 1 : 0;
        }
        return open == 10;
    })) << open;
    silent.clear();
    EXPECT_TRUE(eventually([&] {
        const Fd fd = connect_to(place.address);
        return hello(fd.get()).type() == Type::kWelcome;
    })) << "and when they have left there is room again";
}

TEST_F(VipkadTest, ManyClientsAreServed) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    const rlimit before = files;
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    std::vector<Fd> clients;
    for (int i = 0; i < 400; ++i) clients.push_back(join());
    for (const Fd& c : clients) {
        kagent::OpenNic o;
        std::strcpy(o.device, "fake0");
        o.context_id = static_cast<uint64_t>(c.get()) + 1000;
        EXPECT_EQ(ask(c.get(), Mail::of(Type::kOpenNic, o, 2)).type(), Type::kOpened);
    }
    const size_t with_them = open_files(daemon.pid);
    clients.clear();
    EXPECT_TRUE(eventually([&] { return open_files(daemon.pid) + 800 < with_them; }));
    ::setrlimit(RLIMIT_NOFILE, &before);
    expect_well();
}

TEST_F(VipkadTest, SecondAgentAtTheSameAddressGoesQuietly) {
    Daemon second(place.address);
    EXPECT_TRUE(second.ended_within(5000));
    EXPECT_EQ(second.status, 0);
    expect_well();
}

TEST_F(VipkadTest, TerminationIsAnnounced) {
    const Fd fd = join();
    ::kill(daemon.pid, SIGTERM);
    Mail m;
    ASSERT_EQ(receive_mail(fd.get(), &m), Status::ok);
    EXPECT_EQ(m.type(), Type::kLeaving);
    EXPECT_EQ(m.header.ticket, 0u);
    EXPECT_TRUE(is_closed(fd.get()));
    EXPECT_TRUE(daemon.ended_within(5000));
    EXPECT_EQ(daemon.status, 0);
}

TEST(VipkadLifeTest, LeavesAfterTheLastClientButNotBefore) {
    Place place;
    Daemon daemon(place.address, {"--linger-ms", "150"});
    ASSERT_TRUE(daemon.up);
    Fd client = connect_to(place.address);
    ASSERT_EQ(hello(client.get()).type(), Type::kWelcome);
    const Fd tool = connect_to(place.address);
    ASSERT_EQ(hello(tool.get(), kagent::kHelloTool).type(), Type::kWelcome);
    nap_ms(400);
    EXPECT_EQ(daemon.wait_now(), -1) << "a client is there";
    const int64_t left = now_ns();
    client.reset();
    EXPECT_TRUE(daemon.ended_within(5000)) << "a tool does not keep it";
    EXPECT_GE(now_ns() - left, 140 * kMs);
    EXPECT_EQ(daemon.status, 0);
}

TEST(VipkadLifeTest, ClientsThatComeWhileItLeavesAreServedByItOrTheNext) {
    Place place("0");  // leaves as soon as it is alone: every call races with its going
    for (int i = 0; i < 60; ++i) {
        AgentLink link;
        Mail answer;
        const timespec pause{0, (i % 20) * 150'000};  // meets it at different moments of its going
        ::nanosleep(&pause, nullptr);
        ASSERT_EQ(link.call(Mail(Type::kListNics), &answer, now_ns() + 8000 * kMs), Status::ok)
            << i << ": " << link.last_error();
    }
}

TEST(VipkadLifeTest, PathOfAKilledAgentIsTakenOver) {
    Place place;
    const std::string path = "/tmp/viaduct-unit-" + std::to_string(::getpid()) + ".sock";
    {
        Daemon first(path, {"--linger-ms", "-1"});
        ASSERT_TRUE(first.up);
        first.end(SIGKILL);
    }
    ASSERT_EQ(::access(path.c_str(), F_OK), 0) << "left behind";
    Daemon second(path, {"--linger-ms", "-1"});
    ASSERT_TRUE(second.up);
    Daemon third(path);
    EXPECT_TRUE(third.ended_within(5000));
    EXPECT_TRUE(connect_to(path).valid()) << "the living one's path is not taken";
    second.end(SIGTERM);
    EXPECT_NE(::access(path.c_str(), F_OK), 0) << "an orderly end leaves nothing";
}

TEST(VipkadLifeTest, FileAtItsPathIsNotRemoved) {
    Place place;
    const std::string path = "/tmp/viaduct-unit-file-" + std::to_string(::getpid());
    const Fd file(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    Daemon daemon(path);
    EXPECT_TRUE(daemon.ended_within(5000));
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
    ::unlink(path.c_str());
}

TEST(VipkadLifeTest, TakesTheSocketOfAServiceManagerAndAnnouncesItself) {
    Place place;
    sockaddr_un a;
    const std::string name = place.address + "-activated", notify = place.address + "-notify";
    socklen_t n = fill(name, &a);
    const Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&a), n), 0);
    ASSERT_EQ(::listen(listener.get(), 8), 0);
    const Fd manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    n = fill(notify, &a);
    ASSERT_EQ(::bind(manager.get(), reinterpret_cast<sockaddr*>(&a), n), 0);
    const pid_t agent = ::fork();
    if (agent == 0) {
        const int handed = ::fcntl(listener.get(), F_DUPFD, 100);
        ::dup2(handed, 3);
        ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
        ::setenv("LISTEN_FDS", "1", 1);
        ::setenv("NOTIFY_SOCKET", notify.c_str(), 1);
        ::execl(VIADUCT_TEST_VIPKAD, "vipkad", "--linger-ms", "100", nullptr);
        ::_exit(126);
    }
    const timeval limit{10, 0};
    ::setsockopt(manager.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const auto heard = [&] {
        char text[64] = {};
        return ::recv(manager.get(), text, sizeof text - 1, 0) > 0 ? std::string(text) : std::string();
    };
    EXPECT_EQ(heard(), "READY=1");
    {
        const Fd client = connect_to(name);
        const Mail m = hello(client.get());
        kagent::Welcome w;
        ASSERT_TRUE(m.get(&w));
        EXPECT_EQ(static_cast<pid_t>(w.agent_pid), agent);
    }
    EXPECT_EQ(heard(), "STOPPING=1");
    int status = -1;
    ::waitpid(agent, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(connect_to(name).valid()) << "the manager listens on";
}

TEST(VipkadLifeTest, BrokenProviderIsARejectionWithACure) {
    Place place;
    Daemon daemon(place.address);
    ASSERT_TRUE(daemon.up);
    const Fd fd = connect_to(place.address);
    hello(fd.get());
    ASSERT_EQ(send_mail(fd.get(), Mail(Type::kListNics, 2)), Status::ok);
    bool found = false;
    for (uint32_t more = 1; more != 0;) {
        Mail m;
        ASSERT_EQ(receive_mail(fd.get(), &m), Status::ok);
        kagent::NicEntry nic;
        kagent::RejectionEntry r;
        if (m.get(&nic)) {
            more = nic.more;
        } else {
            ASSERT_TRUE(m.get(&r));
            more = r.more;
            if (text_of(r.provider) != "stale") continue;
            found = true;
            EXPECT_FALSE(text_of(r.reason).empty());
            EXPECT_FALSE(text_of(r.cure).empty());
        }
    }
    EXPECT_TRUE(found);
}

// A client of another user: answers 'w' welcome, 'c' closed, '-' cannot connect; then what opening and
// meeting the server gave.
std::string as_other_user(const std::string& address) {
    int result[2];
    if (::pipe(result) != 0) return "?";
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
        std::string said;
        const Fd fd = connect_to(address);
        if (!fd.valid()) {
            said = "-";
        } else {
            said = hello(fd.get()).type() == Type::kWelcome ? "w" : "c";
        }
        if (said == "w") {
            kagent::OpenNic o;
            std::strcpy(o.device, "fake0");
            o.context_id = 900;
            Mail m;
            if (send_mail(fd.get(), Mail::of(Type::kOpenNic, o, 2)) == Status::ok)
                (void)!static_cast<int>(receive_mail(fd.get(), &m));
            said += m.type() == Type::kOpened ? "o" : "x";
            kagent::ConnRequest r;
            r.context_id = 900;
            r.remote.host = fake::nic("fake", 0).address;
            r.remote.discriminator_len = 1;
            r.timeout_ms = 500;
            if (send_mail(fd.get(), Mail::of(Type::kConnRequest, r, 3)) == Status::ok)
                (void)!static_cast<int>(receive_mail(fd.get(), &m));
            said += status_of(m) == Status::no_match ? "n" : "m";
            if (send_mail(fd.get(), Mail(Type::kShutdown, 4)) == Status::ok)
                (void)!static_cast<int>(receive_mail(fd.get(), &m));
            said += status_of(m) == Status::denied ? "d" : "!";
        }
        (void)!::write(result[1], said.data(), said.size());
        ::_exit(0);
    }
    ::close(result[1]);
    char text[16] = {};
    (void)!::read(result[0], text, sizeof text - 1);
    ::close(result[0]);
    ::waitpid(child, nullptr, 0);
    return text;
}

TEST(VipkadUsersTest, AgentOfOneUserServesNoOther) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
    Place place;
    Daemon daemon(place.address);
    ASSERT_TRUE(daemon.up);
    EXPECT_EQ(as_other_user(place.address), "c");
}

TEST(VipkadUsersTest, ServiceServesEveryUserButKeepsThemApart) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
    Place place;
    const std::string path = "/tmp/viaduct-unit-users-" + std::to_string(::getpid()) + ".sock";
    Daemon daemon(path);
    ASSERT_TRUE(daemon.up);
    const Fd server = connect_to(path);
    ASSERT_EQ(hello(server.get()).type(), Type::kWelcome);
    kagent::OpenNic o;
    std::strcpy(o.device, "fake0");
    o.context_id = 901;
    Mail m;
    ASSERT_EQ(send_mail(server.get(), Mail::of(Type::kOpenNic, o, 2)), Status::ok);
    ASSERT_EQ(receive_mail(server.get(), &m), Status::ok);
    ASSERT_EQ(m.type(), Type::kOpened);
    kagent::ConnWait w;
    w.context_id = 901;
    w.local.discriminator_len = 1;
    ASSERT_EQ(send_mail(server.get(), Mail::of(Type::kConnWait, w, 3)), Status::ok);
    EXPECT_EQ(as_other_user(path), "wond") << "welcome, opened, no match, shutdown denied";
    daemon.end(SIGTERM);
}

}  // namespace
}  // namespace viaduct
