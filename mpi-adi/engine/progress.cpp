// SPDX-License-Identifier: BSD-2-Clause
// Progress and waiting. A pass polls every module in use, quickest first, then the activities. Between passes
// that moved nothing a rank does what the wait policy says (core/wait/wait_policy.hpp; spec/mpi 5.1: this is where
// others lose minutes); it sleeps until a module wakes it. Where several threads may be in MPI, they wait as
// waits.hpp tells.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "core/sync/pause.hpp"
#include "mpi-adi/engine/awaited.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/error.hpp"
#include "mpi-adi/engine/failure.hpp"
#include "mpi-adi/engine/polled.hpp"
#include "mpi-adi/engine/word_wait.hpp"

namespace viaduct::mpi {
namespace {

// Each lets another rank run, so all of them have had several turns before we sleep.
constexpr unsigned kYields = 200;
// At most so many requests are asked which rank they wait for: the time of a pass must not grow with the number of
// messages under way.
constexpr int kMostAsked = 16;
// Sleeping longer loses nothing, because modules wake this process. These limits bound the harm where nothing wakes it:
// an activity, a thread.
constexpr unsigned kSleepMicroseconds = 10'000;
constexpr unsigned kShortSleepMicroseconds = 200;
// A thread that waits where no condition is known to others (waits.hpp) looks and gives way as often, and then naps.
constexpr unsigned kYieldsAmongThreads = 200;
constexpr int64_t kNapNs = 50'000;

// The delay of a first poll that is better later: about as long as a message takes between near processors.
constexpr int kPausesBeforeLook = 2;

int64_t steady_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

PollDelay poll_delay(steady_ns);

void sleep_a_little() {
    if (engine.sleeper_count == 0) {
        ::sched_yield();
        return;
    }
    if (!announce_word_waits()) return;
    // With several modules none can wake us for the others, so each gets a short share.
    const bool alone = engine.sleeper_count == 1 && engine.activities.empty() && engine.polled.empty();
    protocol* module = engine.sleepers[engine.next_sleeper++ % static_cast<unsigned>(engine.sleeper_count)];
    if (module->pt_block(alone ? kSleepMicroseconds : kShortSleepMicroseconds) > 0) count_moving_pass();
}

bool advance_activities() {
    bool moved = false;
    for (size_t i = 0; i < engine.activities.size();) {
        Request* request = engine.activities[i];
        auto* activity = static_cast<Activity*>(request->r_engine);
        int error = MPI_SUCCESS;
        bool over = true;
        try {
            over = activity->advance(&error);
        } catch (const std::bad_alloc&) {
            // It ends here, but what it has begun still uses its memory.
            error = MPI_ERR_NO_MEM;
            activity = nullptr;
        }
        if (!over) {
            i++;
            continue;
        }
        // Another one may have been added meanwhile, never removed.
        engine.activities.erase(engine.activities.begin() + static_cast<std::ptrdiff_t>(i));
        request->r_engine = nullptr;
        delete activity;
        complete(request, error);
        moved = true;
    }
    return moved;
}

}  // namespace

SpinLimit spin_limit;
CpuContention cpu_contention(steady_ns, [] { ::sched_yield(); });

void switch_wait_learning(bool on) {
    if (on) return;
    spin_limit.switch_off();
    cpu_contention.switch_off();
    poll_delay.switch_off();
}

bool progress() try {
    int moved = 0;
    for (int i = 0; i < engine.active_count; i++) {
        const int answer = engine.active[i]->pt_progress_nblk(1);
        if (answer < 0) [[unlikely]]
            end_job(-answer, "%s: %s", engine.active[i]->pt_name, mpip_last_error());
        moved |= answer;
    }
    if (engine.serve != nullptr) [[unlikely]]
        moved |= static_cast<int>(engine.serve());
    if (engine.watch != nullptr) [[unlikely]]
        moved |= static_cast<int>(engine.watch());
    if (!engine.activities.empty()) [[unlikely]]
        moved |= static_cast<int>(advance_activities());
    if (!engine.polled.empty()) [[unlikely]]
        moved |= static_cast<int>(poll_generalized());
    return moved != 0;
} catch (abi::__forced_unwind&) {
    throw;
} catch (const FromHandler&) {
    throw;
} catch (const std::exception& thrown) {
    // Messages have been taken in by half, and waiting calls have records of them on their stacks.
    end_job(MPI_ERR_NO_MEM, "messages cannot be moved on: %s", thrown.what());
}

void ProgressWait::was_rewarded() { policy_.rewarded(engine.crowded); }

bool ProgressWait::wait_a_little(bool for_one_here) {
    if (EngineLock::is_mine()) [[unlikely]] {
        const unsigned idle = policy_.count(engine.crowded);
        if (EngineLock::give_turn()) return false;
        if (idle < SpinLimit::kMost)
            cpu_pause();
        else if (idle < kYieldsAmongThreads && !cpu_contention.computes())
            EngineLock::yield();
        else {
            EngineLock::nap(kNapNs);
            return true;
        }
        return false;
    }
    switch (policy_.next(engine.crowded, kYields, false, [=] { return for_one_here; })) {
        case WaitPolicy::Step::pause:
            cpu_pause();
            return false;
        case WaitPolicy::Step::ask:
            cpu_pause();
            cpu_contention.give_way(kLongYields);
            return true;
        case WaitPolicy::Step::yield:
            cpu_contention.give_way(kLongYields);
            return false;
        case WaitPolicy::Step::sleep:
            sleep_a_little();
            return true;
    }
    return false;
}

unsigned ProgressWait::look_again() {
    const unsigned idle = policy_.count();
    if (EngineLock::give_turn()) return idle;
    if (!engine.crowded || idle % SpinLimit::kMost != 0) return idle;
    if (EngineLock::is_mine())
        EngineLock::yield();
    else
        ::sched_yield();
    return idle;
}

void begin_activity(Request& request, Activity* activity) {
    // What has been begun must not be lost for want of a place.
    if (engine.activities.size() == engine.activities.capacity())
        engine.activities.reserve(2 * engine.activities.capacity() + 16);
    int error = MPI_SUCCESS;
    if (activity->advance(&error)) {
        delete activity;
        complete(&request, error);
    } else {
        request.r_engine = activity;
        engine.activities.push_back(&request);
    }
}

namespace {

Request* new_activity(Comm* comm) {
    Request* request = new_request(Request::Kind::activity);
    request->not_cancellable = true;
    if (comm != nullptr) {
        request->comm = comm;
        comm_retain(*comm);
    }
    return request;
}

}  // namespace

Request* start(Activity* activity, Comm* comm) {
    std::unique_ptr<Activity> owned(activity);
    Request* request = new_activity(comm);
    begin_activity(*request, owned.release());
    return request;
}

Request* make_persistent(Comm& comm, std::function<Activity*()> make) {
    Request* request = new_activity(&comm);
    request->persistent.reset(
        new Persistent{&comm, MPI_PROC_NULL, 0, {}, Mode::standard, false, std::move(make)});
    return request;
}

bool done(const Request* request) { return request->is_done(); }

int finish(Request* request, MPI_Status* status) {
    fill_status(*request, status);
    const int error = request->r_error;
    if (error != MPI_SUCCESS) note_failed_request(*request);
    free_request(request);
    return error;
}

bool awaits_one_here(const Request& request) {
    if (!engine.crowded || request.is_done()) return false;
    if (request.kind != Request::Kind::send && request.kind != Request::Kind::receive) return false;
    return request.r_proc != nullptr &&
           engine.placement.shared_with(static_cast<size_t>(world_rank_of(*request.r_proc)));
}

void progress_until_done(const Request& request) {
    if (request.is_done()) return;
    progress_until([&] { return request.is_done(); }, [&] { return awaits_one_here(request); },
                   [&](Awaited& what) { add_awaited(request, what); });
}

void progress_until_received(const Request& request) {
    if (request.is_done()) return;
    if (engine.crowded || EngineLock::enabled()) return progress_until_done(request);
    if (poll_delay.is_late()) {
        for (int i = 0; i < kPausesBeforeLook; i++) cpu_pause();
    }
    progress_until_done(request);
}

int wait(Request* request, MPI_Status* status) {
    progress_until_done(*request);
    return finish(request, status);
}

int wait_all(Request** requests, int count) {
    int first_error = MPI_SUCCESS;
    for (int i = 0; i < count; i++) {
        progress_until([&] { return requests[i]->is_done(); },
                       [&] {
                           const int last = std::min(count, i + kMostAsked);
                           return std::any_of(requests + i, requests + last,
                                              [](const Request* one) { return awaits_one_here(*one); });
                       },
                       [&](Awaited& what) {
                           for (int one = i; one < count; one++) add_awaited(*requests[one], what);
                       });
        const int error = wait(requests[i], MPI_STATUS_IGNORE);
        if (first_error == MPI_SUCCESS) first_error = error;
    }
    return first_error;
}

}  // namespace viaduct::mpi
