// SPDX-License-Identifier: BSD-2-Clause
// Inquiries for NICs, each on a thread of its own: a provider that blocks, as a driver does that waits for its
// hardware, stops neither the agent's loop nor the other providers. The answers come to the loop through an eventfd.
// Used on the agent's one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kagent/nic_answer.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::kagent {

class NicInquiries {
public:
    struct Answer {
        size_t provider = 0;
        NicAnswer nics;
    };

    NicInquiries();

    int fd() const;  // readable when an answer has come; -1: ask() has not made it yet

    // Begins an inquiry and never waits. While an earlier one of this provider runs, its thread asks once more after
    // it: the earlier answer may be older than the change. Provider and settings must live as long as the process.
    // False: no thread can be started, or no descriptor is left for fd().
    bool ask(size_t number, const Provider& provider, const Settings& settings);
    // An inquiry of some provider is running.
    bool busy() const;
    // The answers that have come, the latest of each provider, by the providers' numbers.
    std::vector<Answer> take();
    // Waits until no inquiry is running, or until the deadline.
    void await(Deadline deadline) const;

private:
    struct State;
    std::shared_ptr<State> state_;  // the threads', too: they may outlive this object
};

}  // namespace viaduct::kagent
