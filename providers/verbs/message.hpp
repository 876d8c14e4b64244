// SPDX-License-Identifier: BSD-2-Clause
// What goes over a control QP (control_qp.hpp), and how it looks on the wire: docs/verbs.md, "The control
// QP".
#pragma once

#include <cstddef>
#include <cstdint>

namespace viaduct::verbs {

inline constexpr uint32_t kMessageBytes = 48;

enum class MessageKind : uint8_t {
    ask = 1,            // for the key of a region
    answer = 2,         // key 0: refused
    no_receive = 3,     // a message of mine met no receive of yours
    write_refused = 4,  // your memory refused an RDMA write of mine
    read_refused = 5,
    reset = 6,  // Unreliable: my data queue pair starts anew (recover.hpp)
    ready = 7,  // Unreliable: it has
    alive = 8,  // nothing: what counts is whether it is acknowledged
};

struct Message {
    MessageKind kind = MessageKind::ask;
    uint32_t handle = 0;
    uint64_t address = 0;  // answer: base of the region
    uint64_t length = 0;
    uint32_t key = 0;    // write_refused: the immediate data, if there were any
    uint32_t flags = 0;  // kRegionRdmaWrite, kRegionRdmaRead; write_refused: kWithImmediate
};

inline constexpr uint32_t kWithImmediate = 1;

void write_message(const Message&, std::byte* out);
bool read_message(const std::byte* in, uint32_t bytes, Message* out);

}  // namespace viaduct::verbs
