// SPDX-License-Identifier: BSD-2-Clause
// Taking back a send (adi-facts 6.5, C70): one that was not started is unlinked by the engine; one whose long
// request is away is asked back by name. If the receiver has matched it meanwhile it is delivered as if
// nothing had been asked.
#include "mpi-adi/transport/via/device.hpp"

namespace viaduct::via {

namespace {

void send_cancel(viadev_connection_t* c, PacketType type, reqaddr_t sreq, bool taken_back) {
    vbuf* v = get_vbuf();
    if (v == nullptr) return fail_connection(c, "no buffer is left for a cancel packet");
    Cancel* p = packet_of<Cancel>(v);
    p->header.type = type;
    p->header.flags = 0;
    p->sreq = sreq;
    p->taken_back = taken_back ? 1 : 0;
    vbuf_init_sendrecv(v, sizeof(Cancel));
    viadev_post_send(c, v);
}

}  // namespace

int cancel_send(mpip_req_t* req) {
    LongTransfer* t = viadev.ids.find(req->r_id) == req ? transfer_of(req) : nullptr;
    if (t == nullptr || t->replied || t->cancelling) return MPIP_SUCCESS;
    t->cancelling = true;
    send_cancel(t->connection, PacketType::cancel_request, req->r_id, false);
    return MPIP_SUCCESS;
}

bool incoming_cancel_request(viadev_connection_t* c, const Cancel& packet) {
    // Only long messages have a name; 0 would be any other.
    unexmsg_t* message = packet.sreq == 0 ? nullptr : mpip_up.withdraw(c->proc, packet.sreq);
    if (message != nullptr) {
        keep_start(static_cast<LongStart*>(static_cast<Held*>(message->um_data)));
        mpip_up.release(message);
    }
    send_cancel(c, PacketType::cancel_reply, packet.sreq, message != nullptr);
    return true;
}

bool incoming_cancel_reply(viadev_connection_t* c, const Cancel& packet) {
    mpip_req_t* req = viadev.ids.find(packet.sreq);
    if (req == nullptr) return true;  // delivered meanwhile
    if (req->r_proc != c->proc || (req->r_flags & MPIP_REQ_SEND) == 0 || !transfer_of(req)->cancelling)
        return false;
    if (packet.taken_back == 0) return true;
    if (transfer_of(req)->replied) return false;
    forget_transfer(req);
    req->r_state |= MPIP_REQ_CANCELLED;
    mpip_req_done(req);
    return true;
}

}  // namespace viaduct::via
