// SPDX-License-Identifier: BSD-2-Clause
// See worker.hpp.
#include "mpi-adi/engine/io/worker.hpp"

#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace viaduct::mpi::io {

class Worker {
public:
    // Never destroyed: its thread may still run when the process ends.
    static Worker& instance() {
        static auto* worker = new Worker;
        return *worker;
    }

    // False: there is no thread to be had.
    bool post(std::shared_ptr<Job::State> job) {
        const std::lock_guard guard(mutex_);
        if (!running_ && !start()) return false;
        jobs_.push_back(std::move(job));
        wanted_.notify_one();
        return true;
    }

private:
    // The program's signals are for its own threads.
    bool start() {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            std::thread([this] { run(); }).detach();
            running_ = true;
        } catch (const std::system_error&) {
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return running_;
    }

    void run() {
        for (;;) {
            std::unique_lock lock(mutex_);
            // A thread that is left would keep a process whose main() has called pthread_exit().
            if (!wanted_.wait_for(lock, kIdle, [this] { return !jobs_.empty(); })) {
                running_ = false;
                return;
            }
            const std::shared_ptr<Job::State> job = std::move(jobs_.front());
            jobs_.pop_front();
            lock.unlock();
            job->error = job->work();
            job->done.store(true, std::memory_order_release);
        }
    }

    static constexpr std::chrono::seconds kIdle{1};

    std::mutex mutex_;
    std::condition_variable wanted_;
    std::deque<std::shared_ptr<Job::State>> jobs_;
    bool running_ = false;
};

void Job::start(Where where, std::function<int()> work) {
    state_.reset();
    if (where == Where::worker) {
        state_ = std::make_shared<State>();
        state_->work = std::move(work);
        if (Worker::instance().post(state_)) return;
        work = std::move(state_->work);
        state_.reset();
    }
    error_ = work();
}

}  // namespace viaduct::mpi::io
