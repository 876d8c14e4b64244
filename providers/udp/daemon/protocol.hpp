// SPDX-License-Identifier: BSD-2-Clause
// The messages between an application and viaduct-udpd. Over a Unix socket (SOCK_SEQPACKET): Hello ->, <- Welcome,
// then FilterMessage ->, each when the application begins or ends to wait for requests; one that has connections alone
// sends none. As datagrams to the
// application's own UDP port, in one row with what comes from elsewhere: a request that is for it, as it came, and that
// a request filter is known. Their first byte is no version of the wire format, and they show the token of the Hello.
#pragma once

#include <cstdint>
#include <string>

#include "viaduct/types.hpp"

namespace viaduct::udp {

inline constexpr uint32_t kDaemonMagic = 0x55445044;  // "UDPD"
inline constexpr uint32_t kDaemonVersion = 1;

struct Hello {
    uint32_t magic = kDaemonMagic, version = kDaemonVersion;
    uint64_t token = 0;
    NicAddress data;  // where the application's frames come from and go to
    uint16_t reserved = 0;
};

struct Welcome {
    uint32_t magic = kDaemonMagic, version = kDaemonVersion;
    int32_t status = 0;  // viaduct::Status; unless ok, why and cure say so for people
    // Limits that the daemon has inherited and cannot raise (core/agent/own_limits.hpp). If any is set, the daemon
    // takes a request to end (FilterMessage::end) from this program, whatever the status, and a program that can start
    // a better daemon sends it.
    uint32_t flaws = 0;
    char why[256] = {};
    char cure[256] = {};
};

struct FilterMessage {
    enum What : uint32_t { add, remove, remove_matches, end };
    uint32_t what = add;
    uint32_t number = 0;  // the application's name for it; rises
    uint8_t peer = 0;   // 1: peer to peer
    uint8_t every = 0;  // 1: packet::RequestFilter::every
    uint16_t reserved = 0;
    uint32_t link = 0;
    EndAddress local, remote;
};

// Before a forwarded frame, or alone.
struct Envelope {
    static constexpr uint8_t kMark = 0xFD;
    enum What : uint8_t { request = 1, known = 2 };
    uint8_t mark = kMark;
    uint8_t what = 0;
    NicAddress from;      // of the frame that follows
    uint64_t token = 0;
    uint32_t number = 0;  // of the filter that is known
    uint32_t reserved = 0;
};
static_assert(sizeof(Envelope) == 24);

// Where the one of that user listens for a NIC: a name of the abstract space of this network namespace.
inline std::string daemon_address(const std::string& nic, uint32_t user) {
    return "@viaduct-udpd-" + std::to_string(user) + "-" + nic;
}

}  // namespace viaduct::udp
