// SPDX-License-Identifier: BSD-2-Clause
// Reports from the kernel that some network interface has changed. What has changed is read anew
// (Devices::look). Used by Server on the agent's one thread.
#pragma once

#include <memory>
#include <string>

struct nl_sock;

namespace viaduct::kagent {

class LinkWatch {
public:
    // Empty when it works from now on, else why not.
    std::string open();
    int fd() const;  // readable when something has changed
    void drain();    // drops what has been reported

private:
    struct Free {
        void operator()(nl_sock* s) const;
    };
    std::unique_ptr<nl_sock, Free> socket_;
};

}  // namespace viaduct::kagent
