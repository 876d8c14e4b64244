// SPDX-License-Identifier: BSD-2-Clause
// How a daemon that many programs share (vipkad, viaduct-udpd, viaduct-acenicd) admits programs. An Admission accepts
// the connection of a program and finds its user and its process. The program is silent until it has sent the messages
// that the daemon requires of each program first. Few silent programs of one user and few in all have a place: the next
// one replaces the oldest of its user, or of the user that has the most. Each has a deadline. Where descriptors are
// short, the listening socket rests (core/fair/acceptor.hpp); a daemon that has inherited its limits from the program
// that started it lets in one program more, which may have it replaced. Root's daemon serves every user; the daemon of
// another user serves that user and root. One thread; no call waits.
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

// Why a program is refused.
enum class Refusal : uint8_t {
    none,
    descriptors,  // the daemon has none left
    places,       // its user has all that the user may have
    ended,        // its process has ended, or has closed the connection
};

// A program that the daemon serves, or that is silent.
struct Program {
    Fd socket;
    Fd process;           // pidfd: a forked child may hold the socket open; invalid if the kernel has no pidfds
    uint64_t number = 0;  // counts the programs since the daemon's start
    uid_t user = 0;
    pid_t pid = 0;
    int64_t since = 0;  // time at which the daemon accepted the connection
    bool known = true;  // false: `user` stands for every user that the daemon's user namespace has no number for
    // If the program has entered all the same, the daemon refuses its first message and reports its own flaws
    // (core/agent/own_limits.hpp). The program is silent for good, and may ask the daemon to end.
    Refusal refusal = Refusal::none;
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
        // An accept() ends after so many programs, and begins no program after so much time: then others have their
        // turn.
        size_t most_at_once = 16;
        int64_t accept_ns = INT64_MAX;
    };

    // Has the sessions of the programs, and rules of its own.
    class Daemon {
    public:
        // Whether the daemon serves this user. It may tell the program the reason, and may set `known`.
        virtual bool serves(Program&);
        // Whether the user may have one more silent program. If not, silent ones of the user make room.
        virtual bool has_room(uid_t) { return true; }
        // The program is about to be closed, for the reason `refusal`.
        virtual void turn_away(const Program&) {}
        // Descriptors are short. Every ten seconds at most.
        virtual void log_shortage(const char* component);
        // Takes the program, which is silent, and watches its socket and its process, by watch() or in another way.
        // False: the daemon does not take the program, whose descriptors are unchanged.
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
    void settle(const Program& p) { settle(p.user, p.number); }
    void settle(uid_t user, uint64_t number) { silent_.remove(user, number); }
    // The program leaves: `closers` close its socket. No event comes for it from now on.
    void release(Program&);
    // The program has been silent for too long.
    bool is_late(const Program& p, int64_t now) const { return is_late(p.since, now); }
    bool is_late(int64_t since, int64_t now) const { return now - since > rules_.silent_ns; }
    size_t count_silent() const { return silent_.size(); }

    // Every now and then, as long as the listening socket rests.
    void look(int64_t now) { acceptor_.look(now); }
    bool rests() const { return acceptor_.rests(); }
    int64_t rests_until() const { return acceptor_.rests_until(); }

    int fd() const { return acceptor_.fd(); }
    // The programs that wait in the listening socket are for another daemon.
    void close() { acceptor_.close(); }

private:
    bool accept_one(Daemon&, int64_t now);
    bool make_room(Daemon&, uid_t user);
    bool may_enter(const Program&) const;

    const Rules rules_;
    const int epoll_;
    Closers& closers_;
    fair::Acceptor acceptor_;
    fair::PendingConnections silent_;
    uint64_t last_number_ = 0;
};

}  // namespace viaduct::daemon
