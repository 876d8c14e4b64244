// SPDX-License-Identifier: BSD-2-Clause
// What vipstat makes of the pictures it reads: for each VI what it waits for and since when, and rates
// between two pictures.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/stats/reader.hpp"

namespace viaduct::vipstat {

struct QueueView {
    uint64_t posted = 0;  // so far; 32 bits, free-running
    uint64_t completed = 0;
    uint32_t outstanding = 0;  // posted and not completed
    uint32_t unfetched = 0;    // completed and not handed back
    uint64_t oldest = 0;       // number of the oldest posted descriptor
    // How long the program has polled or waited for it without a result; negative: not known.
    double waiting_s = -1;
    double per_second = -1;  // completions since the picture before
    bool asleep = false;
};

struct ViView {
    uint64_t handle = 0;
    std::string state, nic, local, peer, level, last_error;
    double state_s = 0;        // in that state
    double last_error_s = -1;  // ago
    uint64_t credits = 0;
    QueueView send, recv;
    std::vector<std::pair<std::string, uint64_t>> counters;  // in the order of the library's table
};

struct FailureView {
    double s = 0;  // ago
    uint64_t handle = 0, times = 0;
    std::string text;
};

struct ProcessView {
    pid_t pid = 0;
    std::string program, library;
    double running_s = 0;
    std::vector<std::pair<std::string, uint64_t>> counters;
    std::vector<ViView> vis;
    std::vector<FailureView> failures;  // the oldest first
    double ended_s = -1;                // ago; negative: it runs
};

std::vector<FailureView> failures_of(const stats::Picture&);

// Keeps the picture before of each process, for rates and for how long a descriptor has been the oldest.
class Watch {
public:
    ProcessView view(const stats::Picture&);

private:
    struct Seen {
        uint32_t send_completed = 0, recv_completed = 0;
        int64_t at = 0;
        // Since when the oldest descriptor has been the same, as far as this watch has seen.
        int64_t send_since = 0, recv_since = 0;
    };
    QueueView queue(const stats::Values&, const std::string& prefix, int64_t now, const Seen* before,
                    uint32_t completed_before, int64_t* since);
    std::map<std::pair<pid_t, uint64_t>, Seen> seen_;
};

}  // namespace viaduct::vipstat
