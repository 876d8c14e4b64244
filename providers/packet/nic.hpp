// SPDX-License-Identifier: BSD-2-Clause
// An open NIC and the operations of the provider on it. Opens of one port in a process share its engine.
#pragma once

#include <atomic>
#include <memory>

#include "core/shm/wake_event.hpp"
#include "providers/packet/engine.hpp"

namespace viaduct::packet {

inline constexpr uint32_t kMaxVi = 1024;
// Of a port: several opens in a process share it, and a connection that is over is remembered for half a
// second.
inline constexpr uint32_t kMaxLinks = 8 * kMaxVi;
inline constexpr uint32_t kDepth = 1024;

}  // namespace viaduct::packet

namespace viaduct {

struct NicContext {
    NicInfo info;
    UserAgent* agent = nullptr;
    RegionTable* regions = nullptr;
    std::unique_ptr<packet::PortSource> source;
    uint64_t context_id = 0;
    std::shared_ptr<packet::Engine> engine;
    WakeEvent wake_event;  // readable: sleepers look again
    std::atomic<uint32_t> wakes{0};
    std::atomic<uint32_t> sleepers{0};
};

struct Group {
    NicContext* nic = nullptr;
};

}  // namespace viaduct

namespace viaduct::packet {

// What all NICs of this kind say of themselves; their names, addresses and MTU are the provider's to fill in.
NicInfo common_info();

// The source has been read from the settings.
Status open(const OpenArgs&, std::unique_ptr<PortSource>, NicContext** out);
void close(NicContext*);
Status describe(NicContext*, Mail* open_request);
Status group_create(NicContext*, Group** out);
void group_destroy(Group*);
void poll_group(Group*);
Status endpoint_create(NicContext*, const EndpointArgs&, Endpoint** out);
void endpoint_destroy(Endpoint*);
void start(ViCore&);
Status finish_traffic(ViCore&);
void disconnect(ViCore&);
void kick_send(ViCore&);
void kick_recv(ViCore&);
void poll_recv(ViCore&);
uint32_t sleep_begin(NicContext*);
void sleep_wait(NicContext*, uint32_t key, Deadline);
void sleep_end(NicContext*);
void wake(NicContext*);
void region_removed(NicContext*, uint32_t handle, const Region& was);
Status set_fault_plan(ViCore&, const char* plan);
Status resolve(NicContext*, const uint8_t* ip, uint32_t ip_len, uint32_t index, NicAddress* out);

// connect.cpp
Status listen(NicContext*, const EndAddress& local, Deadline, ConnectOp** out);
Status listen(Engine&, const EndAddress& local, Deadline, ConnectOp** out);
Status request(NicContext*, ViCore&, const EndAddress& local, const EndAddress& remote, const ViTraits&,
               Deadline, ConnectOp** out);
Status peer_request(NicContext*, ViCore&, const EndAddress& local, const EndAddress& remote, const ViTraits&,
                    Deadline, ConnectOp** out);
Status accept(NicContext*, uint64_t incoming, ViCore&, const ViTraits&, ConnectOp** out);
Status reject(NicContext*, uint64_t incoming);
Status connect_await(ConnectOp*, Deadline, ConnectResult*);
Status connect_finish(ConnectOp*, ConnectResult*);

// The data half of the provider's table, but for open.
constexpr DataOps common_data() {
    DataOps data{};
    data.close = close;
    data.describe = describe;
    data.group_create = group_create;
    data.group_destroy = group_destroy;
    data.poll_group = poll_group;
    data.endpoint_create = endpoint_create;
    data.endpoint_destroy = endpoint_destroy;
    data.listen = listen;
    data.request = request;
    data.peer_request = peer_request;
    data.accept = accept;
    data.reject = reject;
    data.connect_await = connect_await;
    data.connect_finish = connect_finish;
    data.start = start;
    data.finish_traffic = finish_traffic;
    data.disconnect = disconnect;
    data.kick_send = kick_send;
    data.kick_recv = kick_recv;
    data.poll_recv = poll_recv;
    data.sleep_begin = sleep_begin;
    data.sleep_wait = sleep_wait;
    data.sleep_end = sleep_end;
    data.wake = wake;
    data.region_removed = region_removed;
    data.resolve = resolve;
    data.set_fault_plan = set_fault_plan;
    return data;
}

}  // namespace viaduct::packet

namespace viaduct {

// A listener or an attempt; under the engine's lock.
struct ConnectOp {
    packet::Engine* engine = nullptr;
    Endpoint* ep = nullptr;  // null: a listener
    EndAddress local;        // of a listener
    uint32_t listener = 0;
    uint32_t expected = 0;  // FramePort: the port's number of the filter
    bool every = false;     // the filter stays for all requests
    bool used_up = false;   // the filter may be, by a request that did not end the wait
    bool decided = false;
    ConnectResult result;
};

}  // namespace viaduct
