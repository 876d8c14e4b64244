// SPDX-License-Identifier: BSD-2-Clause
// Connections that are being made: waits, requests, peer requests and the three-way end of a handshake. A
// pure state machine without sockets and clocks: time is an argument, effects are calls. Used by Agent, on
// the agent's one thread.
//
// Client/server:   request --(a wait is there)--> met --accept--> accepted --confirm--> done
//                     |held grace_ms, then no_match   |reject, timeout      |timeout of the confirmation
// A waiter that dies or closes before it accepts sends its requests back to being held; if no other comes,
// they end as timeout. A requester that gives up leaves its incoming behind: accept answers timeout, reject
// answers ok (spec/calls 4.3).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "viaduct/kagent.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::kagent {

// The origin of a request: the session to answer, under which ticket, for which context.
struct Party {
    uint64_t session = 0;
    uint32_t ticket = 0;
    uint64_t context = 0;
};

// One end of a connection to be.
struct End {
    Party party;
    uint64_t domain = 0;  // only ends of one domain meet: same provider, same user (or all users)
    EndAddress local;     // host part true: the address of the context's NIC
    ViTraits traits;
    std::array<uint32_t, 6> words{};
    int64_t since = 0;  // when it began to wait, or to ask
};

// A program that waits for a request, or for the peer that it has asked for.
struct WaitingEnd {
    const End* end = nullptr;
    const EndAddress* remote = nullptr;  // of the peer; null: it takes any request
};

class ConnectionEffects {
public:
    // Answers a wait.
    virtual void on_incoming(const Party& waiter, const Incoming& what) = 0;
    // Answers anything with an error.
    virtual void on_failed(const Party& party, Status why) = 0;
    // Answers a request to an address at which no program waits. `nearest`: the address that is most like it of those
    // at which one waits; null: there is none.
    virtual void on_no_match(const Party& party, const EndAddress& remote, const EndAddress* nearest) = 0;
    // Makes what both ends share. Not ok: both are told so.
    virtual Status make(uint64_t connection, const End& requester, const End& acceptor) = 0;
    // Answers a request, accept or peer request: connected. False: it is answered, but with an error.
    virtual bool on_joined(uint64_t connection, const End& own, const End& peer, uint32_t side) = 0;
    // Answers two peer requests: both are connected, or both are answered with an error.
    virtual bool on_joined_both(uint64_t connection, const End& first, const End& second) = 0;
    // The connection is complete or given up: what make() made may go.
    virtual void on_settled(uint64_t connection) = 0;
    // Answers a cancel that had to wait for the end of a handshake.
    virtual void on_cancel_too_late(const Party& party) = 0;
    // A session has one more, or one less, ticket that will be answered.
    virtual void on_ticket_opened(uint64_t session) = 0;
    virtual void on_ticket_closed(uint64_t session) = 0;

protected:
    ~ConnectionEffects() = default;
};

struct ConnectionRules {
    int64_t grace_ns = 100'000'000;      // how long a request is held for a waiter to come (spec/compat C6)
    int64_t confirm_ns = 5'000'000'000;  // how long an acceptor waits for the requester to map
    size_t max_incoming = 1024;          // per context: neither accepted nor rejected yet
};

// First attribute in which two ends differ, or ok.
Status compare_traits(const ViTraits& a, const ViTraits& b);

class ConnectionTable {
public:
    // `first_id`: the numbers of incoming requests and connections begin above it.
    ConnectionTable(ConnectionRules rules, ConnectionEffects& effects, uint64_t first_id = 0)
        : rules_(rules), effects_(effects), first_id_(first_id), next_id_(first_id + 1) {}

    void wait(const End& waiter);
    void request(const End& requester, const EndAddress& remote, Deadline deadline, int64_t now);
    void peer(const End& end, const EndAddress& remote, Deadline deadline, int64_t now);
    void accept(const Party& party, uint64_t incoming, const ViTraits& traits,
                const std::array<uint32_t, 6>& words, int64_t now);
    // By whose incoming it is; or, once accepted, by the requester that cannot take up the connection (its number is
    // that of the incoming).
    Status reject(const Party& party, uint64_t incoming);
    // False: the number is none of this table; it is another agent's, or made up.
    bool has_made(uint64_t connection) const { return connection > first_id_ && connection < next_id_; }
    // The session of the acceptor, which is connected now; 0: it has given up, or there was no such connection.
    uint64_t confirm(uint64_t session, uint64_t connection);

    enum class Cancelled { done, too_late, later };
    // done: removed, no answer will come. too_late: nothing open under that ticket. later: on_cancel_too_late()
    // will be called after the answer of that ticket.
    Cancelled cancel(const Party& canceller, uint32_t ticket);

    void session_ended(uint64_t session, int64_t now);
    void context_closed(uint64_t context, int64_t now);

    void expire(int64_t now);
    Deadline next_deadline() const;

    // For status and tests.
    struct Counts {
        size_t waits = 0, held = 0, met = 0, accepted = 0, peers = 0, abandoned = 0;
        bool operator==(const Counts&) const = default;
    };
    Counts counts() const;
    std::vector<WaitingEnd> waiting() const;  // until the table changes
    uint64_t connections_made() const { return made_; }
    bool open(uint64_t session, uint32_t ticket) const { return tickets_.contains({session, ticket}); }

private:
    enum class State { waiting, held, met, accepted, abandoned, peer };
    using Id = uint64_t;
    using Key = std::string;  // domain, NIC address and discriminator(s), as bytes

    struct Entry {
        State state = State::waiting;
        Key key;          // where it is queued; a met request keeps its key for coming back
        Key counterpart;  // peer: where its partner would be queued
        End end;          // waiter, requester or peer
        EndAddress remote;
        Deadline deadline = kNever;  // of the caller's timeout
        Deadline due = kNever;       // next event of this entry
        bool lost_its_server =
            false;        // met once, by a process that has left: it ends as a timeout (spec/calls 4.3)
        Party owner;      // met, abandoned, accepted: whose incoming it is
        End acceptor;     // accepted
        Party canceller;  // accepted: the session that asked for the result
        uint64_t connection = 0;
    };
    using Entries = std::map<Id, Entry>;
    using Queues = std::map<Key, std::deque<Id>>;

    static Key wait_key(uint64_t domain, const EndAddress& at);
    const EndAddress* nearest_wait(uint64_t domain, const EndAddress& to) const;
    static Key peer_key(uint64_t domain, const EndAddress& local, const EndAddress& remote);

    Entries::iterator add(Entry entry);
    void erase(Entries::iterator it);
    void set_due(Entries::iterator it, Deadline due);
    static void unqueue(Queues& queues, const Key& key, Id id);
    void meet(Entries::iterator request, const Party& waiter);
    void hold_again(Entries::iterator request, int64_t now);
    void join_peers(Entries::iterator older, Entries::iterator newer);
    void requester_left(Entries::iterator it);
    void fail_acceptor(Entries::iterator it, Status why);
    void owner_left(Entries::iterator it, int64_t now);
    template <class Match>
    void end_all(Match match, int64_t now);
    void due_now(Entries::iterator it, int64_t now);
    void index(const Party& party, Id id);
    void unindex(const Party& party);

    ConnectionRules rules_;
    ConnectionEffects& effects_;
    Entries entries_;
    Queues waits_, held_, peers_;
    std::set<std::pair<Deadline, Id>> due_;
    std::map<std::pair<uint64_t, uint32_t>, Id>
        tickets_;                                // (session, ticket) of everything that has an open answer
    std::map<uint64_t, size_t> incoming_count_;  // per context
    std::map<uint64_t, Id> connections_;         // accepted, by connection id
    const Id first_id_;
    Id next_id_;
    uint64_t made_ = 0;
};

}  // namespace viaduct::kagent
