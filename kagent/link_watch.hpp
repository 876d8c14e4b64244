// SPDX-License-Identifier: BSD-2-Clause
// Hears from the kernel that some network interface has changed. What has changed is asked anew
// (Devices::look). Used by Server on the agent's one thread.
#pragma once

#include <memory>
#include <string>

struct nl_sock;

namespace viaduct::kagent {

class LinkWatch {
public:
    // Empty when it hears from now on, else why not.
    std::string open();
    int fd() const;  // readable when something has changed
    void drain();    // forgets what has been heard

private:
    struct Free {
        void operator()(nl_sock* s) const;
    };
    std::unique_ptr<nl_sock, Free> socket_;
};

}  // namespace viaduct::kagent
