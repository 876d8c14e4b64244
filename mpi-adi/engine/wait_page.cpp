// SPDX-License-Identifier: BSD-2-Clause
// The writing side of wait_page.hpp.
#include "mpi-adi/engine/wait_page.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>

#include "core/clock/clock.hpp"
#include "core/shm/kept_fd.hpp"
#include "core/shm/own_mapping.hpp"
#include "core/shm/segment.hpp"
#include "mpi-adi/engine/communicator.hpp"

namespace viaduct::mpi {
namespace {

WaitPage* page = nullptr;
pid_t page_owner = 0;  // beside it: a forked child has the page no more

// Also in a child of _Fork(), which runs no handlers.
bool has_page() {
    if (page != nullptr && page_owner != ::getpid()) page = nullptr;
    return page != nullptr;
}

// Never closed: a program may leave from anywhere.
KeptFd& kept_page() {
    static auto* const kept = new KeptFd();
    return *kept;
}

WaitRecord* take_free_record() {
    for (WaitRecord& record : page->records) {
        uint32_t turn = record.turn.load(std::memory_order_relaxed);
        if ((turn & 1) == 0 && record.turn.compare_exchange_strong(turn, turn + 1)) return &record;
    }
    return nullptr;
}

}  // namespace

void open_wait_page() {
    if (page != nullptr) return;
    const int fd = above_stdio(::memfd_create(kWaitPageName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0) return;
    // A reader that may open it cannot shorten it, which would end this process by SIGBUS.
    const bool ready = set_size(fd, 4096) && ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    void* const memory = ready ? map_own(4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd) : nullptr;
    if (memory == nullptr) {
        ::close(fd);
        return;
    }
    ::madvise(memory, 4096, MADV_DONTFORK);
    auto* const made = new (memory) WaitPage{};
    made->pid = static_cast<uint32_t>(::getpid());
    made->rank = world().rank;
    made->size = world().size;
    made->number = world().numbers[0];
    kept_page() = KeptFd(Fd(fd));
    std::atomic_ref<uint64_t>(made->magic).store(kWaitPageMagic, std::memory_order_release);
    page_owner = ::getpid();
    page = made;
    static const int handled = ::pthread_atfork(nullptr, nullptr, [] { page = nullptr; });
    (void)handled;
}

void ShownWait::write(const Awaited& what) {
    if (!has_page()) return;
    WaitRecord* const record = take_free_record();
    if (record == nullptr) return;
    // A reader that comes now sees an odd turn and time 0: not written yet.
    std::atomic_ref<int64_t>(record->since).store(0, std::memory_order_release);
    record->kind = static_cast<uint32_t>(what.kind);
    record->context = what.context;
    record->bytes = what.bytes;
    record->tag = what.tag;
    record->any = what.any ? 1 : 0;
    record->count = what.count;
    record->threads = EngineLock::enabled() ? 1 : 0;
    std::copy_n(what.peers, std::min(what.count, kMostPeers), record->peers);
    std::snprintf(record->transport, sizeof record->transport, "%s", what.transport);
    std::snprintf(record->communicator, sizeof record->communicator, "%s", name_of_context(what.context).c_str());
    std::atomic_ref<int64_t>(record->since).store(now_ns(), std::memory_order_release);
    record_ = record;
}

// A child that was forked inside a wait has no record to end.
void ShownWait::end() {
    if (has_page()) record_->turn.fetch_add(1, std::memory_order_release);
}

// A reader that sees the count sees what was counted before it.
void ShownWait::count_idle_pass() {
    if (page != nullptr) page->idle_passes.fetch_add(1, std::memory_order_release);
}

void count_moving_pass() {
    if (page != nullptr) page->moving_passes.fetch_add(1, std::memory_order_release);
}

}  // namespace viaduct::mpi
