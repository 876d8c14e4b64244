// SPDX-License-Identifier: BSD-2-Clause
// Connection attempts over rdma_cm (viaduct/provider.hpp, "Connecting"). The operations (attempts.cpp) are
// called by any thread without locks; everything else here runs with NicContext::connect_mutex held, most of
// it on the progress thread. docs/verbs.md tells the protocol.
#pragma once

#include <rdma/rdma_cma.h>

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
    verbs::Link* link = nullptr;  // ours until the attempt has succeeded
    bool link_initial = false;
    rdma_cm_id* id = nullptr;
    uint32_t tries = 0;    // ports tried in this round
    int64_t retry_at = 0;  // 0: not waiting for a time
    int64_t retry_pause = 0;
    // No answer by then: whether the request has arrived is open (connect_probe.hpp). 0: none is out.
    int64_t probe_at = 0;
    int64_t probe_interval = 0;
    rdma_cm_id* probe = nullptr;  // asks whether the request is known
    bool answering = false;       // peer to peer: the other side's request is being accepted
    bool decided = false;
    ConnectResult result;
};

}  // namespace viaduct

namespace viaduct::verbs {

inline constexpr int kResolveMs = 2000;  // for rdma_cm, to find a way to the other host

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
// The port of the target whose turn it is, with an id of its own, which resolves the route.
void begin_try(ConnectOp&);
bool find_way(ConnectOp&, rdma_cm_id**);
PrivateData private_data_of(const ConnectOp&);
void fill(const ConnectOp&, const void* data, size_t bytes, rdma_conn_param*);
void decide(ConnectOp&, Status);
void retire_id(NicContext&, rdma_cm_id*&);
void give_up_link(ConnectOp&);
// Peer to peer: the request that was being answered was withdrawn. There will be another, until the timeout.
void answer_failed(ConnectOp&);
bool prepare_link(ConnectOp&, rdma_cm_id*);
Status answer_request(ConnectOp&, rdma_cm_id*, const PrivateData& requester, uint8_t reads);
void refuse(rdma_cm_id*, Refusal);

// listener.cpp [connect_mutex]
// Whose request counts between two peers: the lower end listens, the higher one asks. 0: equal addresses
// (vipl- compat A3), then both do both and the nonces decide.
int compare_ends(const EndAddress& a, const EndAddress& b);
// Upper half: this NIC context; lower half: this request.
uint32_t new_nonce(NicContext&);
bool ensure_listener(NicContext&, const EndAddress& local);
// Whether this request has arrived and is being thought about.
bool is_known(const NicContext&, const PrivateData& request);
void take_request(NicContext&, const CmEvent&);

}  // namespace viaduct::verbs
