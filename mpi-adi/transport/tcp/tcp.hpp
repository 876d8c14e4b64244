// SPDX-License-Identifier: BSD-2-Clause
// The module for processes that share nothing but a network: one TCP connection for each pair, below the
// message protocol, all watched by one epoll. A connection begins with a Hello each way and a proof (handshake.hpp),
// by which each end knows the rank of the other and that it belongs to the job; frames follow.
#pragma once

#include <bit>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/process/never_destroyed.hpp"
#include "core/shm/kept_fd.hpp"
#include "mpi-adi/transport/protocol/send.hpp"
#include "mpi-adi/transport/tcp/card.hpp"

namespace viaduct::tcp {

using Clock = std::chrono::steady_clock;

class Tcp;

class Lane final : public protocol::Lane {
public:
    Lane(protocol::Peer& of, Tcp& all) : protocol::Lane(of), tcp(all) {}
    bool put(const protocol::Frame& frame, const protocol::Payload& payload) override;
    [[nodiscard]] bool put_eager(const void* data, size_t bytes, int tag, int rank, uint64_t context, int mode) {
        return protocol::put_eager_frame(*this, data, bytes, tag, rank, context, mode);
    }
    size_t eager_limit(bool) const override;
    void cut() override;
    void start_connecting() override;
    bool is_being_made() const override { return stage != Stage::idle && stage != Stage::connected; }
    bool flushed() override { return out_end == 0; }

    Tcp& tcp;
    enum class Stage {
        idle,        // no connect yet, of either side
        waiting,     // for the time of the next attempt
        calling,     // the system connects
        hello_sent,  // theirs is expected
        answered,    // their Hello was right and ours is sent; their proof is expected
        connected,
    };
    Stage stage = Stage::idle;
    KeptFd fd;
    KeptFd parked;  // their connection, while ours, which has precedence, is being made
    Nonce parked_nonce = {};
    std::vector<Address> addresses;
    size_t next_address = 0;
    size_t refused = 0;             // addresses without a listener
    uint32_t name = 0;              // its rank in its job: what it says of itself
    bool ours_first = false;        // when both call at once: our call counts
    Key key = {};                   // of this pair
    Call handshake;                 // the one under way
    std::vector<Nonce> seen_nonces;      // of its calls: a nonce that comes again is a replay
    Clock::time_point timeout_at;        // end of the connect, or time of the next attempt
    Clock::time_point deadline;          // of all attempts
    std::chrono::milliseconds pause{0};  // before the next attempt
    const char* error_text = nullptr;    // the next pass fails the peer with it
    bool watching_room = false;     // epoll tells when the socket takes more
    uint16_t frames_sent = 0;
    uint16_t frames_received = 0;
    Hello hello = {};  // of theirs, or their proof, while it comes
    size_t hello_bytes = 0;
    std::unique_ptr<char[]> in, out;  // buffer_bytes() each
    size_t in_begin = 0, in_end = 0;
    size_t out_begin = 0, out_end = 0;
};

// An accepted connection whose Hello is not complete.
struct PendingCaller {
    KeptFd fd;
    Clock::time_point timeout_at;
    Hello hello = {};
    size_t had = 0;
};

class Tcp : public protocol::Protocol {
public:
    using LaneClass = Lane;
    Tcp() : Protocol(MPIP_PROTO_TCP) {}

    [[nodiscard]] int initialize();
    // --- transport.cpp: from the card to lanes ---
    // The card for the job, and the one for others.
    [[nodiscard]] int open(const taskinfo_t* task, Card* card, Card* outer_card);
    bool reaches(const taskinfo_t* task, int rank) const;
    [[nodiscard]] int connect(taskinfo_t* task);   // makes the peers, connects none
    [[nodiscard]] int complete(taskinfo_t* task);  // few peers: all connected on return
    // --- for peers that several lanes serve (transport/multirail) ---
    protocol::Peer& make_lane(const taskinfo_t* task, int rank, process_t* proc, protocol::UpperLayer* upper);
    void renew(protocol::Peer& peer);
    // Of single processes: what is left of them goes, too.
    [[nodiscard]] int close(process_t** procs, int count);
    void drop_rail_lanes();
    size_t eager_limit() const { return eager_limit_; }
    void finalize();
    // --- frames.cpp ---
    int progress();
    int block(unsigned timeout_us);
    int watched() const { return epoll_.ours(); }

private:
    enum class Watched : uint32_t { listener, pending_caller, peer };
    static uint64_t tag(Watched kind, size_t index) { return static_cast<uint64_t>(kind) << 32 | index; }
    void watch(int fd, uint64_t tag, uint32_t events, bool known);
    friend class Lane;
    Lane* lane(size_t rank) const {
        const protocol::Peer* one = peer(rank);
        return one == nullptr ? nullptr : static_cast<Lane*>(one->lane.get());
    }

    // transport.cpp
    [[nodiscard]] bool listen_on(Address& address);
    void drop_needless_listeners(const taskinfo_t* task);
    void close_socket(KeptFd& fd);
    void look_at_sockets();

    // connect.cpp
    bool send_hello(const Lane& lane, int fd, Step step) const;
    bool is_for_us(const Hello& hello) const;
    void call(Lane& lane);
    void call_next(Lane& lane);
    void drop_call(Lane& lane);
    void try_later(Lane& lane);
    void fail_later(Lane& lane, const char* error_text);
    void on_connected(Lane& lane);
    void on_answer(Lane& lane);
    void finish_handshake(Lane& lane);
    void run_timers();

    // called.cpp
    void on_call(size_t listener);
    void on_pending_caller(int fd);
    [[nodiscard]] bool read_hello(PendingCaller& pending_caller);
    // The sender of this, if it can prove its rank. `may_come`: its card is not here yet.
    Lane* proven(const Hello& hello, bool* may_come) const;
    void called(Lane& lane, KeptFd fd, const Nonce& caller_nonce);
    void answer(Lane& lane, KeptFd fd, const Nonce& caller_nonce);
    void on_proof(Lane& lane);

    // frames.cpp
    void on_peer(Lane& lane, uint32_t events);
    void receive(Lane& lane);
    void take_frames(Lane& lane);
    void flush(Lane& lane);
    void append(Lane& lane, const void* data, size_t bytes);

    uint32_t me_ = 0;
    Card card_ = {};
    Secret mark_ = {};  // of the card for others
    size_t buffer_bytes_ = 0;
    KeptFd epoll_;
    std::vector<KeptFd> listeners_;
    std::vector<PendingCaller> pending_callers_;
    size_t eager_limit_ = 0;
    size_t piece_ = 0;  // most payload this side takes in a frame
    std::vector<Lane*> failed_lanes_;
    std::string job_;
    size_t calling_ = 0;    // peers in stage calling or waiting
    bool opening_ = false;  // no message is taken yet
    unsigned idle_ = 0;
    Clock::time_point next_look_;  // of look_at_sockets()
};

extern NeverDestroyed<Tcp> tcp_module;

}  // namespace viaduct::tcp
