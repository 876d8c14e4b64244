// SPDX-License-Identifier: BSD-2-Clause
// See remote_words.hpp.
#include "mpi-adi/engine/rma/remote_words.hpp"

#include <cstring>

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/op.hpp"
#include "mpi-adi/engine/rma/remote_access.hpp"
#include "mpi-adi/engine/rma/transfer.hpp"
#include "mpi-adi/engine/rma/word.hpp"

namespace viaduct::mpi::rma {
namespace {

// Where old values go that nothing asks for.
char unwanted[sizeof(uint64_t)];

uint64_t value_of(const void* word, size_t width) {
    uint32_t narrow = 0;
    uint64_t wide = 0;
    if (width == sizeof wide) {
        std::memcpy(&wide, word, sizeof wide);
        return wide;
    }
    std::memcpy(&narrow, word, sizeof narrow);
    return narrow;
}

// Begins an operation whose old value goes to `result`.
void begin_change(Window& window, int rank, const mpip_region& region, const mpip_change& change, void* result,
                  Request* mine) {
    Request* const request = new_request(Request::Kind::receive);
    set_up_receive(*request, *window.comm, Channel::p2p, rank, kDataTag, {result, change.ch_bytes, nullptr, 0});
    const int error = request->r_proc->p_proto->pt_change(request, &region, &change);
    if (error != MPI_SUCCESS) {
        request->r_error = error;
        request->r_state = MPIP_REQ_DONE;
    }
    (new Transfer(window, rank, mine))->wait_for(request, change.ch_bytes);
}

// Does one, and waits for it alone.
class Step {
public:
    Step(Window& window, int rank, const mpip_region& region, size_t width)
        : window_(window), rank_(rank), region_(region), width_(width) {}

    // The old value, in `old`.
    [[nodiscard]] int add(uint64_t address, uint64_t operand, uint64_t* old) {
        return run({address, static_cast<unsigned>(width_), 0, operand, 0}, old);
    }
    [[nodiscard]] int swap(uint64_t address, uint64_t value, uint64_t expected, uint64_t* old) {
        return run({address, static_cast<unsigned>(width_), 1, value, expected}, old);
    }

private:
    int run(const mpip_change& change, uint64_t* old) {
        alignas(8) char word[sizeof(uint64_t)] = {};
        Request* const done = new_operation(window_);
        begin_change(window_, rank_, region_, change, word, done);
        progress_until_done(*done);
        const int error = finish(done);
        *old = value_of(word, width_);
        return error;
    }

    Window& window_;
    const int rank_;
    const mpip_region& region_;
    const size_t width_;
};

bool is_word_here(const Member& member, size_t width, uint64_t address) {
    return member.remote != nullptr && member.remote->words && (width == 4 || width == 8) && address % width == 0 &&
           !member.remote->messages;
}

bool adds_integers(MPI_Op op, const Datatype& element) {
    return op == MPI_NO_OP || (op == MPI_SUM && is_one_step(op, element));
}

// What the operator makes of a value.
uint64_t made_by(MPI_Op op, const Datatype& element, uint64_t old, const char* data, size_t width) {
    alignas(8) char made[sizeof old];
    alignas(8) char operand[sizeof old];
    const auto narrow = static_cast<uint32_t>(old);
    width == sizeof old ? std::memcpy(made, &old, sizeof old) : std::memcpy(made, &narrow, sizeof narrow);
    std::memcpy(operand, data, width);
    if (op == MPI_REPLACE) return value_of(operand, width);
    op_loop(op, element)(operand, made, 1);
    return value_of(made, width);
}

int done_with(Window& window, int error, Request** request) {
    if (error == MPI_SUCCESS && request != nullptr) {
        *request = new_operation(window);
        mpi::complete(*request, MPI_SUCCESS);
    }
    return error;
}

}  // namespace

bool is_remote_word(const Member& member, MPI_Op op, const Datatype& element, uint64_t address, uint64_t bytes) {
    const auto width = static_cast<size_t>(element.size);
    return bytes == width && element.basic != BasicClass::pair && element.basic != BasicClass::none &&
           is_word_here(member, width, address) &&
           (op == MPI_REPLACE || op == MPI_NO_OP || op_loop(op, element) != nullptr);
}

int remote_change(Window& window, int rank, MPI_Op op, const Datatype& element, uint64_t address, const char* data,
                  char* result, Request** request) {
    Remote& remote = *window.member(rank).remote;
    const auto width = static_cast<size_t>(element.size);
    remote.changed = true;
    if (adds_integers(op, element)) {
        const uint64_t operand = op == MPI_NO_OP ? 0 : value_of(data, width);
        Request* const mine = request == nullptr ? nullptr : * request = new_operation(window);
        begin_change(window, rank, remote.memory, {address, static_cast<unsigned>(width), 0, operand, 0},
                     result != nullptr ? result : unwanted, mine);
        return MPI_SUCCESS;
    }
    Step step(window, rank, remote.memory, width);
    uint64_t seen = 0;
    int error = step.add(address, 0, &seen);
    for (uint64_t expected = ~seen; error == MPI_SUCCESS && seen != expected;) {
        expected = seen;
        error = step.swap(address, made_by(op, element, expected, data, width), expected, &seen);
    }
    if (error == MPI_SUCCESS && result != nullptr) {
        const auto narrow = static_cast<uint32_t>(seen);
        width == sizeof seen ? std::memcpy(result, &seen, sizeof seen) : std::memcpy(result, &narrow, sizeof narrow);
    }
    return done_with(window, error, request);
}

bool is_remote_swap(const Member& member, size_t width, uint64_t address) {
    return is_word_here(member, width, address);
}

int remote_compare_swap(Window& window, int rank, size_t width, uint64_t address, const void* value,
                        const void* compare, void* result) {
    Remote& remote = *window.member(rank).remote;
    remote.changed = true;
    const mpip_change change = {address, static_cast<unsigned>(width), 1, value_of(value, width),
                                value_of(compare, width)};
    begin_change(window, rank, remote.memory, change, result, nullptr);
    return MPI_SUCCESS;
}

void before_message(Window& window, int rank) {
    Remote* const remote = window.member(rank).remote.get();
    if (remote == nullptr) return;
    remote->messages = true;
    if (std::exchange(remote->changed, false)) wait_local(window, rank);
}

bool remote_acquire(Window& window, int rank, LockKind kind) {
    const mpip_region& region = window.member(rank).remote->lock;
    const uint64_t at = region.rg_address;
    Step step(window, rank, region, sizeof(uint64_t));
    uint64_t seen = 0;
    bool lost = false, got = false;
    const auto add = [&](uint64_t operand) { return step.add(at, operand, &seen) == MPI_SUCCESS; };
    if (kind == LockKind::shared) {
        // A reader that comes while there is a writer takes itself back: the word that it sees then may have none.
        auto enter = [&] {
            if (!add(1)) return lost = true;
            if (LockWord::admits_readers(seen)) return got = true;
            lost = !add(uint64_t{0} - 1);
            return lost || has_lost(window);
        };
        if (!enter()) wait_for_memory(window, enter);
        return got;
    }
    uint64_t expected = 0;
    auto enter = [&] {
        do {
            if (step.swap(at, LockWord::with_writer(expected), expected, &seen) != MPI_SUCCESS) return lost = true;
            if (seen == expected) return got = true;
            expected = seen;
        } while (LockWord::admits_writer(seen));
        return has_lost(window);
    };
    if (enter()) return got;
    if (!add(LockWord::kWaiting)) return false;
    expected = seen + LockWord::kWaiting;
    wait_for_memory(window, [&] {
        if (LockWord::admits_writer(expected)) return enter();
        if (!add(0)) return lost = true;
        expected = seen;
        return has_lost(window);
    });
    return !lost && add(uint64_t{0} - LockWord::kWaiting) && got;
}

int remote_release(Window& window, int rank, LockKind held) {
    Member& member = window.member(rank);
    // The release is done at the member behind the puts, in the order of the connection: no other flush of them.
    member.remote->written = false;
    const int flushed = flush_members(window, rank, rank + 1);
    const mpip_region& region = member.remote->lock;
    uint64_t old = 0;
    const uint64_t one = held == LockKind::shared ? 1 : LockWord::kWriter;
    const int released = Step(window, rank, region, sizeof old).add(region.rg_address, uint64_t{0} - one, &old);
    return flushed != MPI_SUCCESS ? flushed : released;
}

}  // namespace viaduct::mpi::rma
