// SPDX-License-Identifier: BSD-2-Clause
// Making windows: the members tell each other where theirs lie; those on one host share the memory of allocated ones,
// and reach that of others by system calls.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/rma/target.hpp"
#include "mpi-adi/engine/rma/window.hpp"
#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/adi/params.hpp"

namespace viaduct::mpi::rma {
namespace {

// What CMPI_WINDOW_ACCESS lets this process use beside messages.
enum class Access : int32_t { direct, nic, messages };

Access access_wanted() {
    const char* const text = adi::param_text(adi::Param::window_access);
    return std::strcmp(text, "direct") == 0 ? Access::direct
           : std::strcmp(text, "nic") == 0  ? Access::nic
                                            : Access::messages;
}

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
    Access access;
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
    own.access = access_wanted();
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
    MemoryOffer region;
    MemoryMark mark;  // of the process itself
    int64_t pid;
};

// Memory with a line for each neighbour and parts of these sizes, which all of them have mapped. MPI_ERR_NO_MEM, for
// all of them, when one of them does not get it, or does not find what `reach` looks for in the offers.
template <typename Reach>
int meet(Window& window, const std::vector<int>& near, const std::vector<int64_t>& sizes, bool apart, bool wanted,
         Reach&& reach) {
    auto region = std::make_unique<SharedRegion>(sizes, apart);
    const bool makes = near.front() == window.comm->rank;
    Offer own{{}, own_memory_mark(), ::getpid()};
    if (wanted && makes && !region->create(&own.region)) own.region = {};
    std::vector<Offer> offers;
    if (const int error = collect(*window.comm, own, &offers)) return error;
    const Offer& offer = offers[static_cast<size_t>(near.front())];
    const bool mapped = offer.region.mark != 0 && (makes || region->open(offer.region));
    if (mapped) {
        for (size_t i = 0; i < near.size(); i++) window.member(near[i]).line = &region->line(i);
        window.region = std::move(region);
    }
    const int32_t good = wanted && mapped && reach(offers) ? 1 : 0;
    std::vector<int32_t> all_good;
    if (const int error = collect(*window.comm, good, &all_good)) return error;
    for (const int rank : near) {
        if (all_good[static_cast<size_t>(rank)] != 0) continue;
        for (const int other : near) window.member(other).line = nullptr;
        window.region.reset();
        return MPI_ERR_NO_MEM;
    }
    window.region->drop_fd();
    return MPI_SUCCESS;
}

// Memory of the neighbours' windows that all of them have mapped.
int share(Window& window, const std::vector<Card>& cards, const std::vector<int>& near, bool apart) {
    std::vector<int64_t> sizes;
    sizes.reserve(near.size());
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
    const bool wanted = near.size() > 1 && access_wanted() == Access::direct;
    const auto reach = [&](const std::vector<Offer>& offers) {
        for (const int rank : near) {
            if (rank == own) continue;
            const Offer& offer = offers[static_cast<size_t>(rank)];
            Member& member = window.member(rank);
            member.foreign =
                std::make_unique<Foreign>(window, ForeignMemory(static_cast<int>(offer.pid), offer.mark));
            if (!reaches(member.foreign->memory, member)) return false;
        }
        return true;
    };
    const int error = meet(window, near, std::vector<int64_t>(near.size(), 0), false, wanted, reach);
    if (error == MPI_ERR_NO_MEM) {
        for (const int rank : near) window.member(rank).foreign.reset();
        return MPI_SUCCESS;
    }
    window.all_direct = error == MPI_SUCCESS && near.size() == cards.size();
    return error;
}

bool has_direct_access(const Member& member) { return member.direct != nullptr || member.foreign != nullptr; }

// The module that reaches memory of members whose memory this process has no other way to; null: none does.
struct protocol* module_for_memory(Window& window) {
    if (access_wanted() == Access::messages) return nullptr;
    for (int rank = 0; rank < window.group_size(); rank++) {
        if (rank == window.comm->rank || has_direct_access(window.member(rank))) continue;
        struct protocol* const module = window.comm->peers[rank]->p_proto;
        if (module != nullptr && module->pt_expose != nullptr) return module;
    }
    return nullptr;
}

// Words of this window are changed by atomic operations alone: of processors that have mapped it, or of NICs. Not where
// neighbours change them by system calls. A word for its lock, where no neighbour shares one.
bool opens_words(Window& window, struct protocol& module) {
    if ((module.pt_prop.mp_flags & MPIP_PROP_WORDS) == 0) return false;
    Member& self = window.self();
    if (self.line != nullptr) return self.shared;
    window.own_line = std::make_unique<MemberLine>();
    self.line = window.own_line.get();
    self.shared = true;
    return true;
}

// Members tell each other what of their windows is open to NICs. A NIC that cannot read, and does not say when a put
// has arrived, cannot be flushed.
int reach_by_nic(Window& window, const std::vector<Card>& cards, size_t near) {
    bool wanted = near != cards.size();
    for (const Card& card : cards) wanted = wanted || card.access == Access::nic;
    if (!wanted) return MPI_SUCCESS;
    struct Open {
        int32_t module;  // number of its table; below 0: nothing is open
        int32_t words;
        mpip_region region;
        mpip_region lock;
    };
    Open own{-1, 0, {}, {}};
    if (struct protocol* const module = module_for_memory(window)) {
        window.exposed_memory =
            std::make_unique<Exposed>(*module, window.base, static_cast<size_t>(window.size));
        if (window.exposed_memory->is_open()) {
            own.module = module->pt_number;
            own.region = window.exposed_memory->region();
            own.words = opens_words(window, *module) ? 1 : 0;
        }
        if (own.words != 0) {
            window.exposed_lock =
                std::make_unique<Exposed>(*module, &window.self().line->lock, sizeof(LockWord));
            if (window.exposed_lock->is_open()) own.lock = window.exposed_lock->region();
        }
    }
    std::vector<Open> all;
    if (const int error = collect(*window.comm, own, &all)) return error;
    if (access_wanted() == Access::messages) return MPI_SUCCESS;
    for (int rank = 0; rank < window.group_size(); rank++) {
        Member& member = window.member(rank);
        const Open& open = all[static_cast<size_t>(rank)];
        if (rank == window.comm->rank || has_direct_access(member) || open.module < 0) continue;
        const struct protocol* const module = window.comm->peers[rank]->p_proto;
        if (module == nullptr || module->pt_access == nullptr || module->pt_number != open.module) continue;
        const unsigned can = module->pt_prop.mp_flags;
        if ((can & (MPIP_PROP_GET | MPIP_PROP_PLACED)) == 0) continue;
        member.remote = std::make_unique<Remote>();
        member.remote->memory = open.region;
        member.remote->placed = (can & MPIP_PROP_PLACED) != 0;
        member.remote->words = open.words != 0 && (can & MPIP_PROP_WORDS) != 0;
        if (member.remote->words) member.remote->lock = open.lock;
    }
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

// Where a member's end lets one call fail and another one succeed, the memory of those that failed is no window.
int finish(std::unique_ptr<Window> window, int error, Window** made) {
    if (error == MPI_SUCCESS)
        *made = window.release();
    else
        end_foreign_access(*window);
    return error;
}

}  // namespace

int win_create(Communicator& comm, void* base, MPI_Aint size, int disp_unit, int refused, const Info* hints,
               Window** made) {
    std::unique_ptr<Window> window;
    std::vector<Card> cards;
    if (const int error = agree(comm, MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, refused, hints, &window, &cards))
        return error;
    reach_oneself(*window);
    int error = reach_program_memory(*window, cards);
    const size_t near = neighbours(cards, window->comm->rank).size();
    if (error == MPI_SUCCESS) error = reach_by_nic(*window, cards, near);
    return finish(std::move(window), error, made);
}

int win_create_dynamic(Communicator& comm, int refused, const Info* hints, Window** made) {
    std::unique_ptr<Window> window;
    std::vector<Card> cards;
    if (const int error = agree(comm, MPI_WIN_FLAVOR_DYNAMIC, nullptr, 0, 1, refused, hints, &window, &cards))
        return error;
    const int error = reach_program_memory(*window, cards);
    return finish(std::move(window), error, made);
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
    if (const int error = reach_by_nic(*window, cards, near.size())) return error;
    *made = window.release();
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi::rma
