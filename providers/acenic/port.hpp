// SPDX-License-Identifier: BSD-2-Clause
// A DPDK Ethernet port as an outlet of the wire protocol. Frames to our own address never reach the wire. A
// port that is joined to one other process (memif) comes up when that one is there, and again after it has
// left. One thread at a time: the engine's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "providers/acenic/memif_control.hpp"
#include "providers/acenic/packet_socket.hpp"
#include "providers/acenic/port_spec.hpp"
#include "providers/packet/faulty_wire.hpp"
#include "providers/wire/encapsulation.hpp"
#include "providers/wire/host.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace viaduct::acenic {

class ZeroCopyTx;

struct PortCounters {
    uint64_t foreign = 0;     // frames of other protocols or for others
    uint64_t tx_refused = 0;  // frames the driver did not take at once
    uint64_t no_buffer = 0;   // the pool was empty
    uint64_t looped = 0;      // to ourselves
    uint64_t unplugged = 0;   // lost because no process is at the other end
    uint64_t taken_in = 0;    // zero-copy payload that had to wait, and was copied
};

class Port final : public wire::Outlet {
public:
    // Null: *why and *cure say so for people.
    static std::unique_ptr<Port> open(const PortSpec&, std::string* why, std::string* cure);
    ~Port();

    std::byte* begin_frame(uint32_t bytes) override;
    void end_frame(std::byte* frame, uint32_t bytes, const NicAddress& to) override;
    void end_zero_copy(std::byte* frame, uint32_t bytes, std::span<const wire::Piece> tail,
                       const NicAddress& to) override;
    // A joined port: where the last frame was to go that no process was there to take.
    bool next_unreachable(NicAddress* address) override;

    // Gives frames to the driver. What it does not take now is kept; begin_frame refuses when there is too
    // much of it. No zero-copy payload is referred to afterwards.
    void transmit() {
        if (out_count_ != 0 || faults_ != nullptr) send_frames();
    }
    // Calls take(frame, from) for each frame of ours that has come; how many.
    template <class Take>
    uint32_t receive(Take take) {
        return receive_into([](void* argument, std::span<const std::byte> frame,
                               const NicAddress& from) { (*static_cast<Take*>(argument))(frame, from); },
                            &take);
    }
    using TakeFrame = void (*)(void* argument, std::span<const std::byte> frame, const NicAddress& from);
    uint32_t receive_into(TakeFrame, void* argument);

    // Injects faults into frames that leave: frames of that link, or 0: of all links that have no plan of their own. An
    // idle plan ends it.
    void set_faults(uint32_t link, const FaultPlan&);
    // When transmit has to be called for frames that a plan holds back; INT64_MAX: none are.
    int64_t held_until() const { return faults_ ? faults_->held_until() : packet::FaultyWire::kNothing; }

    // Becomes readable when frames come; -1: this driver has none, look every so often.
    int wait_fd() const { return wait_fd_; }
    uint32_t max_frame() const { return max_frame_; }
    const NicAddress& address() const { return link_.own; }
    const PortCounters& counters() const { return counters_; }
    // Frames that the interface has refused for good.
    PacketSocket::Lost lost() const { return socket_ ? socket_->lost() : PacketSocket::Lost{}; }

private:
    static constexpr uint32_t kBurst = PacketSocket::kBurst;
    static constexpr uint32_t kLoop = 256;
    static constexpr uint32_t kSpare = 32;

    explicit Port(const PortSpec& spec);
    bool start(std::string* why, std::string* cure);
    void send_frames();
    uint32_t send_burst();
    const char* plug_in(int* error);
    void unplug();
    void join_again();
    void restart_memif();
    void stay_joined();
    bool plugged();
    bool is_link_up() const;
    bool take_control();
    void misbehave(rte_mbuf*, std::byte* frame, uint32_t bytes);
    void release_held();
    rte_mbuf* take_buffer();
    void place(rte_mbuf*, bool to_ourselves);
    void copy_unsent();
    uint32_t fetch(rte_mbuf** burst);
    void release(rte_mbuf*);

    const PortSpec spec_;
    wire::Ethernet link_;
    uint16_t port_ = UINT16_MAX;
    uint32_t max_frame_ = 0;
    int wait_fd_ = -1;
    std::string device_;
    bool made_ = false;     // the device exists
    bool started_ = false;  // and is started
    bool linked_ = false;   // and takes and gives frames: bursts are safe
    bool quiet_ = false;    // looking for frames makes no system call
    int listen_fd_ = -1;    // the driver's socket for the process the port is joined to
    int calling_fd_ = -1;   // memif: the socket by which the driver has called that process
    MemifControl control_;
    int64_t tried_at_ = 0, asked_at_ = 0;
    uint32_t looks_ = 0;
    rte_mempool* pool_ = nullptr;
    rte_mbuf* current_ = nullptr;  // between begin_frame and end_frame
    // Buffers of frames that have been read: the next frames are written into them, without the pool.
    rte_mbuf* spare_[kSpare] = {};
    uint32_t spare_count_ = 0;
    rte_mbuf* out_[kBurst] = {};
    uint32_t out_count_ = 0;
    rte_mbuf* loop_[kLoop] = {};  // frames to ourselves
    uint32_t loop_head_ = 0, loop_tail_ = 0;
    std::unique_ptr<PacketSocket> socket_;  // null: the driver sends
    std::unique_ptr<packet::FaultyWire> faults_;
    std::unique_ptr<ZeroCopyTx> zero_copy_;
    std::optional<NicAddress> unreachable_;
    PortCounters counters_;
};

}  // namespace viaduct::acenic
