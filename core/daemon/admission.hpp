// SPDX-License-Identifier: BSD-2-Clause
// How the daemons of providers (viaduct-udpd, viaduct-acenicd) admit programs. An Admission accepts the connection of a
// program and finds its user and its process. The program is silent until it has sent the messages that the daemon
// requires of each program first. Few silent programs of one user and few in all have a place: the next one replaces
// the oldest of its user, or of the user that has the most. Each has a deadline. Where descriptors are short, the
// listening socket rests (core/fair/acceptor.hpp); a daemon that has inherited its limits from the program that started
// it lets in one program more, which may have it replaced. Root's daemon serves every user; the daemon of another user
// serves that user and root. One thread; no call waits.
#pragma once

#include <sys/epoll.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "core/fair/acceptor.hpp"
#include "core/fair/pending_connections.hpp"
#include "core/shm/fd.hpp"
#include "core/shm/foreign_files.hpp"

namespace viaduct::daemon {

// A program that the daemon serves, or that is silent.
struct Program {
    Fd socket;
    Fd process;           // pidfd: a forked child may hold the socket open; invalid if the kernel has no pidfds
    uint64_t number = 0;  // counts the programs since the daemon's start
    uid_t user = 0;
    pid_t pid = 0;
    int64_t since = 0;  // time at which the daemon accepted the connection
    // There is no descriptor for this program: the daemon refuses it and reports its flaws (core/agent/own_limits.hpp).
    // The program is silent for good, and may ask the daemon to end.
    bool without_room = false;
};

// A program of the daemon's user, or of root, may have the daemon replaced.
inline bool may_replace(uid_t user) { return user == 0 || user == ::geteuid(); }

class Admission {
public:
    struct Rules {
        const char* component;  // of the daemon's log lines
        size_t silent_of_one_user = 0, silent_in_all = 0;
        int64_t silent_ns = 0;  // a program may be silent for so long
        uint32_t flaws = 0;     // of the daemon (own_flaws), if a program has started it
    };

    // Has the sessions of the programs.
    class Daemon {
    public:
        // Takes the program, which is silent, and calls watch(). False: its descriptors cannot be watched, and the
        // program is unchanged.
        virtual bool enter(Program&) = 0;
        // Reads the messages that this silent program has sent, and closes it if it is silent after them. Calls
        // settle() in either case.
        virtual void evict(uint64_t number) = 0;

    protected:
        ~Daemon() = default;
    };

    // Watches `listener` in `epoll`, which outlives this object, with that data. `closers`, which outlive it too, close
    // the sockets of programs that are turned away.
    Admission(Fd listener, int epoll, epoll_data_t data, const Rules& rules, Closers& closers);

    // Admits some of the programs that wait. The daemon may have to close silent ones for them.
    void accept(Daemon&);
    // Events of the program's socket and of its process carry `subject`. False: the kernel has no memory for that.
    bool watch(const Program&, void* subject);
    // The program is silent no longer. A second call for a program does nothing.
    void settle(const Program&);
    // The program leaves: `closers` close its socket. No event comes for it from now on.
    void release(Program&);
    // The program has been silent for too long.
    bool is_late(const Program& p, int64_t now) const { return now - p.since > rules_.silent_ns; }

    // Every now and then, as long as the listening socket rests.
    void look(int64_t now) { acceptor_.look(now); }
    bool rests() const { return acceptor_.rests(); }

private:
    bool accept_one(Daemon&, int64_t now);

    const Rules rules_;
    const int epoll_;
    Closers& closers_;
    fair::Acceptor acceptor_;
    fair::PendingConnections silent_;
    uint64_t last_number_ = 0;
};

}  // namespace viaduct::daemon
