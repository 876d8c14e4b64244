// SPDX-License-Identifier: BSD-2-Clause
// Finds the files that DPDK opens: compares the descriptors of the process before and after. Other threads of the
// program open files meanwhile, so only kinds that are DPDK's are taken.
#pragma once

#include <set>
#include <string>

namespace viaduct::acenic {

class FdSnapshot {
public:
    FdSnapshot();
    // Closes them in programs that are started: DPDK itself leaves them open.
    void close_on_exec() const;
    // The packet socket that has come since; -1: none has.
    int packet_socket() const;
    // The Unix socket that has come since and has called another one, as memif does; -1: none has, or several have.
    int calling_socket() const;

private:
    std::set<int> since() const;

    std::set<int> before_;
};

// The Unix socket of this process that listens under that name, a path or an abstract name; -1: none does. No snapshot
// decides: a file of another thread may have had its number at that moment.
int listening_socket(const std::string& name);
// The socket that memif's driver has accepted under that name; -1: it has accepted none, or several.
int accepted_socket(const std::string& name);

// Takes the file out of the epoll sets of this process. False: it was in none.
bool stop_watching(int fd);

}  // namespace viaduct::acenic
