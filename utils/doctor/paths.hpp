// SPDX-License-Identifier: BSD-2-Clause
// The two directions between two hosts, each by itself: whether datagrams pass that nothing has been sent for before,
// how many are lost, how large they may be. What has arrived is asked over TCP, so silence of one direction is not
// taken for silence of the other.
#pragma once

#include <memory>
#include <string>

#include "utils/doctor/channel.hpp"
#include "utils/common/finding.hpp"
#include "utils/doctor/probe.hpp"
#include "utils/doctor/report.hpp"

namespace viaduct::doctor {

// The version that answers at this host's port of requests; -1: none. Tells whether requests from there come to it.
int ask_port_here(Channel&, tools::Findings&, int64_t port, const std::string& host);

class Paths {
public:
    // `host`: its name as people know it.
    Paths(Channel& channel, tools::Findings& out, std::string host)
        : channel_(channel), out_(out), host_(std::move(host)) {}

    // The port that requests come to, there. False: requests do not get through. `own_version`: -1: not known.
    bool ask_request_port(const Report& there, int own_version);
    // True: frames pass in both directions.
    bool compare(uint32_t own_mtu, uint32_t their_mtu);

private:
    struct Direction {
        bool to_there;
        uint32_t passes = 0;  // of the first datagrams
        bool answers = true;  // passes only after a datagram in the other direction
        uint32_t lost = 0, sent = 0, damaged = 0, twice = 0;
        uint32_t largest = 0;  // datagram with its headers
    };

    uint32_t transfer(bool to_there, uint32_t socket, uint32_t count, uint32_t bytes, uint32_t gap_us,
                      Direction* direction);
    bool passes_at_all(Direction& direction);
    void tell_silence(const Direction& direction);
    void measure_loss(Direction& direction);
    void measure_size(Direction& direction, uint32_t most);
    void tell_size(const Direction& direction, uint32_t own_mtu, uint32_t their_mtu);
    std::string from(const Direction& direction) const { return direction.to_there ? "here" : host_; }
    std::string to(const Direction& direction) const { return direction.to_there ? host_ : "here"; }

    Channel& channel_;
    tools::Findings& out_;
    const std::string host_;
    std::unique_ptr<Probe> own_[2];
    uint16_t their_ports_[2] = {};
    uint32_t series_ = 0;
};

}  // namespace viaduct::doctor
