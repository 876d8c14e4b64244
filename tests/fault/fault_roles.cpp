// SPDX-License-Identifier: BSD-2-Clause
// The processes that get killed, stopped, or leave. Each connects to the test, says "ready" when it is where
// the test says, and goes on for ever unless said otherwise: the test ends it.
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <viaduct/ext.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

void say(const std::string& text) { std::cout << text << std::endl; }

void wait_for_go() {
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
    }
}

[[noreturn]] void until_killed() {
    for (;;) pause();
}

std::uint32_t own_number(const Arguments& arguments, std::size_t index = 0) {
    return static_cast<std::uint32_t>(std::stoul(arguments.at(kFirstOwnArgument + index)));
}

/// Connected, with receives of the given number and size, and never calls the library again.
int role_mute(const Arguments& arguments) {
    const auto end = meet_parent(arguments);
    for (std::uint32_t i = 0; i < own_number(arguments); ++i) end->receive(own_number(arguments, 1));
    say("ready");
    until_killed();
}

/// Told to go, sends messages that fit one receive each, says so once the NIC has them, and never calls the library
/// again. At Reliable Reception a send is done only when the test has taken it, so that time has to do.
int role_leave_messages(const Arguments& arguments) {
    const auto end = meet_parent(arguments);
    const std::uint32_t bytes = own_number(arguments, 1);
    say("ready");
    wait_for_go();  // before the other end has accepted they would stay in this process
    for (std::uint32_t i = 0; i < own_number(arguments); ++i) {
        char* data = end->buffer(bytes);
        write_pattern(data, bytes, i);
        end->send(data, bytes);
        if (end->wanted.level != VIP_SERVICE_RELIABLE_RECEPTION)
            require(conformance::reap_send(end->vi).code, "VipSendDone");
    }
    // sleeps: no sign shows that these messages have left
    if (end->wanted.level == VIP_SERVICE_RELIABLE_RECEPTION) pass_time(Millis(200));
    say("sent");
    until_killed();
}

/// Asleep in VipRecvWait.
int role_sleep(const Arguments& arguments) {
    const auto end = meet_parent(arguments);
    for (int i = 0; i < kReceives; ++i) end->receive(kMessageBytes);
    say("ready");
    VIP_DESCRIPTOR* done = nullptr;
    VipRecvWait(end->vi, VIP_INFINITE, &done);
    until_killed();
}

/// Sends back whatever comes.
int role_echo(const Arguments& arguments) {
    const auto end = meet_parent(arguments);
    for (int i = 0; i < kReceives; ++i) end->receive(kMessageBytes);
    say("ready");
    for (;;) {
        VIP_DESCRIPTOR* got = nullptr;
        if (VipRecvWait(end->vi, VIP_INFINITE, &got) != VIP_SUCCESS) return 1;
        got->CS.Status = 0;
        got->DS[0].Local.Length = got->CS.Length;
        VIP_DESCRIPTOR* sent = nullptr;
        if (end->post_send(got) != VIP_SUCCESS || VipSendWait(end->vi, VIP_INFINITE, &sent) != VIP_SUCCESS)
            return 1;
    }
}

/// Told to go, sends numbered messages as fast as the test takes them.
int role_stream(const Arguments& arguments) {
    const auto end = meet_parent(arguments);
    Stream out(*end, own_number(arguments));
    out.begin_sending();
    say("ready");
    wait_for_go();
    while (out.step_sender()) {
    }
    return 1;
}

/// Takes numbered messages and gives credit back.
int role_sink(const Arguments& arguments) {
    const auto end = meet_parent(arguments);
    Stream in(*end, own_number(arguments));
    in.begin_receiving();
    say("ready");
    while (in.step_receiver()) {
    }
    return 1;
}

/// Told to go, serves, and answers everything.
int role_volley(const Arguments& arguments) {
    const auto end = meet_parent(arguments);
    Volley volley(*end, own_number(arguments));
    volley.begin();
    say("ready");
    wait_for_go();
    volley.serve();
    while (volley.step()) {
    }
    return 1;
}

/// Writes into, or reads out of, the test's memory by RDMA without pause. The first message tells where.
int role_initiator(const Arguments& arguments) {
    const bool reads = arguments.at(kFirstOwnArgument) == "read";
    const auto end = meet_parent(arguments);
    VIP_DESCRIPTOR* first = end->receive(sizeof(Window));
    say("ready");
    const Window window = receive_window(*end, first);
    char* data = end->buffer(window.bytes, 'w');
    VIP_DESCRIPTOR* d = end->descriptor();
    const auto control = static_cast<VIP_UINT16>(reads ? VIP_CONTROL_OP_RDMAREAD : VIP_CONTROL_OP_RDMAWRITE);
    for (std::uint32_t done = 0;; ++done) {
        conformance::fill(d, control, {end->piece(data, window.bytes)},
                          conformance::Target{reinterpret_cast<void*>(window.address), window.handle});
        if (end->post_send(d) != VIP_SUCCESS || conformance::reap_send(end->vi).code != VIP_SUCCESS) return 1;
        if (done == 3) say("under way");
    }
}

/// Lets the test write into and read out of its memory, whose address it sends.
int role_target(const Arguments& arguments) {
    const auto end = meet_parent(arguments);
    const std::uint32_t bytes = own_number(arguments);
    char* data = end->buffer(bytes, 'r');
    say("ready");
    send_window(*end, {reinterpret_cast<std::uint64_t>(data), end->region, bytes});
    until_killed();
}

/// Waits for a connection for ever and never accepts it.
int role_wait_only(const Arguments& arguments) {
    End end;
    Address local(end.nic, conformance::from_hex(arguments.at(2)));
    Address remote = Address::blank();
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
    say("ready");
    const VIP_RETURN code =
        VipConnectWait(end.nic, local.get(), VIP_INFINITE, remote.get(), &attributes, &connection);
    say(code == VIP_SUCCESS ? "met" : "VipConnectWait returned " + std::to_string(code));
    until_killed();
}

/// Asks for a connection; should it get one, says so, and says when it is over.
int role_request_only(const Arguments& arguments) {
    say("ready");
    const auto end = conformance::connected_to_parent(arguments);
    say("connected");
    if (eventually([&] { return End::state_of(end->vi) != VIP_STATE_CONNECTED; })) say("lost");
    until_killed();
}

/// Asks for two peers when told to go, and waits for the second one first.
int role_two_peers(const Arguments& arguments) {
    End first, second;
    const std::string host = conformance::from_hex(arguments.at(1));
    const std::string discriminator = conformance::from_hex(arguments.at(2));
    const auto ask = [&](End& end, const char* here, const char* there) {
        Address local(end.nic, discriminator + here), remote(host, discriminator + there);
        require(VipConnectPeerRequest(end.vi, local.get(), remote.get(), conformance::kLongWait),
                "VipConnectPeerRequest");
    };
    say("ready");
    wait_for_go();
    ask(first, "A", "a");
    ask(second, "B", "b");
    say("asked");
    VIP_VI_ATTRIBUTES attributes{};
    require(VipConnectPeerWait(second.vi, &attributes), "VipConnectPeerWait for the second");
    require(VipConnectPeerWait(first.vi, &attributes), "VipConnectPeerWait for the first");
    say("connected");
    until_killed();
}

/// Ends the connection in the way it is told, when told to go.
int role_leave(const Arguments& arguments) {
    const std::string& how = arguments.at(kFirstOwnArgument);
    static End* const end = meet_parent(arguments).release();  // no destructor tidies up
    for (int i = 0; i < kReceives; ++i) end->receive(kMessageBytes);
    say("ready");
    wait_for_go();
    if (how == "exit") std::exit(0);
    if (how == "return") return 0;
    if (how == "_exit") _exit(0);
    if (how == "close") require(VipCloseNic(end->nic), "VipCloseNic");
    if (how == "disconnect") require(VipDisconnect(end->vi), "VipDisconnect");
    if (how == "retire") require(conformance::retire(end->vi), "VipDestroyVi");
    say("left");
    until_killed();
}

/// Says a line without the help of what an exit takes down.
void say_at_exit(std::string_view line) {
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(3);
}

/// Sees its peer leave and ends at once, but takes its time to do so. Says so if it gets CONN_LOST
/// meanwhile, and if it was so late to end that CONN_LOST may have been due before.
int role_exit_slowly(const Arguments& arguments) {
    static Clock::time_point connected_at;
    // Handlers run in reverse order: this one behind whatever the library registers when the NIC is opened.
    std::atexit([] {
        if (conformance::since(connected_at) > Millis(200)) say_at_exit("late\n");
        pass_time(Millis(700));  // sleeps: the end of this process takes its time
    });
    static End* const end = meet_parent(arguments).release();
    const auto tell = [](VIP_PVOID, VIP_ERROR_DESCRIPTOR*) { say_at_exit("told\n"); };
    require(VipErrorCallback(end->nic, nullptr, tell), "VipErrorCallback");
    end->receive(kMessageBytes);
    connected_at = Clock::now();
    say("ready");
    const auto left = [] {
        const auto now = Clock::now();
        if (End::state_of(end->vi) != VIP_STATE_CONNECTED) return true;
        connected_at = now;
        return false;
    };
    if (!eventually(left)) return 1;
    std::exit(0);
}

/// What an agent that keeps dying may make of one attempt to connect.
bool worth_another_try(VIP_RETURN code) {
    return code == VIP_TIMEOUT || code == VIP_NO_MATCH || code == VIP_ERROR_RESOURCE || code == VIP_REJECT;
}

/// One attempt to connect two ends of this process. False: try again; throws on an answer no program expects.
bool try_connect(End& client, End& server) {
    constexpr VIP_ULONG kTimeout = 2000;
    const std::string discriminator = conformance::unique_discriminator();
    Address local(client.nic, discriminator), remote(server.nic, discriminator),
        at(server.nic, discriminator);
    auto accepted = conformance::in_background([&]() -> VIP_RETURN {
        Address from = Address::blank();
        VIP_VI_ATTRIBUTES attributes{};
        VIP_CONN_HANDLE connection = nullptr;
        const VIP_RETURN code =
            VipConnectWait(server.nic, at.get(), kTimeout, from.get(), &attributes, &connection);
        return code == VIP_SUCCESS ? VipConnectAccept(connection, server.vi) : code;
    });
    VIP_VI_ATTRIBUTES attributes{};
    VIP_RETURN requested = VIP_NO_MATCH;
    eventually(
        [&] {
            requested = VipConnectRequest(client.vi, local.get(), remote.get(), kTimeout, &attributes);
            return requested != VIP_NO_MATCH;
        },
        Millis(kTimeout));
    const VIP_RETURN answered = accepted.get();
    if (requested == VIP_SUCCESS && answered == VIP_SUCCESS) return true;
    require(requested == VIP_SUCCESS || worth_another_try(requested),
            "VipConnectRequest returned " + std::to_string(requested));
    require(answered == VIP_SUCCESS || worth_another_try(answered),
            "the acceptor was answered " + std::to_string(answered));
    require(VipDisconnect(client.vi), "VipDisconnect");
    require(VipDisconnect(server.vi), "VipDisconnect");
    return false;
}

/// Connects two VIs of its own, over and over: work for an agent that keeps dying. Then stays until told to go.
int role_reconnect(const Arguments& arguments) {
    constexpr int kTries = 10;
    const int rounds = std::stoi(arguments.at(0));
    End client, server;
    int repeats = 0;
    for (int round = 0; round < rounds; ++round) {
        int tries = 1;
        while (!try_connect(client, server)) {
            ++repeats;
            require(++tries <= kTries, "no connection in ten attempts");
        }
        exchange_one(client, server);
        require(VipDisconnect(client.vi), "VipDisconnect");
        require(VipDisconnect(server.vi), "VipDisconnect");
    }
    say("done");
    say(std::to_string(repeats));
    wait_for_go();
    return 0;
}

/// Opens a NIC although agents keep dying. An answer is due soon, and it is success or lack of resources. Then stays
/// until told to go: its agent is there to be killed.
int role_open_with_retries(const Arguments&) {
    VIP_NIC_HANDLE nic = nullptr;
    VIP_RETURN code = VIP_ERROR_RESOURCE;
    (void)eventually([&] {
        code = VipOpenNic(conformance::options().nic.c_str(), &nic);
        return code != VIP_ERROR_RESOURCE;
    }, Millis(8000));
    require(code, "VipOpenNic");
    say("open");
    wait_for_go();
    return 0;
}

/// Lets a process go on once the test that stopped it has ended, in whatever way. Arguments of its own: the
/// process.
int role_guardian(const Arguments& arguments) {
    say("ready");
    wait_for_go();  // or the end of the pipe
    ::kill(static_cast<pid_t>(std::stol(arguments.at(0))), SIGCONT);
    return 0;
}

/// Many VIs on one completion queue; whatever comes goes back on the same VI. Arguments of its own: how many.
int role_many(const Arguments& arguments) {
    const std::uint32_t count = own_number(arguments);
    EndOptions chosen;
    chosen.level = static_cast<VIP_RELIABILITY_LEVEL>(std::stoi(arguments.at(0)));
    chosen.memory = 4 << 20;
    chosen.send_cq = count * 8;
    chosen.one_cq = true;
    End end(chosen);
    const std::string host = conformance::from_hex(arguments.at(1));
    for (std::uint32_t i = 0; i < count; ++i) {
        const VIP_VI_HANDLE vi = i == 0 ? end.vi : end.create_vi();
        // Two messages are under way. Each may hold two descriptors that have been sent and are not receives again, and
        // needs a third to arrive in.
        for (int k = 0; k < 6; ++k) {
            VIP_DESCRIPTOR* d = end.message(end.buffer(64), 64);
            require(VipPostRecv(vi, d, end.region), "VipPostRecv");
        }
        const std::string discriminator = conformance::from_hex(arguments.at(2)) + std::to_string(i);
        Address local(end.nic, discriminator), remote(host, discriminator);
        VIP_VI_ATTRIBUTES attributes{};
        require(conformance::request(vi, local.get(), remote.get(), conformance::kLongWait, &attributes),
                "VipConnectRequest");
    }
    say("ready");
    for (;;) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        if (VipCQWait(end.send_cq, VIP_INFINITE, &vi, &receive) != VIP_SUCCESS) return 1;
        VIP_DESCRIPTOR* d = nullptr;
        if ((receive ? VipRecvDone(vi, &d) : VipSendDone(vi, &d)) != VIP_SUCCESS) return 1;
        d->CS.Status = 0;
        // A receive goes back as a send, a send that is done becomes a receive again.
        if ((receive ? VipPostSend(vi, d, end.region) : VipPostRecv(vi, d, end.region)) != VIP_SUCCESS)
            return 1;
    }
}

/// Connected, then another program: the same process to the kernel, and none of its memory.
int role_become_another(const Arguments& arguments) {
    const auto end = meet_parent(arguments);
    for (int i = 0; i < kReceives; ++i) end->receive(kMessageBytes);
    say("ready");
    wait_for_go();
    ::execlp("sleep", "sleep", "600", nullptr);
    return 1;
}

/// What daemons do: closes everything above the standard three behind the library's back, and then has files of its own
/// under the numbers of the library's. Whatever is called afterwards, nothing may be written into them, and none
/// closed.
int role_close_everything(const Arguments& arguments) {
    const auto end = meet_parent(arguments);
    void* allocated = nullptr;
    VIP_MEM_HANDLE region = 0;
    VIP_MEM_ATTRIBUTES memory{};
    require(VipxAllocMemory(end->nic, 1 << 16, 0, &memory, &allocated, &region), "VipxAllocMemory");
    say("ready");
    wait_for_go();
    require(::syscall(SYS_close_range, 3, ~0U, 0) == 0, "close_range");
    std::vector<int> own;
    const std::string text(4096, 'x');
    for (int i = 0; i < 40; ++i) {
        own.push_back(static_cast<int>(::syscall(SYS_memfd_create, "own", MFD_CLOEXEC)));
        require(::write(own.back(), text.data(), text.size()) == static_cast<ssize_t>(text.size()), "write");
    }
    VIP_VI_HANDLE more = nullptr;
    VIP_VI_ATTRIBUTES attributes{};
    attributes.ReliabilityLevel = end->wanted.level;
    attributes.MaxTransferSize = 4096;
    Address local(end->nic, "closed"), remote(end->nic, "no-waiter");
    for (int i = 0; i < 3; ++i) {
        require(VipCreateVi(end->nic, &attributes, nullptr, nullptr, &more), "VipCreateVi");
        VIP_VI_ATTRIBUTES theirs{};
        VipConnectRequest(more, local.get(), remote.get(), 500, &theirs);
        require(VipDestroyVi(more), "VipDestroyVi");
    }
    end->send(end->buffer(64, 'c'), 64);  // what is connected goes on
    require(conformance::reap_send(end->vi).code, "VipSendDone");
    VIP_NIC_HANDLE again = nullptr;
    require(VipOpenNic(conformance::options().nic.c_str(), &again), "VipOpenNic");
    require(VipCloseNic(again), "VipCloseNic");
    require(VipxFreeMemory(end->nic, allocated, region), "VipxFreeMemory");
    require(VipDisconnect(end->vi), "VipDisconnect");
    require(VipCloseNic(end->nic), "VipCloseNic");
    for (const int fd : own) {
        struct stat about {};
        std::string now(text.size() + 1, 0);
        const bool there = ::fstat(fd, &about) == 0 && about.st_size == static_cast<off_t>(text.size());
        if (!there || ::pread(fd, now.data(), now.size(), 0) != static_cast<ssize_t>(text.size()) ||
            now.compare(0, text.size(), text) != 0) {
            say("descriptor " + std::to_string(fd) + " of the program is not what it was");
            ::_exit(1);
        }
    }
    say("untouched");
    ::_exit(0);
}

struct RoleEntry {
    const char* name;
    int (*play)(const Arguments&);
};

constexpr RoleEntry kRoles[] = {
    {"mute", role_mute},
    {"leave-messages", role_leave_messages},
    {"sleep", role_sleep},
    {"echo", role_echo},
    {"stream", role_stream},
    {"sink", role_sink},
    {"volley", role_volley},
    {"initiator", role_initiator},
    {"target", role_target},
    {"wait-only", role_wait_only},
    {"request-only", role_request_only},
    {"two-peers", role_two_peers},
    {"leave", role_leave},
    {"exit-slowly", role_exit_slowly},
    {"reconnect", role_reconnect},
    {"open-with-retries", role_open_with_retries},
    {"guardian", role_guardian},
    {"many", role_many},
    {"become-another", role_become_another},
    {"close-everything", role_close_everything},
};

}  // namespace

int play_role(const std::string& role, const Arguments& arguments) {
    try {
        for (const RoleEntry& entry : kRoles) {
            if (role == entry.name) return entry.play(arguments);
        }
        std::cout << "unknown role " << role << std::endl;
    } catch (const std::exception& error) {
        std::cout << error.what() << std::endl;
    }
    return 1;
}

}  // namespace viaduct::fault
