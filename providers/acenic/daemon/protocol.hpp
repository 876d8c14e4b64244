// SPDX-License-Identifier: BSD-2-Clause
// What an application and the engine process say to each other over their socket (SOCK_SEQPACKET): Hello ->,
// <- Welcome with the liveness pipe, Attach with the segment ->, <- Attached. From then on each message is one
// byte and means "look": from the application that it has written a mailbox while the engine slept, from the
// engine an interrupt. Everything else goes through the rings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/shm/segment.hpp"
#include "providers/packet/message.hpp"
#include "viaduct/provider.hpp"
#include "viaduct/types.hpp"

namespace viaduct::acenic {

using packet::get_text;
using packet::put_text;
using packet::send_message;
using packet::take_message;

inline constexpr uint32_t kEngineMagic = 0x54494732;  // "TIG2"
inline constexpr uint32_t kEngineVersion = 3;  // what goes through the rings counts: wire::kVersion
inline constexpr size_t kPortText = 256;

struct Hello {
    uint32_t magic = kEngineMagic, version = kEngineVersion;
    char port[kPortText] = {};  // as configured: the engine must have the same
};

struct Welcome {
    uint32_t magic = kEngineMagic, version = kEngineVersion;
    int32_t status = 0;  // viaduct::Status; unless ok, why and cure say so for people
    uint32_t max_frame = 0;
    uint32_t first_link = 0, links = 0;
    NicAddress address;
    // Limits that the engine process has inherited and cannot raise (core/agent/own_limits.hpp). If any is set, the
    // engine process takes a request to end (Attach::end) from this application, and an application that can start a
    // better engine process sends it. None is set while another application has a place.
    uint16_t flaws = 0;
    char why[256] = {};
    char cure[256] = {};
};

struct Attach {
    uint32_t magic = kEngineMagic;
    uint32_t end = 0;  // 1: the engine process is to end; there is no segment
    uint64_t segment_bytes = 0;
};

struct Attached {
    int32_t status = 0;
    char why[124] = {};
};

// The engine's address for a port: of one user's engine.
std::string engine_address(const std::string& short_port_name, uint32_t user);

// Another "look", lost when the other side has many already.
inline void send_look(int socket) { send_message(socket, "!", 1); }
// Takes those that have come, a few at a time. False: the other side has ended, or sent more than that.
bool take_looks(int socket, std::vector<Fd>* files);

}  // namespace viaduct::acenic
