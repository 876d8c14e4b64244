// SPDX-License-Identifier: BSD-2-Clause
// The connections in a capture, and one of them as a message-sequence chart.
#pragma once

#include <string>
#include <vector>

#include "utils/vipcap/frame.hpp"

namespace viaduct::vipcap {

// A frame that outlives its packet.
struct KeptFrame {
    std::vector<uint8_t> bytes;
    Frame frame;  // its bytes are those above
    explicit KeptFrame(const Frame& f) : bytes(f.bytes.begin(), f.bytes.end()), frame(f) { frame.bytes = bytes; }
    KeptFrame(KeptFrame&& other) noexcept : bytes(std::move(other.bytes)), frame(other.frame) { frame.bytes = bytes; }
    KeptFrame& operator=(KeptFrame&&) = delete;
};

struct End {
    Address address;
    uint32_t link = 0;
    bool is(const Address& a, uint32_t l) const { return link == l && address.same_host(a); }
};

struct Connection {
    End first, second;           // the first one has sent the first frame
    std::vector<size_t> frames;  // which of the capture's
};

// In the order in which they begin. Requests belong to the connection that comes of them.
std::vector<Connection> connections_in(const std::vector<KeptFrame>&);

// A page of HTML that needs nothing else: time runs down, one arrow a frame.
std::string chart_of(const Connection&, const std::vector<KeptFrame>&, const std::string& title);

}  // namespace viaduct::vipcap
