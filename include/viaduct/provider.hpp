// SPDX-License-Identifier: BSD-2-Clause
// The provider contract: the interface between Viaduct and the driver of a NIC. A provider is one shared object,
// <libdir>/viaduct/<name>.so, that exports `viaduct_provider_v1`, a constant table. The table has two halves. The
// control half runs in the kernel agent: which NICs exist, why one cannot be used, how two local ends are joined. The
// data half runs in the application, under the user agent: it moves data between the work queues of core/vi.
// Operations that a provider does not have are null. The loader replaces them by operations that answer
// "not supported", so that no caller tests for null, or for the name of a provider.
//
// Threads and locks (the whole rule):
//   - Operations marked [S] are called with vi.send.lock held, [R] with vi.recv.lock, [RS] with both, the others with
//     none.
//   - Lock order: recv before send. An [R] operation may take send.lock itself, an [S] operation never takes recv.lock.
//   - No operation marked [S] or [R], and not poll_group, makes a system call, allocates or blocks, except where its
//     comment says so.
//   - A provider that finds a connection broken calls vi.mark_broken(why); the user agent settles it after the call.
//     poll_group and threads of the provider's own call vi.events->settle(vi) themselves, holding no lock.
// Units: times are nanoseconds of CLOCK_MONOTONIC, lengths are bytes. Errors: Status (viaduct/types.hpp); what an
// operation answers besides ok is in its comment.
// Ownership: ViCore belongs to the user agent and outlives its Endpoint. NicContext, Group, Endpoint and ConnectOp
// belong to the provider. Sources: spec/architecture 4, spec/adi N1-N16, N42-N45, B9-B15, T1-T9.
#pragma once

#include <cstddef>
#include <cstdint>

#include "viaduct/types.hpp"

struct _VIPX_WRITE;  // viaduct/ext.h

namespace viaduct {

inline constexpr uint32_t kProviderAbi = 4;

struct ViCore;
struct WorkQueue;
class RegionTable;
struct Region;      // one registration (core/memory/region_table.hpp)
struct NicContext;  // an open NIC, provider's
struct Endpoint;    // a VI, provider's part
struct Group;       // the endpoints that one CQ (or the rest of the NIC) polls together
struct ConnectOp;   // a connection attempt under way
struct Mail;        // a message of the agent protocol with descriptors (core/agent/mail.hpp)

// Times are CLOCK_MONOTONIC nanoseconds; kNever waits without limit.
using Deadline = int64_t;
inline constexpr Deadline kNever = INT64_MAX;
inline constexpr Deadline kOnlyConnected = 0;  // of an agent call: see UserAgent::agent_start

// What the job will need, told before anything is opened; all 0: not known (spec/adi N5, N6, N8).
struct Hints {
    uint32_t expected_peers = 0;
    uint32_t expected_depth = 0;
    uint32_t own_rank = 0;
    uint32_t session_size = 0;
};

// ---- control half: in the agent

// A NIC the provider looked at but cannot offer, and what the user can do about it.
struct Rejection {
    char name[kNicNameBytes] = {};
    char reason[160] = {};
    char cure[160] = {};
};

class NicSink {
public:
    virtual void offer(const NicInfo&) = 0;
    // Another name that VipOpenNic takes for the NIC offered last, "PROVIDER:WHICH".
    virtual void also_called(const char*) {}
    virtual void reject(const Rejection&) = 0;

protected:
    ~NicSink() = default;
};

// Settings of a provider: its table of the configuration as "key" -> text (core/config makes it).
class Settings {
public:
    virtual const char* get(const char* key, const char* fallback) const = 0;
    virtual int64_t get_int(const char* key, int64_t fallback) const = 0;

protected:
    ~Settings() = default;
};

// Descriptors that join two local ends. Each is closed by the receiver; -1: none.
struct JoinGrant {
    int segment_fd = -1;  // shared by both ends
    uint64_t segment_bytes = 0;
};

struct ControlOps {
    // Offers the NICs that exist (spec/adi N5). Called before any is opened, and again when interfaces or addresses of
    // the host have changed. The agent calls it on a thread of its own, never twice at a time, possibly while join
    // runs. It may block. out_of_resources: NICs may be missing for want of descriptors or memory; the agent keeps the
    // NICs of the last answer, and asks again. A NIC stays the same, with name and number, if its name and description,
    // its address, or another name of it stay. `hints` may be ignored.
    Status (*discover)(const Settings&, const Hints&, NicSink&);
    // Makes what two ends on this host share (kCapLocalOnly providers).
    Status (*join)(const NicInfo& a, const NicInfo& b, const Settings&, JoinGrant*);
};

// ---- data half: in the application

// The user agent's services for a provider.
class UserAgent {
public:
    // Agent calls, on any thread. start sends a request of the agent protocol. await waits for its answer. not_done:
    // the deadline has passed, and the request stays. broken: the agent has died; the caller sends the request again,
    // and a new agent has been started by then. abandon drops a request. If its answer comes all the same, `late` is
    // called with it once, on any thread and with no lock held, to undo what the answer says. Where start has to find
    // an agent first, it ends by the deadline (timeout: a moment later at most, and within seconds in any case). With
    // kOnlyConnected it does not look for an agent: for requests that mean nothing to another agent.
    using LateAnswer = void (*)(UserAgent&, Mail&, uint64_t argument);
    virtual Status agent_start(const Mail& request, uint32_t* ticket, Deadline deadline) = 0;
    virtual Status agent_await(uint32_t ticket, Deadline deadline, Mail* answer) = 0;
    virtual void agent_abandon(uint32_t ticket, LateAnswer late, uint64_t argument) = 0;
    // Calls `fired(argument)` once, on the event thread, when `fd` becomes readable. Takes the descriptor and
    // closes it.
    virtual Status watch(int fd, void (*fired)(void*), void* argument, uint32_t* watch_id) = 0;
    virtual void unwatch(uint32_t watch_id) = 0;  // after it returns, fired is not running and will not run
    // A detached helper thread, all signals blocked. It must sleep when idle and return when the provider
    // tells it to.
    virtual Status spawn(const char* name, void (*run)(void*), void* argument) = 0;
    // True when more threads are runnable than this process has processors: wait by yielding and sleeping, not
    // by spinning.
    virtual bool crowded() = 0;
    // The NIC of that context (OpenArgs::context_id) is dead for good: every VI of it goes to Error and the
    // program is told once (spec/errors 8, CATASTROPHIC). Done later, on a thread that holds no lock;
    // any thread may say so, with any locks held.
    virtual void nic_failed(uint64_t context_id) = 0;
    // Why the operation of this thread is about to fail, in words for people: the program gets them with the error
    // (VipxLastError). The first reason of a call stands. core/provider/explain.hpp writes them to the log as well.
    virtual void explain(const char* reason, const char* cure) = 0;

protected:
    ~UserAgent() = default;
};

struct OpenArgs {
    NicInfo nic;
    const Settings* settings = nullptr;
    Hints hints;
    UserAgent* agent = nullptr;
    RegionTable* regions = nullptr;  // of this context; kept by the user agent
    uint64_t context_id = 0;         // random, names this context between processes; survives the agent
};

struct EndpointArgs {
    ViCore* vi = nullptr;
    Group* send_group = nullptr;  // the groups whose polling finds completions of each queue
    Group* recv_group = nullptr;
};

// How a connection attempt ended.
struct ConnectResult {
    Status status = Status::not_done;
    EndAddress remote;  // listen: the requester's local address
    ViTraits remote_traits;
    uint64_t incoming = 0;  // listen: names the request for accept and reject
};

struct DataOps {
    // NIC
    Status (*open)(const OpenArgs&, NicContext** out);
    void (*close)(NicContext*);  // last; no endpoint is left
    // What the agent must hand to peers of this context (descriptors, sizes): the provider's contribution to
    // OPEN_NIC, sent again when a new agent is met.
    Status (*describe)(NicContext*, Mail* open_request);

    // Polling groups: group 0 is the context's own for queues without a CQ.
    Status (*group_create)(NicContext*, Group** out);
    void (*group_destroy)(Group*);
    void (*poll_group)(Group*);  // moves whatever can be moved for its endpoints; bounded work per call

    // VIs
    Status (*endpoint_create)(NicContext*, const EndpointArgs&, Endpoint** out);
    void (*endpoint_destroy)(Endpoint*);  // not connected

    // Connecting, asynchronous inside (spec/adi N13-N15). Each operation begins an attempt, and connect_finish ends it.
    Status (*listen)(NicContext*, const EndAddress& local, Deadline, ConnectOp** out);
    Status (*request)(NicContext*, ViCore&, const EndAddress& local, const EndAddress& remote,
                      const ViTraits&, Deadline, ConnectOp** out);
    Status (*peer_request)(NicContext*, ViCore&, const EndAddress& local, const EndAddress& remote,
                           const ViTraits&, Deadline, ConnectOp** out);
    Status (*accept)(NicContext*, uint64_t incoming, ViCore&, const ViTraits&, ConnectOp** out);
    Status (*reject)(NicContext*, uint64_t incoming);
    // Waits until the attempt is decided or the deadline. not_done: still open. ok: the endpoint is bound to
    // its peer, but not started.
    Status (*connect_await)(ConnectOp*, Deadline, ConnectResult*);
    // Ends the attempt whatever its state. Returns ok when the attempt has succeeded after all (the result is filled),
    // else why it has not. No connection is left half-open.
    Status (*connect_finish)(ConnectOp*, ConnectResult*);

    // Connected life
    void (*start)(ViCore&);  // [RS] state is Connected now: publish posted receives, let traffic flow
    // [RS] The connection is about to end, by this end or because it is broken: places what has arrived (the receives
    // complete as usual) and, unless the connection is broken, moves what is queued for sending. not_done: sends are
    // left that the peer may still take, or data that has arrived cannot be read at this moment. The user agent then
    // releases the locks and calls again, for a bounded time. Never waits.
    Status (*finish_traffic)(ViCore&);
    // [RS] Ends the connection and tells the peer. When it has returned, nothing writes to the program's memory on
    // behalf of this VI. May block for a short, bounded time. The user agent flushes the descriptors that are left.
    void (*disconnect)(ViCore&);
    void (*kick_send)(ViCore&);  // [S] send.posted has grown
    // [R] recv.posted has grown, on a connected VI or while it connects: the peer may start earlier than we
    // do and send what these receives are meant for. No message may fail to find a receive that was kicked
    // before it was sent. Providers whose senders wait for the peer's start leave it to start.
    void (*kick_recv)(ViCore&);
    // [S] An RDMA write of two pieces, without the queue. not_done: it cannot be done at once. Optional.
    Status (*write_now)(ViCore&, const _VIPX_WRITE&);
    // [S] Where in this process such a write of `bytes` to that address would store them. not_done: nowhere. Optional.
    Status (*mapped_at)(ViCore&, uint32_t handle, uint64_t address, uint64_t bytes, void** here);
    void (*poll_send)(ViCore&);  // [S] move backlog, find acknowledgements
    void (*poll_recv)(ViCore&);  // [R] take what has arrived

    // Sleeping until anything happens on this NIC. sleep_begin makes every peer ring; after it, poll once
    // more, then sleep_wait(key).
    uint32_t (*sleep_begin)(NicContext*);
    void (*sleep_wait)(NicContext*, uint32_t key, Deadline);
    void (*sleep_end)(NicContext*);
    void (*wake)(NicContext*);  // wakes every sleeper of this context; any locks may be held

    // Memory: tells the provider of changes in the region table. A provider whose device must know memory
    // before it moves any has `added` and `changed`; `added` comes before the program learns the handle, and
    // when it or `changed` fails, the table is put back as it was (`changed` has then kept the old state
    // too). Others leave both null. `removed` comes after the entry is removed, says what it was, and returns
    // only when no operation that checked the old entry is still writing.
    Status (*region_added)(NicContext*, uint32_t handle, const Region&);
    Status (*region_changed)(NicContext*, uint32_t handle, const Region& now);
    void (*region_removed)(NicContext*, uint32_t handle, const Region& was);
    // Memory that the NIC's peers reach without a system call; optional. Fills base, length (whole pages),
    // arena and arena_offset of the region; the user agent registers it, and deregisters it before
    // memory_free. invalid: the alignment.
    Status (*memory_alloc)(NicContext*, uint64_t bytes, uint64_t alignment, Region* out);
    void (*memory_free)(NicContext*, const Region&);

    // Tools and tests
    Status (*set_fault_plan)(ViCore&, const char* plan);  // connected VI; empty plan: none
    // Name service: the NIC address behind an IP address of this host or a remote one; no_match when unknown.
    Status (*resolve)(NicContext*, const uint8_t* ip, uint32_t ip_len, uint32_t index, NicAddress* out);
};

struct Provider {
    uint32_t abi = kProviderAbi;
    uint32_t bytes = sizeof(Provider);
    const char* name = nullptr;
    const char* description = nullptr;
    uint32_t version = 0;
    ControlOps control;
    DataOps data;
};

inline constexpr const char* kProviderSymbol = "viaduct_provider_v1";

}  // namespace viaduct
