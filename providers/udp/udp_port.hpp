// SPDX-License-Identifier: BSD-2-Clause
// UDP sockets as a port of the engine. Each NIC of a process has a UDP port of its own, where all frames arrive except
// first requests. Frames leave and come in batches; frames of one row and one size for one peer go through the kernel
// as one (UDP_SEGMENT, UDP_GRO). One thread at a time: the engine's lock.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/shm/segment.hpp"
#include "providers/packet/faulty_wire.hpp"
#include "providers/packet/frame_port.hpp"
#include "providers/udp/address.hpp"
#include "providers/udp/daemon_link.hpp"
#include "providers/udp/datagrams_in.hpp"
#include "providers/udp/port_probe.hpp"
#include "providers/udp/sockets.hpp"
#include "providers/wire/host.hpp"

namespace viaduct::udp {

class UdpPort final : public packet::FramePort, public wire::Outlet, private packet::FrameKeeper {
public:
    // Null: *why and *cure say so for people.
    static std::unique_ptr<FramePort> open(const Spec&, std::string* why, std::string* cure);
    ~UdpPort() override;

    // ---- FramePort
    wire::Outlet& outlet() override { return *this; }
    void transmit() override {
        if (out_count_ != 0 || faults_ != nullptr) send_frames();
    }
    int wait_fd() const override { return sockets_.wait_fd(); }
    bool may_sleep() override;
    int64_t held_until() const override { return faults_ ? faults_->held_until() : packet::FaultyWire::kNothing; }
    bool set_faults(wire::LinkId, const FaultPlan&) override;
    uint32_t max_frame() const override { return spec_.max_frame(); }
    const NicAddress& address() const override { return spec_.address; }
    bool has_ports() const override { return true; }
    // The host of a dead process reports its port as closed, if viaduct-udpd does not answer in its place.
    bool is_attended() const override { return true; }
    void use(UserAgent& agent) override { daemon_.use(agent); }
    void attend() override;
    uint32_t window() const override { return window_; }
    std::string counters() const override;
    std::string text_of(const NicAddress& a) const override { return udp::text_of(a); }
    bool keeps_requests() const override { return true; }
    bool is_known() const override { return daemon_.is_known(); }
    uint32_t expect_request(const EndAddress& local, bool every) override;
    void why_not_expected(std::string* why, std::string* cure) const override { daemon_.why_refused(why, cure); }
    uint32_t expect_peer(const EndAddress& local, const EndAddress& remote, wire::LinkId own) override;
    bool still_expects(uint32_t number) override;
    void cancel_expected(uint32_t number, bool over) override { daemon_.remove(number, over); }

    // ---- Outlet
    std::byte* begin_frame(uint32_t bytes) override;
    void end_frame(std::byte* frame, uint32_t bytes, const NicAddress& to) override;
    void end_zero_copy(std::byte* frame, uint32_t bytes, std::span<const wire::Piece> tail,
                       const NicAddress& to) override;
    void ask(const NicAddress& to, const wire::Question& q) override { probe_.ask(to, q); }
    bool next_refused(wire::Question* q) override { return probe_.next_refused(q); }
    bool next_unreachable(NicAddress* address) override;

private:
    static constexpr uint32_t kOut = 64;  // frames that wait to leave

    struct Out {
        std::byte* frame = nullptr;
        uint32_t bytes = 0, all = 0;  // of the frame, with what lies elsewhere
        NicAddress to;
        uint32_t pieces = 0;
        std::array<wire::Piece, wire::kMostPieces> tail{};
    };
    struct Kept;  // a frame that a fault plan holds
    struct Counters {
        uint64_t too_large = 0, not_taken = 0, lost = 0, trains = 0, foreign = 0;
    };

    UdpPort(const Spec&, Fd socket, const sockaddr_in& own, uint64_t token);
    uint32_t receive_into(Take, void* argument) override;
    bool take_one(Take, void* argument, const NicAddress& from, std::span<const std::byte> frame);

    void send_frames();
    bool send_alone();
    struct Batch;
    uint32_t fill(Batch&, uint32_t first, Sockets::Route);
    static bool goes_alone(const Out&);
    uint32_t length_of_train(uint32_t first) const;
    void keep_rest(uint32_t first);
    bool note_failure(int error, uint32_t frames);

    void* copy_of(void* frame) override;
    void free(void* frame) override;
    void misbehave(const Out&);
    void place(Kept*);
    void release_held();

    const Spec spec_;
    Sockets sockets_;
    const NicAddress data_;
    DaemonLink daemon_;
    PortProbe probe_;
    uint32_t window_ = 64;
    bool segments_ = true;  // UDP_SEGMENT is there
    std::vector<std::byte> out_room_;
    std::array<Out, kOut> out_{};
    uint32_t out_count_ = 0;
    DatagramsIn in_;
    std::unique_ptr<packet::FaultyWire> faults_;
    bool told_too_large_ = false;
    Counters counters_;
};

}  // namespace viaduct::udp
