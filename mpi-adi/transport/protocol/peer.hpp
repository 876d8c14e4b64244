// SPDX-License-Identifier: BSD-2-Clause
// The message protocol of one transport: its state of each peer, and the entries of the module table
// that follow from it. Everything is used under the engine's lock.
#pragma once

#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "mpi-adi/transport/adi/request_ids.hpp"
#include "mpi-adi/transport/protocol/lane.hpp"
#include "mpi-adi/transport/protocol/transfer.hpp"

namespace viaduct::protocol {

class Protocol;
struct Peer;

// The user of lanes of which several serve one process. It takes the place of the engine for their protocols. Such a
// lane brings whole messages and frames `carried`, and nothing else.
class UpperLayer {
public:
    virtual void on_whole(Peer& by, const envelope& env, const void* data) = 0;
    virtual void on_carried(Peer& by, const void* payload, size_t bytes) = 0;
    // The lane carries frames. The lane has failed and is cut already.
    virtual void on_lane_ready(Peer& by) = 0;
    virtual void on_lost(Peer& by) = 0;
    // A remote write or read is complete.
    virtual void on_moved(Transfer& part) = 0;

protected:
    ~UpperLayer() = default;
};

// A control frame that found no room, with what goes behind it.
struct Waiting {
    Frame frame;
    std::vector<char> payload;
};

struct Peer {
    // Why a short message may not go at once.
    enum Stop : uint8_t { unready = 1, ended = 2, envelopes = 4, waits = 8, series_out = 16 };

    uint8_t stops = unready;
    bool restricted = false;  // only some frames are valid now (may_come)
    bool closing_sent = false;
    bool closing_received = false;
    uint32_t rank = 0;
    process_t* proc = nullptr;
    std::unique_ptr<Lane> lane;
    Protocol* protocol = nullptr;
    std::list<Waiting> waiting;  // in order
    size_t series_sent = 0;      // of the first request of the send queue, which goes in several frames
    Transfer* moving = nullptr;  // long messages this side moves, first come first served (spec/adi C52)
    Transfer* moving_last = nullptr;
    Series* series = nullptr;  // the eager message that is arriving (spec/adi C53)
    decltype(mpip_upcalls::arrived) arrived = nullptr;  // the engine's, or hand_to_upper
    UpperLayer* upper = nullptr;
    std::unique_ptr<TransferTuner> tuner;
    uint64_t last_measured = 0;

    bool ready() const { return (stops & unready) == 0; }
    bool lost() const { return (stops & ended) != 0; }
    // Something waits for room to be sent.
    bool blocked() const { return (stops & waits) != 0 || moving != nullptr || proc->p_sendhead != nullptr; }
};

inline Peer* peer_of(const process_t* proc) { return static_cast<Peer*>(proc->p_pm); }

// How a transport moves its long messages.
struct LongRules {
    Memory* memory = nullptr;  // nullptr: no lane reaches the other side's memory
    bool get = false;          // remote reads too
    bool reports_parts = false;  // a lane says `placed` for each part it writes
    Method wanted = Method::frames;
    size_t frames_up_to = 0;      // shorter ones cost less than a registration
    size_t gap_piece = SIZE_MAX;  // data with gaps is not packed when its pieces are so long on average
    size_t both_from = SIZE_MAX;  // messages from here up are moved by both sides at once
    bool receiver_moves = false;  // ... and data with gaps by the receiver alone
};

class Protocol {
public:
    // The number of its protocol. One that is loaded from a file gets it when it is bound.
    explicit Protocol(int number = -1) : number_(number) {}
    void bind(const mpip_device& device, int number) {
        number_ = number;
        table_ = &device.protocols[number];
        counters_ = &device.counters[number];
        ids_.count_in(&table_->pt_nactv);
    }

    // --- entries ---
    // The short message, for a lane of class L: nothing is built in memory on its way.
    template <class L>
    [[nodiscard]] int send(process_t* proc, const void* buf, size_t count, const mpip_type_t* type, int tag,
             mpip_comm_t* comm, int mode);
    void queued_send(process_t*);
    [[nodiscard]] int uirecv(unexmsg_t*, mpip_req_t*);
    void ufree(unexmsg_t*);
    [[nodiscard]] int cancel_send(mpip_req_t*);
    void error_request(mpip_req_t*);
    void pressure(bool on);
    [[nodiscard]] int close(process_t** procs, int count);
    [[nodiscard]] int ping(process_t*);
    void* expose(void* memory, size_t bytes, mpip_region* region);
    void conceal(void* exposed);
    [[nodiscard]] int access(mpip_req_t*, const mpip_region& region, const mpip_piece* far, size_t pieces);
    [[nodiscard]] int change(mpip_req_t*, const mpip_region& region, const mpip_change& change);

    // --- what lanes call ---
    // The lane to that peer carries frames.
    void lane_ready(Peer& p);
    // A frame has arrived with its payload. False: it is invalid, and the caller fails the peer.
    [[nodiscard]] bool incoming(Peer& p, const Frame& frame, const void* payload);
    // The same for a whole message in one frame.
    void incoming_whole(Peer& p, uint64_t context, int tag, int rank, int mode, const void* data,
                        size_t bytes);
    // The remote writes or reads of a transfer are complete. May be called from anywhere; the rest follows in
    // finish_done_transfers(), which progress calls.
    void transfer_done(Transfer& t) {
        t.next = done_;
        done_ = &t;
    }
    bool has_done_transfers() const { return done_ != nullptr; }
    void finish_done_transfers();
    // Pushes what waits; how much was pushed.
    int push(Peer& p);
    void fail(Peer& p, const char* why);
    // Whether this processor has copied data of a long message since the last call: packets that have arrived meanwhile
    // are taken first.
    bool has_moved() { return std::exchange(moved_, false); }

    Peer* peer(size_t rank) const { return rank < peers_.size() ? peers_[rank].get() : nullptr; }
    const std::vector<std::unique_ptr<Peer>>& peers() const { return peers_; }
    int number() const { return number_; }
    struct protocol& table() const { return *table_; }
    mpip_counters& counters() const { return *counters_; }

protected:
    Peer& add_peer(size_t rank, process_t* proc, UpperLayer* upper = nullptr);
    // Resets a peer whose lane has failed, for its upper layer.
    void renew(Peer& p);
    void start_moving(Transfer& t);
    void drop_peers();

    int number_;
    struct protocol* table_ = nullptr;
    mpip_counters* counters_ = nullptr;
    LongRules rules_;
    std::vector<std::unique_ptr<Peer>> peers_;  // by world rank

private:
    // send.cpp
    [[nodiscard]] bool start(Peer& p, mpip_req_t* req);
    [[nodiscard]] bool start_eager(Peer& p, mpip_req_t* req, size_t part);
    void first_is_sent(Peer& p);
    void control(Peer& p, const Frame& frame, const std::vector<char>* payload = nullptr);
    // receive.cpp
    [[nodiscard]] static bool may_come(const Peer& p, const Frame& frame);
    [[nodiscard]] bool incoming_eager(Peer& p, const Frame& frame, const void* payload);
    [[nodiscard]] bool incoming_next(Peer& p, const Frame& frame, const void* payload);
    [[nodiscard]] bool place(Series& s, const void* data, size_t bytes);
    void settle(Peer& p, Series* s);
    void attach(Series& s, mpip_req_t* req);
    void finish_series(Series* s);
    void deliver_series(Series* s, mpip_req_t* req);
    // rendezvous.cpp
    [[nodiscard]] bool start_long(Peer& p, mpip_req_t* req);
    void start_receive(Start& start, mpip_req_t* req);
    [[nodiscard]] bool start_reading(Transfer& t, Start& start);
    Method choose_method(const Transfer& t, const Start& start) const;
    [[nodiscard]] bool goes_in_frames(Transfer& t, const Start& start);
    [[nodiscard]] bool describe_own(Transfer& t);
    void reply(const Transfer& t, const Start& start);
    [[nodiscard]] bool incoming_request(Peer& p, const Frame& frame, const void* payload);
    [[nodiscard]] bool incoming_reply(Peer& p, const Frame& frame, const void* payload);
    Transfer* new_transfer(mpip_req_t* req, Peer& p);
    void drop_transfer(mpip_req_t* req);
    Transfer* find_transfer(Peer& p, reqaddr_t name, bool send);
    // move.cpp
    [[nodiscard]] bool move_first(Peer& p);
    [[nodiscard]] bool push_data(Transfer& t);
    [[nodiscard]] bool push_part(Transfer& t);
    [[nodiscard]] bool fetch_list(Transfer& t);
    void finish(Transfer& t);
    void finish_part(Transfer& t);
    void tell_placed(Transfer& t, size_t bytes);
    [[nodiscard]] bool incoming_data(Peer& p, const Frame& frame, const void* payload);
    [[nodiscard]] bool incoming_part(Peer& p, const Frame& frame, const void* payload);
    [[nodiscard]] bool incoming_placed(Peer& p, const Frame& frame);
    [[nodiscard]] bool incoming_fetched(Peer& p, const Frame& frame);
    // access.cpp
    [[nodiscard]] bool reaches_memory() const { return rules_.memory != nullptr && !rules_.reports_parts; }
    void start_access(Transfer& t, const mpip_piece* far, size_t pieces, const mpip_region& region);
    // cancel.cpp, close.cpp
    [[nodiscard]] bool incoming_cancel(Peer& p, const Frame& frame);
    [[nodiscard]] bool incoming_cancel_reply(Peer& p, const Frame& frame);
    [[nodiscard]] bool finish_close(Peer& p);

    bool pressure_ = false;  // peers have been asked for envelopes only
    bool moved_ = false;
    Transfer* done_ = nullptr;
    std::vector<char> description_;  // the payload being made
    adi::RequestIds ids_;
};

inline void Protocol::incoming_whole(Peer& p, uint64_t context, int tag, int rank, int mode, const void* data,
                                     size_t bytes) {
    const envelope env = {context, mode, rank, tag, static_cast<int64_t>(bytes), 0, 0};
    mpip_req_t* match = nullptr;
    if (p.arrived(p.proc, &env, data, bytes, nullptr, &match) == MPIP_IN_MATCHED) [[unlikely]]
        mpip_req_deliver_all(match, data, bytes);
}

}  // namespace viaduct::protocol
