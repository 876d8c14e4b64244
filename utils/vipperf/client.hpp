// SPDX-License-Identifier: BSD-2-Clause
// vipperf as client: leads every measurement and does the arithmetic.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "utils/common/statistics.hpp"
#include "utils/measure/machine.hpp"
#include "utils/measure/pair.hpp"
#include "utils/vipperf/control.hpp"
#include "utils/vipperf/loops.hpp"

namespace viaduct::vipperf {

struct ClientOptions {
    std::string device;
    std::string host;
    std::string discriminator;
    long connect_wait_ms = 1000;
    uint64_t iterations = 0;  // 0: as many as fit into sample_ns
    double sample_ns = 30e6;
    measure::Pair* pair = nullptr;  // see ServerOptions
};

struct Latency {
    uint64_t bytes = 0;
    uint64_t iterations = 0;
    tools::Summary us;  // half a round trip; RDMA read: the whole read
};

struct Bandwidth {
    uint64_t bytes = 0;
    uint64_t iterations = 0;  // of each side
    double peak_mb_s = 0;     // 10^6 bytes a second
    double mb_s = 0;
    double million_s = 0;  // messages
};

class Client {
public:
    explicit Client(const ClientOptions&);
    ~Client();

    tools::Nic& nic() { return control_.nic(); }
    const std::string& peer() const { return control_.peer(); }
    bool pair() const { return options_.pair != nullptr; }

    // Makes the connections of a plan, at both ends; the number is for what follows.
    uint32_t set_up(const Plan&);
    uint64_t largest(uint32_t bundle) const { return bundles_[bundle]->plan().max_bytes; }

    Latency latency(uint32_t bundle, uint64_t bytes);
    Bandwidth bandwidth(uint32_t bundle, uint64_t bytes, bool both_ways);
    // Unstamped, for comparison with a limit: half a round trip (read: a whole one), or one message of a
    // stream, in ns. *share: the smaller share that the two ends had of their processors.
    double plain_ns(uint32_t bundle, Kind, uint64_t bytes, double* share);

    // With a pair only.
    double limit(Limit, uint64_t bytes);
    measure::Distance distance();

private:
    struct Both {
        Measured here;
        Answer there;
    };
    Both run(const Run&);
    Answer answer(VIP_ULONG wait_ms);
    uint64_t iterations_for(Run, uint64_t most);  // as asked, or as many as fit into the sample

    ClientOptions options_;
    Control control_;
    std::vector<std::unique_ptr<Bundle>> bundles_;
};

}  // namespace viaduct::vipperf
