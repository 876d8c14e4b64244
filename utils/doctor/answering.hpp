// SPDX-License-Identifier: BSD-2-Clause
// The end of the doctor that answers: `vipping --server --doctor`. It tells its report and sends and counts datagrams
// as the examining end asks, to and from that end's own address alone. One examination at a time.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "utils/doctor/channel.hpp"

namespace viaduct::doctor {

// What the server of messages beside it had to say; any thread.
class Notes {
public:
    void add(std::string line) {
        const std::lock_guard lock(mutex_);
        if (lines_.size() < 16) lines_.push_back(std::move(line));
    }
    std::vector<std::string> all() const {
        const std::lock_guard lock(mutex_);
        return lines_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

// Throws ToolError where the port cannot be had.
Fd listen_for_examinations();
// Until the tool is told to stop.
void answer_examinations(const Fd& listener, const Notes&, const std::function<void(const std::string&)>& on_line);

}  // namespace viaduct::doctor
