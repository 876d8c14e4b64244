// SPDX-License-Identifier: BSD-2-Clause
// Connection attempts over rdma_cm (viaduct/provider.hpp, "Connecting"). The operations (attempts.cpp) are
// called by any thread without locks; everything else here runs with NicContext::connect_mutex held, most of
// it on the progress thread. The protocol is docs/verbs.md, "Connecting". Lock order: nic.hpp.
#pragma once

#include <rdma/rdma_cma.h>

#include "core/clock/limits.hpp"
#include "providers/verbs/link.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

struct ConnectOp {
    enum Kind : uint8_t { listen, request, peer, accept };
    Kind kind = listen;
    NicContext* nic = nullptr;
    ViCore* vi = nullptr;
    EndAddress local, remote;
    ViTraits traits;
    Deadline deadline = kNever;
    int64_t begun = 0;
    uint32_t nonce = 0;
    verbs::Link* link = nullptr;  // owned by the attempt until it succeeds
    bool link_initial = false;
    rdma_cm_id* id = nullptr;
    uint32_t tries = 0;    // ports tried in this round
    int64_t retry_at = 0;  // 0: not waiting for a time
    int64_t retry_pause = 0;
    // At this time a connect probe is sent (connect_probe.hpp), between peers the request again. 0: no request is out.
    int64_t probe_at = 0;
    int64_t probe_interval = 0;
    rdma_cm_id* probe = nullptr;  // asks whether the request is known
    bool answering = false;       // peer to peer: the other side's request is being accepted
    bool decided = false;
    ConnectResult result;
};

}  // namespace viaduct

namespace viaduct::verbs {

// For rdma_resolve_addr and rdma_resolve_route, milliseconds.
inline int resolve_ms() { return static_cast<int>(limit_ns(TimeLimit::verbs_resolve) / 1'000'000); }

Status listen(NicContext*, const EndAddress& local, Deadline, ConnectOp** out);
Status request(NicContext*, ViCore&, const EndAddress& local, const EndAddress& remote, const ViTraits&,
               Deadline, ConnectOp** out);
Status peer_request(NicContext*, ViCore&, const EndAddress& local, const EndAddress& remote, const ViTraits&,
                    Deadline, ConnectOp** out);
Status accept(NicContext*, uint64_t incoming, ViCore&, const ViTraits&, ConnectOp** out);
Status reject(NicContext*, uint64_t incoming);
Status connect_await(ConnectOp*, Deadline, ConnectResult*);
Status connect_finish(ConnectOp*, ConnectResult*);

// An event of rdma_cm, copied out and acknowledged.
struct CmEvent {
    rdma_cm_event_type type{};
    rdma_cm_id* id = nullptr;
    int status = 0;
    uint8_t reads = 1;  // RDMA reads that the sender serves at a time
    size_t bytes = 0;
    uint8_t data[256] = {};
};

// [connect_mutex]
void handle_event(NicContext&, const CmEvent&);
// Attempts whose time to try again, or to give up, has come. The next such time, or kNever.
Deadline run_timers(NicContext&, int64_t now);

// connect.cpp, for listener.cpp and connect_probe.cpp [connect_mutex]
// Makes an rdma_cm id for the next of the target's four ports and begins to resolve the route. Where that fails at
// once, decides the attempt or tries again later.
void begin_try(ConnectOp&);
// The same for an id of the attempt: that of its request or of its probe. The route is there at
// RDMA_CM_EVENT_ROUTE_RESOLVED. False: it cannot begin; *id is null, or an id to be given to retire_id.
bool resolve_route(ConnectOp&, rdma_cm_id** id);
PrivateData private_data_of(const ConnectOp&);
// The parameters of a request or an accept. They point to `data`, which must outlive their use.
void fill(const ConnectOp&, const void* data, size_t bytes, rdma_conn_param*);
// Sets the result of the attempt and wakes connect_await. The first result counts, later ones are ignored. Frees
// nothing: connect_finish does.
void decide(ConnectOp&, Status);
// Takes over the id and makes it null; its events are ignored from now on, and the progress thread destroys it. Null:
// does nothing.
void retire_id(NicContext&, rdma_cm_id*& id);
// Gives the link of the attempt to the progress thread, which destroys it (drop_link); no receive is posted to it any
// more. Without a link: does nothing.
void drop_link_of(ConnectOp&);
// Peer to peer: the request that was being answered was withdrawn. There will be another, until the timeout.
void answer_failed(ConnectOp&);
// Makes the attempt's link, if there is none, with its queue pairs in INIT and the VI's receives posted. False: no
// resources; a link that was made stays the attempt's. The id stays the caller's.
bool prepare_link(ConnectOp&, rdma_cm_id*);
Status answer_request(ConnectOp&, rdma_cm_id*, const PrivateData& requester, uint8_t reads);
void refuse(rdma_cm_id*, Refusal);

// listener.cpp [connect_mutex]
// Whose request counts between two peers: the lower end listens, the higher one asks. 0: equal addresses
// (spec/compat A3, C15): then both ends do both, and the nonces decide.
int compare_ends(const EndAddress& a, const EndAddress& b);
// Upper half: this NIC context; lower half: this request.
uint32_t new_nonce(NicContext&);
bool ensure_listener(NicContext&, const EndAddress& local);
// Whether this request waits for the program's decision, or has just been accepted.
bool is_known(const NicContext&, const PrivateData& request);
void on_request(NicContext&, const CmEvent&);

}  // namespace viaduct::verbs
