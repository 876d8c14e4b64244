// SPDX-License-Identifier: BSD-2-Clause
// Files that clients have handed to a server. Closing one can take as long as its owner likes: closing a file of a FUSE
// file system asks its server, a socket that lingers waits for its network, and much memory is given back page by page.
// Our servers have one thread, so that thread closes only files whose close cannot block.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/shm/segment.hpp"

namespace viaduct {

// Memory files and eventfds, which is all that providers hand out.
bool is_memory_or_event(const Fd&);

// One that may be closed here: such a file without much memory in it. No call on it waits for another process.
bool closes_at_once(const Fd&);

// True when the next message in this Unix socket carries files; it stays there.
bool brings_files(int socket);

// Closes files of clients on threads of its own, which may hang: few for one user and few in all, so that
// those whose files hang keep only their own from being closed. Used on one thread.
class Closers {
public:
    static constexpr size_t kThreadsOfOneUser = 2;
    static constexpr size_t kThreads = 16;
    static constexpr size_t kMostWaiting = 64;  // of one user, then nothing of that kind is taken from him

    Closers();

    // Never waits. What closes at once is closed here.
    void close(uid_t user, std::vector<Fd> files);
    // A client's Unix socket: shut down, so that nothing comes any more, and closed here if nothing is in it.
    // What was not read is closed with it, and the files in it.
    void close_socket(uid_t user, Fd socket);

    // Of that user: files not closed yet, those that hang among them.
    size_t waiting(uid_t user) const;
    bool full(uid_t user) const { return waiting(user) >= kMostWaiting; }
    // The next message in that Unix socket of the user's is not to be taken: it brings files, and he has enough here.
    bool must_stay(uid_t user, int socket) const { return full(user) && brings_files(socket); }
    bool busy() const;  // with the file of any user
    size_t threads() const;

    // Every now and then: wakes threads that hang in a call that a signal ends, as the wait of a lingering
    // socket is, and starts those that could not be started before.
    void look(int64_t now);

private:
    struct State;
    std::shared_ptr<State> state_;  // the threads', too: they may outlive this object
};

}  // namespace viaduct
