// SPDX-License-Identifier: BSD-2-Clause
// The calls in which the calling thread sleeps. A signal handler that runs in one of them may end the NIC, as programs
// do that leave at SIGINT: it must not wait for the call that it has interrupted.
#pragma once

#include <cstdint>

namespace viaduct::vipl {

struct Nic;
struct Vi;

// For the scope of such a call, which has one pin of the NIC. `attempt`: the VI whose connection attempt it runs. One
// that a program leaves with siglongjmp counts for ever, as its pin does.
class SleepingCall {
public:
    explicit SleepingCall(const Nic& nic, const Vi* attempt = nullptr);
    SleepingCall(const SleepingCall&) = delete;
    SleepingCall& operator=(const SleepingCall&) = delete;
    ~SleepingCall();

private:
    uint32_t before_;
};

// How many of the NIC the calling thread is in.
uint32_t interrupted_calls(const Nic& nic);
// Whether the calling thread is in one that runs this VI's connection attempt.
bool has_interrupted_attempt(const Vi& vi);

}  // namespace viaduct::vipl
