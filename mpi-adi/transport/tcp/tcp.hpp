// SPDX-License-Identifier: BSD-2-Clause
// The module for processes that share nothing but a network: one TCP connection for each pair, below the
// message protocol, all watched by one epoll. A connection begins with a Hello each way and a proof (handshake.hpp),
// by which both learn who the other is and that it belongs to the job; frames follow.
#pragma once

#include <bit>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/shm/segment.hpp"
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
    void reach_out() override;
    bool flushed() override { return out_end == 0; }

    Tcp& tcp;
    enum class Stage {
        idle,       // nobody has called yet
        waiting,    // for the time of the next try
        calling,    // the system connects
        greeting,   // our Hello is away, theirs is to come
        answering,  // their Hello was right, ours is away, their proof is to come
        talking,    // ready
    };
    Stage stage = Stage::idle;
    Fd fd;
    Fd parked;  // the other has called too while our call, which goes first, is under way
    Nonce parked_nonce = {};
    std::vector<Address> ways;
    size_t way = 0;
    size_t refused = 0;             // ways at which nobody listens
    Key key = {};                   // of this pair
    Call handshake;                 // the one under way
    std::vector<Nonce> heard;       // of its calls: one that comes again was recorded
    Clock::time_point patience;     // until when the system may take to connect, or the time of the next try
    Clock::time_point deadline;     // of all tries
    std::chrono::milliseconds pause{0};  // before the next try
    const char* trouble = nullptr;  // to be reported by the next pass
    bool watching_room = false;     // epoll tells when the socket takes more
    uint16_t frames_sent = 0;
    uint16_t frames_had = 0;
    Hello hello = {};  // of theirs, or their proof, while it comes
    size_t hello_had = 0;
    std::unique_ptr<char[]> in, out;  // buffer_bytes() each
    size_t in_begin = 0, in_end = 0;
    size_t out_begin = 0, out_end = 0;
};

// A caller that has not said who it is.
struct Stranger {
    Fd fd;
    Clock::time_point patience;
    Hello hello = {};
    size_t had = 0;
};

class Tcp : public protocol::Protocol {
public:
    using LaneClass = Lane;
    Tcp() : Protocol(MPIP_PROTO_TCP) {}

    [[nodiscard]] int initialize();
    // --- connect.cpp: from the card to connections ---
    [[nodiscard]] int open(const taskinfo_t* task, Card* card);
    bool reaches(const taskinfo_t* task, int rank) const;
    [[nodiscard]] int connect(taskinfo_t* task);   // knows the peers, calls nobody
    [[nodiscard]] int complete(taskinfo_t* task);  // few peers: all connected on return
    // --- for what is above a peer that several lanes serve (transport/multirail) ---
    protocol::Peer& meet(const taskinfo_t* task, int rank, process_t* proc, protocol::Above* above);
    void renew(protocol::Peer& peer);
    void part_from_all();
    size_t eager_limit() const { return eager_limit_; }
    void finalize();
    // --- frames.cpp ---
    int progress();
    void block(unsigned timeout_us);
    int watched() const { return epoll_.get(); }

private:
    enum class Watched : uint32_t { listener, stranger, peer };
    static uint64_t tag(Watched kind, size_t index) { return static_cast<uint64_t>(kind) << 32 | index; }
    void watch(int fd, uint64_t tag, uint32_t events, bool known);
    friend class Lane;
    Lane* lane(size_t rank) const {
        const protocol::Peer* one = peer(rank);
        return one == nullptr ? nullptr : static_cast<Lane*>(one->lane.get());
    }

    // connect.cpp
    [[nodiscard]] bool listen_on(Address& address);
    void drop_needless_listeners(const taskinfo_t* task);
    void call(Lane& lane);
    void call_next(Lane& lane);
    void called(Lane& lane, Fd fd, const Nonce& caller_nonce);
    void drop_call(Lane& lane);
    void answer(Lane& lane, Fd fd, const Nonce& caller_nonce);
    void try_later(Lane& lane);
    void hang_up(Fd& fd);
    void talk(Lane& lane);
    bool say_hello(const Lane& lane, int fd, Step step) const;
    bool is_for_us(const Hello& hello) const;
    [[nodiscard]] bool hear(Stranger& stranger);
    void on_call(size_t listener);
    void on_stranger(int fd);
    void on_connected(Lane& lane);
    void on_answer(Lane& lane);
    void on_proof(Lane& lane);
    void look_for_late();
    void report(Lane& lane, const char* trouble);

    // frames.cpp
    void on_peer(Lane& lane, uint32_t events);
    void receive(Lane& lane);
    void take_frames(Lane& lane);
    void flush(Lane& lane);
    void append(Lane& lane, const void* data, size_t bytes);

    uint32_t me_ = 0;
    Card card_ = {};
    size_t buffer_bytes_ = 0;
    Fd epoll_;
    std::vector<Fd> listeners_;
    std::vector<Stranger> strangers_;
    size_t eager_limit_ = 0;
    size_t piece_ = 0;  // most payload this side takes in a frame
    std::vector<Lane*> troubled_;
    std::string job_;
    size_t calling_ = 0;    // peers the system is connecting, or that wait for the next try
    bool opening_ = false;  // no message is taken yet
    unsigned idle_ = 0;
};

extern Tcp tcp_module;

}  // namespace viaduct::tcp
