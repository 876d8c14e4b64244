// SPDX-License-Identifier: BSD-2-Clause
// A process' connection to the kernel agent: finds the agent, starts one when there is none, speaks the protocol
// (viaduct/kagent.hpp) and connects again after the agent's death. Any thread; several may have requests under way. Of
// those that wait, one reads the socket and hands the others their answers; there is no reader thread. Its mutex is not
// held during a system call that waits. Used by libvipl and by tools.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>

#include "core/agent/mail.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

struct LinkOptions {
    bool start_agent =
        true;  // start vipkad when there is none (never when VIADUCT_AGENT names the path of a service)
    uint32_t hello_flags = 0;
};

class AgentLink {
public:
    explicit AgentLink(LinkOptions options = {});
    ~AgentLink();

    // Connects, starts the agent if need be, exchanges versions, runs `reattach`. Idempotent; called by
    // start() by itself. ok | denied | version | out_of_resources (the agent is full, or no descriptor is left
    // here) | timeout | broken (last_error() says what happened and the cure). Ends by the deadline, at the
    // latest after TimeLimit::agent_connect; at the earliest after agent_connect_least, so that a caller whose
    // deadline is already over, because it only polls, gets connected too.
    Status connect(Deadline deadline = kNever);

    // Sends a request (its ticket is assigned here) and returns at once. Connects first when necessary, which
    // ends as connect() does; with kOnlyConnected it is sent over the connection that there is, or not at all.
    Status start(Mail request, uint32_t* ticket, Deadline deadline = kNever);
    // Waits for the answer: ok (any answer, kError included); not_done at the deadline (request still open);
    // broken (the agent died: the request is dropped). A list comes in several answers: call again while
    // the answer says that more follow.
    Status await(uint32_t ticket, Deadline deadline, Mail* answer);
    // What undoes an answer that comes all the same: a function object of three words at most, so that it needs no
    // memory.
    class Late {
    public:
        Late() : call_(nullptr), own_() {}
        template <class F>
        requires(!std::is_same_v<F, Late> && std::is_trivially_copyable_v<F> && sizeof(F) <= 3 * sizeof(uint64_t))
            Late(const F& f)
            : call_([](const void* own, Mail& answer) { (*static_cast<const F*>(own))(answer); }), own_() {
            ::new (own_) F(f);
        }
        explicit operator bool() const { return call_ != nullptr; }
        void operator()(Mail& answer) const { call_(own_, answer); }

    private:
        void (*call_)(const void* own, Mail& answer);
        alignas(uint64_t) std::byte own_[3 * sizeof(uint64_t)];
    };
    // Drops a request. Should its answer come all the same, `late` is called with it, with no lock held. Without memory
    // it is dropped, too.
    void abandon(uint32_t ticket, Late late = {});
    // start + await; an answer kError becomes its Status. Of a list, the first entry.
    Status call(Mail request, Mail* answer, Deadline deadline);
    // Reads what is there without waiting (the event thread calls it when the socket is readable).
    void pump();

    // Called without a lock after each connection, before any other request is sent. It opens again what the process
    // owns at the agent, by exchange_now() only.
    using Reattach = std::function<Status(AgentLink&)>;
    void on_reattach(Reattach);
    Status exchange_now(Mail request, Mail* answer);  // only inside on_reattach

    // Called without a lock after each connection, once requests go over it: socket() and epoch() are those of the new
    // agent.
    using Connected = std::function<void(uint32_t agent_pid)>;
    void on_connected(Connected);

    // Called for each message with ticket 0: a notice, not an answer. `epoch` is that of the connection over which it
    // has come; there may be another one by now.
    using Event = std::function<void(const Mail&, uint64_t epoch)>;
    void on_event(Event);

    int socket() const;      // -1 when not connected; to be watched, not read
    uint64_t epoch() const;  // counts connections made
    const kagent::Welcome& welcome() const;
    std::string last_error() const;  // for messages
    // In a forked child: drops the parent's connection and sends nothing over it. Allocates nothing.
    void reset_after_fork();

private:
    struct Impl;
    Impl* impl_;
};

// The socket address this process would use, and how it was chosen (for vipinfo).
std::string agent_address(std::string* origin = nullptr);

}  // namespace viaduct
