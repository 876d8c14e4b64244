// SPDX-License-Identifier: BSD-2-Clause
// The agent itself, without its sockets: sessions come and go, messages come in, messages go out through the
// Outbox. Everything runs on one thread; time is an argument. Server drives it; tests and fuzzers drive it
// too. Its methods are in files by subject: agent.cpp sessions and dispatch, agent_nics.cpp NICs and leases,
// agent_links.cpp the interfaces NICs depend on, agent_connect.cpp connections, agent_names.cpp the name
// service, agent_ended.cpp processes that have ended, agent_trace.cpp those that are recorded, status.cpp the
// JSON for tools.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/mail.hpp"
#include "kagent/connection_table.hpp"
#include "kagent/devices.hpp"
#include "kagent/ended.hpp"
#include "kagent/limits.hpp"
#include "kagent/names.hpp"
#include "kagent/providers.hpp"
#include "kagent/registry.hpp"
#include "kagent/settings.hpp"

namespace viaduct::kagent {

class Outbox {
public:
    virtual void send(uint64_t session, Mail mail) = 0;
    // Everything that was sent to the session has left this process.
    virtual bool all_out(uint64_t session) = 0;
    // Ends the session once what was sent before is out. leave() follows, later.
    virtual void drop(uint64_t session, const char* why) = 0;
    // Closes files that a user has handed over. Agent itself closes none of them: that may take long.
    virtual void discard(uid_t user, std::vector<Fd> files) = 0;

protected:
    ~Outbox() = default;
};

struct Credentials {
    pid_t pid = 0;  // for people: 0 where our PID namespace does not see it
    uid_t uid = 0;
    bool known = true;  // false: `uid` stands for every user that our user namespace has no number for
};

struct Session {
    uint64_t id = 0;
    Credentials credentials;
    Fd pidfd;
    Fd stats;  // kShowStats
    uint64_t recorded_by = 0, records = 0;  // sessions (kTrace); 0: none
    bool greeted = false;  // has said hello and is welcome
    std::string refusal;   // why its hello will be refused; empty: it is welcome
    bool refused = false;  // its hello has been refused, and it may ask the agent to end
    bool dropped = false;
    bool tool = false;
    bool keeps = false;  // counted in keepers()
    uint16_t version = kVersionMax;
    std::string program;
    std::vector<std::string> names;  // kNameAdd
    int64_t since = 0;
};

class Agent final : private ConnectionEffects {
public:
    Agent(AgentSettings settings, Providers& providers, Outbox& outbox);

    // Whether this user may have another session that has not said hello yet.
    bool has_room(uid_t user);
    // The number of the new session; 0: there is no room.
    uint64_t arrive(Credentials credentials, Fd pidfd, int64_t now);
    // Whether a process of that user may have this agent, which has inherited limits, replaced.
    bool may_be_replaced_by(const Credentials&) const;
    // The number of a session for which there is no room. Its hello is refused with that text and the agent's flaws, so
    // that the process may ask the agent to end. Only where may_be_replaced_by().
    uint64_t arrive_without_room(Credentials credentials, Fd pidfd, int64_t now, std::string refusal);
    void handle(uint64_t session, Mail mail, int64_t now);
    void leave(uint64_t session, int64_t now);

    void tick(int64_t now) {
        table_.expire(now);
        ended_.expire(now);
        tell_connected();
    }
    Deadline next_deadline() const { return table_.next_deadline(); }

    // Sessions that keep the agent running: all but tools and those that have not said hello.
    size_t keepers() const { return keepers_; }
    // Until when the agent keeps something for tools about processes that have ended; 0: it keeps nothing.
    int64_t tells_until() const { return ended_.last_until(); }
    // From now on it is there for tools only: another client makes it leave, and starts the next agent.
    void serve_tools_only() { tools_only_ = true; }
    bool shutdown_asked() const { return shutdown_asked_; }
    // Tells all clients that this agent is about to end.
    void announce_leaving();

    // Takes over a provider's answer to an inquiry for its NICs. A NIC that has vanished cannot be opened; it
    // stays for the processes that have it open. The caller calls note_links() afterwards.
    NicChanges note_nics(size_t provider, NicAnswer nics);

    // Takes the host's network interfaces as they are. A NIC with the address of an interface depends on it: when no
    // interface with that address is up, the agent sends kNicDown to every process that has the NIC open. For each NIC
    // the first call sets the beginning.
    void note_links(const Devices&);
    // Some NIC depends on an interface, by its first call of note_links.
    bool depends_on_links() const;

    const ConnectionTable& table() const { return table_; }
    const Limits& limits() const { return limits_; }
    Limits& limits() { return limits_; }
    const std::map<uint64_t, Session>& sessions() const { return sessions_; }
    const Registry& registry() const { return registry_; }

private:
    // The segment that both ends of a connection share, until both have it.
    struct Shared {
        uid_t user = 0;  // the requester, whose quota it counts in
        Fd segment;
        uint64_t bytes = 0;
    };

    // The interface that a NIC depends on.
    struct NicLink {
        std::string address;  // empty: the NIC depends on no interface
        bool up = false;
    };

    // An end that gets its kJoined once the kJoined of the other end has left this process.
    struct Telling {
        Party end;
        uint64_t other = 0;  // session
        Status when_gone = Status::ok;  // the answer to the end when the session of the other end has ended
    };

    void answer(Session& s, uint32_t ticket, Type type) { deliver(s, Mail(type, ticket)); }
    template <class T>
    void answer(Session& s, uint32_t ticket, Type type, const T& body) {
        deliver(s, Mail::of(type, body, ticket));
    }
    void refuse(Session& s, uint32_t ticket, Status why, const std::string& text, uint32_t flaws = 0);
    void deliver(Session& s, Mail mail);

    void stop_keeping(Session& s);
    void drop(Session& s, const char* why);
    void check_and_dispatch(Session& s, Mail& mail, int64_t now);
    void greet(Session& s, const Mail& mail);
    void refuse_session(Session& s, uint32_t ticket, Status why, const std::string& text);
    void end_if_asked(Session& s, const Mail& mail);
    void shut_down(Session& s, uint32_t ticket);
    uint64_t add_session(Credentials credentials, Fd pidfd, int64_t now);
    void dispatch(Session& s, Mail& mail, int64_t now);

    void list_nics(Session& s, const Mail& mail);
    void resolve_name(Session& s, const Mail& mail);
    void open_nic(Session& s, Mail& mail, int64_t now);
    void close_nic(Session& s, const Mail& mail, int64_t now);
    void lease(Session& s, const Mail& mail);
    void close_context(uint64_t id, int64_t now);
    // As a program with that default provider names NICs; empty: the agent's own.
    NicNaming naming(std::string_view default_provider = {}) const;
    std::string why_no_nic(const NicNaming&, std::string_view name) const;
    NicEntry entry_of(const NicNaming&, size_t position) const;
    std::optional<size_t> nic_to_open(const OpenNic&, std::string* why) const;
    std::optional<size_t> nic_to_reattach(const Context* old, const OpenNic&, std::string* why) const;

    void conn_wait(Session& s, const Mail& mail, int64_t now);
    void conn_request(Session& s, const Mail& mail, int64_t now);
    void conn_accept(Session& s, const Mail& mail, int64_t now);
    void conn_confirm(Session& s, const Mail& mail);
    void conn_reject(Session& s, const Mail& mail);
    void cancel(Session& s, const Mail& mail);
    bool may_wait(Session& s, uint32_t ticket);
    End end_of(const Session& s, const Context& c, uint32_t ticket) const;
    bool address_fits(const Context& c, const EndAddress& a) const;

    void on_incoming(const Party& waiter, const Incoming& what) override;
    void on_failed(const Party& party, Status why) override;
    void on_no_match(const Party& party, const EndAddress& remote, const EndAddress* nearest) override;
    Status make(uint64_t connection, const End& requester, const End& acceptor) override;
    bool on_joined(uint64_t connection, const End& own, const End& peer, uint32_t side) override;
    bool on_joined_both(uint64_t connection, const End& first, const End& second) override;
    bool joined_mail(uint64_t connection, const End& own, const End& peer, uint32_t side, bool told_later, Mail* out);
    void tell_connected();
    void on_settled(uint64_t connection) override;
    void on_cancel_too_late(const Party& party) override;
    void on_ticket_opened(uint64_t session) override;
    void on_ticket_closed(uint64_t session) override;

    void name_lookup(Session& s, const Mail& mail, int64_t now);
    void address_lookup(Session& s, const Mail& mail);
    void name_add(Session& s, const Mail& mail);
    std::vector<size_t> nics_behind(const Session& s, const Context& c, std::string_view name, int64_t now);
    const Devices& devices(int64_t now);

    void show_stats(Session& s, Mail& mail);
    void keep_failures(Session& s, int64_t now);
    void list_ended(Session& s, const Mail& mail, int64_t now);

    void trace(Session& s, Mail& mail);
    void end_trace(Session& s);

    void status(Session& s, const Mail& mail, int64_t now);
    std::string status_text(const Session& viewer, int64_t now, bool with_sessions);

    AgentSettings settings_;
    Providers& providers_;
    Outbox& outbox_;
    Limits limits_;
    Registry registry_;
    ConnectionTable table_;
    EndedProcesses ended_;
    std::map<uint64_t, Session> sessions_;
    std::map<uint64_t, Shared> shared_;        // by connection id
    std::vector<Telling> telling_;
    std::map<size_t, NicLink> nic_links_;      // by NIC, its id
    Devices devices_;
    int64_t devices_seen_ = 0;
    uint64_t next_session_ = 1;
    size_t keepers_ = 0;
    uint64_t refused_ = 0;  // messages answered with kError/invalid
    bool shutdown_asked_ = false;
    bool tools_only_ = false;
};

inline bool same_user(const Session& a, const Session& b) {
    return a.id == b.id || (a.credentials.known && b.credentials.known && a.credentials.uid == b.credentials.uid);
}

// A user may see the sessions of that user alone, root may see all.
inline bool may_see(const Session& viewer, const Session& owner) {
    return (viewer.credentials.known && viewer.credentials.uid == 0) || same_user(viewer, owner);
}

}  // namespace viaduct::kagent
