// SPDX-License-Identifier: BSD-2-Clause
// The socket of one client: its credentials from the kernel, and what waits to be sent to it. Never blocks. Used
// by Server on the agent's one thread.
#pragma once

#include <cstddef>
#include <deque>

#include "core/agent/mail.hpp"
#include "kagent/agent.hpp"

namespace viaduct::kagent {

class Client {
public:
    // `pidfd` is invalid where the kernel gives none (core/process/peer_process.hpp).
    Client(Fd socket, Fd pidfd, Credentials credentials);

    int socket() const { return socket_.get(); }
    int pidfd() const { return pidfd_.get(); }
    const Credentials& credentials() const { return credentials_; }

    // ok; not_done: queued, waits for room; closed: the client has ended; out_of_resources: it does not read and has
    // too much waiting.
    Status send(Mail mail);
    // Sends what waits. ok: nothing waits any more.
    Status flush();
    bool wants_to_write() const { return !backlog_.empty(); }
    // Requests of a client that does not read its answers are not read until it does.
    bool wants_to_read() const { return !closing_ && backlog_.size() < kPauseReading; }

    uint64_t taken() const { return taken_; }  // messages that had to wait and did not have to wait for ever

    size_t unread_bytes() const { return waiting_bytes_; }  // that wait
    // Descriptors that were sent and that the client may not have received yet. While they are in flight the kernel
    // counts them as the agent's, and limits their number.
    size_t in_flight() {
        if (in_flight_ != 0 && all_taken()) in_flight_ = 0;
        return in_flight_;
    }

    // For the thread that closes them elsewhere (core/shm/foreign_files.hpp).
    Fd give_up_socket() { return std::move(socket_); }
    Fd give_up_pidfd() { return std::move(pidfd_); }
    std::vector<Fd> give_up_files();
    void close_when_flushed() { closing_ = true; }
    bool closing() const { return closing_; }

    uint64_t session = 0;
    uint64_t key = 0;
    int64_t since = 0;
    int64_t stalled_since = 0;  // 0: it takes what it is sent
    uint64_t taken_seen = 0;  // taken() then
    unsigned interest = 0;    // what epoll watches for
    bool held_back = false;   // its files cannot be closed now: it is not listened to until the next look
    bool waits = false;       // not listened to until its user's processes have taken files
    int last_turns = 8;       // for what a process that has ended has still said
    uint64_t charged_bytes = 0, charged_files = 0;  // unread_bytes() and in_flight(), in its user's account

private:
    static constexpr size_t kPauseReading = 64;
    static constexpr size_t kMaxBacklog = 4096;
    static constexpr size_t kMaxWaitingDescriptors = 1024;

    bool all_taken() const;
    Status send_now(const Mail& mail);  // send_mail() with the count of in_flight()

    Fd socket_;
    Fd pidfd_;
    Credentials credentials_;
    std::deque<Mail> backlog_;
    size_t waiting_descriptors_ = 0, waiting_bytes_ = 0, in_flight_ = 0;
    uint64_t taken_ = 0;
    bool closing_ = false;
};

}  // namespace viaduct::kagent
