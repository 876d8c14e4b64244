// SPDX-License-Identifier: BSD-2-Clause
// A thread is started when it is needed and ends when it has looked at all VIs, so that a process has none for
// this. It is not the event thread, because it may have to wait for an agent to start, and peers may die meanwhile.
#include "vipl/renewal.hpp"

#include <unistd.h>

#include <exception>
#include <mutex>
#include <vector>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "vipl/attempt.hpp"
#include "vipl/library.hpp"
#include "vipl/nic.hpp"
#include "vipl/thread.hpp"

namespace viaduct::vipl {
namespace {

// Of Library::renewal.
enum : uint32_t { kIdle, kRunning, kOnceMore };

// A thread that has a NIC's mutex may be waiting for an agent, and with it for the list of open NICs: that list is left
// before the mutex is taken.
std::vector<Vi*> vis_of(Library& library) {
    std::vector<Nic*> nics;  // their memory stays (vipl/pool.hpp)
    library.for_each_open([&](Nic& nic) { nics.push_back(&nic); });
    std::vector<Vi*> vis;
    for (Nic* nic : nics) {
        const NicPin pin(*nic);  // one at a time: a NIC that is being closed waits for its pins
        if (!pin) continue;
        const std::lock_guard lock(nic->mutex);
        vis.insert(vis.end(), nic->vis.begin(), nic->vis.end());
    }
    std::erase(vis, nullptr);
    return vis;
}

// A VI may be destroyed meanwhile, and its memory be that of another one: then that one is looked at. False: there was
// no agent, or one that did not read, or no memory; a request may not have been sent.
bool renew_all(Library& library) try {
    if (library.link.connect() != Status::ok) return false;
    bool all_sent = true;
    for (Vi* vi : vis_of(library)) {
        if (library.link.connect() != Status::ok) return false;
        const int64_t begun = now_ns();
        renew_attempt(*vi);
        all_sent = all_sent && now_ns() - begun < limit_ns(TimeLimit::agent_quick_look);
    }
    return all_sent;
} catch (const std::exception&) {
    return false;
}

// A few times; then the program's next call tells why it does not work.
void renew_until_sent(Library& library) {
    constexpr int kLooks = 3;
    for (int look = 0; look < kLooks && library.peer_requests.load() != 0; ++look) {
        if (look != 0) ::usleep(1'000'000);
        if (renew_all(library)) return;
    }
}

void run(void* argument) {
    Library& library = *static_cast<Library*>(argument);
    uint32_t state;
    do {
        library.renewal.store(kRunning);
        renew_until_sent(library);
        state = kRunning;
    } while (!library.renewal.compare_exchange_strong(state, kIdle));
}

}  // namespace

bool renew_peer_requests(Library& library) {
    if (library.peer_requests.load() == 0 || library.renewal.exchange(kOnceMore) != kIdle) return true;
    if (start_thread("vipl-renewal", kSmallStack, run, &library) == Status::ok) return true;
    library.renewal.store(kIdle);
    return false;
}

}  // namespace viaduct::vipl
