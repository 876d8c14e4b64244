// SPDX-License-Identifier: BSD-2-Clause
// Active target: fences, and post-start-complete-wait. A fence flushes what this process has begun and meets
// the others; in the general form the target's `post` opens the way, and the origin's `complete`, served
// after its operations, closes it.
#include <atomic>

#include "mpi-adi/engine/awaited.hpp"
#include "mpi-adi/engine/rma/target.hpp"
#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi::rma {
namespace {

// Ranks in the window's group; MPI_ERR_GROUP when one is not a member.
int ranks_of(const Window& window, const Group& group, std::vector<int>* ranks) {
    for (const int world_rank : group.world) {
        const int rank = window.comm->local->rank_of(world_rank);
        if (rank == MPI_UNDEFINED) return MPI_ERR_GROUP;
        ranks->push_back(rank);
    }
    return MPI_SUCCESS;
}

bool may_begin(const Window& window) {
    return window.epoch == Epoch::none || (window.epoch == Epoch::fence && !window.fence_used);
}

}  // namespace

int fence(Window& window, int assertion) {
    if ((window.epoch != Epoch::none && window.epoch != Epoch::fence) || window.exposed)
        return MPI_ERR_RMA_SYNC;
    int error = MPI_SUCCESS;
    if ((assertion & MPI_MODE_NOPRECEDE) == 0) error = flush_members(window, 0, window.group_size());
    order_memory();
    const int met = barrier(window);
    order_memory();
    window.epoch = (assertion & MPI_MODE_NOSUCCEED) != 0 ? Epoch::none : Epoch::fence;
    window.fence_used = false;
    return error != MPI_SUCCESS ? error : met;
}

int start(Window& window, const Group& group) {
    if (!may_begin(window)) return MPI_ERR_RMA_SYNC;
    std::vector<int> ranks;
    if (const int error = ranks_of(window, group, &ranks)) return error;
    for (const int rank : ranks) {
        Member& member = window.member(rank);
        progress_until_one([&] { return member.posts > 0 || has_lost(window); },
                           [&](auto& what) { add_awaited_member(*window.comm, rank, what); });
        if (member.posts == 0) return MPIX_ERR_PROC_FAILED;
        member.posts--;
        member.accessed = true;
    }
    order_memory();
    window.epoch = Epoch::started;
    return MPI_SUCCESS;
}

int complete(Window& window) {
    if (window.epoch != Epoch::started) return MPI_ERR_RMA_SYNC;
    int first_error = MPI_SUCCESS;
    order_memory();
    // What its targets did not have attached is an error of this epoch.
    if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) first_error = flush_members(window, 0, window.group_size());
    for (int rank = 0; rank < window.group_size(); rank++) {
        Member& member = window.member(rank);
        if (!member.accessed) continue;
        wait_local(window, rank);
        member.accessed = false;
        tell(window, rank, {.kind = Kind::complete});
        const int error = take_error(member);
        if (first_error == MPI_SUCCESS) first_error = error;
    }
    window.epoch = Epoch::none;
    return first_error;
}

int post(Window& window, const Group& group) {
    if (window.exposed) return MPI_ERR_RMA_SYNC;
    std::vector<int> ranks;
    if (const int error = ranks_of(window, group, &ranks)) return error;
    order_memory();
    window.exposed = true;
    for (const int rank : ranks) {
        window.member(rank).exposed = true;
        tell(window, rank, {.kind = Kind::post});
    }
    return MPI_SUCCESS;
}

int wait_exposure(Window& window, bool* finished) {
    if (!window.exposed) return MPI_ERR_RMA_SYNC;
    const auto all_complete = [&] {
        for (const Member& member : window.members)
            if (member.exposed && member.completes == 0) return has_lost(window);
        return true;
    };
    const auto describe = [&](auto& what) {
        for (int rank = 0; rank < window.group_size(); rank++) {
            const Member& member = window.member(rank);
            if (member.exposed && member.completes == 0) add_awaited_member(*window.comm, rank, what);
        }
    };
    if (finished == nullptr) {
        progress_until_one(all_complete, describe);
    } else {
        if (!all_complete()) (void)progress_once(window.wait, describe);
        *finished = all_complete();
        if (!*finished) return MPI_SUCCESS;
    }
    int error = MPI_SUCCESS;
    for (Member& member : window.members) {
        if (!member.exposed) continue;
        member.exposed = false;
        if (member.completes > 0)
            member.completes--;
        else
            error = MPIX_ERR_PROC_FAILED;
    }
    window.exposed = false;
    order_memory();
    return error;
}

}  // namespace viaduct::mpi::rma
