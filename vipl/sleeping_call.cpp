// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/sleeping_call.hpp"

#include <algorithm>
#include <atomic>

namespace viaduct::vipl {
namespace {

struct OpenCall {
    const Nic* nic;
    const Vi* attempt;
};

// One for the program and one for each signal handler within another. A call behind the last place is not known here.
constexpr uint32_t kPlaces = 8;
thread_local OpenCall open_calls[kPlaces];
thread_local uint32_t open_call_count;

// What is written before is in memory when a signal handler sees what is written behind.
void order_for_handlers() { std::atomic_signal_fence(std::memory_order_seq_cst); }

template <class Matches>
uint32_t count_matching(Matches&& matches) {
    return static_cast<uint32_t>(std::count_if(open_calls, open_calls + open_call_count, matches));
}

}  // namespace

SleepingCall::SleepingCall(const Nic& nic, const Vi* attempt) : before_(open_call_count) {
    if (before_ == kPlaces) return;
    open_calls[before_] = {&nic, attempt};
    order_for_handlers();
    open_call_count = before_ + 1;
    order_for_handlers();
}

SleepingCall::~SleepingCall() {
    order_for_handlers();
    open_call_count = before_;
}

uint32_t interrupted_calls(const Nic& nic) {
    return count_matching([&](const OpenCall& call) { return call.nic == &nic; });
}

bool has_interrupted_attempt(const Vi& vi) {
    return count_matching([&](const OpenCall& call) { return call.attempt == &vi; }) != 0;
}

}  // namespace viaduct::vipl
