// SPDX-License-Identifier: BSD-2-Clause
// No packet buffer is left in the middle of a long message: the connection ends, each request ends once, and nothing
// of the message stays behind.
#include "cases.hpp"
#include "mpi-adi/transport/via/device.hpp"

namespace viaduct::adi_test {
namespace {

constexpr size_t kBytes = 300'000;

class AllBuffers {
public:
    AllBuffers() {
        while (via::vbuf* v = via::get_vbuf()) all_.push_back(v);
    }
    ~AllBuffers() {
        for (via::vbuf* v : all_) via::release_vbuf(v);
    }

private:
    std::vector<via::vbuf*> all_;
};

// The sender's part: its message is asked for and never finished.
void send_in_vain(Engine& e) {
    std::vector<unsigned char> data(kBytes);
    fill(data, 7);
    mpip_req_t req;
    e.isend(req, 0, 1, data.data(), data.size());
    CHECK(e.wait(req) == MPIP_ERR_PROC_FAILED);
}

// All is read, and there is no buffer to tell so.
void without_finish(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    if (e.rank() != 0) return send_in_vain(e);
    while (e.unexpected() == 0) e.progress();
    std::vector<unsigned char> in(kBytes);
    mpip_req_t req;
    e.irecv(req, 1, 1, in.data(), in.size());
    req.r_flags |= MPIP_REQ_NOTIFY;
    via::work_on_flow_list();  // posts the remote read
    const AllBuffers none_left;
    CHECK(via::viadev.finished != nullptr);
    while (e.failed().empty()) e.progress();
    CHECK(e.completed == 1);
    CHECK(e.wait(req) == MPIP_SUCCESS);
    CHECK(holds(in.data(), in.size(), 7));
}

// Nor one to tell the sender where to write.
void without_reply(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    if (e.rank() != 0) return send_in_vain(e);
    while (e.unexpected() == 0) e.progress();
    const AllBuffers none_left;
    std::vector<unsigned char> in(kBytes);
    mpip_req_t req;
    e.irecv(req, 1, 1, in.data(), in.size());
    while (e.failed().empty()) e.progress();
    CHECK(e.wait(req) == MPIP_ERR_PROC_FAILED);
    CHECK(via::connection_of(e.process(1))->shandle_head == nullptr);
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
