// SPDX-License-Identifier: BSD-2-Clause
// paramnet without libvipl and without an agent: a user agent, VIs and a matcher of connections just large
// enough to drive the provider's operations from a test.
#pragma once

#include <gtest/gtest.h>
#include <vipl.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/agent/mail.hpp"
#include "core/memory/region_table.hpp"
#include "core/vi/vi_core.hpp"
#include "providers/paramnet/endpoint.hpp"
#include "providers/paramnet/group.hpp"
#include "providers/paramnet/nic.hpp"
#include "tests/eventually.hpp"
#include "viaduct/provider.hpp"

extern "C" const viaduct::Provider viaduct_provider_v1;

namespace viaduct::paramnet::test {

inline const DataOps& ops() { return viaduct_provider_v1.data; }

class MapSettings final : public Settings {
public:
    std::map<std::string, std::string> values;
    const char* get(const char* key, const char* fallback) const override;
    int64_t get_int(const char* key, int64_t fallback) const override;
};

// How two ends come to know each other: requests with the same discriminator are joined (peer-to-peer).
struct Matcher;

class FakeAgent final : public UserAgent {
public:
    explicit FakeAgent(Matcher& matcher) : matcher_(matcher) {}
    ~FakeAgent();
    Status agent_start(const Mail& request, uint32_t* ticket, Deadline deadline) override;
    Status agent_await(uint32_t ticket, Deadline deadline, Mail* answer) override;
    void agent_abandon(uint32_t ticket, LateAnswer late, uint64_t argument) override;
    Status watch(int fd, void (*fired)(void*), void* argument, uint32_t* watch_id) override;
    void unwatch(uint32_t watch_id) override;
    Status spawn(const char* name, void (*run)(void*), void* argument) override;
    bool crowded() override { return false; }
    void nic_failed(uint64_t) override {}
    void explain(const char*, const char*) override {}

    void answer(uint32_t ticket, Mail mail);
    // From now on it answers nothing; and what it would have answered, all at once.
    void hold_back() { silent_ = true; }
    void catch_up();
    bool loses_descriptors =
        false;    // what it answers from now on comes without its descriptors but the first
    Mail opened;  // what describe() gave: handed to peers
    uint64_t context_id = 0;

private:
    void look();
    struct Watch {
        int fd;
        void (*fired)(void*);
        void* argument;
    };
    Matcher& matcher_;
    std::mutex mutex_;
    struct Late {
        LateAnswer call;
        uint64_t argument;
    };
    std::map<uint32_t, std::deque<Mail>> answers_;
    std::map<uint32_t, Late> late_;
    std::atomic<bool> silent_{false};
    uint32_t next_ticket_ = 1;
    std::map<uint32_t, Watch> watches_;
    uint32_t next_watch_ = 1;
    uint32_t firing_ = 0;
    std::atomic<bool> stop_{false};
    std::thread watcher_;
};

struct Matcher {
    bool same_process = true;  // what Joined says: false tries the way between processes, with ourselves
    struct Waiting {
        FakeAgent* agent;
        uint32_t ticket;
        kagent::ConnRequest request;
    };
    std::map<std::string, Waiting> waiting;
    std::mutex mutex;
};

// What Joined looks like for one of two ends; `from` is the other end.
Mail joined_mail(const FakeAgent& from, const kagent::ConnRequest& request, int segment_fd, uint32_t side,
                 bool same_process, int pid);

class TestVi;

// An open NIC with its regions and its polling group.
class TestNic {
public:
    explicit TestNic(Matcher& matcher, const std::map<std::string, std::string>& settings = {});
    ~TestNic();
    uint32_t add_region(void* address, uint64_t length, uint32_t flags = kRegionRdmaWrite | kRegionRdmaRead,
                        uint32_t ptag = 0);
    void remove_region(uint32_t handle);
    Group* new_group();
    void poll() { ops().poll_group(group); }

    MapSettings settings;
    FakeAgent agent;
    RegionTable regions;
    NicContext* context = nullptr;
    Group* group = nullptr;
    std::vector<Group*> more_groups;
    uint32_t next_slot = 0;
};

struct AsyncError {
    VIP_ERROR_CODE code;
    VIP_ULONG opcode;
};

// A VI with its memory: descriptors first, then data. What libvipl does around the provider's operations, in
// small.
class TestVi {
public:
    static constexpr uint32_t kDepth = 1024;
    static constexpr uint32_t kDescriptorBytes = 64 + 16 * 16;

    TestVi(TestNic& nic, uint16_t reliability, size_t data_bytes = 1 << 20, Group* send_group = nullptr,
           Group* recv_group = nullptr);
    ~TestVi();

    std::byte* data() const { return memory_.get() + kDepth * 2 * kDescriptorBytes; }
    VIP_DESCRIPTOR* descriptor(bool receive, uint32_t i) const;
    // Next descriptor of a queue, filled with one segment (none when bytes is 0).
    VIP_DESCRIPTOR* make(bool receive, const void* address, uint32_t bytes, uint32_t control = 0);
    VIP_DESCRIPTOR* make_rdma(uint32_t control, void* local, uint32_t bytes, const void* remote,
                              uint32_t remote_handle);
    void post_send(VIP_DESCRIPTOR*);
    void post_recv(VIP_DESCRIPTOR*);
    void receive(void* address, uint32_t n) { post_recv(make(true, address, n)); }
    void send(const void* address, uint32_t n, uint32_t control = 0) {
        post_send(make(false, address, n, control));
    }
    // As VipSendDone and VipRecvDone; nullptr while nothing has completed.
    VIP_DESCRIPTOR* send_done();
    VIP_DESCRIPTOR* recv_done();
    // Polls until it completes; a test failure when eventually() gives up.
    VIP_DESCRIPTOR* wait_send();
    VIP_DESCRIPTOR* wait_recv();
    void disconnect();
    void settle();
    uint32_t state() const { return core.state.load(); }
    tests::Waited reaches(uint32_t state);
    std::vector<AsyncError> errors() const;
    void forget_errors();
    // While it lives, a thread that reports an error of this VI waits, holding its queues.
    std::unique_lock<std::mutex> holds_up_errors() { return std::unique_lock(errors_mutex_); }
    tests::Waited is_told(VIP_ERROR_CODE code);
    bool was_told(VIP_ERROR_CODE code) const;  // so far
    Endpoint& endpoint() { return *core.endpoint; }

    TestNic& nic;
    ViCore core;
    uint32_t region = 0;
    size_t bytes = 0;
    // The peer may write to the region by RDMA, and does: also to descriptors that have just completed.
    bool written_by_peer = false;

private:
    friend struct Events;
    VIP_DESCRIPTOR* done(WorkQueue& q);
    std::unique_ptr<std::byte[], void (*)(void*)> memory_;
    uint32_t made_[2] = {0, 0};
    mutable std::mutex errors_mutex_;
    std::vector<AsyncError> errors_;
};

// While it lives no thread takes what arrives here, the threads of this end's NIC included.
class TakesNothing {
public:
    explicit TakesNothing(TestVi& vi) : hold_(vi.core.recv.lock) {}

private:
    std::lock_guard<BiasedLock> hold_;
};

// Starts a peer-to-peer attempt; finish_connect() on both sides completes it.
ConnectOp* begin_connect(TestVi&, const std::string& discriminator);
void finish_connect(TestVi&, ConnectOp*);
void connect(TestVi& a, TestVi& b);

// For EXPECT_TRUE, which prints the text of the condition.
tests::Waited eventually(const std::function<bool()>& condition);

// Two NICs with one VI each, connected. `reach`: the way RDMA takes.
struct TestPair {
    explicit TestPair(uint16_t reliability, Reach reach = Reach::same_process, size_t data_bytes = 1 << 20,
                      const std::map<std::string, std::string>& settings = {});
    Matcher matcher;
    TestNic nic_a, nic_b;
    TestVi a, b;
};

inline constexpr uint16_t kLevels[] = {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                       VIP_SERVICE_RELIABLE_RECEPTION};

// Where the level makes no difference.
inline constexpr uint16_t kLevel = VIP_SERVICE_RELIABLE_DELIVERY;

inline uint32_t status_of(const VIP_DESCRIPTOR* d) { return d->CS.Status; }
void fill(std::byte* to, size_t n, uint32_t seed);
bool filled(const std::byte* at, size_t n, uint32_t seed);

}  // namespace viaduct::paramnet::test
