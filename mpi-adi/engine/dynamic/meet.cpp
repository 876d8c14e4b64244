// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/engine/dynamic/meet.hpp"

#include <sys/random.h>

#include <algorithm>
#include <optional>

#include "mpi-adi/engine/card.hpp"
#include "mpi-adi/engine/coll/coll.hpp"

namespace viaduct::mpi {
namespace {

template <typename T>
int tell_side(Communicator& comm, T* values, size_t n, int root) {
    Schedule s(comm);
    coll::bcast(s, {values, MPI_Count(n * sizeof(T)), type_of(MPI_BYTE)}, root);
    return s.run();
}

// What one side says.
struct Side {
    uint64_t context = 0;
    JobSecret half = {};
    std::vector<std::string> members;  // by rank: own_introduction()
};

std::string text_of(const Side& side) {
    std::string text;
    append_number(&text, uint32_t(side.context));
    append_number(&text, uint32_t(side.context >> 32));
    append_part(&text, {reinterpret_cast<const char*>(side.half.data()), side.half.size()});
    for (const std::string& one : side.members) append_part(&text, one);
    return text;
}

std::optional<Side> read_side(std::string_view text) {
    Side side;
    uint32_t low = 0, high = 0;
    std::string part;
    if (!take_number(&text, &low) || !take_number(&text, &high) || !take_part(&text, &part) ||
        part.size() != side.half.size())
        return std::nullopt;
    side.context = uint64_t(high) << 32 | low;
    std::copy(part.begin(), part.end(), side.half.begin());
    while (!text.empty()) {
        if (!take_part(&text, &part)) return std::nullopt;
        side.members.push_back(part);
    }
    if (side.members.empty()) return std::nullopt;
    return side;
}

// Introductions of all, at the root.
int gather_introductions(Communicator& local, int root, std::vector<std::string>* members) {
    const std::string own = own_introduction();
    const MPI_Count bytes = MPI_Count(own.size());
    const Datatype& counts = *type_of(MPI_COUNT);
    const auto size = size_t(local.rank == root ? local.size : 0);
    std::vector<MPI_Count> sizes(size), places(size);
    {
        Schedule s(local);
        coll::gather(s, {&bytes, 1, &counts}, {sizes.data(), {}, {}, 1, &counts}, root);
        if (const int error = s.run()) return error;
    }
    MPI_Count all = 0;
    for (size_t i = 0; i < size; i++) {
        places[i] = all;
        all += sizes[i];
    }
    std::string text(size_t(all), '\0');
    Schedule s(local);
    coll::gather(s, {own.data(), bytes, type_of(MPI_BYTE)},
                 {text.data(), {sizes.data(), size}, {places.data(), size}, 0, type_of(MPI_BYTE), true}, root);
    if (const int error = s.run()) return error;
    for (size_t i = 0; i < size; i++) members->push_back(text.substr(size_t(places[i]), size_t(sizes[i])));
    return MPI_SUCCESS;
}

// The roots' exchange. On success *theirs is what the other side has said and *secret is complete.
int exchange_sides(Side mine, const std::function<int(RootLink*)>& reach, bool again, RootLink* link,
                   std::string* theirs) {
    if (::getrandom(mine.half.data(), mine.half.size(), 0) != ssize_t(mine.half.size())) return MPI_ERR_OTHER;
    const std::string text = text_of(mine);
    for (;;) {
        if (const int error = reach(link)) return error;
        const int error = link->swap(text, theirs);
        if (error != MPI_SUCCESS && again) continue;
        if (error != MPI_SUCCESS) return error;
        const auto side = read_side(*theirs);
        if (!side) return MPI_ERR_INTERN;
        for (size_t i = 0; i < link->secret.size(); i++)
            link->secret[i] = static_cast<unsigned char>(link->secret[i] ^ mine.half[i] ^ side->half[i]);
        return MPI_SUCCESS;
    }
}

// The members of the other side as processes of this one, the same answer at every process of this side.
int learn_members(Communicator& local, const Side& theirs, const JobSecret& secret, std::vector<int>* members) {
    int64_t error = meet_processes(theirs.members, secret, members);
    for (const int process : *members)
        if (local.local->rank_of(process) != MPI_UNDEFINED) error = MPI_ERR_COMM;
    Schedule s(local);
    coll::allreduce_within(s, &error, 1, *type_of(MPI_INT64_T), *op_of(MPI_MAX));
    const int failed = s.run();
    return failed != MPI_SUCCESS ? failed : int(error);
}

}  // namespace

int meet(Communicator& local, int root, const std::function<int(RootLink*)>& reach, bool again, Communicator** made) {
    *made = nullptr;
    Side mine;
    if (const int error = gather_introductions(local, root, &mine.members)) return error;
    struct Head {
        int64_t error;
        uint64_t bytes;
        uint64_t context;
        JobSecret secret;
    } head = {};
    RootLink link;
    std::string text;
    if (local.rank == root) {
        mine.context = head.context = new_context();
        head.error = exchange_sides(mine, reach, again, &link, &text);
        head.bytes = text.size();
        head.secret = link.secret;
    }
    if (const int error = tell_side(local, &head, 1, root)) return error;
    if (head.error != MPI_SUCCESS) return int(head.error);
    text.resize(head.bytes);
    if (const int error = tell_side(local, text.data(), text.size(), root)) return error;

    const auto theirs = read_side(text);
    std::vector<int> members;
    int64_t error = theirs ? learn_members(local, *theirs, head.secret, &members) : MPI_ERR_INTERN;
    if (local.rank == root) {
        std::string told;
        const int swapped = link.swap(std::to_string(error), &told);
        if (swapped != MPI_SUCCESS)
            error = swapped;
        else if (error == MPI_SUCCESS && told != std::to_string(MPI_SUCCESS))
            error = MPI_ERR_OTHER;
    }
    if (const int failed = tell_side(local, &error, 1, root)) return failed;
    if (error != MPI_SUCCESS) return int(error);
    group_retain(local.local);
    *made = make_inter(local.local, new Group(members, world().rank), head.context, theirs->context, &local);
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
