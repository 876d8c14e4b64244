// SPDX-License-Identifier: BSD-2-Clause
// The cases of adi_module_test: what every protocol module must do, each in a job of its own.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace viaduct::via {
class Lane;
}

namespace viaduct::adi_test {

struct Case {
    const char* name;
    void (*body)(Job&);
    int size;
    int seconds;
    const char* only = nullptr;  // the module it is for, !module: all others; nullptr: every one
    std::vector<std::pair<const char*, const char*>> environment = {};
    std::vector<int> victims = {};
    int rounds = 1;  // with another seed each
};

std::vector<Case> traffic_cases();
std::vector<Case> piece_cases();
std::vector<Case> damaged_piece_cases();
std::vector<Case> ring_cases();
std::vector<Case> shared_ring_cases();
std::vector<Case> long_ring_cases();
std::vector<Case> memory_cases();
std::vector<Case> table_cases();
std::vector<Case> end_cases();
std::vector<Case> descriptor_cases();
std::vector<Case> on_demand_cases();
std::vector<Case> half_open_cases();
std::vector<Case> shortage_cases();
std::vector<Case> rail_cases();
std::vector<Case> rule_cases();
std::vector<Case> entry_cases();

// The module under test, and the number of the round.
extern const char* module;
extern unsigned seed;

// How often via has called VipConnectRequest and VipConnectPeerRequest in this process (half_open.cpp).
extern unsigned client_requests, peer_requests;

// Sends to and fro over via until the rings of both sides are open (damaged_ring.cpp).
via::Lane* open_ring(Engine& e, int other);

inline unsigned char byte_at(uint32_t from, size_t i) {
    return static_cast<unsigned char>((from * 2654435761U + i * 131) >> 3);
}

inline void fill(std::vector<unsigned char>& data, uint32_t from) {
    for (size_t i = 0; i < data.size(); ++i) data[i] = byte_at(from, i);
}

inline bool holds(const unsigned char* data, size_t bytes, uint32_t from) {
    for (size_t i = 0; i < bytes; ++i) {
        if (data[i] != byte_at(from, i)) return false;
    }
    return true;
}

}  // namespace viaduct::adi_test
