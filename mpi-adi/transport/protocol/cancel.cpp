// SPDX-License-Identifier: BSD-2-Clause
// Taking back a send (spec/adi 6.5, C70): one that was not started is unlinked by the engine; one whose
// request was sent is recalled by its number. If the receiver has matched it meanwhile it is delivered as if
// there had been no recall.
#include "mpi-adi/transport/protocol/peer.hpp"

namespace viaduct::protocol {

int Protocol::cancel_send(mpip_req_t* req) {
    Transfer* t = ids_.find(req->r_id) == req ? transfer_of(req) : nullptr;
    if (t == nullptr || t->replied || t->cancelling) return MPIP_SUCCESS;
    t->cancelling = true;
    Frame frame = {};
    frame.type = FrameType::cancel;
    frame.sreq = req->r_id;
    control(*t->peer, frame);
    return MPIP_SUCCESS;
}

bool Protocol::incoming_cancel(Peer& p, const Frame& frame) {
    // Only long messages have a name; 0 would be any other.
    unexmsg_t* message = frame.sreq == 0 ? nullptr : mpip_up.withdraw(p.proc, frame.sreq);
    if (message != nullptr) {
        ufree(message);
        mpip_up.release(message);
    }
    Frame answer = {};
    answer.type = FrameType::cancel_reply;
    answer.flags = message != nullptr ? 1 : 0;
    answer.sreq = frame.sreq;
    control(p, answer);
    return true;
}

bool Protocol::incoming_cancel_reply(Peer& p, const Frame& frame) {
    if (ids_.find(frame.sreq) == nullptr) return true;  // delivered meanwhile
    Transfer* t = find_transfer(p, frame.sreq, true);
    if (t == nullptr || !t->cancelling) return false;
    if (frame.flags == 0) return true;
    if (t->replied) return false;
    mpip_req_t* req = t->request;
    drop_transfer(req);
    req->r_state |= MPIP_REQ_CANCELLED;
    mpip_req_done(req);
    return true;
}

}  // namespace viaduct::protocol
