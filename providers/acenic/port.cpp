// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/port.hpp"

#include <fcntl.h>
#include <rte_alarm.h>
#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "core/shm/segment.hpp"
#include "providers/acenic/eal.hpp"
#include "providers/acenic/new_files.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/format.hpp"

namespace viaduct::acenic {

namespace {

constexpr uint16_t kRing = 512, kSmallRing = 128;
constexpr uint32_t kPoolBuffers = 2047;
constexpr uint32_t kRoomAbove = 64;  // beyond the frame: FCS, VLAN tag, what a driver wants
// A port that is joined to one other process asks every so many looks whether it still is, and calls so
// often.
constexpr uint32_t kLooksPerJoin = 256;
constexpr int64_t kJoinAgain = 100'000'000;

// A socket that nobody listens on is left from a process that was killed. False: somebody does.
bool remove_stale(const std::string& path) {
    sockaddr_un name{};
    if (path.empty() || path.size() >= sizeof name.sun_path) return true;  // the driver will say so
    const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.data(), path.size());
    if (!socket.valid() ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0)
        return false;
    if (errno == ECONNREFUSED) ::unlink(path.c_str());
    return true;
}

// Does that on the thread on which drivers hear of their peers, and waits for its end: memif's takes no care
// of being stopped or closed while its peer goes.
void among_interrupts(const std::function<void()>& work) {
    struct Errand {
        const std::function<void()>& work;
        std::mutex mutex;
        std::condition_variable changed;
        bool done = false;
    } errand{work, {}, {}};
    const auto carry_out = [](void* at) {
        auto* const e = static_cast<Errand*>(at);
        e->work();
        const std::scoped_lock lock(e->mutex);
        e->done = true;
        e->changed.notify_one();  // under the lock: after that there is no errand any more
    };
    if (::rte_eal_alarm_set(1, carry_out, &errand) != 0) return work();
    std::unique_lock lock(errand.mutex);
    errand.changed.wait(lock, [&] { return errand.done; });
}

// memif forgets the socket on which it listened: it stays open, with a callback whose argument has been
// freed, and which only the driver could take back. So the number stays taken, but by a file that never has
// anything to tell, and callers who were not answered yet are hung up.
void silence(int fd) {
    if (fd < 0) return;
    const Fd nothing(::eventfd(0, EFD_CLOEXEC));
    if (nothing.valid()) ::dup3(nothing.get(), fd, O_CLOEXEC);
}

// The driver's arguments: for af_packet rings of so many frames, for memif buffers of one frame.
std::string arguments_of(const PortSpec& spec, uint32_t ring) {
    if (spec.driver == "net_memif")
        return spec.arguments + ",bsize=" + std::to_string((spec.mtu + kRoomAbove + 255) / 256 * 256) +
               ",rsize=10";
    if (spec.driver != "net_af_packet") return spec.arguments;
    const char* const sizes = spec.mtu > 1900 ? ",blocksz=65536,framesz=16384" : ",blocksz=4096,framesz=2048";
    return spec.arguments + sizes + ",framecnt=" + std::to_string(ring) + ",qpairs=1";
}

// Frames wait in af_packet's ring while we have no processor; what does not fit is lost. It is locked memory:
// who may not lock so much has one that fits the usual limit.
bool make_device(const std::string& name, const PortSpec& spec) {
    if (::rte_vdev_init(name.c_str(), arguments_of(spec, kRing).c_str()) == 0) return true;
    if (spec.driver != "net_af_packet" || spec.mtu <= 1900) return false;
    return ::rte_vdev_init(name.c_str(), arguments_of(spec, kSmallRing).c_str()) == 0;
}

}  // namespace

std::unique_ptr<Port> Port::open(const PortSpec& spec, std::string* why, std::string* cure) {
    if (!start_eal(spec.needs_channel, why, cure)) return nullptr;
    std::unique_ptr<Port> port(new Port(spec));
    if (!port->start(spec, why, cure)) return nullptr;
    return port;
}

bool Port::start(const PortSpec& spec, std::string* why, std::string* cure) {
    static std::atomic<uint32_t> number{0};
    const auto fail = [&](const std::string& what, int error, const char* remedy) {
        *why = spec.text + ": " + what + (error != 0 ? std::string(": ") + ::rte_strerror(error) : "");
        *cure = remedy;
        return false;
    };
    const NewFiles files;
    joined_ = spec.driver == "net_memif";
    listens_ = spec.listens;
    if (spec.listens && !remove_stale(spec.socket))
        return fail("another process listens on " + spec.socket, 0,
                    "give each pair of processes a socket of its own");
    device_ = spec.driver + std::to_string(number.fetch_add(1));
    if (!make_device(device_, spec)) {
        const std::string failed = std::exchange(device_, "");
        return fail(
            "DPDK cannot open the device " + failed, 0,
            joined_
                ? "is the folder of the socket there and writable, and librte-net-memif23 installed? "
                  "VIADUCT_LOG=info says more"
                : "af_packet needs CAP_NET_RAW (be root, or in a user namespace of your own) and 8 MiB of "
                  "locked memory; is the driver's package (librte-net-...) installed? VIADUCT_LOG=info says "
                  "more");
    }
    if (listens_) listen_fd_ = files.listening_socket(spec.socket);
    if (::rte_eth_dev_get_port_by_name(device_.c_str(), &port_) != 0)
        return fail("no port came of it", ENODEV, "");
    const bool jumbo = spec.mtu > 1900;
    const auto room = static_cast<uint16_t>((jumbo ? 16384 : 2048) + RTE_PKTMBUF_HEADROOM);
    pool_ = ::rte_pktmbuf_pool_create((device_ + "-pool").c_str(), kPoolBuffers, 0, 0, room, SOCKET_ID_ANY);
    if (pool_ == nullptr)
        return fail("no memory for frames", rte_errno,
                    "install librte-mempool-ring23; allow 192 MiB of memory");
    rte_eth_conf conf{};
    int e = ::rte_eth_dev_configure(port_, 1, 1, &conf);
    if (e == 0) e = ::rte_eth_tx_queue_setup(port_, 0, kRing, SOCKET_ID_ANY, nullptr);
    if (e == 0) e = ::rte_eth_rx_queue_setup(port_, 0, kRing, SOCKET_ID_ANY, nullptr, pool_);
    if (e == 0 && !joined_) e = ::rte_eth_dev_start(port_);
    started_ = !joined_;
    if (e == 0 && joined_) join_again();
    if (e != 0) return fail("the port does not start", -e, "VIADUCT_LOG=info tells what the driver says");
    wait_fd_ = files.packet_socket();  // af_packet does not tell its own
    files.close_on_exec();
    const uint32_t payload =
        std::min<uint32_t>(spec.mtu, room - RTE_PKTMBUF_HEADROOM - kRoomAbove - wire::Ethernet::kBytes);
    max_frame_ = std::min(payload, wire::kMaxFrame);
    set_faults(0, spec.faults);
    VIADUCT_LOG(info, "acenic", "%s is open, frames up to %u bytes", spec.text.c_str(), max_frame_);
    return true;
}

Port::~Port() {
    if (port_ != UINT16_MAX) {
        for (uint32_t i = 0; i < out_count_; ++i) ::rte_pktmbuf_free(out_[i]);
        while (loop_head_ != loop_tail_) ::rte_pktmbuf_free(loop_[loop_head_++ % kLoop]);
        faults_.reset();
    }
    const auto close = [this] {
        if (port_ != UINT16_MAX) ::rte_eth_dev_stop(port_);
        if (port_ != UINT16_MAX) ::rte_eth_dev_close(port_);
        if (!device_.empty()) ::rte_vdev_uninit(device_.c_str());
        silence(listen_fd_);
    };
    if (joined_) {
        among_interrupts(close);
    } else {
        close();
    }
    if (pool_ != nullptr) ::rte_mempool_free(pool_);
}

std::byte* Port::begin_frame(uint32_t) {
    if (out_count_ == kBurst) transmit();
    if (out_count_ == kBurst || loop_tail_ - loop_head_ == kLoop) return nullptr;
    current_ = ::rte_pktmbuf_alloc(pool_);
    if (current_ == nullptr) {
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
    place(m, to == link_.own);
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
    if (faults_ == nullptr) faults_ = std::make_unique<FaultyWire>();
    faults_->set_plan(link, plan);  // it stays: there may be frames in it
}

void Port::misbehave(rte_mbuf* m, std::byte* frame, uint32_t bytes) {
    rte_mbuf* now[2];
    const uint32_t source = wire::load32(frame + wire::kSourceAt);
    const uint32_t n = faults_->pass(m, source, std::span(frame, bytes), now_ns(), now);
    for (uint32_t i = 0; i < n; ++i) {
        if (out_count_ == kBurst || loop_tail_ - loop_head_ == kLoop) {  // one frame too many: lost as well
            ::rte_pktmbuf_free(now[i]);
            ++counters_.tx_refused;
            continue;
        }
        const auto* to = rte_pktmbuf_mtod(now[i], const std::byte*);
        place(now[i], std::memcmp(to, link_.own.bytes, kNicAddressBytes) == 0);
    }
}

void Port::release_held() {
    const int64_t now = now_ns();
    while (out_count_ != kBurst && loop_tail_ - loop_head_ != kLoop) {
        rte_mbuf* const m = faults_->release(now);
        if (m == nullptr) return;
        const auto* to = rte_pktmbuf_mtod(m, const std::byte*);
        place(m, std::memcmp(to, link_.own.bytes, kNicAddressBytes) == 0);
    }
}

// Nobody is at the other end, or not any more. The driver goes on by itself where it listens; where it calls,
// it does so once for each start.
void Port::join_again() {
    const int64_t now = now_ns();
    if (started_ && (listens_ || now - tried_at_ < kJoinAgain)) return;
    among_interrupts([this] {
        if (started_) ::rte_eth_dev_stop(port_);
        started_ = ::rte_eth_dev_start(port_) == 0;
    });
    tried_at_ = now;
}

bool Port::plugged() {
    rte_eth_link link{};
    return started_ && ::rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

void Port::transmit() {
    if (faults_ != nullptr) [[unlikely]]
        release_held();
    if (out_count_ == 0) return;
    const uint32_t sent =
        started_ ? ::rte_eth_tx_burst(port_, 0, out_, static_cast<uint16_t>(out_count_)) : 0;
    if (sent == out_count_) [[likely]] {
        out_count_ = 0;
        return;
    }
    if (sent == 0 && joined_ && !plugged()) {  // a wire without an end
        ::rte_pktmbuf_free_bulk(out_, out_count_);
        counters_.unplugged += out_count_;
        out_count_ = 0;
        return;
    }
    counters_.tx_refused += out_count_ - sent;
    std::copy(out_ + sent, out_ + out_count_, out_);
    out_count_ -= sent;
}

uint32_t Port::fetch(rte_mbuf** burst) {
    uint32_t n = 0;
    while (n < kBurst / 2 && loop_head_ != loop_tail_) burst[n++] = loop_[loop_head_++ % kLoop];
    if (joined_ && ++looks_ % kLooksPerJoin == 0 && !plugged()) [[unlikely]]
        join_again();
    if (!started_) return n;
    return n + ::rte_eth_rx_burst(port_, 0, burst + n, static_cast<uint16_t>(kBurst - n));
}

bool Port::look(rte_mbuf* m, NicAddress* from, std::span<const std::byte>* frame) {
    const std::span<const std::byte> packet(rte_pktmbuf_mtod(m, const std::byte*), m->data_len);
    if (m->nb_segs == 1 && link_.read(packet, from, frame)) return true;
    ++counters_.foreign;
    return false;
}

void Port::release(rte_mbuf** burst, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) ::rte_pktmbuf_free(burst[i]);
}

}  // namespace viaduct::acenic
