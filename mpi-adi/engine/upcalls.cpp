// SPDX-License-Identifier: BSD-2-Clause
// What modules tell the engine: a message begins, a request is done, a process is lost. Runs inside calls
// into modules, so nothing here waits or progresses. What peers say about themselves is checked before it is
// used.
#include <cstring>
#include <new>
#include <utility>

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/robust/control.hpp"
#include "mpi-adi/engine/robust/ended.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi {
namespace {

// Above this much unexpected data peers shall send envelopes only, until half of it has been asked for.
constexpr uint64_t kUnexpectedLimit = 64u << 20;

[[noreturn]] void refuse(const process_t* from, const envelope& ev) {
    end_job(MPI_ERR_INTERN, "rank %d sent a message that cannot be: source %d, length %lld",
            world_rank_of(*from), ev.ev_rank, static_cast<long long>(ev.ev_len));
}

int keep(Matcher& matcher, process_t* from, const envelope& ev, const void* data, size_t here, void* held) {
    const bool whole = here == static_cast<size_t>(ev.ev_len) && (ev.ev_mode & MPIP_MODE_RTS) == 0;
    if (whole && matcher.server() != nullptr && matcher.server()->take(matcher, ev.ev_rank, ev.ev_tag, data, here))
        return MPIP_IN_TAKEN;
    if (!matcher.bound() && robust::is_ended(matcher.context())) [[unlikely]] {
        if (whole) {
            robust::came_late(from, matcher.context(), ev, data);
            erase_matcher(matcher.context());
            return MPIP_IN_TAKEN;
        }
        robust::hold_for_later(matcher.context());
    }
    Unexpected* message = new_unexpected(whole ? here : 0);
    message->um_env = ev;
    message->um_proc = from;
    if (whole) {
        message->um_buf = message->behind();
        std::memcpy(message->um_buf, data, here);
    } else {
        message->um_data = held;
        if (matcher.server() == robust::control_server()) [[unlikely]]
            robust::hold_for_later(matcher.context());
    }
    matcher.add(message);
    if (unexpected_bytes() > kUnexpectedLimit) watch_memory();
    return whole ? MPIP_IN_TAKEN : MPIP_IN_HELD;
}

int arrived(process_t* from, const envelope* ev, const void* data, size_t here, void* held,
            mpip_req_t** match) {
    Matcher& matcher = matcher_of(ev->ev_ctxt);
    const auto known = static_cast<int>(engine.world.processes.size());
    if (ev->ev_rank < 0 || ev->ev_rank >= known || ev->ev_len < 0 || ev->ev_tag < 0 ||
        !matcher.plausible(from, ev->ev_rank)) [[unlikely]]
        refuse(from, *ev);

    Request* receive = matcher.take_receive(ev->ev_rank, ev->ev_tag);
    if (receive == nullptr) return keep(matcher, from, *ev, data, here, held);

    receive->r_tag = ev->ev_tag;
    receive->r_rank = ev->ev_rank;
    receive->r_proc = from;
    receive->r_state = MPIP_REQ_STARTED;
    if (here == static_cast<size_t>(ev->ev_len) && (ev->ev_mode & MPIP_MODE_RTS) == 0) {
        mpip_req_deliver_all(receive, data, here);
        return MPIP_IN_TAKEN;
    }
    *match = receive;
    return MPIP_IN_MATCHED;
}

// Only requests that no call will look at, and those that are watched, ask for this call.
void completed(mpip_req_t* done) {
    auto* request = static_cast<Request*>(done);
    if (Watcher* const watcher = std::exchange(request->watcher, nullptr))
        watcher->done(request);
    else if (request->detached)
        free_request(request);
}

void peer_failed(process_t* process, int) {
    if (engine.stage == Stage::finalizing || engine.stage == Stage::after) return;
    // A launcher's fence waits for all: inside MPI_Init no process is left out.
    if ((process->p_flags & MPIP_PROC_ROBUST) != 0 && engine.stage == Stage::running) {
        try {
            return robust::lost(*process);
        } catch (const std::bad_alloc&) {
            // A module tells of a loss once: without a note of it calls would wait for the process for ever.
            end_job(MPI_ERR_NO_MEM, "rank %d is lost, and there is no memory to note it", world_rank_of(*process));
        }
    }
    end_job(kCutShort, "rank %d is lost: %s", world_rank_of(*process), mpip_last_error());
}

unexmsg_t* withdraw(process_t* from, reqaddr_t sender) {
    for (auto& [context, matcher] : engine.matchers) {
        for (Unexpected* one = matcher->first_message(); one != nullptr; one = Matcher::next_message(one)) {
            if (one->um_proc != from || one->um_env.ev_sendreq != sender) continue;
            matcher->remove(one);
            return one;
        }
    }
    return nullptr;
}

void release(unexmsg_t* message) { free_unexpected(static_cast<Unexpected*>(message)); }

int post(mpip_req_t* receive) {
    auto* request = static_cast<Request*>(receive);
    Matcher& matcher = matcher_of(request->r_ctxt);
    if (Unexpected* message = matcher.find(request->r_rank, request->r_tag)) {
        matcher.remove(message);
        take_unexpected(message, request);
    } else {
        matcher.post(request);
    }
    return MPIP_SUCCESS;
}

int progress_for_module() {
    static thread_local ProgressWait wait;
    if (progress()) {
        wait.moved();
        return 1;
    }
    wait.wait_a_little();
    return 0;
}

}  // namespace

const mpip_upcalls kUpcalls = {
    .version = CMPI_ADI_VERSION,
    .arrived = arrived,
    .completed = completed,
    .peer_failed = peer_failed,
    .withdraw = withdraw,
    .release = release,
    .post = post,
    .progress = progress_for_module,
    .sleeping = let_go_for_sleep,
    .awake = take_back_after_sleep,
};

void take_unexpected(Unexpected* message, Request* receive) {
    receive->r_tag = message->um_env.ev_tag;
    receive->r_rank = message->um_env.ev_rank;
    receive->r_proc = message->um_proc;
    receive->r_state = MPIP_REQ_STARTED;
    if (message->um_buf != nullptr) {
        mpip_req_deliver_all(receive, message->um_buf, static_cast<size_t>(message->um_env.ev_len));
    } else {
        const int answer = message->um_proc->p_proto->pt_uirecv(message->um_proc, message, receive);
        if (answer != MPIP_SUCCESS) complete(receive, answer);
    }
    free_unexpected(message);
    if (engine.under_pressure) [[unlikely]]
        watch_memory();
}

void discard(Unexpected* message) {
    if (message->um_buf == nullptr) message->um_proc->p_proto->pt_ufree(message);
    free_unexpected(message);
}

void watch_memory() {
    const bool press = unexpected_bytes() > (engine.under_pressure ? kUnexpectedLimit / 2 : kUnexpectedLimit);
    if (press == engine.under_pressure) return;
    engine.under_pressure = press;
    for (int i = 0; i < engine.active_count; i++) engine.active[i]->pt_pressure(press ? 1 : 0);
}

Matcher& find_matcher(uint64_t context) {
    auto& matcher = engine.matchers[context];
    if (matcher == nullptr) matcher = std::make_unique<Matcher>(context);
    engine.recent[context % 8] = {context, matcher.get()};
    return *matcher;
}

void erase_matcher(uint64_t context) {
    Engine::Recent& recent = engine.recent[context % 8];
    if (recent.context == context) recent = {};
    engine.matchers.erase(context);
}

}  // namespace viaduct::mpi
