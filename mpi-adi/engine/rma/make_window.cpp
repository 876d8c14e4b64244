// SPDX-License-Identifier: BSD-2-Clause
// Making windows: the members tell each other where theirs lie; those on one host share the memory of allocated ones,
// and reach that of others by system calls.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/rma/target.hpp"
#include "mpi-adi/engine/rma/window.hpp"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/adi/params.hpp"

namespace viaduct::mpi::rma {
namespace {

// What each member tells the others. Members of equal host and user can share memory.
struct Card {
    uint64_t context;  // of the first member: for the communicator of the window
    uint64_t host;
    uint32_t user;
    int32_t disp_unit;
    MPI_Aint base;
    MPI_Aint size;
    int32_t apart;  // parts of shared memory need not follow each other
    int32_t refused;
};

template <typename T>
int collect(Communicator& comm, const T& own, std::vector<T>* all) {
    all->resize(static_cast<size_t>(comm.size));
    const Datatype& bytes = *type_of(MPI_BYTE);
    Schedule s(comm);
    coll::allgather(s, {&own, sizeof(T), &bytes}, {all->data(), {}, {}, sizeof(T), &bytes});
    return s.run();
}

// A window known to all members, with what they said of theirs.
int agree(Communicator& comm, int flavor, void* base, MPI_Aint size, int disp_unit, int refused, const Info* hints,
          std::unique_ptr<Window>* made, std::vector<Card>* cards) {
    auto window = std::make_unique<Window>();
    if (hints != nullptr) win_set_hints(*window, *hints);
    Card own{};
    if (comm.rank == 0) own.context = new_context();
    own.host = adi::host_number("pid");
    own.user = static_cast<uint32_t>(::geteuid());
    own.disp_unit = disp_unit;
    own.base = static_cast<MPI_Aint>(reinterpret_cast<intptr_t>(base));
    own.size = size;
    own.apart = window->hints["alloc_shared_noncontig"] == "true" ? 1 : 0;
    own.refused = refused;
    if (const int error = collect(comm, own, cards)) return error;
    if (refused != MPI_SUCCESS) return refused;
    for (const Card& card : *cards)
        if (card.refused != MPI_SUCCESS) return card.refused;

    group_retain(comm.local);
    window->comm = make_intra(comm.local, cards->front().context, &comm, true);
    window->comm->fails_as_one = true;
    window->flavor = flavor;
    window->base = base;
    window->size = size;
    window->disp_unit = disp_unit;
    window->members.resize(cards->size());
    window->group = static_cast<unsigned>(cards->size());
    for (size_t i = 0; i < cards->size(); i++) {
        const Card& card = (*cards)[i];
        Member& member = window->members[i];
        member.base = card.base;
        member.size = card.size;
        member.disp_unit = card.disp_unit;
    }
    window->target = std::make_unique<Target>(*window);
    *made = std::move(window);
    return MPI_SUCCESS;
}

void reach_oneself(Window& window) {
    window.self().direct = static_cast<char*>(window.base);
    window.self().base = static_cast<MPI_Aint>(reinterpret_cast<intptr_t>(window.base));
}

// The members that share memory with this one, in the order of ranks.
std::vector<int> neighbours(const std::vector<Card>& cards, int own) {
    std::vector<int> found;
    const Card& mine = cards[static_cast<size_t>(own)];
    for (size_t rank = 0; rank < cards.size(); rank++)
        if (cards[rank].host == mine.host && cards[rank].user == mine.user)
            found.push_back(static_cast<int>(rank));
    return found;
}

// What a process says that its neighbours need to reach it.
struct Offer {
    int32_t pid;
    int32_t fd;
    MemoryMark mark;
};

// Memory with a line for each neighbour and parts of these sizes, which all of them have mapped. MPI_ERR_NO_MEM, for
// all of them, when one of them does not get it, or does not find what `reach` looks for in the offers.
template <typename Reach>
int meet(Window& window, const std::vector<int>& near, const std::vector<int64_t>& sizes, bool apart, bool wanted,
         Reach&& reach) {
    auto region = std::make_unique<SharedRegion>(sizes, apart);
    const bool makes = near.front() == window.comm->rank;
    Offer own{static_cast<int32_t>(::getpid()), -1, own_memory_mark()};
    if (wanted && makes && region->create()) own.fd = region->fd();
    std::vector<Offer> offers;
    if (const int error = collect(*window.comm, own, &offers)) return error;
    const Offer& offer = offers[static_cast<size_t>(near.front())];
    const bool mapped = offer.fd >= 0 && (makes || region->open(offer.pid, offer.fd));
    const int32_t good = wanted && mapped && reach(offers) ? 1 : 0;
    std::vector<int32_t> all_good;
    if (const int error = collect(*window.comm, good, &all_good)) return error;
    for (const int rank : near)
        if (all_good[static_cast<size_t>(rank)] == 0) return MPI_ERR_NO_MEM;
    region->drop_fd();
    for (size_t i = 0; i < near.size(); i++) window.member(near[i]).line = &region->line(i);
    window.region = std::move(region);
    return MPI_SUCCESS;
}

// Memory of the neighbours' windows that all of them have mapped.
int share(Window& window, const std::vector<Card>& cards, const std::vector<int>& near, bool apart) {
    std::vector<int64_t> sizes;
    for (const int rank : near) sizes.push_back(cards[static_cast<size_t>(rank)].size);
    const auto reach = [](const std::vector<Offer>&) { return true; };
    if (const int error = meet(window, near, sizes, apart, true, reach)) return error;
    for (size_t i = 0; i < near.size(); i++) {
        Member& member = window.member(near[i]);
        member.direct = window.region->part(i);
        member.shared = true;
    }
    window.base = window.self().direct;
    return MPI_SUCCESS;
}

// Whether system calls reach the whole window, as far as its ends tell.
bool reaches(const ForeignMemory& memory, const Member& member) {
    if (memory.probe() != ForeignMemory::Result::ok) return false;
    if (member.size == 0) return true;
    char ends[2];
    char* const base = reinterpret_cast<char*>(member.base);
    const iovec both[] = {{base, 1}, {base + member.size - 1, 1}};
    return memory.read(ends, both) == ForeignMemory::Result::ok;
}

// Windows of memory of the program: the neighbours reach it by system calls where all of them may; else by messages.
int reach_program_memory(Window& window, const std::vector<Card>& cards) {
    if (cards.size() == 1) return MPI_SUCCESS;
    const int own = window.comm->rank;
    const std::vector<int> near = neighbours(cards, own);
    const bool wanted = near.size() > 1 && std::strcmp(adi::param_text(adi::Param::window_access), "direct") == 0;
    std::vector<std::unique_ptr<Foreign>> found;
    const auto reach = [&](const std::vector<Offer>& offers) {
        for (const int rank : near) {
            const Offer& offer = offers[static_cast<size_t>(rank)];
            auto foreign = std::make_unique<Foreign>();
            foreign->memory = ForeignMemory(offer.pid, offer.mark);
            if (rank != own && !reaches(foreign->memory, window.member(rank))) return false;
            found.push_back(std::move(foreign));
        }
        return true;
    };
    const int error = meet(window, near, std::vector<int64_t>(near.size(), 0), false, wanted, reach);
    if (error == MPI_ERR_NO_MEM) return MPI_SUCCESS;
    if (error != MPI_SUCCESS) return error;
    for (size_t i = 0; i < near.size(); i++)
        if (near[i] != own) window.member(near[i]).foreign = std::move(found[i]);
    window.all_direct = near.size() == cards.size();
    return MPI_SUCCESS;
}

int allocate_alone(Window& window) {
    constexpr size_t kPage = 4096;
    const size_t bytes = (static_cast<size_t>(window.size) + kPage - 1) / kPage * kPage;
    window.own_memory = std::aligned_alloc(kPage, bytes == 0 ? kPage : bytes);
    if (window.own_memory == nullptr) return MPI_ERR_NO_MEM;
    std::memset(window.own_memory, 0, bytes);
    window.base = window.own_memory;
    return MPI_SUCCESS;
}

}  // namespace

int win_create(Communicator& comm, void* base, MPI_Aint size, int disp_unit, int refused, const Info* hints,
               Window** made) {
    std::unique_ptr<Window> window;
    std::vector<Card> cards;
    if (const int error = agree(comm, MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, refused, hints, &window, &cards))
        return error;
    reach_oneself(*window);
    if (const int error = reach_program_memory(*window, cards)) return error;
    *made = window.release();
    return MPI_SUCCESS;
}

int win_create_dynamic(Communicator& comm, int refused, const Info* hints, Window** made) {
    std::unique_ptr<Window> window;
    std::vector<Card> cards;
    if (const int error = agree(comm, MPI_WIN_FLAVOR_DYNAMIC, nullptr, 0, 1, refused, hints, &window, &cards))
        return error;
    if (const int error = reach_program_memory(*window, cards)) return error;
    *made = window.release();
    return MPI_SUCCESS;
}

int win_allocate(Communicator& comm, MPI_Aint size, int disp_unit, int refused, const Info* hints, bool shared,
                 Window** made) {
    std::unique_ptr<Window> window;
    std::vector<Card> cards;
    const int flavor = shared ? MPI_WIN_FLAVOR_SHARED : MPI_WIN_FLAVOR_ALLOCATE;
    if (const int error = agree(comm, flavor, nullptr, size, disp_unit, refused, hints, &window, &cards)) return error;
    const std::vector<int> near = neighbours(cards, window->comm->rank);
    const bool all_near = near.size() == cards.size();
    if (shared && !all_near) return MPI_ERR_RMA_SHARED;
    bool apart = !shared;
    if (shared) {
        apart = true;
        for (const Card& card : cards) apart = apart && card.apart != 0;
    }
    struct Result {
        MPI_Aint base;
        int32_t error;
        int32_t sharing;
    };
    Result own{};
    own.error = share(*window, cards, near, apart);
    own.sharing = own.error == MPI_SUCCESS ? 1 : 0;
    if (!shared && own.error == MPI_ERR_NO_MEM) own.error = allocate_alone(*window);
    own.base = static_cast<MPI_Aint>(reinterpret_cast<intptr_t>(window->base));
    std::vector<Result> results;
    if (const int error = collect(*window->comm, own, &results)) return error;
    bool all_share = all_near;
    for (size_t i = 0; i < results.size(); i++) {
        if (results[i].error != MPI_SUCCESS) return results[i].error;
        window->members[i].base = results[i].base;
        all_share = all_share && results[i].sharing != 0;
    }
    window->all_direct = all_share;
    reach_oneself(*window);
    *made = window.release();
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi::rma
