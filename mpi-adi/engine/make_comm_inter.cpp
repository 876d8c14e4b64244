// SPDX-License-Identifier: BSD-2-Clause
// Communicators of two groups that have a communicator each, and one communicator of both groups. See make_comm.hpp.
#include <algorithm>

#include "mpi-adi/engine/dynamic/meet.hpp"
#include "mpi-adi/engine/make_comm_words.hpp"

namespace viaduct::mpi {
namespace {

uint64_t job_of(const Group& group) {
    const bool ours = std::all_of(group.world.begin(), group.world.end(), [](int p) { return p < world().size; });
    return ours ? world().numbers[0] : 0;
}

// Whether the leaders' words can name processes by their ranks in the world.
template <typename Word>
bool of_one_job(const Word& a, const Word& b) {
    return a.job != 0 && a.job == b.job;
}

int swap_texts(Communicator& peer, int with, int tag, const std::string& mine, std::string* theirs) {
    uint64_t sizes[2] = {mine.size(), 0};
    if (int error = sendrecv(peer, Channel::groups, with, tag, payload(&sizes[0], 1), with, tag,
                             payload(&sizes[1], 1))) {
        return error;
    }
    theirs->resize(sizes[1]);
    return sendrecv(peer, Channel::groups, with, tag, payload(mine.data(), mine.size()), with, tag,
                    payload(theirs->data(), theirs->size()));
}

}  // namespace

int intercomm_create(Communicator& local, int local_leader, Communicator* peer, int remote_leader, int tag, int refused,
                     Communicator** made) {
    struct Word {
        uint64_t context;
        int64_t members;
        int64_t error;
        uint64_t job;  // the first process number of the job that all members belong to; 0: of several
    };
    *made = nullptr;
    Word mine{0, local.size, MPI_SUCCESS, job_of(*local.local)};
    Word theirs{0, 0, MPI_SUCCESS, 0};
    std::vector<int> members;
    if (local.rank == local_leader && !peer) {
        theirs.error = refused;
    } else if (local.rank == local_leader) {
        mine.context = new_context();
        mine.error = refused;
        const int failed = sendrecv(*peer, Channel::groups, remote_leader, tag, payload(&mine, 1), remote_leader, tag,
                                    payload(&theirs, 1));
        // Neither side goes on when either of them refuses.
        theirs.error = own_or(refused, own_or(failed, theirs.error));
        if (theirs.error == MPI_SUCCESS && of_one_job(mine, theirs)) {
            members.resize(size_t(theirs.members));
            theirs.error = sendrecv(*peer, Channel::groups, remote_leader, tag,
                                    payload(local.local->world.data(), local.local->world.size()), remote_leader, tag,
                                    payload(members.data(), members.size()));
        }
    }
    Word both[2] = {mine, theirs};
    if (int error = tell_all(local, both, 2, local_leader)) {
        return error;
    }
    if (both[1].error != MPI_SUCCESS) {
        return int(both[1].error);
    }
    if (!of_one_job(both[0], both[1])) {
        return meet(local, local_leader, [=](RootLink* link) {
            link->swap = [=](const std::string& out, std::string* in) {
                return swap_texts(*peer, remote_leader, tag, out, in);
            };
            return MPI_SUCCESS;
        }, false, made);
    }
    members.resize(size_t(both[1].members));
    if (int error = tell_all(local, members.data(), MPI_Count(members.size()), local_leader)) {
        return error;
    }
    // A process on both sides would talk to itself through two groups.
    for (int process : members) {
        if (local.local->rank_of(process) != MPI_UNDEFINED) {
            return MPI_ERR_COMM;
        }
    }
    group_retain(local.local);
    *made = make_inter(local.local, new Group(members, world().rank), both[0].context, both[1].context, &local);
    return MPI_SUCCESS;
}

int intercomm_merge(Communicator& inter, bool high, Communicator** made) {
    struct Word {
        uint64_t context;
        int64_t high;
        int64_t first;  // a number that both sides have
    };
    *made = nullptr;
    Word mine{inter.rank == 0 ? new_context() : 0, high, world().numbers[size_t(inter.local->world[0])]};
    Word theirs{};
    Schedule s(inter);
    if (inter.rank == 0) {
        s.send(&mine, sizeof mine, bytes_type(), 0);
        s.recv(&theirs, sizeof theirs, bytes_type(), 0);
    }
    if (int error = s.run()) {
        return error;
    }
    Word both[2] = {mine, theirs};
    if (int error = tell_all(*inter.within, both, 2, 0)) {
        return error;
    }
    // Sides that say the same are ordered by which side has the lower first process.
    bool first = both[0].high != both[1].high ? !both[0].high : both[0].first < both[1].first;
    const Group& a = first ? *inter.local : *inter.remote;
    const Group& b = first ? *inter.remote : *inter.local;
    std::vector<int> processes = a.world;
    processes.insert(processes.end(), b.world.begin(), b.world.end());
    *made = make_intra(new Group(std::move(processes), world().rank), both[first ? 0 : 1].context, &inter);
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
