// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/port.hpp"

#include <dirent.h>
#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <utility>

#include "core/log/log.hpp"
#include "providers/acenic/eal.hpp"
#include "providers/wire/format.hpp"

namespace viaduct::acenic {

namespace {

constexpr uint16_t kRing = 512;
constexpr uint32_t kPoolBuffers = 2047;
constexpr uint32_t kRoomAbove = 64;  // beyond the frame: FCS, VLAN tag, what a driver wants

// The packet sockets this process has: af_packet does not tell its own.
std::set<int> packet_sockets() {
    std::set<int> found;
    DIR* folder = ::opendir("/proc/self/fd");
    if (folder == nullptr) return found;
    while (const dirent* entry = ::readdir(folder)) {
        const int fd = std::atoi(entry->d_name);
        int domain = 0;
        socklen_t n = sizeof domain;
        if (fd > 2 && ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_PACKET)
            found.insert(fd);
    }
    ::closedir(folder);
    return found;
}

// The driver's arguments: for af_packet rings that fit the interface's MTU and the usual limit of locked
// memory.
std::string arguments_of(const PortSpec& spec) {
    if (spec.driver != "net_af_packet") return spec.arguments;
    return spec.arguments + (spec.mtu > 1900 ? ",blocksz=65536,framesz=16384,framecnt=128,qpairs=1"
                                             : ",blocksz=4096,framesz=2048,framecnt=512,qpairs=1");
}

}  // namespace

std::unique_ptr<Port> Port::open(const PortSpec& spec, std::string* why, std::string* cure) {
    if (!start_eal(why, cure)) return nullptr;
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
    const std::set<int> before = packet_sockets();
    device_ = spec.driver + std::to_string(number.fetch_add(1));
    if (::rte_vdev_init(device_.c_str(), arguments_of(spec).c_str()) != 0) {
        const std::string failed = std::exchange(device_, "");
        return fail(
            "DPDK cannot open the device " + failed, 0,
            "af_packet needs CAP_NET_RAW (be root, or in a user namespace of your own) and 8 MiB of locked "
            "memory; is the driver's package (librte-net-...) installed? VIADUCT_LOG=info says more");
    }
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
    if (e == 0) e = ::rte_eth_dev_start(port_);
    if (e != 0) return fail("the port does not start", -e, "VIADUCT_LOG=info tells what the driver says");
    for (const int fd : packet_sockets())
        if (before.count(fd) == 0) wait_fd_ = fd;
    const uint32_t payload =
        std::min<uint32_t>(spec.mtu, room - RTE_PKTMBUF_HEADROOM - kRoomAbove - wire::Ethernet::kBytes);
    max_frame_ = std::min(payload, wire::kMaxFrame);
    VIADUCT_LOG(info, "acenic", "%s is open, frames up to %u bytes", spec.text.c_str(), max_frame_);
    return true;
}

Port::~Port() {
    if (port_ != UINT16_MAX) {
        for (uint32_t i = 0; i < out_count_; ++i) ::rte_pktmbuf_free(out_[i]);
        while (loop_head_ != loop_tail_) ::rte_pktmbuf_free(loop_[loop_head_++ % kLoop]);
        ::rte_eth_dev_stop(port_);
        ::rte_eth_dev_close(port_);
    }
    if (!device_.empty()) ::rte_vdev_uninit(device_.c_str());
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
    if (to == link_.own) {
        loop_[loop_tail_++ % kLoop] = m;
        ++counters_.looped;
        return;
    }
    if (m->data_len < 60) {  // the least an Ethernet frame has; what follows is not read
        std::memset(rte_pktmbuf_mtod(m, std::byte*) + m->data_len, 0, 60u - m->data_len);
        m->data_len = 60;
        m->pkt_len = 60;
    }
    out_[out_count_++] = m;
}

void Port::transmit() {
    if (out_count_ == 0) return;
    const uint32_t sent = ::rte_eth_tx_burst(port_, 0, out_, static_cast<uint16_t>(out_count_));
    if (sent == out_count_) [[likely]] {
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
