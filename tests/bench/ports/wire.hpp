// SPDX-License-Identifier: BSD-2-Clause
// What carries the messages of this benchmark: bare frames of a DPDK port, or the kernel's UDP and TCP.
// Payload is copied out of and into memory of the program by all of them, as a message layer has to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace viaduct::bench {

class Wire {
public:
    virtual ~Wire() = default;
    // False: it takes no more for now.
    virtual bool send(const std::byte* data, uint32_t bytes) = 0;
    virtual void flush() {}
    // A message of `bytes` into `to`; 0: nothing has come. Datagrams come as they are, of at most `bytes`.
    virtual uint32_t receive(std::byte* to, uint32_t bytes) = 0;
};

// `device` as for DPDK's --vdev; `own` and `other` are Ethernet addresses.
std::unique_ptr<Wire> open_frames(const std::string& device, const std::string& own,
                                  const std::string& other);
// `other` is an IPv4 address; the leader connects, the other end listens on every address.
std::unique_ptr<Wire> open_udp(const std::string& other, uint16_t port, bool leader);
std::unique_ptr<Wire> open_tcp(const std::string& other, uint16_t port, bool leader);

// Ends the program with a message.
[[noreturn]] void give_up(const std::string& why);

}  // namespace viaduct::bench
