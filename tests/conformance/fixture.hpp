// SPDX-License-Identifier: BSD-2-Clause
// What every test here stands on: NIC ends with registered memory, connected pairs, an error recorder, addresses and
// waits with deadlines. Constructors throw on failure, which GoogleTest reports; nothing in here sleeps longer than a
// bounded poll.
#pragma once

#include <gtest/gtest.h>
#include <vipl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../eventually.hpp"
#include "../thread_sleeps.hpp"
#include "conform.hpp"

namespace viaduct::conformance {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;

/// The NIC under test, and the NICs of the other side where that is to be another one: docs/building.md tells how the
/// suite is run between two NICs.
struct Options {
    std::string nic;
    std::string peer_nic;       ///< of the second end of each pair, in this process; empty: nic
    std::string child_nic;      ///< of partner processes and forked children; empty: nic
    std::string child_command;  ///< words in front of a partner process, "ip netns exec b" for example
    unsigned segments = 252;  ///< what MaxSegmentsPerDesc has to be at least (spec/limits 9)

    const std::string& far() const { return peer_nic.empty() ? nic : peer_nic; }
    const std::string& elsewhere() const { return child_nic.empty() ? nic : child_nic; }
};
Options& options();
/// Where the value of a command-line option belongs; null: it is none of the NIC options.
std::string* nic_option(std::string_view option);

/// How long something that has to happen may take, sanitizers and a busy machine included.
inline constexpr Millis kTimeout{15000};
/// CONN_LOST and Error have to reach the other side within this time.
inline constexpr Millis kOneSecond{1000};
/// Long enough to notice something that must not happen.
inline constexpr Millis kQuietTime{30};
/// A timeout for calls that are meant to end by something else.
inline constexpr VIP_ULONG kLongWait = 15000;

void breathe(unsigned round);

/// Polls until the condition holds; false when the limit passed first.
template <typename Condition>
bool polled(Condition&& condition, Millis limit) {
    const auto end = Clock::now() + limit;
    for (unsigned round = 0; Clock::now() < end; ++round) {
        if (condition()) {
            return true;
        }
        breathe(round);
    }
    return condition();
}

/// The same with a limit of running time: what this process and its children wait for a processor does not count
/// (tests/eventually.hpp). Most conditions hold within milliseconds, before the figures of the kernel are read.
template <typename Condition>
testing::AssertionResult eventually(Condition&& condition, Millis limit = kTimeout) {
    if (polled(condition, std::min(limit, Millis(5)))) {
        return testing::AssertionSuccess();
    }
    return tests::eventually("the condition above", condition, {{}, limit});
}

/// Whether the thread, of any process, falls asleep in its call.
testing::AssertionResult falls_asleep(pid_t thread);

/// True when the condition stays false for the whole window.
template <typename Condition>
bool never(Condition&& condition, Millis window = kQuietTime) {
    return !polled(condition, window);
}

/// Measures running time and wall time from where it is made. To read the figures of the kernel takes a moment, which
/// is no part of the wall time.
class Stopwatch {
public:
    Millis wall() const { return std::chrono::duration_cast<Millis>(Clock::now() - begun_); }
    Millis running() { return std::chrono::duration_cast<Millis>(std::chrono::nanoseconds(figures_.running_ns())); }

private:
    tests::RunningTime<> figures_;
    Clock::time_point begun_ = Clock::now();
};

Millis since(Clock::time_point start);
Millis since(const Stopwatch& start);  ///< wall time

/// Whether no more running time has passed.
testing::AssertionResult in_time(Stopwatch start, Millis limit);

/// Whether this process and its children had no processor for a third of the time or more.
bool starved(Stopwatch start);

/// Throws when false: for steps that are not what the test is about.
void require(bool condition, const std::string& what);
void require(VIP_RETURN got, const std::string& what);

/// A function on a thread of its own whose exception and result come back through get().
template <typename Function>
auto in_background(Function&& function) {
    return std::async(std::launch::async, std::forward<Function>(function));
}

/// True when the future is ready within the limit.
template <typename T>
bool ready(const std::future<T>& future, Millis limit = kTimeout) {
    const auto is_ready = [&] { return future.wait_for(Millis(0)) == std::future_status::ready; };
    return eventually(is_ready, limit);
}

/// A discriminator no other test and no other run uses at this time.
std::string unique_discriminator(std::size_t length = 8);

/// VIP_NET_ADDRESS of variable length.
class Address {
public:
    /// The address of a NIC with a discriminator; extra bytes behind it are filled with a guard pattern.
    Address(VIP_NIC_HANDLE nic, const std::string& discriminator);
    Address(const std::string& host, const std::string& discriminator);
    /// Room for what VipConnectWait returns, filled with the guard pattern.
    static Address blank();

    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes_.data()); }
    VIP_UINT8* host() { return get()->HostAddress; }
    std::string host_bytes();
    std::string discriminator();
    std::size_t used() { return 4U + get()->HostAddressLen + get()->DiscriminatorLen; }
    /// True when no byte from this offset on was written.
    bool untouched_from(std::size_t offset) const;

    static constexpr unsigned char kGuard = 0xA5;

private:
    Address() = default;
    static constexpr std::size_t kRoom = 1024;
    alignas(8) std::array<unsigned char, kRoom> bytes_{};
};

/// Asynchronous errors of one NIC handle, in order of arrival.
class ErrorLog {
public:
    static void handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error);

    std::vector<VIP_ERROR_DESCRIPTOR> all() const;
    std::size_t size() const;
    std::size_t count(VIP_ERROR_CODE code) const;
    std::size_t count(VIP_VI_HANDLE vi) const;
    bool wait_for(VIP_ERROR_CODE code, Millis limit = kTimeout) const;
    std::optional<VIP_ERROR_DESCRIPTOR> first(VIP_ERROR_CODE code) const;
    bool overlapped() const { return overlapped_; }

private:
    mutable std::mutex mutex_;
    std::vector<VIP_ERROR_DESCRIPTOR> seen_;
    std::atomic<int> inside_{0};
    std::atomic<bool> overlapped_{false};
};

/// One piece of local memory named in a descriptor.
struct Piece {
    void* address;
    VIP_MEM_HANDLE handle;
    std::uint32_t length;
};

/// The remote end named in an RDMA descriptor.
struct Target {
    void* address;
    VIP_MEM_HANDLE handle;
};

/// Fills a descriptor as a careful program would: everything else zero, Length the sum of the pieces.
void fill(VIP_DESCRIPTOR* descriptor, VIP_UINT16 control, const std::vector<Piece>& pieces,
          const std::optional<Target>& remote = std::nullopt, std::uint32_t immediate = 0);

struct EndOptions {
    VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
    std::size_t memory = 1 << 20;
    bool rdma_write = true;
    bool rdma_read = true;  ///< where the NIC has it at that level
    bool null_ptag = false;
    VIP_ULONG max_transfer = 0;  ///< 0: the NIC's
    VIP_ULONG send_cq = 0;       ///< entries; 0: none
    VIP_ULONG recv_cq = 0;
    bool one_cq = false;  ///< both queues on the send CQ
    bool across = false;  ///< opens the NIC of the other side
};

/// The same, for the end on the other side.
EndOptions across(EndOptions chosen = {});

/// A NIC handle with a tag, a registered region cut up by alloc(), one VI and an error recorder. Everything is taken
/// down by the destructor, in the order of the Intel sample.
class End {
public:
    explicit End(const EndOptions& chosen = {});
    ~End();
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    VIP_VI_ATTRIBUTES vi_attributes() const;
    VIP_VI_HANDLE create_vi();
    VIP_VI_STATE state() const { return state_of(vi); }
    static VIP_VI_STATE state_of(VIP_VI_HANDLE handle);
    bool reaches(VIP_VI_STATE wanted, Millis limit = kTimeout) const;

    /// Memory of the region; descriptors are 64-byte aligned and zeroed.
    void* alloc(std::size_t bytes, std::size_t alignment = 8);
    char* buffer(std::size_t bytes, char filler = 0, std::size_t alignment = 8);
    VIP_DESCRIPTOR* descriptor(std::size_t segments = 2);
    Piece piece(void* address, std::size_t bytes) const;
    Target target(void* address) const { return {address, region}; }

    /// A filled descriptor for one piece of `bytes`.
    VIP_DESCRIPTOR* message(void* data, std::size_t bytes, VIP_UINT16 control = VIP_CONTROL_OP_SENDRECV,
                            std::uint32_t immediate = 0);
    VIP_RETURN post_send(VIP_DESCRIPTOR* d) { return VipPostSend(vi, d, region); }
    VIP_RETURN post_recv(VIP_DESCRIPTOR* d) { return VipPostRecv(vi, d, region); }
    /// Posts a receive of `bytes` into fresh memory.
    VIP_DESCRIPTOR* receive(std::size_t bytes);
    VIP_DESCRIPTOR* send(void* data, std::size_t bytes, VIP_UINT16 control = VIP_CONTROL_OP_SENDRECV,
                         std::uint32_t immediate = 0);
    VIP_DESCRIPTOR* write(void* data, std::size_t bytes, const Target& remote, VIP_UINT16 flags = 0,
                          std::uint32_t immediate = 0);
    VIP_DESCRIPTOR* read(void* data, std::size_t bytes, const Target& remote, VIP_UINT16 flags = 0);

    EndOptions wanted;
    ErrorLog errors;
    VIP_NIC_HANDLE nic = nullptr;
    VIP_NIC_ATTRIBUTES limits{};
    VIP_PROTECTION_HANDLE ptag = nullptr;
    VIP_MEM_HANDLE region = 0;
    VIP_CQ_HANDLE send_cq = nullptr;
    VIP_CQ_HANDLE recv_cq = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    char* memory = nullptr;

private:
    std::size_t used_ = 0;
};

/// Ends a VI the way the Intel sample does: disconnect, drain, destroy.
VIP_RETURN retire(VIP_VI_HANDLE vi);

/// The status word as a program that watches it would read it (spec/descriptors 2.6), and a byte of watched memory.
inline VIP_UINT32 peek_status(const VIP_DESCRIPTOR* d) { return __atomic_load_n(&d->CS.Status, __ATOMIC_ACQUIRE); }
inline bool peek_done(const VIP_DESCRIPTOR* d) { return (peek_status(d) & VIP_STATUS_DONE) != 0; }
inline char peek(const char* byte) { return __atomic_load_n(byte, __ATOMIC_ACQUIRE); }
/// A byte in the midst of what is being written: only the last one of a write is promised to come after the others, so
/// that this is a race, on purpose.
__attribute__((noinline, no_sanitize("thread"))) inline char glance(const char* byte) {
    return *static_cast<const volatile char*>(byte);
}
/// How many of the bytes have that value now, while another thread may be writing them.
std::size_t peek_count(const char* bytes, std::size_t length, char value);

/// Result of taking one completion.
struct Outcome {
    VIP_RETURN code;
    VIP_DESCRIPTOR* descriptor;
    VIP_UINT32 status() const { return descriptor != nullptr ? descriptor->CS.Status : 0; }
    VIP_UINT32 errors() const { return status() & VIP_STATUS_ERROR_MASK; }
    VIP_UINT32 operation() const { return status() & VIP_STATUS_OP_MASK; }
};

/// Polls Done until it answers anything but NOT_DONE.
Outcome reap_send(VIP_VI_HANDLE vi, Millis limit = kTimeout);
Outcome reap_recv(VIP_VI_HANDLE vi, Millis limit = kTimeout);

/// Connects two Idle VIs by client (from) and server (to).
void connect(VIP_NIC_HANDLE from_nic, VIP_VI_HANDLE from, VIP_NIC_HANDLE to_nic, VIP_VI_HANDLE to);
/// Repeats VipConnectRequest while the answer is NO_MATCH.
VIP_RETURN request(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote, VIP_ULONG timeout,
                   VIP_VI_ATTRIBUTES* attributes);

/// A request that was taken by VipConnectWait and waits for Accept or Reject. The requester is on another thread.
struct PendingRequest {
    VIP_CONN_HANDLE connection = nullptr;
    VIP_VI_ATTRIBUTES attributes{};
    std::future<VIP_RETURN> requester;
};
PendingRequest pending_request(End& client, End& server, VIP_ULONG timeout = kLongWait);

/// Two ends connected over two NIC handles.
class Pair {
public:
    explicit Pair(const EndOptions& both = {}) : Pair(both, both) {}
    Pair(const EndOptions& client_options, const EndOptions& server_options);

    End client;
    End server;
};

/// The server gets one message, that is not taken.
void deliver(Pair& pair);

/// One VI in one of the four states, with whatever keeps it there.
class StatedVi {
public:
    explicit StatedVi(VS state, const EndOptions& chosen = {});

    End& end() { return *end_; }
    VIP_VI_HANDLE vi() { return end_->vi; }

private:
    std::unique_ptr<Pair> pair_;
    std::unique_ptr<End> alone_;
    End* end_ = nullptr;
};

VIP_VI_STATE vip_state(VS state);

/// Base of tests that run once for each state.
class InEachState : public testing::TestWithParam<VS> {};
/// Base of tests that run once for each reliability level.
class AtEachLevel : public testing::TestWithParam<VIP_RELIABILITY_LEVEL> {
protected:
    EndOptions at_level() const {
        EndOptions chosen;
        chosen.level = GetParam();
        return chosen;
    }
    bool unreliable() const { return GetParam() == VIP_SERVICE_UNRELIABLE; }
    bool reception() const { return GetParam() == VIP_SERVICE_RELIABLE_RECEPTION; }
};

std::string state_test_name(const testing::TestParamInfo<VS>& info);
std::string level_test_name(const testing::TestParamInfo<VIP_RELIABILITY_LEVEL>& info);

/// What the NIC offers, asked once.
const VIP_NIC_ATTRIBUTES& nic_attributes();

/// Wire faults, where the NIC under test can make them (paramnet's extension, looked up at run time).
struct FaultControl {
    bool available() const { return plan_ != nullptr; }
    /// False when the provider refuses the plan.
    bool set(VIP_VI_HANDLE vi, const char* plan) const;

    FaultControl();

private:
    VIP_RETURN (*plan_)(VIP_VI_HANDLE, const char*) = nullptr;
};

}  // namespace viaduct::conformance

#define VIADUCT_ALL_STATES                                                                                   \
    testing::Values(::viaduct::conformance::VS::kIdle, ::viaduct::conformance::VS::kPending,                 \
                    ::viaduct::conformance::VS::kConnected, ::viaduct::conformance::VS::kError)

#define VIADUCT_ALL_LEVELS                                                                                   \
    testing::Values<VIP_RELIABILITY_LEVEL>(VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,            \
                                           VIP_SERVICE_RELIABLE_RECEPTION)
#define VIADUCT_RELIABLE_LEVELS                                                                              \
    testing::Values<VIP_RELIABILITY_LEVEL>(VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION)

/// Ends the test as skipped when the NIC lacks the level.
#define NEEDS_LEVEL(level)                                                                                   \
    if ((::viaduct::conformance::nic_attributes().ReliabilityLevelSupport & (level)) == 0)                   \
    GTEST_SKIP() << "the NIC does not offer this reliability level"

#define NEEDS_RDMA_READ(level)                                                                               \
    if ((::viaduct::conformance::nic_attributes().RDMAReadSupport & (level)) == 0)                           \
    GTEST_SKIP() << "the NIC does not offer RDMA read at this reliability level"

#define NEEDS_FAULTS(faults, vi, plan)                                                                       \
    if (!(faults).available()) GTEST_SKIP() << "the library cannot make wire faults (no VipxSetFaultPlan)";  \
    if (!(faults).set(vi, plan)) GTEST_SKIP() << "the NIC refuses the fault plan " << (plan)
