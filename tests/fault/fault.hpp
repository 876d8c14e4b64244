// SPDX-License-Identifier: BSD-2-Clause
// What the fault tests share: a victim process connected to an end of ours, and what has to hold once it is
// ended.
#pragma once

#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../conformance/child.hpp"
#include "../conformance/fixture.hpp"
#include "host.hpp"
#include "traffic.hpp"

namespace viaduct::fault {

using conformance::Address;
using conformance::Child;
using conformance::Clock;
using conformance::End;
using conformance::EndOptions;
using conformance::eventually;
using conformance::kOneSecond;
using conformance::Millis;
using conformance::Outcome;
using conformance::ready;
using conformance::Stopwatch;
using conformance::require;

using Arguments = std::vector<std::string>;

inline constexpr int kReceives = 16;
inline constexpr std::size_t kMessageBytes = 256;
/// A second is what is promised; measuring it takes time, too.
inline constexpr Millis kOneSecondMeasured{1200};
/// A write that must not come would have come within this time.
inline constexpr Millis kTimeToWrite{60};

/// --rounds and --seed of the killer (killer_test.cpp).
struct KillerOptions {
    int rounds;
    std::uint64_t seed = 1;
};
KillerOptions& killer_options();

/// What main() does under --role.
int play_role(const std::string& role, const Arguments& arguments);

/// For tests and roles that do nothing for a time; each call gives its reason.
inline void pass_time(Millis time) { std::this_thread::sleep_for(time); }  // sleeps: for its callers

/// A function on a thread of its own. Unlike in_background() no thread has to wait for it: when a test fails
/// because a call with VIP_INFINITE does not return, the test ends all the same.
template <typename Function>
auto apart(Function function) {
    std::packaged_task<decltype(function())()> task(std::move(function));
    auto result = task.get_future();
    std::thread(std::move(task)).detach();
    return result;
}

/// The same. Returns when the thread has fallen asleep in its call.
template <typename Function>
auto asleep_apart(Function function) {
    const auto thread = std::make_shared<std::atomic<pid_t>>(0);
    auto result = apart([thread, function = std::move(function)]() mutable {
        *thread = ::gettid();
        return function();
    });
    require(eventually([&] { return *thread != 0; }) && conformance::falls_asleep(*thread), "a thread falls asleep");
    return result;
}

/// How the connection to the victim is made.
enum class Way { kVictimAsks, kVictimWaits, kPeers };

struct Invitation {
    Way way = Way::kVictimAsks;
    int receives = kReceives;      // posted on our end before connecting
    std::size_t memory = 1 << 20;  // of the victim's end
    Arguments more;                // for the role
};

/// In the role: the arguments that Meeting makes. 0 level, 1 host, 2 discriminator, 3 way, 4 memory, then the
/// role's.
inline constexpr std::size_t kFirstOwnArgument = 5;
std::unique_ptr<End> meet_parent(const Arguments& arguments);

/// A role that has connected to a new end of ours and has said that it is ready.
struct Meeting {
    explicit Meeting(const std::string& role, const EndOptions& chosen = {},
                     const Invitation& invitation = {});

    void kill();  // -9; stores the time

    std::unique_ptr<End> end;
    std::vector<VIP_DESCRIPTOR*> posted;
    std::unique_ptr<Child> child;
    Stopwatch killed;
};

/// Where the other side may reach; travels in a message.
struct Window {
    std::uint64_t address;
    std::uint32_t handle;
    std::uint32_t bytes;
};
void send_window(End& end, const Window& window);
Window receive_window(End& end, VIP_DESCRIPTOR* posted);

/// Sends one message from one end to the other and checks it. Throws when it does not arrive.
void exchange_one(End& from, End& to);

/// A new process can be met and a message can be exchanged, now.
void expect_new_connections_work();

/// Within a second of the kill: Error, and exactly one CONN_LOST about this VI. Then VipDisconnect leads back
/// to Idle.
void expect_survivor_is_told(Meeting& meeting);

/// Every receive left on the end's queue comes back flushed, in posting order, and then the queue is empty.
void expect_flushed(End& end, const std::vector<VIP_DESCRIPTOR*>& posted, std::size_t first = 0);

/// Sends come back in posting order: some good ones, then only such that a dead peer explains. Returns how
/// many good ones there were.
std::size_t expect_sends_end(End& end, const std::vector<VIP_DESCRIPTOR*>& sends, VIP_UINT32 operation);

}  // namespace viaduct::fault
