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
    // The socket that has come since and listens at that path; -1: none does.
    int listening_socket(const std::string& path) const;

private:
    std::set<int> since() const;

    std::set<int> before_;
};

}  // namespace viaduct::acenic
