// SPDX-License-Identifier: BSD-2-Clause
// Control messages: what members of a communicator tell each other when some of them have failed or it is revoked, and
// what wakes one that waits for a word of memory. They are short, and taken in the moment in which they come, whatever
// the program waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/matcher.hpp"

namespace viaduct::mpi::robust {

// wake: says nothing; it ends a sleep at the modules (word_wait.hpp).
enum class Control : int { revoke = 1, vote, question, decision, wake };

// A communicator takes control messages from now on.
void serve_control(Communicator& comm);
// Takes the control messages that are in the queue.
void take_kept_control(Communicator& comm);
// What takes them as they come.
const Server* control_server();

// To a process, by that context and as that rank. Never waits.
void send_control(process_t& to, const mpip_comm& way, Control kind, const std::vector<char>& bytes);

// The members of a communicator in an order that is the same for all of them: the ranks; of an inter-communicator first
// those of the group whose first process has the lower number.
class Members {
public:
    explicit Members(Communicator& comm);

    int size() const { return comm_.inter ? comm_.size + comm_.remote_size : comm_.size; }
    int own() const { return index_of(false, comm_.rank); }
    bool first_is_local() const { return first_is_local_; }
    // Of a rank in the remote group, or in the local one.
    int index_of(bool remote, int rank) const;
    process_t& process(int index) const;
    bool is_lost(int index) const;
    void send(int index, Control kind, const std::vector<char>& bytes) const;

private:
    struct Place {
        Comm* by;
        int rank;
    };
    Place place_of(int index) const;

    Communicator& comm_;
    bool first_is_local_ = true;
};

}  // namespace viaduct::mpi::robust
