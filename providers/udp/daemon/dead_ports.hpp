// SPDX-License-Identifier: BSD-2-Clause
// The ports of programs that have ended. Their peers go on sending there. For a while the daemon has each of these
// ports and answers as an end without the connection does: a peer sees with its next frame that the connection is over.
// Without that it would see it by what the kernel reports of a closed port (ICMP), which comes once a second to a host
// and shortens the silence that ends a connection, or by 10 s of silence. One thread: the daemon's.
//
// A port that another socket has is not taken: it is that of a program that lives, or of a child that a dead program
// has forked. Frames with a key are not answered, and the port is given up at the first of them: the kernel's report
// is better than no answer.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/shm/fd.hpp"
#include "providers/wire/answer_rate.hpp"
#include "viaduct/types.hpp"

namespace viaduct::udp {

class DeadPorts {
public:
    static constexpr size_t kMost = 64, kMostOfUser = 32;
    static constexpr int64_t kKept = 2'000'000'000;     // ns
    static constexpr int64_t kTriedFor = 1'000'000'000;  // a process that ends closes its descriptors one by one
    static constexpr int kTryEveryMs = 2;

    // nic: the address of the daemon; ports of other addresses are not taken. epoll: gets the sockets, with `subject`.
    DeadPorts(const NicAddress& nic, int epoll, void* subject) : nic_(nic), epoll_(epoll), subject_(subject) {}

    // A program of that user has ended, or has closed its NIC, and `data` was its port.
    void add(uid_t user, const NicAddress& data, int64_t now);
    // Tries again to get ports, and gives up those whose time is over.
    void look(int64_t now);
    // A port waits for its next try.
    bool is_trying() const;
    // Answers what has come.
    void take_frames(int64_t now);
    size_t count() const { return ports_.size(); }

private:
    struct DeadPort {
        uid_t user = 0;
        NicAddress address;
        int64_t since = 0;
        Fd socket;  // invalid: another socket has the port
        bool over = false;
        wire::AnswerRate answers{10'000, 2'000};  // a program may have had a thousand connections
    };
    void try_to_bind(DeadPort&, int64_t now);
    void answer_frames(DeadPort&, int64_t now);

    const NicAddress nic_;
    const int epoll_;
    void* const subject_;
    std::vector<DeadPort> ports_;
};

}  // namespace viaduct::udp
