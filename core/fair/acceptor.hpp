// SPDX-License-Identifier: BSD-2-Clause
// How a server that many programs share accepts connections, also when it has no descriptor left. A connection that is
// not accepted keeps the listening socket readable. So a silent connection makes room for it; where there is none, the
// new one is accepted by a descriptor that is kept for this, and turned away; and where that does not come back, the
// listening socket is not watched for a while. One thread; no call waits.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "core/fair/pending_connections.hpp"
#include "core/shm/fd.hpp"

namespace viaduct::fair {

class Acceptor {
public:
    static constexpr int64_t kRest = 50'000'000;

    // `listener` does not block. It is watched in `epoll`, which outlives this object, with that data.
    Acceptor(Fd listener, int epoll, epoll_data_t data);

    enum class Next {
        none,        // no connection waits, or none can be accepted now
        connection,  // is in *out
        turn_away,   // is in *out, and is to be closed at once: there is no descriptor for it
        evict,       // no descriptor is left: *oldest, of the user with most silent connections, is to be closed first
    };
    Next next(const PendingConnections&, int64_t now, Fd* out, uint64_t* oldest);

    // To be called after each close of a descriptor: opens the descriptor again that is kept for connections that are
    // to be turned away.
    void keep_reserve();

    // Every now and then, as long as it rests: watches the listening socket again when the time has come.
    void look(int64_t now);
    bool rests() const { return rests_until_ != 0; }
    int64_t rests_until() const { return rests_until_; }

    // Whether the log is to say now that descriptors are short: it says so every ten seconds at most.
    bool may_tell(int64_t now);

    int fd() const { return listener_.get(); }
    // What is in the listening socket is for another server.
    void close() { listener_.reset(); }

private:
    Fd accept() const;
    bool has_connection() const;
    void watch(uint32_t events);

    Fd listener_, reserve_;
    const int epoll_;
    const epoll_data_t data_;
    int64_t rests_until_ = 0;  // 0: it does not
    int64_t tell_again_ = 0;
};

}  // namespace viaduct::fair
