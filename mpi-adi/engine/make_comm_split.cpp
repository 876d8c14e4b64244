// SPDX-License-Identifier: BSD-2-Clause
// Communicators by colors and keys. See make_comm.hpp.
#include <algorithm>

#include "mpi-adi/engine/make_comm_words.hpp"

namespace viaduct::mpi {
namespace {

struct SplitWord {
    int color;
    int key;
    int process;  // set by the receiver, whose own number it is
    int rank;     // in the parent
    uint64_t context;
    int64_t refused;
};

// Words by rank in the group.
void number_by(const Group& group, std::vector<SplitWord>& words) {
    for (size_t rank = 0; rank < words.size(); ++rank) {
        words[rank].process = group.world[rank];
    }
}

// Members of one color in the order of keys, then of ranks.
std::vector<SplitWord> select_color(const std::vector<SplitWord>& all, int color) {
    std::vector<SplitWord> members;
    std::copy_if(all.begin(), all.end(), std::back_inserter(members),
                 [&](const SplitWord& w) { return w.color == color; });
    std::stable_sort(members.begin(), members.end(),
                     [](const SplitWord& a, const SplitWord& b) { return a.key < b.key; });
    return members;
}

Group* group_from(const std::vector<SplitWord>& members) {
    std::vector<int> processes;
    processes.reserve(members.size());
    for (const SplitWord& word : members) processes.push_back(word.process);
    return new Group(std::move(processes), world().rank);
}

}  // namespace

int comm_split(Communicator& old, int color, int key, int refused, Communicator** made) {
    *made = nullptr;
    // Each process offers a context; that of the first member of each color is taken.
    SplitWord mine{color, key, 0, old.rank, new_context(), refused};
    std::vector<SplitWord> all;
    if (int error = collect(old.inter ? *old.within : old, mine, &all)) {
        return error;
    }
    std::vector<SplitWord> others;
    if (old.inter) {
        others.resize(size_t(old.remote_size));
        Schedule s(old);
        coll::allgather(s, {&mine, sizeof mine, &bytes_type()}, {others.data(), {}, {}, sizeof mine, &bytes_type()});
        if (int error = s.run()) {
            return error;
        }
    }
    number_by(*old.local, all);
    number_by(*old.remote, others);
    const int here_refused = first_refusal(all);
    if (int error = own_or(refused, own_or(here_refused, first_refusal(others)))) {
        return error;
    }
    if (color == MPI_UNDEFINED) {
        return MPI_SUCCESS;
    }
    std::vector<SplitWord> here = select_color(all, color);
    if (!old.inter) {
        *made = make_intra(group_from(here), here[0].context, &old);
        return MPI_SUCCESS;
    }
    std::vector<SplitWord> there = select_color(others, color);
    if (!there.empty()) {
        *made = make_inter(group_from(here), group_from(there), here[0].context, there[0].context, &old);
    }
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
