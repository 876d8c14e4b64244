// SPDX-License-Identifier: BSD-2-Clause
// Entries of the table that an engine may do without, over every module: each does what cmpi_adi.h says of
// it. (addconns and remconns: table.cpp, membership.)
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "cases.hpp"
#include "tests/eventually.hpp"

namespace viaduct::adi_test {
namespace {

constexpr size_t kWhole = 300'000;

// A message that the module holds is delivered by one blocking call: whole, into less room, and of no length.
void unexpected_receive(Job& job) {
    Engine e(job, module);
    std::vector<unsigned char> data(kWhole);
    constexpr size_t kRoom[] = {kWhole, kWhole / 3, 0};
    for (int tag = 0; tag < 3; ++tag) {
        if (e.rank() == 0) {
            fill(data, static_cast<uint32_t>(tag));
            e.send(1, tag, data.data(), kWhole, MPIP_MODE_SYNC);
            continue;
        }
        while (e.unexpected() == 0) e.progress();
        unexmsg_t* message = e.take_unexpected();
        CHECK(message->um_buf == nullptr && message->um_env.ev_len == static_cast<int64_t>(kWhole));
        process_t* from = message->um_proc;
        const size_t room = kRoom[tag];
        std::vector<unsigned char> in(kWhole, 0xee);
        mpip_req_t status;
        const int rc = from->p_proto->pt_urecv(from, message, in.data(), room, nullptr, e.comm(), &status);
        CHECK(rc == (room == kWhole ? MPIP_SUCCESS : MPIP_ERR_TRUNCATE) && rc == status.r_error);
        CHECK((status.r_state & MPIP_REQ_DONE) != 0 && status.r_tag == tag && status.r_rank == 0);
        CHECK(status.r_length == static_cast<int64_t>(room));
        CHECK(holds(in.data(), room, static_cast<uint32_t>(tag)));
        for (size_t i = room; i < kWhole; ++i) CHECK(in[i] == 0xee);
        e.release(message);
    }
    e.barrier();
    CHECK(e.failed().empty());
}

// Returns when the request is done, and not before: the other side begins to look a while later.
void blocking_progress(Job& job) {
    Engine e(job, module);
    std::vector<unsigned char> data(kWhole);
    struct protocol* way = e.process(1 - e.rank())->p_proto;
    for (const size_t bytes : {size_t{8}, kWhole}) {
        mpip_req_t req;
        if (e.rank() == 0) {
            fill(data, 1);
            e.isend(req, 1, 1, data.data(), bytes, MPIP_MODE_SYNC);
            CHECK((req.r_state & MPIP_REQ_DONE) == 0);
        } else {
            ::usleep(20'000);  // sleeps: the sender waits meanwhile
            e.irecv(req, 0, 1, data.data(), bytes);
        }
        CHECK(way->pt_progress_blk(&req, 1) == MPIP_SUCCESS);
        CHECK((req.r_state & MPIP_REQ_DONE) != 0);
        CHECK(holds(data.data(), bytes, 1));
    }
    e.barrier();
}

// A send that was not started yet, taken off the queue, is none: what is behind it comes in its place.
void taken_off(Job& job) {
    constexpr int kMost = 100'000;
    constexpr size_t kBytes = 4000;
    Engine e(job, module);
    if (e.rank() == 0) job.say(-1);
    job.barrier();
    std::vector<unsigned char> data(kBytes);
    if (e.rank() == 0) {
        process_t* other = e.process(1);
        std::vector<std::unique_ptr<mpip_req_t>> all;
        while (other->p_sendhead == nullptr) {  // the other side does not look
            CHECK(all.size() < kMost);
            all.push_back(std::make_unique<mpip_req_t>());
            e.isend(*all.back(), 1, static_cast<int>(all.size()), data.data(), kBytes);
        }
        mpip_req_t* last = mpip_deqsend(other);
        CHECK(last == all.back().get() && other->p_sendhead == nullptr);
        other->p_proto->pt_dequeuedsend(other);
        all.pop_back();
        mpip_req_t behind;
        const unsigned char mark = 42;
        e.isend(behind, 1, kMost + 1, &mark, 1);
        job.say(static_cast<int>(all.size()));
        for (const auto& req : all) CHECK(e.wait(*req) == MPIP_SUCCESS);
        CHECK(e.wait(behind) == MPIP_SUCCESS);
    } else {
        int count = -1;
        CHECK(tests::eventually("the number of messages", [&] { return (count = job.said()) >= 0; }));
        for (int tag = 1; tag <= count; ++tag) CHECK(e.receive(0, tag, data.data(), kBytes) == kBytes);
        mpip_req_t next;
        e.irecv(next, 0, kAny, data.data(), kBytes);
        CHECK(e.wait(next) == MPIP_SUCCESS);
        CHECK(next.r_tag == kMost + 1 && next.r_length == 1 && data[0] == 42);
    }
    e.barrier();
    CHECK(e.unexpected() == 0 && e.failed().empty());
}

// A send under way is ended with an error, once.
void ended_request(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    if (e.rank() == 0) job.say(0);
    job.barrier();
    std::vector<unsigned char> data(kWhole);
    if (e.rank() == 0) {
        process_t* other = e.process(1);
        mpip_req_t req;
        e.isend(req, 1, 1, data.data(), kWhole, MPIP_MODE_SYNC);
        while ((req.r_state & MPIP_REQ_STARTED) == 0) e.progress();
        while (job.said() != 1) e.progress();  // its request is there
        req.r_flags |= MPIP_REQ_NOTIFY;
        other->p_proto->pt_error_request(&req);
        CHECK((req.r_state & MPIP_REQ_DONE) != 0 && req.r_error == MPIP_ERR_PROC_FAILED);
        CHECK(e.completed == 1);
        other->p_proto->pt_error_request(&req);
        e.progress_for(20);
        CHECK(e.completed == 1);
        job.say(2);
        ::_exit(0);
    }
    while (e.unexpected() == 0) e.progress();
    job.say(1);
    while (job.said() != 2) e.progress();
    ::_exit(0);
}

// The count of active requests: a long send from its envelope to its end, a receive from the match, and no
// more when all is done, taken back or failed.
void active(Job& job) {
    Engine e(job, module);
    if (e.rank() == 0) job.say(0);
    job.barrier();
    struct protocol* way = e.process(1 - e.rank())->p_proto;
    CHECK(way->pt_nactv == 0);
    std::vector<unsigned char> data(kWhole);
    if (e.rank() == 0) {
        mpip_req_t kept, taken_back;
        e.isend(kept, 1, 1, data.data(), kWhole, MPIP_MODE_SYNC);
        e.isend(taken_back, 1, 2, data.data(), kWhole, MPIP_MODE_SYNC);
        e.send(1, 3, data.data(), 8);
        while (((kept.r_state & taken_back.r_state) & MPIP_REQ_STARTED) == 0) e.progress();
        CHECK(way->pt_nactv == 2);
        while (job.said() != 1) e.progress();
        CHECK(way->pt_cancelsend(&taken_back) == MPIP_SUCCESS);
        e.wait(taken_back);
        CHECK((taken_back.r_state & MPIP_REQ_CANCELLED) != 0 && way->pt_nactv == 1);
        job.say(2);
        CHECK(e.wait(kept) == MPIP_SUCCESS);
    } else {
        while (e.unexpected() < 3) e.progress();
        CHECK(way->pt_nactv == 0);
        job.say(1);
        while (job.said() != 2) e.progress();
        CHECK(e.unexpected() == 2);
        mpip_req_t req;
        e.irecv(req, 0, 1, data.data(), kWhole);
        CHECK((req.r_state & MPIP_REQ_DONE) != 0 || way->pt_nactv == 1);
        CHECK(e.wait(req) == MPIP_SUCCESS);
        CHECK(e.receive(0, 3, data.data(), 8) == 8);
    }
    CHECK(way->pt_nactv == 0);
    e.barrier();
}

// A thread that sleeps on what the module names is woken by a message.
void sleeping(Job& job) {
    Engine e(job, module);
    if (e.rank() == 0) job.say(0);
    struct protocol* way = e.process(1 - e.rank())->p_proto;
    char byte = 7;
    e.barrier();
    if (e.rank() == 0) {
        job.await(1);
        e.send(1, 1, &byte, 1);
        return e.barrier();
    }
    mpip_req_t req;
    e.irecv(req, 0, 1, &byte, 1);
    while (way->pt_progress_nblk(1) > 0) {
    }
    struct pollfd* polls = nullptr;
    int polled = -1, timeout = 0;
    CHECK(way->pt_getpolls(&polls, &polled, &timeout) == MPIP_SUCCESS);
    CHECK(polled == 0 || polls != nullptr);
    void* word = nullptr;
    unsigned value = 0, sleepers = 0, words = ~0U;
    CHECK(way->pt_getevents(&word, &value, &sleepers, &words) == MPIP_SUCCESS);
    CHECK(words == 0 || (words == 1 && word != nullptr));
    job.say(1);
    if (polled > 0) {
        while (::poll(polls, static_cast<nfds_t>(polled), -1) < 0) CHECK(errno == EINTR);
    } else {
        CHECK(way->pt_block(1'000'000) >= 0);
    }
    CHECK(e.wait(req) == MPIP_SUCCESS);
    e.barrier();
}

// Receives posted are counted by process: one by name for that one, one from anywhere for all until it is
// matched.
void counted(Job& job) {
    Engine e(job, module);
    process_t* other = e.process((e.rank() + 1) % e.size());
    process_t* third = e.process((e.rank() + 2) % e.size());
    struct protocol* way = other->p_proto;
    const auto are = [&](int first, int second) {
        return other->p_nrecvs == first && third->p_nrecvs == second;
    };
    CHECK(are(0, 0));
    way->pt_postedreceive(other);
    CHECK(are(1, 0));
    way->pt_postedrcvany(e.comm());
    way->pt_postedrcvany(e.comm());
    CHECK(are(3, 2));
    way->pt_unpostedrcvany(e.comm());
    CHECK(are(2, 1));
    way->pt_matchedrcvany(e.comm(), third);
    CHECK(are(1, 1));
    way->pt_unpostedreceive(third);
    way->pt_unpostedreceive(other);
    CHECK(are(0, 0));
    for (int rank = 0; rank < e.size(); ++rank)
        CHECK(e.process(rank)->p_proto->pt_ping(e.comm(), rank) == MPIP_SUCCESS);
    e.barrier();
}

}  // namespace

std::vector<Case> entry_cases() {
    return {
        {"urecv", unexpected_receive, 2, 20},
        {"progress-blk", blocking_progress, 2, 20},
        {"dequeuedsend", taken_off, 2, 20},
        {"error-request", ended_request, 2, 20},
        {"active", active, 2, 20},
        {"sleeping", sleeping, 2, 30},
        {"counted", counted, 3, 20},
    };
}

}  // namespace viaduct::adi_test
