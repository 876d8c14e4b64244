// SPDX-License-Identifier: BSD-2-Clause
// The VI on which client and server talk about measurements, beside the VIs that are measured. Both sleep on
// it, so that it costs nothing meanwhile.
#pragma once

#include <vipl.h>

#include <string>

#include "utils/common/nic.hpp"
#include "utils/vipperf/plan.hpp"

namespace viaduct::vipperf {

class Control {
public:
    explicit Control(const std::string& device);
    ~Control();
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

    // Waits for a client; false when none came in `wait_ms`.
    bool accept(const std::string& discriminator, VIP_ULONG wait_ms);
    void request(const std::string& host, const std::string& discriminator, long connect_wait_ms);

    tools::Nic& nic() { return nic_; }
    const std::string& peer() const { return peer_; }

    // Fills in magic and version.
    void send(Command);
    void send(Answer);
    // False: nothing came in time. Throws when the other end has left.
    bool receive(Command*, VIP_ULONG wait_ms);
    bool receive(Answer*, VIP_ULONG wait_ms);

private:
    template <class Record>
    void send_record(Record);
    template <class Record>
    bool receive_record(Record*, VIP_ULONG wait_ms);
    void make_vi();
    VIP_DESCRIPTOR* descriptor(size_t index);
    std::byte* buffer(size_t index);
    void post_receive(VIP_DESCRIPTOR*);

    tools::Nic nic_;
    tools::Memory memory_;
    VIP_VI_HANDLE vi_ = nullptr;
    std::string peer_;
};

}  // namespace viaduct::vipperf
