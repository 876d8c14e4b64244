// SPDX-License-Identifier: BSD-2-Clause
// When memory of the program in another process may be accessed by system calls. Memory is part of a window from
// MPI_Win_create to MPI_Win_free. Members free a window together, and no operation is under way then. After the end of
// a member they do not meet: one frees its window while another one, which does not know of the end yet, begins an
// operation on it. So each member says in shared memory which one's memory it is accessing, and one that frees its
// window alone says so, and returns when no access to its memory is under way.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct::mpi::rma {

struct Member;
struct Window;

// One member's, written by it alone, read by its neighbours. Sequentially consistent: of an access that begins and a
// window that ends at the same time, at least one sees the other.
struct ForeignAccessWords {
    std::atomic<uint32_t> target{0};  // 1 + the number of the line of the member whose memory is accessed; 0: none
    std::atomic<uint32_t> is_over{0};  // 1: the memory is no window any more
};

// An access of this process to memory of that member, which has `foreign`. The engine's lock is held.
class ForeignScope {
public:
    explicit ForeignScope(const Member& member);
    ~ForeignScope();
    ForeignScope(const ForeignScope&) = delete;
    ForeignScope& operator=(const ForeignScope&) = delete;

    // MPI_SUCCESS; or MPIX_ERR_PROC_FAILED: the member has freed its window, after the end of another one. The window
    // has noted it.
    int error() const { return error_; }

private:
    std::atomic<uint32_t>& target_;
    int error_;
};

// Ends the access of neighbours to this process' memory, at MPI_Win_free without the others. Waits for each access that
// is under way, unless its process has ended.
void end_foreign_access(const Window& window);

}  // namespace viaduct::mpi::rma
