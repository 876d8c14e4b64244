// SPDX-License-Identifier: BSD-2-Clause
// See foreign_scope.hpp.
#include "mpi-adi/engine/rma/foreign_scope.hpp"

#include <algorithm>

#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi::rma {
namespace {

uint32_t target_number(const Window& window, const MemberLine& line) {
    return static_cast<uint32_t>(&line - &window.region->line(0)) + 1;
}

}  // namespace

ForeignScope::ForeignScope(const Member& member)
    : target_(member.foreign->window.self().line->accesses.target), error_(MPI_SUCCESS) {
    Window& window = member.foreign->window;
    target_.store(target_number(window, *member.line));
    if (member.line->accesses.is_over.load() == 0) [[likely]]
        return;
    window.found_ended.store(true, std::memory_order_relaxed);
    error_ = MPIX_ERR_PROC_FAILED;
}

ForeignScope::~ForeignScope() { target_.store(0, std::memory_order_release); }

void end_foreign_access(const Window& window) {
    const auto is_reached = [](const Member& member) { return member.foreign != nullptr; };
    const auto& members = window.members;
    if (std::none_of(members.begin(), members.end(), is_reached)) return;
    MemberLine& own = *members[static_cast<size_t>(window.comm->rank)].line;
    own.accesses.is_over.store(1);
    const uint32_t number = target_number(window, own);
    const auto accesses_own = [&](const Member& member) {
        return is_reached(member) && member.line->accesses.target.load() == number &&
               member.foreign->memory.probe() != ForeignMemory::Result::ended;
    };
    wait_for_memory(window, [&] { return std::none_of(members.begin(), members.end(), accesses_own); });
}

}  // namespace viaduct::mpi::rma
