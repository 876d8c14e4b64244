// SPDX-License-Identifier: BSD-2-Clause
// Connections that via makes at the first send: from both sides at once, towards a process that computes, is
// stopped or dead, and among many of which few talk.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cases.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"
#include "tests/eventually.hpp"

namespace viaduct::adi_test {
namespace {

using namespace std::chrono_literals;

constexpr int kDead = 1;

size_t connected_peers() {
    size_t count = 0;
    for (const auto& p : via::via_module->peers()) count += p != nullptr && p->ready() ? 1 : 0;
    return count;
}

// Far more at once than there are credits, of all lengths, before there is a connection. Nothing is overtaken.
void first_flood(Job& job) {
    Engine e(job, module);
    constexpr int kMessages = 120;
    const int next = (e.rank() + 1) % e.size();
    const int before = (e.rank() + e.size() - 1) % e.size();
    const auto size_of = [](int i) { return static_cast<size_t>(i % 10 == 3 ? 50000 + i : i * 13); };
    CHECK(connected_peers() == 0);
    std::vector<std::vector<unsigned char>> data;
    for (int i = 0; i < kMessages; ++i) {
        data.emplace_back(size_of(i));
        fill(data.back(), static_cast<uint32_t>(i + e.rank()));
    }
    std::vector<mpip_req_t> out(kMessages);
    for (size_t i = 0; i < out.size(); ++i) e.isend(out[i], next, 5, data[i].data(), data[i].size());
    std::vector<unsigned char> in(60000);
    for (int i = 0; i < kMessages; ++i) {
        CHECK(e.receive(before, 5, in.data(), in.size()) == size_of(i));
        CHECK(holds(in.data(), size_of(i), static_cast<uint32_t>(i + before)));
    }
    for (mpip_req_t& req : out) CHECK(e.wait(req) == MPIP_SUCCESS);
    CHECK(connected_peers() == 2);  // those that talked, and no other
}

// The receiver makes no progress for longer than several attempts take, or does not run at all.
void unready(Job& job, bool stopped) {
    Engine e(job, module);
    *job.word() = 0;
    job.barrier();
    if (e.rank() == 0) {
        __atomic_store_n(job.word(), ::getpid(), __ATOMIC_SEQ_CST);
        if (!stopped) std::this_thread::sleep_for(1s);  // sleeps: the receiver computes
        int value = 0;
        CHECK(e.receive(1, 1, &value, sizeof value) == 3);
    } else {
        const pid_t receiver = job.await_process();
        if (stopped) ::kill(receiver, SIGSTOP);
        mpip_req_t req;
        e.isend(req, 0, 1, "abc", 3);
        e.progress_for(stopped ? 1500 : 1);
        CHECK(e.failed().empty());
        if (stopped) CHECK((req.r_state & MPIP_REQ_DONE) == 0);
        ::kill(receiver, SIGCONT);
        CHECK(e.wait(req) == MPIP_SUCCESS);
    }
    e.barrier();
    CHECK(e.failed().empty());
}
void computing(Job& job) { unready(job, false); }
void stopped(Job& job) { unready(job, true); }

// A process that lives is never taken for dead, however long it does not run: not when its listener was notified once
// and that request could not be taken away, nor when several notify it.
void starved(Job& job) {
    Engine e(job, module);
    *job.word() = 0;
    job.barrier();
    if (e.rank() == 0) {
        __atomic_store_n(job.word(), ::getpid(), __ATOMIC_SEQ_CST);
        for (int from = 1; from < e.size(); ++from) {
            int value = 0;
            CHECK(e.receive(from, 1, &value, sizeof value) == 3);
        }
    } else {
        const pid_t receiver = job.await_process();
        ::kill(receiver, SIGSTOP);
        mpip_req_t req;
        e.isend(req, 0, 1, "abc", 3);
        e.progress_for(3500);  // the limit is a second
        CHECK(e.failed().empty());
        ::kill(receiver, SIGCONT);
        CHECK(e.wait(req) == MPIP_SUCCESS);
    }
    e.barrier();
    CHECK(e.failed().empty());
}

// One that is killed after it was notified, while its connection is asked for.
void dead_while_asked(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    *job.word() = 0;
    job.barrier();
    if (e.rank() == kDead) {
        __atomic_store_n(job.word(), ::getpid(), __ATOMIC_SEQ_CST);
        for (;;) ::pause();  // it was notified, and does not ask
    }
    const pid_t peer = job.await_process();
    mpip_req_t req;
    e.isend(req, kDead, 1, "abc", 3);
    e.progress_for(1000);
    CHECK(e.failed().empty());
    ::kill(peer, SIGKILL);
    tests::RunningTime<> time;
    CHECK(e.wait(req) == MPIP_ERR_PROC_FAILED);
    CHECK(std::chrono::nanoseconds(time.running_ns()) <= 1s);
    CHECK(e.failed().size() == 1 && e.failed()[0] == kDead);
}

// One that died before any message to it is found at the first message, within two seconds.
void dead_before(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    *job.word() = 0;
    job.barrier();
    if (e.rank() == kDead) {
        __atomic_store_n(job.word(), ::getpid(), __ATOMIC_SEQ_CST);
        ::kill(::getpid(), SIGKILL);
    }
    job.await_end(job.await_process());
    tests::RunningTime<> time;
    mpip_req_t first, second;
    e.isend(first, kDead, 1, "abc", 3);
    e.isend(second, kDead, 1, "abc", 3);
    CHECK(e.wait(first) == MPIP_ERR_PROC_FAILED);
    CHECK(e.wait(second) == MPIP_ERR_PROC_FAILED);
    CHECK(std::chrono::nanoseconds(time.running_ns()) <= 2s);
    CHECK(e.failed().size() == 1 && e.failed()[0] == kDead);
    CHECK(e.process(kDead)->p_proto->pt_ping(e.comm(), kDead) != MPIP_SUCCESS);
    // The others find each other.
    const int other = e.rank() == 0 ? 2 : 0;
    int value = 0;
    e.send(other, 2, "abc", 3);
    CHECK(e.receive(other, 2, &value, sizeof value) == 3);
}

// Each is connected to two of sixty-four: memory and connections follow use.
void neighbours(Job& job) {
    Engine e(job, module);
    const int next = (e.rank() + 1) % e.size();
    const int before = (e.rank() + e.size() - 1) % e.size();
    for (int round = 0; round < 3; ++round) {
        mpip_req_t out;
        int value = -1;
        const int mine = e.rank() * 10 + round;
        e.isend(out, next, round, &mine, sizeof mine);
        CHECK(e.receive(before, round, &value, sizeof value) == sizeof value);
        CHECK(value == before * 10 + round);
        CHECK(e.wait(out) == MPIP_SUCCESS);
    }
    CHECK(connected_peers() == 2);
    const auto each = static_cast<size_t>(via::via_module->nic.credit_rules.first_receives());
    CHECK(via::via_module->nic.buffers.total() <= 128 + 4 * each);
}

// All send to all at once, and none waits for another one before.
void all_at_once(Engine& e) {
    std::vector<mpip_req_t> out(static_cast<size_t>(e.size()));
    const int mine = e.rank();
    for (int step = 1; step < e.size(); ++step)
        e.isend(out[static_cast<size_t>(step)], (mine + step) % e.size(), 1, &mine, sizeof mine);
    for (int step = 1; step < e.size(); ++step) {
        const int from = (mine + step) % e.size();
        int value = -1;
        CHECK(e.receive(from, 1, &value, sizeof value) == sizeof value && value == from);
    }
    for (int step = 1; step < e.size(); ++step) CHECK(e.wait(out[static_cast<size_t>(step)]) == MPIP_SUCCESS);
    CHECK(connected_peers() == static_cast<size_t>(e.size() - 1));
    CHECK(e.failed().empty());
}

// A connection costs the agent one request of each side, which stands until the other side makes its own: no notice by
// a request to the listener, which would be answered by a thread that gets no processor, and nothing asked again.
void crowd(Job& job) {
    Engine e(job, module);
    all_at_once(e);
    CHECK(client_requests == 0);
    CHECK(peer_requests < 2 * static_cast<unsigned>(e.size() - 1));
    e.barrier();
}

// The program has closed the descriptors that are not its own: the listeners serve.
void without_page(Job& job) {
    Engine e(job, module);
    via::via_module->nic.connects.page.close();
    job.barrier();
    all_at_once(e);
    *job.word() = 0;
    e.barrier();
    if (client_requests != 0) __atomic_fetch_add(job.word(), 1, __ATOMIC_SEQ_CST);
    e.barrier();
    CHECK(__atomic_load_n(job.word(), __ATOMIC_SEQ_CST) > 0);
}

}  // namespace

std::vector<Case> on_demand_cases() {
    return {
        {"first-flood", first_flood, 4, 20, "via", {{"CMPI_ON_DEMAND", "0"}, {"CMPI_PREPOST_DEPTH", "4"}}},
        {"computing", computing, 2, 20, "via", {{"CMPI_ON_DEMAND", "0"}}},
        {"stopped", stopped, 2, 20, "via", {{"CMPI_ON_DEMAND", "0"}}},
        {"starved", starved, 3, 30, "via", {{"CMPI_ON_DEMAND", "0"}, {"CMPI_CONNECT_TIMEOUT", "1"}}},
        {"dead-while-asked", dead_while_asked, 2, 20, "via", {{"CMPI_ON_DEMAND", "0"}}, {kDead}},
        {"dead-before", dead_before, 3, 20, "via", {{"CMPI_ON_DEMAND", "0"}}, {kDead}},
        {"neighbours-64", neighbours, 64, 60, "via"},
        {"crowd", crowd, 24, 60, "via", {{"CMPI_ON_DEMAND", "0"}}},
        {"without-page", without_page, 4, 20, "via", {{"CMPI_ON_DEMAND", "0"}}},
    };
}

}  // namespace viaduct::adi_test
