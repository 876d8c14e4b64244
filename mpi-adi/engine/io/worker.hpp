// SPDX-License-Identifier: BSD-2-Clause
// The thread that reads and writes for non-blocking operations, so that these go on while the program
// computes. There is one in a process; it starts with the first job and sleeps without any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

namespace viaduct::mpi::io {

// A piece of work that is done at once, or, in the background, some time later.
class Job {
public:
    enum class Where { here, worker };

    // One at a time. `work` gives an MPI error class, and what it uses lives until done().
    void start(Where where, std::function<int()> work);
    bool done() const { return state_ == nullptr || state_->done.load(std::memory_order_acquire); }
    int error() const { return state_ == nullptr ? error_ : state_->error; }

private:
    struct State {
        std::function<int()> work;
        int error = 0;
        std::atomic<bool> done{false};
    };
    friend class Worker;

    std::shared_ptr<State> state_;
    int error_ = 0;
};

}  // namespace viaduct::mpi::io
