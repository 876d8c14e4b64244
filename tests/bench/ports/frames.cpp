// SPDX-License-Identifier: BSD-2-Clause
// Frames of a DPDK port with nothing around them: the limit of every protocol on that port.
#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "wire.hpp"

namespace viaduct::bench {

namespace {

constexpr uint16_t kType = 0xB588;  // 0x88B5, IEEE local experimental, as it lies in memory
constexpr uint16_t kRing = 512;
constexpr uint16_t kBurst = 16;
constexpr uint32_t kHeader = 14;

void parse(const std::string& text, uint8_t* out) {
    unsigned b[6];
    if (std::sscanf(text.c_str(), "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]) != 6)
        give_up(text + " is no Ethernet address");
    for (int i = 0; i < 6; ++i) out[i] = static_cast<uint8_t>(b[i]);
}

class Frames final : public Wire {
public:
    Frames(const std::string& device, const std::string& own, const std::string& other) {
        parse(other, header_);
        parse(own, header_ + 6);
        std::memcpy(header_ + 12, &kType, sizeof kType);
        start_eal();
        const std::string name = device.substr(0, device.find(','));
        const std::string arguments =
            device.find(',') == std::string::npos ? "" : device.substr(device.find(',') + 1);
        if (::rte_vdev_init(name.c_str(), arguments.c_str()) != 0 ||
            ::rte_eth_dev_get_port_by_name(name.c_str(), &port_) != 0)
            give_up("DPDK cannot open " + device);
        rte_mempool* const pool =
            ::rte_pktmbuf_pool_create("frames", 2047, 0, 0, 16384 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
        rte_eth_conf conf{};
        if (pool == nullptr || ::rte_eth_dev_configure(port_, 1, 1, &conf) != 0 ||
            ::rte_eth_tx_queue_setup(port_, 0, kRing, SOCKET_ID_ANY, nullptr) != 0 ||
            ::rte_eth_rx_queue_setup(port_, 0, kRing, SOCKET_ID_ANY, nullptr, pool) != 0 ||
            ::rte_eth_dev_start(port_) != 0)
            give_up("the port of " + device + " does not start");
        pool_ = pool;
    }

    bool send(const std::byte* data, uint32_t bytes) override {
        if (out_count_ == kBurst) flush();
        if (out_count_ == kBurst) return false;
        rte_mbuf* const m = ::rte_pktmbuf_alloc(pool_);
        if (m == nullptr) return false;
        auto* at = rte_pktmbuf_mtod(m, std::byte*);
        std::memcpy(at, header_, kHeader);
        std::memcpy(at + kHeader, data, bytes);
        m->data_len = static_cast<uint16_t>(kHeader + bytes);
        m->pkt_len = m->data_len;
        out_[out_count_++] = m;
        return true;
    }

    void flush() override {
        if (out_count_ == 0) return;
        const uint16_t sent = ::rte_eth_tx_burst(port_, 0, out_, out_count_);
        for (uint16_t i = sent; i < out_count_; ++i) out_[i - sent] = out_[i];
        out_count_ = static_cast<uint16_t>(out_count_ - sent);
    }

    uint32_t receive(std::byte* to, uint32_t bytes) override {
        for (;;) {
            if (in_next_ == in_count_) {
                in_next_ = 0;
                in_count_ = ::rte_eth_rx_burst(port_, 0, in_, kBurst);
                if (in_count_ == 0) return 0;
            }
            rte_mbuf* const m = in_[in_next_++];
            const auto* at = rte_pktmbuf_mtod(m, const std::byte*);
            uint32_t taken = 0;
            if (m->data_len > kHeader && std::memcmp(at + 12, &kType, sizeof kType) == 0 &&
                std::memcmp(at, header_ + 6, 6) == 0) {
                taken = std::min<uint32_t>(bytes, m->data_len - kHeader);
                std::memcpy(to, at + kHeader, taken);
            }
            ::rte_pktmbuf_free(m);
            if (taken != 0) return taken;
        }
    }

private:
    // As the provider does it (providers/acenic/eal.cpp): no device of the machine, no hugepages.
    static void start_eal() {
        const std::string prefix = "--file-prefix=frames-" + std::to_string(::getpid());
        const std::string lcores =
            "--lcores=0@(0-" + std::to_string(::sysconf(_SC_NPROCESSORS_CONF) - 1) + ")";
        std::vector<std::string> words = {"frames",
                                          "--no-pci",
                                          "--no-huge",
                                          "--no-telemetry",
                                          "--iova-mode=va",
                                          "-m",
                                          "192",
                                          "--log-level=lib.*:error",
                                          "--log-level=pmd.*:error",
                                          lcores,
                                          prefix};
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        if (::rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) give_up("DPDK does not start");
    }

    uint8_t header_[kHeader];
    uint16_t port_ = 0;
    rte_mempool* pool_ = nullptr;
    rte_mbuf* out_[kBurst];
    rte_mbuf* in_[kBurst];
    uint16_t out_count_ = 0, in_count_ = 0, in_next_ = 0;
};

}  // namespace

std::unique_ptr<Wire> open_frames(const std::string& device, const std::string& own,
                                  const std::string& other) {
    return std::make_unique<Frames>(device, own, other);
}

}  // namespace viaduct::bench
