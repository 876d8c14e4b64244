// SPDX-License-Identifier: BSD-2-Clause
// Descriptors that go wrong: what the program is told of them, what becomes of the connection, and what the
// peer is told. The path of those without errors is in data_send.cpp and data_receive.cpp.
#pragma once

#include "core/vi/vi_core.hpp"
#include "providers/verbs/endpoint.hpp"

namespace viaduct::verbs {

inline bool unreliable(const Endpoint& ep) { return ep.vi->traits.reliability == VIP_SERVICE_UNRELIABLE; }
inline bool has_immediate(const VIP_DESCRIPTOR* d) { return (d->CS.Control & VIP_CONTROL_IMMEDIATE) != 0; }

// Marks the connection as one that has to end. `report`: it is told as `code` too, because no descriptor has
// said why.
void break_connection(Endpoint&, VIP_ERROR_CODE code, bool report);

// [S] A mistake of the program's own in a descriptor (spec/reliability 6.2, "local send descriptor ...").
void refuse_descriptor(Endpoint&, uint32_t position, uint32_t error);
// [S] The owner of the memory has said no (spec/reliability 6.2, "RDMA write refused", "RDMA read refused").
void refuse_rdma(Endpoint&, const VIP_DESCRIPTOR*, uint32_t position, uint32_t total);
// [S] An error completion of a send: what it says of its descriptor, of the connection, and to the peer.
void fail_send(Endpoint&, const Arrival&);
// [R] The other side of a refusal: a write with immediate data takes the head of the receive queue, whether that is
// valid or not.
void complete_refused_write(WorkQueue&, uint32_t immediate);
// [R] An error completion of a receive.
void fail_receive(Endpoint&, const Arrival&);

}  // namespace viaduct::verbs
