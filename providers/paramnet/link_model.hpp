// SPDX-License-Identifier: BSD-2-Clause
// When a message arrives that passes a PARAMNet-II network (spec/paramnet a.1 and a.2): its NIC, its link,
// the switches, the link of the receiver. Arithmetic only: times are arguments, nothing here waits.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct::paramnet {

// When a link has passed all that it was given, by now_ns(). Messages reserve their turn on it.
using LinkFree = std::atomic<int64_t>;

struct LinkModel {
    uint64_t rate = 0;    // bytes a second of a link; 0: nothing is modelled
    uint32_t packet = 0;  // most payload bytes of a packet; 0: messages are not cut
    uint32_t header = 0;  // bytes on the link that each packet adds
    int64_t out_ns = 0;   // from the doorbell until the first bit is on the link
    int64_t hop_ns = 0;   // through one switch
    uint32_t switches = 0;
    int64_t in_ns = 0;  // from the last bit until data and completion are in the receiver's memory
    bool receiver_has_link = false;  // all senders to one NIC share the link to it

    bool active() const { return rate != 0; }
    // How long a message of so many bytes holds a link.
    int64_t wire_ns(uint64_t bytes) const;
    // When a message arrives that was handed to its NIC at `posted`. Takes its turns on both links.
    int64_t arrival(int64_t posted, uint64_t bytes, LinkFree& out, LinkFree& in) const;
    // The same where the receiving NIC answers by itself (RDMA read, atomic operations): `in` is the link to
    // it, `back` the one to the asker.
    int64_t answer_arrival(int64_t posted, uint64_t asked, uint64_t answered, LinkFree& out, LinkFree& in,
                           LinkFree& back) const;

private:
    // At its receiver's memory, for a message whose first bit leaves the sender at `start`.
    int64_t across(int64_t start, int64_t wire, LinkFree& in) const;
};

// The published figures, and constants of the host interface that make them: 2.5 Gb/s, 0.5 us a switch, about
// 10 us for a short message.
LinkModel paramnet2(uint32_t switches);

}  // namespace viaduct::paramnet
