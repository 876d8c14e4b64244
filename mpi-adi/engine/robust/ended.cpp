// SPDX-License-Identifier: BSD-2-Clause
// See ended.hpp.
#include "mpi-adi/engine/robust/ended.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/robust/agreement.hpp"
#include "mpi-adi/engine/robust/control.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi::robust {
namespace {

constexpr size_t kMost = 256;

struct Ended {
    uint64_t context;  // that it received with
    mpip_comm control;
    Decisions decisions;
};

NeverDestroyed<std::deque<Ended>> all_ended;
NeverDestroyed<std::vector<uint64_t>> held;

const Ended* find(uint64_t context) {
    for (const Ended& one : *all_ended)
        for (const uint64_t added : kContextOf)
            if ((context ^ added) == one.context) return &one;
    return nullptr;
}

void remember(Comm& comm, const Decisions& decisions) {
    if (find(comm.recv_context) != nullptr) return;
    if (all_ended->size() == kMost) all_ended->pop_front();
    all_ended->push_back({comm.recv_context, comm.channels[unsigned(Channel::control)], decisions});
}

}  // namespace

void remember_ended(Comm& comm) {
    const Decisions decisions = comm.robust != nullptr ? decisions_of(*comm.robust) : Decisions();
    remember(comm, decisions);
    if (comm.inter) remember(*static_cast<Communicator&>(comm).within, decisions);
}

bool is_ended(uint64_t context) { return !all_ended->empty() && find(context) != nullptr; }

void came_late(process_t* from, uint64_t context, const envelope& message, const void* data) {
    const Ended& one = *find(context);
    if ((context ^ kContextOf[unsigned(Channel::control)]) != one.context) return;
    const auto kind = Control(message.ev_tag);
    if (kind != Control::vote && kind != Control::question) return;
    const uint32_t instance = instance_of(static_cast<const char*>(data), size_t(message.ev_len));
    for (const Decision& decision : one.decisions)
        if (decision.instance == instance) send_control(*from, one.control, Control::decision, decision.bytes);
}

void hold_for_later(uint64_t context) {
    held->push_back(context);
    start_watch();
}

bool see_to_held() {
    if (held->empty()) return false;
    for (const uint64_t context : std::exchange(*held, {})) {
        const auto found = engine.matchers.find(context);
        if (found == engine.matchers.end()) continue;
        Matcher& matcher = *found->second;
        if (Comm* const owner = matcher.owner()) {
            take_kept_control(static_cast<Communicator&>(*owner));
            continue;
        }
        while (Unexpected* const message = matcher.first_message()) {
            matcher.remove(message);
            dismiss(message);
        }
        erase_matcher(context);
    }
    return true;
}

bool has_held() { return !held->empty(); }

}  // namespace viaduct::mpi::robust
