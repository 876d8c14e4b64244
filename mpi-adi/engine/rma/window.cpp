// SPDX-License-Identifier: BSD-2-Clause
// Windows by handle, their end, hints, attached memory, errors; and their turn in each pass of progress.
#include "mpi-adi/engine/rma/window.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/failure.hpp"
#include "mpi-adi/engine/rma/inline_op.hpp"
#include "mpi-adi/engine/rma/target.hpp"

namespace viaduct::mpi::rma {
namespace {

// Those that exist, for progress.
std::vector<Window*>& all_windows() {
    static auto* all = new std::vector<Window*>();
    return *all;
}

bool serve_all() {
    bool moved = false;
    // Serving neither makes nor frees windows.
    for (Window* window : all_windows()) serve_window(*window, &moved);
    return moved;
}

// The hints of the standard and their defaults.
struct Hint {
    const char* key;
    const char* value;
};
constexpr Hint kHints[] = {{"no_locks", "false"},
                           {"accumulate_ordering", "rar,raw,war,waw"},
                           {"accumulate_ops", "same_op_no_op"},
                           {"same_size", "false"},
                           {"same_disp_unit", "false"},
                           {"alloc_shared_noncontig", "false"}};

}  // namespace

NeverDestroyed<ObjectTable<Window, HandleType::win>> windows;

Window::Window() {
    errhandler = errhandler_of(MPI_ERRORS_ARE_FATAL);
    for (const Hint& hint : kHints) hints[hint.key] = hint.value;
    all_windows().reserve(all_windows().size() + 1);
    handle = windows->add(this);  // last of what can fail: a handle leads to a whole window or to none
    all_windows().push_back(this);
    engine.serve = serve_all;
}

Window::~Window() {
    std::erase(all_windows(), this);
    if (all_windows().empty()) engine.serve = nullptr;
    windows->remove(handle);
    errhandler_release(errhandler);
    target.reset();
    exposed_lock.reset();
    exposed_memory.reset();
    if (comm != nullptr) comm_release(*comm);
    std::free(own_memory);
}

int tell(Window* window, int code, const char* function) {
    if (code == MPI_SUCCESS) [[likely]]
        return code;
    if (window == nullptr) return mpi::tell(static_cast<Comm*>(nullptr), code, function);
    Errhandler* const handler = window->errhandler;
    if (handler->returns()) return code;
    if (handler->function != nullptr) {
        MPI_Win told_window = window->handle;
        int told = code;
        errhandler_retain(handler);
        handler->call(&told_window, &told, function);
        const bool asked_twice = handler->proxy != nullptr;
        errhandler_release(handler);
        return asked_twice ? MPI_SUCCESS : code;  // as for communicators
    }
    char handle[16];
    std::snprintf(handle, sizeof handle, "0x%x", static_cast<unsigned>(window->handle));
    end_job(code > 0 && code < 256 ? code : 1, "%s: %s (window %s)", function, error_text(code).c_str(),
            window->name.empty() ? handle : window->name.c_str());
}

int raise(Window* window, int code, const char* function) {
    if (window == nullptr) return mpi::raise(static_cast<Comm*>(nullptr), code, function);
    return code <= MPI_SUCCESS  // see publish()
               ? code
               : note_failure([](void* object, int error, const char* name) {
                     return tell(static_cast<Window*>(object), error, name);
                 }, window, nullptr, code, function);
}

void win_set_hints(Window& window, const Info& given) {
    for (const auto& [key, value] : given.entries) {
        auto known = window.hints.find(key);
        if (known != window.hints.end()) known->second = value;
    }
}

int win_free(Window* window) {
    const bool open = window->epoch == Epoch::started || window->epoch == Epoch::locked ||
                      window->epoch == Epoch::locked_all || window->exposed;
    // A program leaves an epoch where a call of it has failed.
    if (open && !has_lost(*window)) return MPI_ERR_RMA_SYNC;
    if (const int error = window->attributes.clear(window->handle)) return error;
    const int late = flush_members(*window, 0, window->group_size());
    // No requests are under way any more when all members have come here. Members that have failed are not waited
    // for: what those that are left still send is dropped, and what they access by system calls is kept from them.
    if (const int error = barrier(*window); error != MPI_SUCCESS) {
        if (!robust::is_loss(error)) return error;
        end_foreign_access(*window);
    }
    delete window;
    return robust::is_loss(late) ? MPI_SUCCESS : late;
}

namespace {

RangesCard* card_of(Window& window) {
    MemberLine* const line = window.self().line;
    return line == nullptr ? nullptr : &line->attached;
}

}  // namespace

int win_attach(Window& window, void* base, MPI_Aint size) {
    if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC) return MPI_ERR_RMA_FLAVOR;
    if (size < 0) return MPI_ERR_SIZE;
    if (size == 0) {
        window.empty_attached++;
        return MPI_SUCCESS;
    }
    if (base == nullptr) return MPI_ERR_RMA_ATTACH;
    const RangesChange change(card_of(window), window.attached);
    return window.attached.add(static_cast<char*>(base), size) ? MPI_SUCCESS : MPI_ERR_RMA_ATTACH;
}

int win_detach(Window& window, const void* base) {
    if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC) return MPI_ERR_RMA_FLAVOR;
    const RangesChange change(card_of(window), window.attached);
    if (window.attached.remove(static_cast<const char*>(base))) return MPI_SUCCESS;
    if (window.empty_attached == 0) return MPI_ERR_BASE;
    window.empty_attached--;
    return MPI_SUCCESS;
}

namespace {

// Answers that will not come any more.
bool end_awaited(Window& window) {
    bool moved = false;
    for (Member& member : window.members)
        while (take_answer(member, MPIX_ERR_PROC_FAILED, nullptr, 0)) moved = true;
    return moved;
}

}  // namespace

void serve_window(Window& window, bool* moved) {
    // One that is being made has no members yet.
    if (window.comm != nullptr && has_lost(window)) *moved |= end_awaited(window);
    if (window.target != nullptr && window.target->serve()) *moved = true;
}

int barrier(Window& window) {
    // One that has left a meeting without the others must not be counted in it again.
    if (has_lost(window)) return MPIX_ERR_PROC_FAILED;
    if (window.all_direct) {
        Meeting& meeting = window.region->meeting();
        const unsigned round = meeting.round.load(std::memory_order_acquire);
        if (meeting.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == window.region->parts()) {
            meeting.arrived.store(0, std::memory_order_relaxed);
            meeting.round.store(round + 1, std::memory_order_release);
        } else {
            const auto met = [&] { return meeting.round.load(std::memory_order_acquire) != round; };
            wait_for_memory(window, [&] { return met() || has_lost(window); });
            if (!met()) return MPIX_ERR_PROC_FAILED;
        }
        return MPI_SUCCESS;
    }
    Schedule s(*window.comm);
    coll::barrier(s);
    return s.run();
}

namespace {

template <typename WayOf>
std::string ways(const Window& window, WayOf&& way_of) {
    constexpr const char* kAccessNames[] = {"memory", "system_calls", "nic", "messages"};
    int count[std::size(kAccessNames)] = {};
    for (int rank = 0; rank < window.group_size(); rank++)
        if (rank != window.comm->rank) count[way_of(window.members[static_cast<size_t>(rank)])]++;
    std::string text;
    for (size_t i = 0; i < std::size(kAccessNames); i++) {
        if (count[i] == window.group_size() - 1) return kAccessNames[i];
        if (count[i] != 0)
            text += std::string(text.empty() ? "" : " ") + kAccessNames[i] + "=" + std::to_string(count[i]);
    }
    return text;
}

}  // namespace

std::string access_ways(const Window& window) {
    return ways(window, [](const Member& member) {
        return member.direct != nullptr ? 0 : member.foreign != nullptr ? 1 : member.remote != nullptr ? 2 : 3;
    });
}

std::string atomic_ways(const Window& window) {
    return ways(window, [](const Member& member) {
        if (member.direct != nullptr) return 0;
        if (member.foreign != nullptr) return 1;
        return member.remote != nullptr && member.remote->words ? 2 : 3;
    });
}

int take_error(Member& member) { return std::exchange(member.error, MPI_SUCCESS); }

}  // namespace viaduct::mpi::rma
