// SPDX-License-Identifier: BSD-2-Clause
// Passive target: locks and flushes. The lock of a member is a word in shared memory where processes of its host reach
// its window themselves; members of other hosts ask it by message, and it takes the word for them (target.cpp).
// MPI_Win_lock_all asks a member only when it is first accessed.
#include <sched.h>
#include <unistd.h>

#include <atomic>

#include "mpi-adi/engine/awaited.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/rma/direct_access.hpp"
#include "mpi-adi/engine/rma/remote_access.hpp"
#include "mpi-adi/engine/rma/remote_words.hpp"
#include "mpi-adi/engine/rma/target.hpp"
#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi::rma {
namespace {

// False: a member that may hold it has failed.
bool acquire_word(const Window& window, LockWord& word, LockKind kind) {
    bool got = false;
    if (kind == LockKind::shared) {
        if (word.try_shared()) return true;
        wait_for_memory(window, [&] { return (got = word.try_shared()) || has_lost(window); });
    } else {
        if (word.try_exclusive()) return true;
        word.begin_waiting();
        wait_for_memory(window, [&] { return (got = word.try_exclusive()) || has_lost(window); });
        word.end_waiting();
    }
    return got;
}

int acquire(Window& window, int rank, LockKind kind) {
    Member& member = window.member(rank);
    bool got = true;
    member.asked = true;
    if (kind == LockKind::unchecked) {
        // The program says that no other process needs it.
    } else if (member.line != nullptr) {
        got = acquire_word(window, member.line->lock, kind);
    } else if (member.remote != nullptr && member.remote->lock.rg_bytes != 0) {
        got = remote_acquire(window, rank, kind);
    } else {
        member.granted = false;
        tell(window, rank, {.kind = kind == LockKind::shared ? Kind::lock_shared : Kind::lock_exclusive});
        // The member grants it when another one, that is not known here, lets it go.
        progress_until_one([&] { return member.granted || has_lost(window); },
                           [&](auto& what) { add_awaited_members(*window.comm, what); });
        got = member.granted;
    }
    member.asked = false;
    if (!got) return MPIX_ERR_PROC_FAILED;
    member.held = kind;
    order_memory();
    return MPI_SUCCESS;
}

// Members that have seen a loss may have left the window: no answer is due any more.
int wait_for_flush(Window& window, int rank) {
    Member& member = window.member(rank);
    if (member.flushed < member.flushes)
        progress_until_one([&] { return member.flushed >= member.flushes || has_lost(window); },
                           [&](auto& what) { add_awaited_member(*window.comm, rank, what); });
    if (member.flushed >= member.flushes) return MPI_SUCCESS;
    member.flushed = member.flushes;
    return MPIX_ERR_PROC_FAILED;
}

// What was done under the lock is done at the target before another process gets it.
int release(Window& window, int rank) {
    Member& member = window.member(rank);
    wait_local(window, rank);
    order_memory();
    const LockKind held = std::exchange(member.held, LockKind::none);
    if (held == LockKind::unchecked) return flush_members(window, rank, rank + 1);
    if (member.line != nullptr) {
        if (held == LockKind::shared)
            member.line->lock.release_shared();
        else
            member.line->lock.release_exclusive();
        return take_error(member);
    }
    if (member.remote != nullptr && member.remote->lock.rg_bytes != 0) return remote_release(window, rank, held);
    tell(window, rank, {.kind = Kind::unlock, .number = ++member.flushes});
    const int lost = wait_for_flush(window, rank);
    member.sent = member.unflushed = false;
    if (member.remote != nullptr) member.remote->messages = member.remote->written = false;
    const int error = take_error(member);
    return lost != MPI_SUCCESS ? lost : error;
}

// As short_flush() does; where not all is shared, progress is what the others wait for.
void let_others(Window& window) {
    if (!window.all_direct || is_time_to_look(window)) progress();
    if (window.all_direct) window.wait.look_again();
}

bool may_lock(const Window& window) {
    return window.epoch == Epoch::none || window.epoch == Epoch::locked ||
           (window.epoch == Epoch::fence && !window.fence_used);
}

}  // namespace

// A crowd looks again after short sleeps.
void wait_for_memory(const Window& window, bool (*holds)(void*), void* argument) {
    constexpr unsigned kYields = 300;
    constexpr unsigned kSpins = 30;
    constexpr unsigned kSleepMicroseconds = 50;
    ProgressWait wait;
    ShownWait shown;
    bool idle = false;  // the pass before has found nothing, and waited long
    for (unsigned tries = 0; !holds(argument); tries++) {
        // A pass that has found nothing counts only when the word was looked at behind it.
        if (idle) shown.found_nothing([&](auto& what) { add_awaited_members(*window.comm, what); });
        idle = false;
        if (progress()) {
            shown.moved();
            continue;
        }
        bool is_long = tries > kYields;
        // No event tells of a word of memory: a module's sleep would last to its end.
        if (tries > kSpins && cpu_contention.computes() && !EngineLock::enabled())
            ::usleep(kSleepMicroseconds);
        else if (!engine.crowded || EngineLock::enabled())
            is_long = wait.wait_a_little();
        else if (tries > kYields)
            ::usleep(kSleepMicroseconds);
        else if (tries > kSpins)
            ::sched_yield();
        idle = is_long;
    }
}

int begin_access(Window& window, int rank) {
    const Member& member = window.member(rank);
    if (!access_is_open(window, member)) {
        if (window.epoch != Epoch::locked_all) return MPI_ERR_RMA_SYNC;
        // Of several threads that come here first, one asks.
        if (member.asked)
            progress_until_one([&] { return member.held != LockKind::none || !member.asked; },
                               [&](auto& what) { add_awaited_members(*window.comm, what); });
        else if (const int error = acquire(window, rank, LockKind::shared))
            return error;
        if (member.held == LockKind::none) return MPIX_ERR_PROC_FAILED;
    }
    note_access(window);
    return MPI_SUCCESS;
}

int lock(Window& window, LockKind kind, int rank, bool check) {
    if (!may_lock(window) || window.member(rank).held != LockKind::none) return MPI_ERR_RMA_SYNC;
    if (const int error = acquire(window, rank, check ? kind : LockKind::unchecked)) return error;
    window.epoch = Epoch::locked;
    window.locks++;
    return MPI_SUCCESS;
}

int unlock(Window& window, int rank) {
    if (window.epoch != Epoch::locked || window.member(rank).held == LockKind::none) return MPI_ERR_RMA_SYNC;
    const int error = release(window, rank);
    if (--window.locks == 0) window.epoch = Epoch::none;
    let_others(window);
    return error;
}

int lock_all(Window& window, bool check) {
    if (!may_lock(window) || window.epoch == Epoch::locked) return MPI_ERR_RMA_SYNC;
    // Where memory is shared the program may load and store without a call that could ask for the lock.
    window.epoch = Epoch::locked_all;
    for (int rank = 0; rank < window.group_size(); rank++) {
        const bool now = !check || (window.all_direct && window.member(rank).shared);
        const int error = now ? acquire(window, rank, check ? LockKind::shared : LockKind::unchecked) : MPI_SUCCESS;
        if (error == MPI_SUCCESS) continue;
        (void)unlock_all(window);  // the error that came first is told
        return error;
    }
    return MPI_SUCCESS;
}

int unlock_all(Window& window) {
    if (window.epoch != Epoch::locked_all) return MPI_ERR_RMA_SYNC;
    int first_error = MPI_SUCCESS;
    for (int rank = 0; rank < window.group_size(); rank++) {
        if (window.member(rank).held == LockKind::none) continue;
        const int error = release(window, rank);
        if (first_error == MPI_SUCCESS) first_error = error;
    }
    window.epoch = Epoch::none;
    let_others(window);
    return first_error;
}

void wait_local(Window& window, int rank) {
    const Member& member = window.member(rank);
    if (member.outstanding > 0)
        progress_until_one([&] { return member.outstanding == 0; },
                           [&](auto& what) { add_awaited_member(*window.comm, rank, what); });
}

int flush_members(Window& window, int first, int last) {
    for (int rank = first; rank < last; rank++) {
        Member& member = window.member(rank);
        if (member.remote != nullptr) settle_puts(window, rank);
        member.sent = false;
        if (!member.unflushed) continue;
        tell(window, rank, {.kind = Kind::flush, .number = ++member.flushes});
        member.unflushed = false;
    }
    int first_error = MPI_SUCCESS;
    for (int rank = first; rank < last; rank++) {
        Member& member = window.member(rank);
        wait_local(window, rank);
        const int lost = wait_for_flush(window, rank);
        if (member.remote != nullptr) member.remote->messages = member.remote->changed = false;
        const int error = take_error(member);
        if (first_error == MPI_SUCCESS) first_error = lost != MPI_SUCCESS ? lost : error;
    }
    return first_error;
}

int flush(Window& window, int rank, bool local) {
    if (short_flush(window, rank)) return MPI_SUCCESS;
    if (!is_passive(window, rank)) return MPI_ERR_RMA_SYNC;
    order_memory();
    let_others(window);
    const int first = rank < 0 ? 0 : rank;
    const int last = rank < 0 ? window.group_size() : rank + 1;
    if (!local) return flush_members(window, first, last);
    int first_error = MPI_SUCCESS;
    for (int one = first; one < last; one++) {
        wait_local(window, one);
        const int error = take_error(window.member(one));
        if (first_error == MPI_SUCCESS) first_error = error;
    }
    return first_error;
}

int sync(Window& window) {
    order_memory();
    let_others(window);
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi::rma
