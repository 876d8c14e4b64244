// SPDX-License-Identifier: BSD-2-Clause
// One process of a job for launchers_test.py: exchanges cards with all others and prints what it learned;
// with "abort CODE", rank 1 aborts the job while the others wait in a fence; with "leave CODE" it goes
// without a word.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi-adi/rte/rte.hpp"

namespace {

// Longer than a PMI-1 value, with all byte values in it.
std::string card_of(int rank) {
    std::string card(1500 + static_cast<size_t>(rank), 0);
    for (size_t i = 0; i < card.size(); i++) card[i] = static_cast<char>(i * 3 + static_cast<size_t>(rank));
    return card;
}

int complain(viaduct::rte::Runtime& job, const char* what) {
    std::fprintf(stderr, "rank %d: %s: %s\n", job.rank(), what, job.error().c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    // mpiexec waits until all processes have closed its pipes: a rank must not stay when the launcher has ended.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::string error;
    const auto job = viaduct::rte::join(&error);
    if (job == nullptr) {
        std::fprintf(stderr, "%s\n", error.c_str());
        return 1;
    }
    if (!job->put("card", card_of(job->rank()))) return complain(*job, "put");
    if (!job->fence()) return complain(*job, "fence");
    for (int rank = 0; rank < job->size(); rank++)
        if (job->get(rank, "card") != card_of(rank)) return complain(*job, "get");
    if (job->get(0, "nothing")) return complain(*job, "a value that was not published");

    if (argc == 3 && job->rank() == 1) {
        if (std::strcmp(argv[1], "leave") == 0) ::_exit(std::atoi(argv[2]));
        job->abort(std::atoi(argv[2]), "asked to");
    }
    if (argc == 3) {
        (void)job->fence();
        ::pause();  // the launcher ends this process
    }
    std::string line = std::string(job->name()) + " rank " + std::to_string(job->rank()) + " of " +
                       std::to_string(job->size()) + " nodes";
    for (const int node : job->nodes()) line += " " + std::to_string(node);
    std::puts(line.c_str());
    if (!job->finalize()) return complain(*job, "finalize");
    return 0;
}
