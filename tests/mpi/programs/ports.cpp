// SPDX-License-Identifier: BSD-2-Clause
// Two jobs that were started apart, or two halves of one: ports, messages both ways, collective operations,
// communicators made from the inter-communicator, disconnecting and meeting again. The first argument says which part
// of it this job plays, the second the file by which the name of the port travels.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "../../eventually.hpp"
#include "check.hpp"

namespace {

constexpr std::chrono::minutes kLongestWait(1);  // for the other job

int remote_size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_remote_size(comm, &size);
    return size;
}

void tell(const std::string& file, const char* port) {
    std::ofstream(file + ".new") << port;
    std::rename((file + ".new").c_str(), file.c_str());
}
std::string wait_for(const std::string& file) {
    std::string port;
    const auto is_told = [&] { return bool(std::ifstream(file) >> port); };
    EXPECT(viaduct::tests::eventually("the port of the other job", is_told, {.limit = kLongestWait}).holds);
    return port;
}

// Each with each of the other side: short ones, long ones, from anywhere; and collective operations.
void talk(MPI_Comm inter, bool first) {
    const int me = rank_in(inter), others = remote_size_of(inter), mine = size_of(inter);
    for (const int length : {0, 1, 300, 70'000, 3'000'000}) {
        std::vector<char> out(size_t(length), char('a' + me)), in(size_t(length), '?');
        for (int peer = 0; peer < others; peer++) {
            MPI_Status status;
            MPI_Sendrecv(out.data(), length, MPI_CHAR, peer, 5, in.data(), length, MPI_CHAR, peer, 5, inter, &status);
            EXPECT(status.MPI_SOURCE == peer);
            EXPECT(in == std::vector<char>(size_t(length), char('a' + peer)));
        }
    }
    std::vector<MPI_Request> sends(static_cast<size_t>(others));
    for (int peer = 0; peer < others; peer++)
        MPI_Isend(&me, 1, MPI_INT, peer, 6, inter, &sends[size_t(peer)]);
    int sum = 0;
    for (int i = 0; i < others; i++) {
        int got = -1;
        MPI_Status status;
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 6, inter, &status);
        EXPECT(got == status.MPI_SOURCE);
        sum += got;
    }
    EXPECT(sum == others * (others - 1) / 2);
    MPI_Waitall(others, sends.data(), MPI_STATUSES_IGNORE);

    int all = 0;
    const int value = me + (first ? 100 : 1000);
    MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, inter);
    EXPECT(all == others * (first ? 1000 : 100) + others * (others - 1) / 2);

    MPI_Comm both, twice, half;
    MPI_Intercomm_merge(inter, first ? 0 : 1, &both);
    EXPECT(size_of(both) == mine + others);
    EXPECT(rank_in(both) == (first ? me : others + me));
    MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_MAX, both);
    EXPECT(all == 1000 + (first ? others : mine) - 1);
    MPI_Comm_dup(inter, &twice);
    MPI_Barrier(twice);
    // Odd and even ranks, of both jobs each.
    MPI_Comm_split(both, rank_in(both) % 2, -rank_in(both), &half);
    MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, half);
    int expected = 0;
    for (int i = 0; i < mine + others; i++) {
        const int left = first ? mine : others;
        if (i % 2 == rank_in(both) % 2) expected += i < left ? 100 + i : 1000 + i - left;
    }
    EXPECT(all == expected);
    MPI_Comm near;
    MPI_Comm_split_type(both, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    EXPECT(size_of(near) <= std::max(mine, others));
    // An inter-communicator of groups in which both jobs are.
    if (mine + others >= 4) {
        MPI_Comm across;
        const int all_of_us = mine + others;  // the leader of each half is the last of its members
        const int leader = rank_in(both) % 2 == 0 ? all_of_us / 2 * 2 - 1 : (all_of_us - 1) / 2 * 2;
        MPI_Intercomm_create(half, 0, both, leader, 9, &across);
        MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, across);
        MPI_Comm_free(&across);
    }
    // Memory and a file that both jobs reach.
    MPI_Win window;
    int cell = -1;
    MPI_Win_create(&cell, sizeof cell, sizeof cell, MPI_INFO_NULL, both, &window);
    const int next = (rank_in(both) + 1) % size_of(both), own = rank_in(both);
    MPI_Win_fence(0, window);
    MPI_Put(&own, 1, MPI_INT, next, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    EXPECT(cell == (own + size_of(both) - 1) % size_of(both));
    MPI_Win_free(&window);
    MPI_Comm_free(&near);
    MPI_Comm_free(&half);
    MPI_Comm_free(&twice);
    MPI_Comm_disconnect(&both);
}

enum class Messages { yes, none };

void serve(const std::string& file, int rounds, Messages messages = Messages::yes) {
    char port[MPI_MAX_PORT_NAME] = "";
    if (rank_in(MPI_COMM_WORLD) == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        EXPECT(std::strlen(port) < MPI_MAX_PORT_NAME);
        tell(file, port);
    }
    for (int i = 0; i < rounds; i++) {
        MPI_Comm inter;
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        if (messages == Messages::yes) talk(inter, true);
        MPI_Comm_disconnect(&inter);
        EXPECT(inter == MPI_COMM_NULL);
    }
    if (rank_in(MPI_COMM_WORLD) == 0) MPI_Close_port(port);
}

void call(const std::string& file, int rounds, Messages messages = Messages::yes) {
    const std::string port = rank_in(MPI_COMM_WORLD) == 0 ? wait_for(file) : "";
    for (int i = 0; i < rounds; i++) {
        MPI_Comm inter;
        MPI_Comm_connect(port.c_str(), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        if (messages == Messages::yes) talk(inter, false);
        MPI_Comm_disconnect(&inter);
    }
}

// Both in one job: the first half accepts.
void halves() {
    const int rank = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    const bool first = rank < (size + 1) / 2;
    char port[MPI_MAX_PORT_NAME] = "";
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, first, 0, &half);
    if (first)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    const int value = 1;
    int all = 0;
    MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, inter);
    EXPECT(all == remote_size_of(inter));
    MPI_Comm_disconnect(&inter);
    MPI_Comm_free(&half);
    if (rank == 0) MPI_Close_port(port);
}

// Whether the call fails with MPI_ERR_PORT within so many seconds of running time.
bool fails_within(int seconds, const char* port) {
    viaduct::tests::RunningTime<> time;
    MPI_Comm inter;
    const int error = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    return inter == MPI_COMM_NULL && error == MPI_ERR_PORT &&
           std::chrono::nanoseconds(time.running_ns()) <= std::chrono::seconds(seconds);
}

// Ports that are closed, are none, or are another process's.
void wrong_calls() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    char port[MPI_MAX_PORT_NAME];
    EXPECT(MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS);
    EXPECT(MPI_Close_port(port) == MPI_SUCCESS);
    EXPECT(MPI_Close_port(port) == MPI_ERR_PORT);
    EXPECT(fails_within(5, port));
    EXPECT(fails_within(1, "no port"));
    EXPECT(fails_within(1, ""));
    MPI_Comm inter;
    EXPECT(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter) == MPI_ERR_PORT && inter == MPI_COMM_NULL);
    EXPECT(MPI_Comm_accept(port, MPI_INFO_NULL, 1, MPI_COMM_SELF, &inter) == MPI_ERR_ROOT);
    EXPECT(MPI_Comm_join(-1, &inter) == MPI_ERR_ARG);
    // One that is open, and no process accepts.
    EXPECT(MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "1");
    viaduct::tests::RunningTime<> time;
    EXPECT(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter) == MPI_ERR_PORT);
    EXPECT(time.wall_ns() > 900'000'000 && time.running_ns() <= 5'000'000'000);
    MPI_Info_free(&info);
    // The secret is part of the name: with another one the port does not answer.
    port[60] = port[60] == '0' ? '1' : '0';
    EXPECT(MPI_Close_port(port) == MPI_ERR_PORT);
}

// Over a socket of the program's own, which stays usable.
void join(const std::string& file, bool first) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::snprintf(name.sun_path, sizeof name.sun_path, "%s", file.c_str());
    int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (first) {
        const int listener = fd;
        if (::bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 || ::listen(listener, 1) != 0)
            std::abort();
        fd = ::accept(listener, nullptr, nullptr);
        ::close(listener);
    } else {
        const auto is_connected = [&] { return ::connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0; };
        EXPECT(viaduct::tests::eventually("the other job's socket", is_connected, {.limit = kLongestWait}).holds);
    }
    MPI_Comm inter;
    EXPECT(MPI_Comm_join(fd, &inter) == MPI_SUCCESS);
    talk(inter, first);
    MPI_Comm_disconnect(&inter);
    char letter = first ? 'x' : 'y';
    EXPECT(::write(fd, &letter, 1) == 1 && ::read(fd, &letter, 1) == 1 && letter == (first ? 'y' : 'x'));
    ::close(fd);
}

// Rank 0 opens the port and writes its name into the file. Calls return the errors of the other job.
MPI_Comm accept_at_new_port(const std::string& file, char* port) {
    if (rank_in(MPI_COMM_WORLD) == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        tell(file, port);
    }
    MPI_Comm inter;
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    return inter;
}

// The other job dies: what waits for it ends with an error, and this job goes on.
void survive(const std::string& file) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = accept_at_new_port(file, port);
    int value = 0;
    MPI_Request named, anywhere;
    MPI_Irecv(&value, 1, MPI_INT, 0, 1, inter, &named);
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 2, inter, &anywhere);
    MPI_Send(&value, 1, MPI_INT, 0, 3, inter);  // after which it dies
    EXPECT(MPI_Wait(&named, MPI_STATUS_IGNORE) == MPIX_ERR_PROC_FAILED);
    // Another one may still answer, as long as not all are known to be lost.
    int ended = MPIX_ERR_PROC_FAILED_PENDING;
    while (ended == MPIX_ERR_PROC_FAILED_PENDING) ended = MPI_Wait(&anywhere, MPI_STATUS_IGNORE);
    EXPECT(ended == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Recv(&value, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Send(&value, 1, MPI_INT, 0, 3, inter) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Ssend(&value, 1, MPI_INT, 0, 3, inter) == MPIX_ERR_PROC_FAILED);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_disconnect(&inter);
    // And the port still takes others.
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    talk(inter, true);
    MPI_Comm_disconnect(&inter);
}

void die(const std::string& file) {
    const std::string port = rank_in(MPI_COMM_WORLD) == 0 ? wait_for(file) : "";
    MPI_Comm inter;
    MPI_Comm_connect(port.c_str(), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    int value = 0;
    for (int i = 0; i < remote_size_of(inter); i++) MPI_Recv(&value, 1, MPI_INT, i, 3, inter, MPI_STATUS_IGNORE);
    ::_exit(0);
}

// The process of the other job sends nothing, and this job kills it: receives from it end with an error.
void outlive(const std::string& file) {
    const bool kills = rank_in(MPI_COMM_WORLD) == 0;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = accept_at_new_port(file, port);
    int value = 0;
    MPI_Request named, anywhere;
    MPI_Irecv(&value, 1, MPI_INT, 0, 1, inter, &named);
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 2, inter, &anywhere);
    if (kills) EXPECT(::kill(std::stoi(wait_for(file + ".process")), SIGKILL) == 0);
    const viaduct::tests::RunningTime<> time;
    EXPECT(MPI_Wait(&named, MPI_STATUS_IGNORE) == MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Wait(&anywhere, MPI_STATUS_IGNORE) == MPIX_ERR_PROC_FAILED);
    // Documented: 0.1 s. Rank 1 waits for the kill besides.
    EXPECT(!kills || std::chrono::nanoseconds(time.running_ns()) <= std::chrono::seconds(1));
    EXPECT(MPI_Barrier(inter) == MPIX_ERR_PROC_FAILED);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_disconnect(&inter);
}

// Until it is killed: in a call of MPI, or outside.
[[noreturn]] void be_killed(const std::string& file, bool inside) {
    tell(file + ".process", std::to_string(::getpid()).c_str());
    MPI_Comm inter;
    MPI_Comm_connect(wait_for(file).c_str(), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    int value = 0;
    while (inside) MPI_Recv(&value, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE);
    for (;;) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
    const std::string part = argc > 1 ? argv[1] : "";
    const std::string file = argc > 2 ? argv[2] : "";
    const int rounds = argc > 3 ? std::atoi(argv[3]) : 3;
    MPI_Init(&argc, &argv);
    if (part == "serve") serve(file, rounds);
    else if (part == "call") call(file, rounds);
    else if (part == "serve-silently") serve(file, rounds, Messages::none);
    else if (part == "call-silently") call(file, rounds, Messages::none);
    else if (part == "halves") halves();
    else if (part == "wrong") wrong_calls();
    else if (part == "join-first") join(file, true);
    else if (part == "join-second") join(file, false);
    else if (part == "survive") survive(file);
    else if (part == "die") die(file);
    else if (part == "outlive") outlive(file);
    else if (part == "be-killed-inside") be_killed(file, true);
    else if (part == "be-killed-outside") be_killed(file, false);
    else std::abort();
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
