// SPDX-License-Identifier: BSD-2-Clause
// One connection: the queue pair that carries the data and its control QP, a small reliable queue pair beside
// it for what the two providers have to tell each other (docs/verbs.md). Made for each attempt, destroyed with the
// connection.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "providers/verbs/message.hpp"
#include "providers/verbs/private_data.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

inline constexpr uint32_t kControlDepth = 16;  // messages each way that may be under way

// What a peer has told us of a region of its own.
struct RemoteKey {
    uint64_t base = 0;
    uint64_t length = 0;
    uint32_t key = 0;
    uint32_t flags = 0;  // kRegionRdmaWrite, kRegionRdmaRead
};

// The question under way: one at a time, asked by the head of the send queue.
struct Question {
    bool asked = false;
    bool answered = false;
    uint32_t handle = 0;
    RemoteKey answer;  // key 0: refused
};

struct DeviceQueue;

// One step of a queue pair's life, kept so that it can be taken again (recover.cpp).
struct Transition {
    ibv_qp_attr attr{};
    int mask = 0;
};

// The data queue pair of a connection of level Unreliable is made anew after an error (recover.cpp).
struct Recovery {
    std::atomic<bool> wanted{false};
    // [RS]
    bool under_way = false;  // nothing is posted meanwhile
    bool told = false;       // the peer has been told how far this end got
    bool renewed = false;    // our queue pair is ready again
    bool ready_told = false;
    uint32_t epoch = 0;  // how many times it has been made anew
    uint32_t psn = 0;    // where we begin to count packets next time
    int64_t give_up_at = 0;
    bool peer_told = false;  // what the peer has said about the same round
    bool peer_ready = false;
    uint32_t peer_received = 0;
    uint32_t peer_psn = 0;
    std::vector<uint32_t> refused;  // immediate data of refused writes: each takes a receive
    uint32_t received = 0;          // [R] messages that took a receive in this epoch
    uint32_t sent = 0;              // [S] work requests posted in this epoch that take one at the peer
};

struct Link {
    NicContext* nic = nullptr;
    Endpoint* endpoint = nullptr;  // under links_mutex, until the connection is over
    uint32_t number = 0;           // index in NicContext::links
    uint32_t generation = 0;       // tells completions of this link from those of earlier ones
    ibv_qp* data = nullptr;
    ibv_qp* control_qp = nullptr;
    rdma_cm_id* id = nullptr;
    ViTraits traits;                    // ours
    PrivateData peer;                   // what it said of itself
    DeviceQueue* send_queue = nullptr;  // completion queues that keep room for us
    DeviceQueue* recv_queue = nullptr;
    uint32_t send_room = 0;
    uint32_t recv_room = 0;
    uint32_t inline_bytes = 0;  // what the device allows on this queue pair
    uint8_t peer_reads = 1;     // RDMA reads that the peer serves at a time
    uint32_t receives_end = 0;  // [R] position up to which receives have been posted

    // The control QP's buffers: kControlDepth to receive into, kControlDepth to send from.
    std::byte* buffers = nullptr;
    ibv_mr* buffers_mr = nullptr;
    std::mutex control_mutex;  // leaf
    uint32_t free_sends = kControlDepth;
    uint32_t next_send = 0;
    std::deque<Message> untold;  // messages to the peer that had no room

    Transition initial, to_receive, to_send;  // of the data queue pair
    Recovery recovery;

    // [S]
    std::unordered_map<uint32_t, RemoteKey> remote_keys;
    Question question;

    std::atomic<bool> joined{false};  // both ends have the connection
    // Progress thread.
    int unanswered = -1;          // buffer with a question whose answer found no room (control_qp.cpp)
    int64_t alive_at = 0;         // when the next message to the peer is due
    bool sends_were_out = false;  // at the last look (queue_watch.cpp)
    uint32_t sends_seen = 0;

    // Under links_mutex.
    bool lost = false;          // the peer has left or cannot be reached
    int64_t suspect_until = 0;  // the data queue pair has failed: the peer may say why until then
    int64_t leave_at = 0;    // leaving: rdma_disconnect at this time at the latest
    bool disconnect_sent = false;
};

// Queue pairs in RESET, buffers registered, receives of the control QP not yet posted. Null: no resources.
Link* create_link(Endpoint&, const ViTraits&);
// Makes both queue pairs ready to receive, then to send. `id` has the path by now. The number of the peer's
// control QP is in link.peer.
bool make_initial(Link&, rdma_cm_id*);
bool make_ready(Link&, rdma_cm_id*);
// A data queue pair that has failed and told all its completions, once more from the beginning.
bool renew_data(Link&, uint32_t own_psn, uint32_t peer_psn);
// Both queue pairs, buffers, the number. Its id must have been given away before. By the progress thread.
void destroy_link(Link*);
// The same for an attempt that has failed, from any thread: the progress thread, which may be looking at it,
// destroys what is left.
void drop_link(Link*);
// Stops the data queue pair: what it still holds is flushed.
void stop_data(Link&);
// The data queue pair alone: after it returns the device touches no memory of the program for it.
void destroy_data(Link&);

}  // namespace viaduct::verbs
