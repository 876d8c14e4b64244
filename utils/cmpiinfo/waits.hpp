// SPDX-License-Identifier: BSD-2-Clause
// What the processes of MPI jobs on this host wait for, as they show it (mpi-adi/engine/wait_page.hpp), and which of
// them wait for each other in a circle.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace viaduct::cmpiinfo {

struct WaitView {
    std::string what;  // receive, send, probe, collective, window, finalize, other
    double seconds = 0;
    bool any = false;        // one of the peers is enough
    std::vector<int> peers;  // ranks of the job; -1: a process of another job
    bool more_peers = false;  // than are listed
    int tag = -2;            // below -1: none
    int64_t bytes = 0;
    std::string communicator, transport;
    uint32_t asks = 0;  // above 0: the program asks by itself (MPI_Test), so often by now
    uint64_t place = 0;  // a later wait of the same thread has another one
};

struct RankView {
    int rank = 0;
    pid_t pid = 0;
    std::string program;
    std::vector<WaitView> waits;  // of its threads; none: it computes, or waits for less than a moment
    // Passes of its waiting threads over all that may have come (WaitPage).
    uint32_t idle_passes = 0, moving_passes = 0;
    bool looks = true;  // false: it makes no passes, and may go on when it gets a processor
    // Threads of the program that may come to MPI and do what others wait for; those that wait are among them.
    size_t threads = 1;
};

struct JobWaits {
    uint32_t number = 0;
    int size = 0;
    std::vector<RankView> ranks;  // by rank; of those on this host that may be looked at
    // The ranks of a circle of waits, each for the next one; empty: none was found.
    std::vector<int> cycle;
    // All ranks that cannot go on by what the ranks on this host do.
    std::vector<int> stuck;
};

enum class Found { jobs, nothing, no_permission };
// The job of a process; 0: all of this user, or of all users for root.
Found look_at_jobs(pid_t pid, std::vector<JobWaits>* jobs);

// Keeps what was there in both looks: a wait that goes on; of a program that asks by itself where it has asked between
// them. Then finds the ranks that cannot go on, were nothing under
// way to them: Standstill tells whether that is so.
void keep_lasting(const std::vector<JobWaits>& before, std::vector<JobWaits>* now);
void find_deadlock(JobWaits* job);

// Proves a deadlock of one job by look after look. What a rank waits for may have come long ago, while the rank lies
// without a processor. So the ranks that seem stuck must all have made a whole pass and found nothing, and none of them
// may have moved anything meanwhile: then nothing has come for them. All that holds for two rounds in a row: a pass
// that lasts while the first one ends is over before the second one does, and is known to have moved nothing, too.
class Standstill {
public:
    // Finds the ranks of the job that seem stuck. True: it is proven that they are, or none is.
    bool proven_by(JobWaits* job);

private:
    struct Standing {
        pid_t pid;
        uint32_t moving_passes;
        std::vector<uint64_t> places;  // of its waits
        bool operator==(const Standing&) const = default;
    };
    void begin(std::vector<Standing> standing, std::vector<uint32_t> idle_passes);

    std::vector<Standing> standing_;  // of the ranks that seem stuck, at the begin of the round
    std::vector<uint32_t> idle_passes_;
    std::set<pid_t> without_processor_;
    int rounds_ = 0;
    int looks_ = 0;  // in this round
};

std::string text_of(const std::vector<JobWaits>& jobs);
std::string json_of(const std::vector<JobWaits>& jobs);

}  // namespace viaduct::cmpiinfo
