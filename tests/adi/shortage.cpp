// SPDX-License-Identifier: BSD-2-Clause
// No packet buffer is left in the middle of a long message: what would be said waits until there is one, and
// each request ends once.
#include "cases.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::adi_test {
namespace {

constexpr size_t kBytes = 300'000;

class AllBuffers {
public:
    AllBuffers() {
        while (via::vbuf* v = via::via_module->nic.buffers.get()) all_.push_back(v);
    }
    ~AllBuffers() {
        for (via::vbuf* v : all_) via::release_vbuf(v);
    }

private:
    std::vector<via::vbuf*> all_;
};

// The sender's part: its message is asked for, and finished late.
void send_long(Engine& e) {
    std::vector<unsigned char> data(kBytes);
    fill(data, 7);
    mpip_req_t req;
    e.isend(req, 0, 1, data.data(), data.size());
    CHECK(e.wait(req) == MPIP_SUCCESS);
}

// All is read, and there is no buffer to tell so.
void without_finish(Job& job) {
    Engine e(job, module);
    if (e.rank() != 0) return send_long(e);
    while (e.unexpected() == 0) e.progress();
    std::vector<unsigned char> in(kBytes);
    mpip_req_t req;
    e.irecv(req, 1, 1, in.data(), in.size());
    req.r_flags |= MPIP_REQ_NOTIFY;
    via::via_module->push(*protocol::peer_of(e.process(1)));  // posts the remote read
    {
        const AllBuffers none_left;
        CHECK(via::via_module->has_done_transfers());
        CHECK(e.wait(req) == MPIP_SUCCESS);
        for (int i = 0; i < 1000; ++i) e.progress();
        CHECK(protocol::peer_of(e.process(1))->blocked());
    }
    while (protocol::peer_of(e.process(1))->blocked()) e.progress();
    CHECK(e.completed == 1 && e.failed().empty());
    CHECK(holds(in.data(), in.size(), 7));
}

// Nor one to tell the sender where to write.
void without_reply(Job& job) {
    Engine e(job, module);
    if (e.rank() != 0) return send_long(e);
    while (e.unexpected() == 0) e.progress();
    std::vector<unsigned char> in(kBytes);
    mpip_req_t req;
    {
        const AllBuffers none_left;
        e.irecv(req, 1, 1, in.data(), in.size());
        for (int i = 0; i < 1000; ++i) e.progress();
        CHECK((req.r_state & MPIP_REQ_DONE) == 0);
    }
    CHECK(e.wait(req) == MPIP_SUCCESS);
    CHECK(holds(in.data(), in.size(), 7));
}

}  // namespace

std::vector<Case> shortage_cases() {
    const std::vector<std::pair<const char*, const char*>> kFew = {
        {"CMPI_PREPOST_DEPTH", "4"}, {"CMPI_VBUF_SPARES", "4"}, {"CMPI_VBUF_MAX", "24"}};
    auto reading = kFew, sharing = kFew;
    reading.push_back({"CMPI_RENDEZVOUS", "rget"});
    sharing.push_back({"CMPI_RENDEZVOUS", "both"});
    return {
        {"no-buffer-for-finish", without_finish, 2, 20, "via", reading},
        {"no-buffer-for-reply", without_reply, 2, 20, "via", sharing},
    };
}

}  // namespace viaduct::adi_test
