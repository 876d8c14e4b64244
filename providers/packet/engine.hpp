// SPDX-License-Identifier: BSD-2-Clause
// The engine: what firmware would be on a NIC with VI. One per port and process; it has the port, or in
// shared mode its part of one, and the node of the wire protocol, and is driven by a thread that polls, or by a
// helper thread that sleeps when another thread polls. This file's lock comes before every VI's locks; a thread that
// holds a VI's lock may only try it (see ring_doorbell and poll_for). No thread waits for the lock of a second VI
// unless it has the engine's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/copy/copy.hpp"
#include "core/shm/segment.hpp"
#include "core/shm/wake_event.hpp"
#include "core/sync/biased_lock.hpp"
#include "core/vi/vi_core.hpp"
#include "providers/packet/engine_clock.hpp"
#include "providers/packet/frame_port.hpp"
#include "providers/packet/port_source.hpp"
#include "providers/wire/node.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

// The provider's part of a VI. Which lock guards what is said with each member: E the engine's, R and S the
// VI's queues'.
struct Endpoint {
    ViCore* vi = nullptr;
    NicContext* nic = nullptr;
    wire::LinkId link = 0;    // E
    ConnectOp* op = nullptr;  // E: the attempt under way
    std::atomic<uint32_t> doorbells{0};
    std::atomic<uint32_t> receives{0};  // posted since the connection began
    uint32_t receives_base = 0;         // R
    std::atomic<bool> bound{false};     // connected, and not disconnected here
    bool active = false;                // changed under R and S: between start and disconnect

    // The peer's message under way: R.
    SegmentCursor into;
    bool kept = false;      // a receive was taken for a message that did not come whole
    bool discards = false;  // placing has failed: the rest is dropped
    BreakReason refusal;    // E: why the host refused what the peer asked for

    // Our own work: S. Where reading of the last payload stopped, since most is read on from there.
    SegmentCursor from;
    uint32_t from_tag = 0, from_offset = 0;
    bool from_valid = false;
    SegmentCursor result;  // of the read that is being answered
    uint32_t result_tag = 0;
    bool result_valid = false;

    // Why the connection ended: as this end has found, and as the peer's disconnect says. E.
    Cause found, peers_cause;
    Cause found_at_stop;  // as found, by stop(): written under R and S before kDoorbellStop, read after it
};

}  // namespace viaduct

namespace viaduct::packet {

// What a descriptor that check_send has found in order asks the wire to do (work.cpp). VIP_STATUS_*_ERROR
// bits when it, or its memory, has changed since.
uint32_t describe_work(const ViCore&, const VIP_DESCRIPTOR*, uint32_t total, wire::Work*);

inline constexpr uint32_t kDoorbellSend = 1, kDoorbellStart = 2, kDoorbellStop = 4;

class Engine final : public wire::Host {
public:
    // The engine of that port, made at first use; null: *why and *cure say why not.
    static std::shared_ptr<Engine> get(const PortSource&, UserAgent*, std::string* why, std::string* cure);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // The process is about to end without having closed its NICs: tells the peers. Never waits for long.
    void close_links();
    // Until all of them have heard it, but not longer than until then (now_ns).
    void wait_for_closes(int64_t until);

    // Looks at the port and the clock. No VI lock is held. False: another thread is at it.
    bool poll();
    // The same for a poll of that VI's receive queue, whose lock (R) is held.
    void poll_for(Endpoint&);
    // S held: descriptors have been posted.
    void kick_send(Endpoint&);
    // R and S held.
    void start(Endpoint&);
    Status finish_traffic(Endpoint&);
    void stop(Endpoint&);

    // Taken first, by calls that hold no VI lock. Biased to the thread that opened the port, which usually is
    // the thread that polls it.
    BiasedLock mutex;
    std::condition_variable_any changed;  // attempts are decided
    wire::Node& node() { return *node_; }
    int64_t now() { return clock_.now(); }  // E: the node's time
    FramePort& port() { return *port_; }
    // The process that owned the port has ended: this engine moves no frames any more.
    bool is_lost() const { return lost_.load(std::memory_order_relaxed); }
    void add_context(uint64_t id);
    void remove_context(uint64_t id);
    void join(Endpoint*);             // E
    void leave(Endpoint*);            // E: does what its doorbells ask for first
    void settle_old(Endpoint&);       // E: does what the doorbells of an earlier connection asked for
    void finish_frames(int64_t now);  // E: sends what was written
    void finish_frames() { finish_frames(now()); }
    // How long no thread has to poll again, at most `longest`, and what wakes the polling thread: frames do, unless
    // another thread has the engine. That one takes them; where it waits for its processor, no other thread can.
    struct Idle {
        int64_t ns = 0;
        int fd = -1;
    };
    Idle idle(int64_t longest);
    void wake_helper();
    // Why the operation of this thread is about to fail: to the log and the program.
    void say_why(const char* reason, const char* cure) const;
    // Injects faults into what this end of a connection sends.
    Status set_faults(Endpoint&, const FaultPlan&);

    // ---- wire::Host (host.cpp): E held
    bool read_source(wire::Cookie, uint32_t tag, uint32_t offset, std::byte* to, uint32_t n) override;
    uint32_t lend_source(wire::Cookie, uint32_t tag, uint32_t offset, uint32_t n, wire::Piece*) override;
    bool place_result(wire::Cookie, uint32_t tag, uint32_t offset, const std::byte* from,
                      uint32_t n) override;
    void on_finished(wire::Cookie, uint32_t tag, wire::Outcome) override;
    wire::HostResult begin_message(wire::Cookie, uint32_t total) override;
    void place_message(wire::Cookie, uint32_t offset, const std::byte* from, uint32_t n) override;
    void end_message(wire::Cookie, uint32_t total, const uint32_t* immediate) override;
    void abandon_message(wire::Cookie) override;
    wire::HostResult whole_message(wire::Cookie, const std::byte* from, uint32_t total,
                                   const uint32_t* immediate) override;
    wire::HostResult begin_write(wire::Cookie, uint32_t handle, uint64_t address, uint32_t total,
                                 const uint32_t* immediate) override;
    wire::HostResult place_write(wire::Cookie, uint32_t handle, uint64_t address, const std::byte* from,
                                 uint32_t n, const uint32_t* immediate) override;
    void end_write(wire::Cookie, uint32_t total, const uint32_t* immediate) override;
    void abandon_write(wire::Cookie, const uint32_t* immediate) override;
    void on_damaged_write(wire::Cookie) override;
    wire::HostResult begin_read(wire::Cookie, uint32_t handle, uint64_t address, uint32_t total) override;
    wire::HostResult read_memory(wire::Cookie, uint32_t handle, uint64_t address, std::byte* to,
                                 uint32_t n) override;
    wire::HostResult atomic(wire::Cookie, const wire::Work&, uint64_t* old) override;
    uint32_t receives_posted(wire::Cookie) override;
    void on_incoming(wire::Cookie listener, wire::IncomingId, const EndAddress& remote, const ViTraits&) override;
    void on_request_refused(wire::Cookie listener) override;
    void on_connected(wire::Cookie, const ViTraits& remote) override;
    void on_failed(wire::Cookie, Status) override;
    wire::Finding finding(wire::Cookie) override;
    void on_finding(wire::Cookie, const wire::Finding&) override;
    void on_ended(wire::Cookie, wire::Ended) override;
    void on_retransmitted(wire::Cookie) override;
    void on_dropped(wire::Cookie) override;
    void on_other_version(const NicAddress&, uint8_t version) override;
    void on_auth_failure(const NicAddress&, wire::AuthFailure) override;

private:
    Engine() = default;
    void log_counters() const;
    void log_end(const Endpoint&, wire::Ended);
    bool begin(const PortSource&, UserAgent*, std::string* why, std::string* cure);
    void run_helper();
    uint32_t look(int64_t now);  // how many frames have come; not always all that are there
    void lose_port();
    void settle_and_unlock();
    void serve_doorbells(int64_t now);
    void serve_doorbells_of(Endpoint&, int64_t now);
    void end_link(Endpoint&, int64_t now);
    void post_work(Endpoint&, int64_t now);
    bool post_one(Endpoint&, VIP_DESCRIPTOR*, int64_t now);
    bool post_plain(Endpoint&, const VIP_DESCRIPTOR*, int64_t now);
    uint32_t check_work(ViCore&, const VIP_DESCRIPTOR*, uint64_t* total);
    void ring_doorbell(Endpoint&, uint32_t doorbell);
    bool take_plain_message(Endpoint&, const std::byte* from, uint32_t total, const uint32_t* immediate);

    class QueueLock;
    QueueLock send_lock(Endpoint&);
    QueueLock recv_lock(Endpoint&);

    const char* section_ = "";
    std::string name_;
    std::unique_ptr<FramePort> port_;
    std::unique_ptr<wire::Node> node_;
    EngineClock clock_;  // E
    WakeEvent wake_event_;
    std::vector<Endpoint*> endpoints_;  // E
    std::vector<ViCore*> broken_;       // E: to be settled when no lock is held
    Endpoint* send_held_ = nullptr;     // E: whose send lock this thread had before it got the engine
    Endpoint* recv_held_ = nullptr;     // E: the same of its receive lock
    std::vector<uint64_t> contexts_;    // E: open NICs, by id
    UserAgent* agent_ = nullptr;
    uint32_t owner_watch_ = 0;
    std::atomic<bool> lost_{false};
    std::atomic<uint32_t> look_requested_{0};  // a doorbell is rung, or VIs in broken_ need a thread without locks
    std::atomic<int64_t> polled_at_{0};  // by an application's thread
    std::atomic<bool> stop_{false};
    int owner_ = 0;            // process that made it
    bool helper_ended_ = true;  // E
};

}  // namespace viaduct::packet
