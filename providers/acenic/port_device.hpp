// SPDX-License-Identifier: BSD-2-Clause
// The DPDK device and the buffers that a port is made of.
#pragma once

#include <rte_mempool.h>

#include <cstdint>
#include <functional>
#include <string>

#include "providers/acenic/port_spec.hpp"

namespace viaduct::acenic {

constexpr uint16_t kRing = 512;      // frames each way
constexpr uint32_t kRoomAbove = 64;  // beyond the frame: FCS, VLAN tag, what a driver adds

// Removes a socket without a listener, which a killed process has left. False: a process listens there.
bool remove_stale(const std::string& path, int type);

// Does that on the thread on which drivers are told of their peers, and waits for its end: memif's takes no care
// of being stopped or closed while its peer goes. Where no alarm can be set, on the caller's thread.
void run_on_interrupt_thread(const std::function<void()>& work);

// Puts a file that never has an event in the place of `fd`, the socket on which memif listened. memif drops that socket
// without closing it: it stays open, with a callback whose argument has been freed, and only the driver could take it
// back. Callers that were not answered yet are disconnected.
void make_idle(int fd);

// Its drivers give back what they opened.
inline bool is_virtio(const PortSpec& spec) { return spec.joined && spec.driver != "net_memif"; }
inline bool is_memif(const PortSpec& spec) { return spec.joined && !is_virtio(spec); }

// Frames wait in af_packet's ring while this process has no processor; what does not fit is lost. It is locked memory:
// a process that may not lock so much has one that fits the usual limit.
bool make_device(const std::string& name, const PortSpec& spec);

// Why the driver has made no device: what the kernel refuses it, else what DPDK says.
void explain_no_device(const PortSpec& spec, std::string* why, std::string* cure);

// Of each buffer, the driver's headroom included.
uint16_t room_for(const PortSpec& spec);

// The buffer given back last is taken next: it is still in the processor's caches, where a queue of all of them would
// go round megabytes. With the driver's package, which is no more than that; else as DPDK does it.
rte_mempool* make_pool(const std::string& name, uint16_t room);

}  // namespace viaduct::acenic
