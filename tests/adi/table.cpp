// SPDX-License-Identifier: BSD-2-Clause
// The module's table beside messages: its blocking entries, and processes that join and part.
#include <cstring>

#include "cases.hpp"

namespace viaduct::adi_test {
namespace {

// Blocking entries of the table itself, ping, and what a process sends itself.
void table(Job& job) {
    Engine e(job, module);
    unsigned char data[64] = {42};
    if (e.size() > 1 && e.rank() < 2) {
        process_t* other = e.process(1 - e.rank());
        if (e.rank() == 0) {
            CHECK(other->p_proto->pt_fsend(other, data, 64, nullptr, 1, e.comm(), MPIP_MODE_SYNC) ==
                  MPIP_SUCCESS);
        } else {
            mpip_req_t status;
            CHECK(other->p_proto->pt_frecv(other, data, 64, nullptr, kAny, e.comm(), &status) ==
                  MPIP_SUCCESS);
            CHECK(status.r_tag == 1 && status.r_rank == 0 && status.r_length == 64);
        }
        CHECK(other->p_proto->pt_ping(e.comm(), 1 - e.rank()) == MPIP_SUCCESS);
        void* word;
        unsigned value, sleepers, n;
        CHECK(other->p_proto->pt_getevents(&word, &value, &sleepers, &n) == MPIP_SUCCESS);
        // Posted receives are counted by process; one from anywhere counts for all until it is matched.
        other->p_proto->pt_postedreceive(other);
        other->p_proto->pt_postedrcvany(e.comm());
        CHECK(other->p_nrecvs == 2 && e.process(e.rank())->p_nrecvs == 1);
        other->p_proto->pt_matchedrcvany(e.comm(), other);
        CHECK(other->p_nrecvs == 2 && e.process(e.rank())->p_nrecvs == 0);
        other->p_proto->pt_unpostedreceive(other);
        other->p_proto->pt_unpostedreceive(other);
        CHECK(other->p_nrecvs == 0);
        struct pollfd* polls;
        int polled, timeout;
        CHECK(other->p_proto->pt_getpolls(&polls, &polled, &timeout) == MPIP_SUCCESS);
        const mpip_properties& told = other->p_proto->pt_prop;
        CHECK(told.mp_latency_ns > 0 && told.mp_bandwidth_mb > 0 && told.mp_cache_size > 0);
        CHECK(told.mp_exclusivity < e.process(e.rank())->p_proto->pt_prop.mp_exclusivity);
        CHECK(told.mp_eager_limit > 0 && told.mp_first_frag > 0);
        CHECK(told.mp_min_frag > 0 && told.mp_min_frag <= told.mp_max_frag);
        const bool writes = std::strcmp(module, "via") == 0 || std::strcmp(module, "rails") == 0;
        CHECK(((told.mp_flags & MPIP_PROP_PUT) != 0) == writes);
    }
    mpip_req_t to_self, from_self;
    unsigned char back[64] = {};
    e.isend(to_self, e.rank(), 2, data, 64, MPIP_MODE_SYNC);
    CHECK((to_self.r_state & MPIP_REQ_DONE) == 0);
    e.irecv(from_self, e.rank(), 2, back, 64);
    CHECK(e.wait(to_self) == MPIP_SUCCESS);
    CHECK(e.wait(from_self) == MPIP_SUCCESS);
    CHECK(std::memcmp(data, back, 64) == 0);
    e.send(e.rank(), 3, data, 64);
    CHECK(e.receive(e.rank(), 3, back, 64) == 64);
    e.isend(to_self, e.rank(), 4, data, 64, MPIP_MODE_SYNC);
    CHECK(e.process(e.rank())->p_proto->pt_cancelsend(&to_self) == MPIP_SUCCESS);
    CHECK((to_self.r_state & MPIP_REQ_CANCELLED) != 0);

    // NOTIFY brings an upcall, once.
    if ((e.rank() ^ 1) < e.size()) {
        to_self = {};
        to_self.r_flags = MPIP_REQ_SEND | MPIP_REQ_NOTIFY;
        to_self.r_proc = e.process(e.rank() ^ 1);
        to_self.r_buf = data;
        to_self.r_bytes = 64;
        to_self.r_tag = 5;
        to_self.r_ctxt = e.comm()->c_sndctxt;
        to_self.r_rank = e.rank();
        mpip_enqsend(to_self.r_proc, &to_self);
        to_self.r_proc->p_proto->pt_queuedsend(to_self.r_proc);
        CHECK(e.receive(e.rank() ^ 1, 5, back, 64) == 64);
        CHECK(e.wait(to_self) == MPIP_SUCCESS);
        CHECK(e.completed == 1);
    }
    e.barrier();
}

// Processes that join later, and some that part while the others go on (spec/adi C24-C26).
void membership(Job& job) {
    constexpr int kLate = 3;
    Engine e(job, module, kLate);
    std::vector<unsigned char> in(100000);
    // Each of these with each other; enough to need all buffers of the process that joined.
    const auto finish_handshake = [&](int first, int end, uint32_t number) {
        if (e.rank() < first || e.rank() >= end) return;
        std::vector<unsigned char> out(in.size());
        fill(out, number + static_cast<uint32_t>(e.rank()));
        for (int step = 1; step < end - first; ++step) {
            const int to = first + (e.rank() - first + step) % (end - first);
            const int from = first + (e.rank() - first + (end - first) - step) % (end - first);
            for (const size_t size : {size_t{8}, size_t{5000}, in.size()}) {
                mpip_req_t send, receive;
                e.irecv(receive, from, 5, in.data(), size);
                e.isend(send, to, 5, out.data(), size);
                CHECK(e.wait(receive) == MPIP_SUCCESS && e.wait(send) == MPIP_SUCCESS);
                CHECK(holds(in.data(), size, number + static_cast<uint32_t>(from)));
            }
        }
    };
    finish_handshake(0, kLate, 1);
    e.add_late();
    CHECK(e.process(e.rank() == 0 ? 1 : 0)->p_proto->pt_nprocs == static_cast<unsigned>(e.size() - 1));
    for (uint32_t round = 0; round < 30; ++round) finish_handshake(0, e.size(), 100 + round);
    e.barrier();
    // The last one parts from all, and all from it.
    const int last = e.size() - 1;
    std::vector<int> from = {last};
    if (e.rank() == last) {
        from.clear();
        for (int rank = 0; rank < last; ++rank) from.push_back(rank);
    }
    e.part_from(from);
    for (const int rank : from) {
        CHECK((e.process(rank)->p_flags & (MPIP_PROC_REMOVED | MPIP_PROC_ATTACHED)) == MPIP_PROC_REMOVED);
        CHECK(e.process(rank)->p_proto->pt_ping(e.comm(), rank) != MPIP_SUCCESS);
    }
    CHECK(e.process(from[0])->p_proto->pt_nprocs == static_cast<unsigned>(e.size() - 1) - from.size());
    finish_handshake(0, last, 1000);
    CHECK(e.failed().empty());
}

// A process that parts from several tells all of them at once: one that answers late keeps none of the others.
void parting(Job& job) {
    Engine e(job, module);
    e.barrier();
    switch (e.rank()) {
        case 0:
            while (__atomic_load_n(job.word(), __ATOMIC_SEQ_CST) == 0) e.progress();
            e.part_from({1});
            break;
        case 1:
            e.part_from({0, 2});
            break;
        default:
            e.part_from({1});
            __atomic_store_n(job.word(), 1, __ATOMIC_SEQ_CST);
    }
    CHECK(e.failed().empty());
}
}  // namespace

std::vector<Case> table_cases() {
    return {
        {"membership", membership, 5, 30},
        {"parting", parting, 3, 20},
        {"table", table, 2, 20},
        {"table-1", table, 1, 20},
    };
}

}  // namespace viaduct::adi_test
