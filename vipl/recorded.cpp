// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/recorded.hpp"

#include <atomic>
#include <optional>

#include "core/log/log.hpp"
#include "vipl/nic.hpp"
#include "vipl/vi.hpp"

namespace viaduct::vipl {
namespace {

std::atomic<uint64_t> ordered_over{0};  // epoch of the agent's connection, and 1; 0: not by order of an agent

// Orders have numbers, from 1, as they come.
std::atomic<uint64_t> orders{0};
std::atomic<uint64_t> orders_over{0};  // the last one that is over, and all before it
std::atomic<uint64_t> carried_out{0};  // the one that ordered_over belongs to

// The NIC at that place of the list of open ones.
std::optional<NicPin> pin_open(Library& library, size_t place) {
    std::optional<NicPin> pin;
    library.for_each_open([&](Nic& nic) {
        if (place-- == 0) pin.emplace(nic);
    });
    return pin;
}

// Hot calls find each queue open to them or not, as it is now. `tell`: connections that are there are told. Needs no
// memory: what is begun here is ended here, too. The last NIC first: one may be closed meanwhile.
void look_at_queues(Library& library, bool tell) {
    const auto look = [tell](Nic& nic, Vi& vi) {
        const BothQueues both(vi.core);
        if (vi.nic != &nic || vi.handle.load() == 0) return;  // it may have been destroyed meanwhile
        vi.set_state(vi.state());
        if (!tell || vi.state() != VIP_STATE_CONNECTED) return;
        trace::add(What::connection, Phase::instant, vi.public_handle(), vi.marks);
        trace::add(What::made, Phase::instant, vi.public_handle(),
                   static_cast<uint64_t>(vi.core.stats.changed_at.load()));
    };
    size_t left = 0;
    library.for_each_open([&](Nic&) { ++left; });
    while (left-- != 0) {
        const std::optional<NicPin> pin = pin_open(library, left);
        if (!pin || !*pin) continue;
        Nic& nic = **pin;
        for_each_vi(nic, [&](Vi& vi) { look(nic, vi); });
    }
}

void end_recording(Library& library) {
    if (ordered_over.exchange(0) == 0) return;
    trace::end();
    look_at_queues(library, false);
    trace::free_memory();
}

}  // namespace

uint64_t number_recording() { return ++orders; }

void note_recording_over() { orders_over = orders.load(); }

void begin_recording(Library& library, int memory, uint64_t epoch, uint64_t number) {
    end_recording(library);  // the agent gives an order when the one before is over
    if (number <= orders_over) return;
    if (!trace::begin(memory)) {
        VIADUCT_LOG(warn, "trace",
                    "viptrace cannot record this process: it is recorded already, or the memory is none");
        return;
    }
    carried_out = number;
    ordered_over = epoch + 1;
    look_at_queues(library, true);
}

void look_at_recording(Library& library) {
    const uint64_t over = ordered_over.load(std::memory_order_relaxed);
    if (over != 0 && (carried_out <= orders_over || library.link.epoch() + 1 != over || library.link.socket() < 0))
        end_recording(library);
}

void clear_recording() {
    ordered_over = 0;
    trace::reset_after_fork();
}

}  // namespace viaduct::vipl
