// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/port.hpp"

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/acenic/eal.hpp"
#include "providers/acenic/fd_snapshot.hpp"
#include "providers/acenic/port_device.hpp"
#include "providers/acenic/zero_copy_tx.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/format.hpp"

namespace viaduct::acenic {

namespace {

// Payloads from this size on are sent zero-copy: below, a copy costs less than a second buffer.
constexpr uint32_t kZeroCopyFrom = 2048;
// A port that is joined to one other process asks every so often whether it still is, which makes some
// drivers ask the kernel, and calls so often. The clock is read at every so many looks.
constexpr uint32_t kLooksPerTime = 64;
constexpr int64_t kAskAgain = 10'000'000;
constexpr int64_t kJoinAgain = 100'000'000;

class MbufKeeper final : public packet::FrameKeeper {
public:
    void* copy_of(void* frame) override {
        auto* const m = static_cast<rte_mbuf*>(frame);
        return ::rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);
    }
    void free(void* frame) override { ::rte_pktmbuf_free(static_cast<rte_mbuf*>(frame)); }
};
MbufKeeper keeper;

}  // namespace

// virtio's ends ring for each other when one of them has asked for it; memif's driver reads its descriptor
// when its peer has not said that it need not.
Port::Port(const PortSpec& spec) : spec_(spec), link_{spec.address}, quiet_(spec.driver == "net_af_packet") {}

std::unique_ptr<Port> Port::open(const PortSpec& spec, std::string* why, std::string* cure) {
    if (!start_eal(spec.needs_channel, why, cure)) return nullptr;
    std::unique_ptr<Port> port(new Port(spec));
    if (!port->start(why, cure)) return nullptr;
    return port;
}

bool Port::start(std::string* why, std::string* cure) {
    static std::atomic<uint32_t> number{0};
    const auto fail = [&](const std::string& what, int error, const std::string& remedy) {
        *why = spec_.text + ": " + what + (error != 0 ? std::string(": ") + ::rte_strerror(error) : "");
        *cure = remedy;
        return false;
    };
    if (spec_.listens && !remove_stale(spec_.socket, is_virtio(spec_) ? SOCK_STREAM : SOCK_SEQPACKET))
        return fail("another process listens on " + spec_.socket, 0,
                    "give each pair of processes a socket of its own");
    device_ = spec_.driver + std::to_string(number.fetch_add(1));
    pool_ = make_pool(device_ + "-pool", room_for(spec_));
    if (pool_ == nullptr)
        return fail("no memory for frames", rte_errno,
                    "install " + dpdk_package("mempool-ring") + "; close other ports of the process, DPDK has 192 MiB");
    int error = 0;
    const char* failed = nullptr;
    const auto make = [&] { failed = plug_in(&error); };
    clear_last_dpdk_line();
    // Its threads inherit that no signal of the program's is for them.
    is_virtio(spec_) ? run_on_interrupt_thread(make) : make();
    if (failed != nullptr && !made_ && !spec_.reconnects) {
        explain_no_device(spec_, why, cure);
        return fail(*why, 0, *cure);
    }
    if (failed != nullptr && made_)
        return fail(failed + last_dpdk_line(), error, "VIADUCT_LOG=info shows all that DPDK says");
    const uint32_t room = room_for(spec_) - RTE_PKTMBUF_HEADROOM - kRoomAbove - wire::Ethernet::kBytes;
    max_frame_ = std::min({spec_.mtu, room, wire::kMaxFrame});
    set_faults(0, spec_.faults);
    if (spec_.zero_copy) zero_copy_ = ZeroCopyTx::make(device_ + "-zc", kBurst);
    if (zero_copy_ != nullptr && faults_ == nullptr) zero_copy_from_ = kZeroCopyFrom;
    VIADUCT_LOG(info, "acenic", "%s is open, frames up to %u bytes", spec_.text.c_str(), max_frame_);
    return true;
}

// Makes the driver's device, with one queue each way. What has failed, with DPDK's number for it; null: all
// is well.
const char* Port::plug_in(int* error) {
    const FdSnapshot files;
    made_ = make_device(device_, spec_);
    if (!made_) return "DPDK cannot open the device";
    if (spec_.listens && is_memif(spec_)) listen_fd_ = listening_socket(spec_.socket_name);
    *error = ENODEV;
    if (::rte_eth_dev_get_port_by_name(device_.c_str(), &port_) != 0) return "no port came of it";
    rte_eth_conf conf{};
    int e = ::rte_eth_dev_configure(port_, 1, 1, &conf);
    if (e == 0) e = ::rte_eth_tx_queue_setup(port_, 0, kRing, SOCKET_ID_ANY, nullptr);
    if (e == 0) e = ::rte_eth_rx_queue_setup(port_, 0, kRing, SOCKET_ID_ANY, nullptr, pool_);
    if (e == 0 && !is_memif(spec_)) e = ::rte_eth_dev_start(port_);
    started_ = linked_ = e == 0 && !is_memif(spec_);
    if (e == 0 && is_memif(spec_)) join_again();
    *error = -e;
    wait_fd_ = files.packet_socket();  // af_packet does not tell its own
    files.close_on_exec();
    // Where others on the same interface are to see the frames, they go through the driver.
    if (spec_.driver == "net_af_packet" && spec_.arguments.find("qdisc_bypass=0") == std::string::npos)
        socket_ = PacketSocket::open(spec_.interface);
    return e == 0 ? nullptr : "the port does not start";
}

void Port::unplug() {
    started_ = linked_ = false;
    control_.give_back();
    socket_.reset();
    if (port_ != UINT16_MAX) ::rte_eth_dev_stop(port_);
    if (port_ != UINT16_MAX) ::rte_eth_dev_close(port_);
    if (made_) ::rte_vdev_uninit(device_.c_str());
    make_idle(std::exchange(listen_fd_, -1));
    port_ = UINT16_MAX;
    made_ = false;
}

Port::~Port() {
    ::rte_pktmbuf_free_bulk(out_, out_count_);
    ::rte_pktmbuf_free_bulk(spare_, spare_count_);
    while (loop_head_ != loop_tail_) ::rte_pktmbuf_free(loop_[loop_head_++ % kLoop]);
    faults_.reset();
    if (spec_.joined) {
        run_on_interrupt_thread([this] { unplug(); });
    } else {
        unplug();
    }
    zero_copy_.reset();
    if (pool_ != nullptr) ::rte_mempool_free(pool_);
}

rte_mbuf* Port::take_buffer() {
    if (spare_count_ == 0) return ::rte_pktmbuf_alloc(pool_);
    rte_mbuf* const m = spare_[--spare_count_];
    ::rte_pktmbuf_reset(m);
    return m;
}

std::byte* Port::begin_frame(uint32_t) {
    if (out_count_ == kBurst) transmit();
    if (out_count_ == kBurst || loop_tail_ - loop_head_ == kLoop) return nullptr;
    current_ = take_buffer();
    if (current_ == nullptr) [[unlikely]] {
        ++counters_.no_buffer;
        return nullptr;
    }
    return rte_pktmbuf_mtod(current_, std::byte*) + wire::Ethernet::kBytes;
}

void Port::end_frame(std::byte* frame, uint32_t bytes, const NicAddress& to) {
    rte_mbuf* m = current_;
    current_ = nullptr;
    if (bytes == 0) return ::rte_pktmbuf_free(m);
    link_.write(frame - wire::Ethernet::kBytes, to, bytes);
    m->data_len = static_cast<uint16_t>(wire::Ethernet::kBytes + bytes);
    m->pkt_len = m->data_len;
    if (m->data_len < 60) {  // the least an Ethernet frame has; what follows is not read
        std::memset(rte_pktmbuf_mtod(m, std::byte*) + m->data_len, 0, 60u - m->data_len);
        m->data_len = 60;
        m->pkt_len = 60;
    }
    if (faults_ != nullptr) [[unlikely]]
        return misbehave(m, frame, bytes);
    place(m, wire::is_same(to, link_.own));
}

void Port::end_zero_copy(std::byte* frame, uint32_t bytes, std::span<const wire::Piece> tail, const NicAddress& to) {
    rte_mbuf* const m = std::exchange(current_, nullptr);
    uint32_t all = bytes;
    for (const wire::Piece& piece : tail) all += piece.bytes;
    link_.write(frame - wire::Ethernet::kBytes, to, all);
    m->data_len = static_cast<uint16_t>(wire::Ethernet::kBytes + bytes);
    m->pkt_len = m->data_len;
    const bool to_ourselves = to == link_.own;
    if (!zero_copy_->append(m, tail)) {
        ++counters_.no_buffer;
        return ::rte_pktmbuf_free(m);  // lost as on the way
    }
    if (to_ourselves) ZeroCopyTx::copy_in(m);
    place(m, to_ourselves);
}

// Frames that the driver has not taken wait in our own memory.
void Port::copy_unsent() {
    for (uint32_t i = 0; i < out_count_; ++i) {
        if (out_[i]->nb_segs == 1) continue;
        ZeroCopyTx::copy_in(out_[i]);
        ++counters_.taken_in;
    }
    if (zero_copy_->all_back()) [[likely]]
        return;
    // None of the drivers that send zero-copy is known to do this.
    VIADUCT_LOG(warn, "acenic", "%s keeps what it sends: payload is copied from now on", device_.c_str());
    zero_copy_from_ = UINT32_MAX;
}

// There is room for one: begin_frame has seen to that.
void Port::place(rte_mbuf* m, bool to_ourselves) {
    if (to_ourselves) {
        loop_[loop_tail_++ % kLoop] = m;
        ++counters_.looped;
    } else {
        out_[out_count_++] = m;
    }
}

void Port::set_faults(uint32_t link, const FaultPlan& plan) {
    if (faults_ == nullptr && !plan.active()) return;
    if (faults_ == nullptr) faults_ = std::make_unique<packet::FaultyWire>(keeper);
    zero_copy_from_ = UINT32_MAX;   // frames may be held back
    faults_->set_plan(link, plan);  // it stays: there may be frames in it
}

void Port::misbehave(rte_mbuf* m, std::byte* frame, uint32_t bytes) {
    void* now[2];
    const uint32_t source = wire::load32(frame + wire::kSourceAt);
    const uint32_t n = faults_->pass(m, source, std::span(frame, bytes), now_ns(), now);
    for (uint32_t i = 0; i < n; ++i) {
        auto* const going = static_cast<rte_mbuf*>(now[i]);
        if (out_count_ == kBurst || loop_tail_ - loop_head_ == kLoop) {  // one frame too many: lost as well
            ::rte_pktmbuf_free(going);
            ++counters_.tx_refused;
            continue;
        }
        const auto* to = rte_pktmbuf_mtod(going, const std::byte*);
        place(going, std::memcmp(to, link_.own.bytes, kNicAddressBytes) == 0);
    }
}

void Port::release_held() {
    const int64_t now = now_ns();
    while (out_count_ != kBurst && loop_tail_ - loop_head_ != kLoop) {
        auto* const m = static_cast<rte_mbuf*>(faults_->release(now));
        if (m == nullptr) return;
        const auto* to = rte_pktmbuf_mtod(m, const std::byte*);
        place(m, std::memcmp(to, link_.own.bytes, kNicAddressBytes) == 0);
    }
}

// No process is at the other end. A driver that listens goes on by itself, except that the port ends a memif link. A
// memif driver that calls does so once for each start, a virtio driver only when its device is made.
void Port::join_again() {
    const int64_t now = now_ns();
    const bool has_ended = control_.is_held();
    if (!has_ended && started_ && spec_.listens) return;
    if (!has_ended && (started_ || spec_.reconnects) && now - tried_at_ < kJoinAgain) return;
    run_on_interrupt_thread([this] {
        int error = 0;
        if (spec_.reconnects) {
            unplug();
            plug_in(&error);
        } else {
            restart_memif();
        }
    });
    tried_at_ = now_ns();
}

// On the interrupt thread.
void Port::restart_memif() {
    control_.give_back();
    if (started_) ::rte_eth_dev_stop(port_);
    const FdSnapshot files;
    started_ = ::rte_eth_dev_start(port_) == 0;
    calling_fd_ = started_ && !spec_.listens ? files.calling_socket() : -1;
}

void Port::stay_joined() {
    const int64_t now = now_ns();
    if (now - asked_at_ < kAskAgain) return;
    const CancellationHeldOff inside_hot_calls;
    asked_at_ = now;
    if (control_.is_over()) linked_ = false;
    if (!plugged()) join_again();
}

// Over memif no burst runs before the port has the control socket, and none after the port has seen the other end's
// end.
bool Port::plugged() {
    if (!is_memif(spec_)) return is_link_up();
    if (!linked_ && !control_.is_held() && is_link_up())
        run_on_interrupt_thread([this] { linked_ = take_control(); });
    return linked_;
}

bool Port::is_link_up() const {
    rte_eth_link link{};
    return started_ && ::rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

// On the interrupt thread: between two callbacks of the driver the link stays as it is.
bool Port::take_control() {
    if (::rte_thread_is_intr() == 0 || !is_link_up()) return false;
    return control_.take(spec_.listens ? accepted_socket(spec_.socket_name) : calling_fd_);
}

// The next frame is written into it, if it is one that can be.
inline void Port::release(rte_mbuf* m) {
    const bool ours =
        m->pool == pool_ && m->nb_segs == 1 && RTE_MBUF_DIRECT(m) && ::rte_mbuf_refcnt_read(m) == 1;
    if (ours && spare_count_ != kSpare)
        spare_[spare_count_++] = m;
    else
        ::rte_pktmbuf_free(m);
}

// How many frames are taken: they are not ours any more.
uint32_t Port::send_burst() {
    if (!linked_) return 0;
    if (socket_ != nullptr) {
        const uint32_t sent = socket_->send(out_, out_count_);
        for (uint32_t i = 0; i < sent; ++i) {
            ZeroCopyTx::free_tail(out_[i]);
            release(out_[i]);
        }
        return sent;
    }
    return ::rte_eth_tx_burst(port_, 0, out_, static_cast<uint16_t>(out_count_));
}

bool Port::next_unreachable(NicAddress* address) {
    if (!unreachable_) return false;
    *address = *std::exchange(unreachable_, std::nullopt);
    return true;
}

void Port::send_frames() {
    if (faults_ != nullptr) [[unlikely]]
        release_held();
    if (out_count_ == 0) return;
    const CancellationHeldOff inside_hot_calls;
    const uint32_t sent = send_burst();
    if (sent == 0 && spec_.joined && !plugged()) [[unlikely]] {  // a wire without an end
        std::memcpy(unreachable_.emplace().bytes, rte_pktmbuf_mtod(out_[out_count_ - 1], const std::byte*),
                    kNicAddressBytes);
        ::rte_pktmbuf_free_bulk(out_, out_count_);
        counters_.unplugged += out_count_;
        out_count_ = 0;
    } else if (sent != out_count_) [[unlikely]] {
        counters_.tx_refused += out_count_ - sent;
        std::copy(out_ + sent, out_ + out_count_, out_);
        out_count_ -= sent;
    } else {
        out_count_ = 0;
    }
    if (zero_copy_from_ != UINT32_MAX) copy_unsent();
}

inline uint32_t Port::fetch(rte_mbuf** burst) {
    uint32_t n = 0;
    while (n < kBurst / 2 && loop_head_ != loop_tail_) burst[n++] = loop_[loop_head_++ % kLoop];
    if (spec_.joined && ++looks_ % kLooksPerTime == 0) [[unlikely]]
        stay_joined();
    if (!linked_) return n;
    const auto room = static_cast<uint16_t>(kBurst - n);
    if (quiet_) return n + ::rte_eth_rx_burst(port_, 0, burst + n, room);
    const CancellationHeldOff inside_hot_calls;
    return n + ::rte_eth_rx_burst(port_, 0, burst + n, room);
}

uint32_t Port::receive_into(TakeFrame take, void* argument) {
    rte_mbuf* burst[kBurst];
    const uint32_t n = fetch(burst);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < n; ++i) {
        rte_mbuf* const m = burst[i];
        NicAddress from;
        std::span<const std::byte> frame;
        if (m->nb_segs == 1 &&
            link_.read({rte_pktmbuf_mtod(m, const std::byte*), m->data_len}, &from, &frame)) [[likely]] {
            take(argument, frame, from);
            ++taken;
        } else {
            ++counters_.foreign;
        }
        release(m);
    }
    return taken;
}

}  // namespace viaduct::acenic
