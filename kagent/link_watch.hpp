// SPDX-License-Identifier: BSD-2-Clause
// Reports from the kernel that some network interface or address has come, changed or vanished. Their contents are
// dropped: Devices::look and NicInquiries read the state. Used by Server on the agent's one thread.
#pragma once

#include <memory>
#include <string>

struct nl_sock;

namespace viaduct::kagent {

class LinkWatch {
public:
    // Opens the socket. Empty: reports come from this call on; else why not.
    std::string open();
    int fd() const;  // readable when something has changed
    // Drops the reports that have come, a bounded number: after a call the descriptor may be readable still.
    void drain();

private:
    struct Free {
        void operator()(nl_sock* s) const;
    };
    std::unique_ptr<nl_sock, Free> socket_;
};

}  // namespace viaduct::kagent
