// SPDX-License-Identifier: BSD-2-Clause
// Connections: addresses, requests, states, attributes that differ, ends that go.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "ends.hpp"
#include "rows.hpp"

namespace mistakes {

namespace {

struct Free {
    explicit Free(VIP_VI_ATTRIBUTES a = attributes()) : vi(vi_of(nic(), a)) {}
    ~Free() {
        VipDisconnect(vi);
        VipDestroyVi(vi);
    }
    VIP_VI_HANDLE vi;
};

// The answer of the agent is what counts, however long it takes.
std::string request(VIP_VI_HANDLE vi, Address to, VIP_ULONG timeout = VIP_INFINITE) {
    Address from = address_of(nic(), "");
    VIP_VI_ATTRIBUTES got;
    VipConnectRequest(vi, from.get(), to.get(), timeout, &got);
    return last(vi);
}

std::string no_waiter() {
    const Free free;
    return request(free.vi, address_of(nic(), "no-waiter"));
}

std::string no_program_comes() {
    Address at = address_of(nic(), "silent");
    Address from;
    VIP_VI_ATTRIBUTES got;
    VIP_CONN_HANDLE connection;
    VipConnectWait(nic(), at.get(), 20, from.get(), &got, &connection);
    return last(nic());
}

std::string no_time() {
    const Free free;
    return request(free.vi, address_of(nic(), "x"), 0);
}

std::string no_length() {
    const Free free;
    Address to = address_of(nic(), "x");
    to.get()->HostAddressLen = 0;
    return request(free.vi, to);
}

std::string long_discriminator() {
    const Free free;
    Address to = address_of(nic(), "x");
    to.get()->DiscriminatorLen = 1000;
    return request(free.vi, to);
}

// A request that comes to a program which does `answer`; what the requester, or the other end, says.
template <class Answer>
std::string asked(VIP_VI_HANDLE vi, const std::string& where, Answer&& answer, bool of_requester) {
    Address at = address_of(nic(), where);
    std::string other_text;
    std::thread other([&] {
        Address from;
        VIP_VI_ATTRIBUTES got;
        VIP_CONN_HANDLE connection;
        must(VipConnectWait(nic(), at.get(), VIP_INFINITE, from.get(), &got, &connection), "VipConnectWait");
        other_text = answer(connection);
    });
    std::string text;
    do text = request(vi, at);
    while (text.find("VIP_NO_MATCH") != std::string::npos);
    other.join();
    return of_requester ? text : other_text;
}

std::string rejected() {
    const Free free;
    return asked(
        free.vi, "rejects",
        [](VIP_CONN_HANDLE c) {
            VipConnectReject(c);
            return std::string();
        },
        true);
}

std::string accepted_with(VIP_VI_ATTRIBUTES other_end) {
    const Free requester;
    const Free acceptor(other_end);
    return asked(
        requester.vi, "differs",
        [&](VIP_CONN_HANDLE c) {
            VipConnectAccept(c, acceptor.vi);
            std::string text = last(acceptor.vi);
            VipConnectReject(c);
            return text;
        },
        false);
}

std::string other_level() { return accepted_with(attributes(VIP_SERVICE_RELIABLE_DELIVERY)); }

std::string other_size() {
    VIP_VI_ATTRIBUTES a = attributes();
    a.MaxTransferSize = 1024;
    return accepted_with(a);
}

std::string used_request() {
    const Free requester;
    const Free acceptor;
    return asked(
        requester.vi, "twice",
        [&](VIP_CONN_HANDLE c) {
            VipConnectReject(c);
            VipConnectAccept(c, acceptor.vi);
            return last(acceptor.vi);
        },
        false);
}

std::string connect_twice() {
    const Pair pair;
    return request(pair.a, address_of(nic(), "again"));
}

std::string no_peer_request() {
    const Free free;
    VIP_VI_ATTRIBUTES got;
    VipConnectPeerDone(free.vi, &got);
    return last(free.vi);
}

std::string peer_disconnects() {
    const Pair pair;
    must(VipDisconnect(pair.b), "VipDisconnect");
    return pair.of_sender();
}

// The child connects, and ends without a word.
std::string peer_dies() {
    const std::string where = "dies" + std::to_string(::getpid());
    Address at = address_of(nic(), where);
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::alarm(100);
        const VIP_NIC_HANDLE own = open();
        const VIP_VI_HANDLE vi = vi_of(own, attributes());
        Address from = address_of(own, "");
        VIP_VI_ATTRIBUTES got;
        VIP_RETURN answer = VIP_NO_MATCH;
        while (answer == VIP_NO_MATCH) answer = VipConnectRequest(vi, from.get(), at.get(), VIP_INFINITE, &got);
        ::kill(::getpid(), SIGKILL);
    }
    const Free acceptor;
    Address from;
    VIP_VI_ATTRIBUTES got;
    VIP_CONN_HANDLE connection;
    must(VipConnectWait(nic(), at.get(), VIP_INFINITE, from.get(), &got, &connection), "VipConnectWait");
    must(VipConnectAccept(connection, acceptor.vi), "VipConnectAccept");
    ::waitpid(child, nullptr, 0);
    return of_broken(acceptor.vi);
}

std::string link_goes_down() {
    const Pair pair;
    must(VipxSetFaultPlan(pair.a, "linkdown=1"), "VipxSetFaultPlan");
    pair.receive(fill(pair.theirs.descriptor(), pair.theirs.data(), pair.theirs.handle, 64), pair.theirs.handle);
    pair.send(fill(pair.mine.descriptor(), pair.mine.data(), pair.mine.handle, 64), pair.mine.handle);
    return pair.of_sender();
}

std::string bad_plan() {
    const Pair pair;
    VipxSetFaultPlan(pair.a, "lose=everything");
    return last(pair.a);
}

// The child writes what it is told into a pipe.
std::string inherited() {
    const Free free;
    int pipe[2];
    if (::pipe(pipe) != 0) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) {
        VIP_VI_STATE state;
        VIP_VI_ATTRIBUTES got;
        VIP_BOOLEAN empty[2];
        VipQueryVi(free.vi, &state, &got, &empty[0], &empty[1]);
        const std::string text = last(free.vi);
        const bool whole = ::write(pipe[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
        ::_exit(whole ? 0 : 1);
    }
    ::close(pipe[1]);
    char text[1024];
    const ssize_t n = ::read(pipe[0], text, sizeof text);
    ::close(pipe[0]);
    ::waitpid(child, nullptr, 0);
    return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
}

}  // namespace

Rows rows_connect() {
    return {
        {"connect.no_waiter",
         "VipConnectRequest to an address at which no program waits",
         no_waiter,
         {"VIP_NO_MATCH", "no program waits", "discriminator"}},
        {"connect.silent",
         "VipConnectWait, and no request comes",
         no_program_comes,
         {"VIP_TIMEOUT", "no request came", "silent"}},
        {"connect.zero", "VipConnectRequest with Timeout 0", no_time, {"Timeout is 0"}},
        {"connect.length",
         "an address with HostAddressLen 0",
         no_length,
         {"HostAddressLen of RemoteAddr is 0", "LocalNicAddress"}},
        {"connect.discriminator",
         "a discriminator of 1000 bytes",
         long_discriminator,
         {"DiscriminatorLen of RemoteAddr is 1000", "MaxDiscriminatorLen"}},
        {"connect.rejected", "the other end rejects", rejected, {"VIP_REJECT", "rejected"}},
        {"connect.level",
         "two ends with different reliability levels",
         other_level,
         {"VIP_INVALID_RELIABILITY_LEVEL", "ReliabilityLevel of this VI is 2", "the other end 4"}},
        {"connect.size",
         "two ends with different MaxTransferSize",
         other_size,
         {"VIP_INVALID_MTU", "MaxTransferSize of this VI is 1024", "the other end 65536"}},
        {"connect.used", "VipConnectAccept of a request that was rejected", used_request, {"ConnHandle", "used up"}},
        {"connect.twice",
         "VipConnectRequest on a VI that is connected",
         connect_twice,
         {"VIP_INVALID_STATE", "Connected", "Idle"}},
        {"connect.peer",
         "VipConnectPeerDone before VipConnectPeerRequest",
         no_peer_request,
         {"VIP_INVALID_STATE", "VipConnectPeerRequest first"}},
        {"end.disconnect",
         "the other end disconnects while this one goes on",
         peer_disconnects,
         {"VIP_ERROR_CONN_LOST", "disconnected"}},
        {"end.death",
         "the process of the other end is killed",
         peer_dies,
         {"VIP_ERROR_CONN_LOST", "process of the peer has ended"}},
        {"end.link", "the link goes down", link_goes_down, {"link is down"}},
        {"plan", "a fault plan that cannot be understood", bad_plan, {"lose=everything", "cannot be understood"}},
        {"fork", "a forked child uses a handle of its parent", inherited, {"inherited by fork"}},
    };
}

}  // namespace mistakes
