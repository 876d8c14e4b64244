// SPDX-License-Identifier: BSD-2-Clause
// The agent's event loop: one listening socket, one epoll, one thread, nothing that blocks. Admits clients
// (core/daemon/admission.hpp). Turns packets into messages for Agent and its answers into packets. Requests of several
// users at the same time are served in turns of equal time (core/fair), however many sockets one of them has.
#pragma once

#include <csignal>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/daemon/admission.hpp"
#include "core/fair/turns.hpp"
#include "core/shm/foreign_files.hpp"
#include "kagent/agent.hpp"
#include "kagent/client.hpp"
#include "kagent/descriptor_throttle.hpp"
#include "kagent/inquiry_times.hpp"
#include "kagent/link_watch.hpp"
#include "kagent/nic_inquiries.hpp"
#include "kagent/users.hpp"

namespace viaduct::kagent {

inline constexpr int64_t kMillisecond = 1'000'000;

// Blocks SIGTERM, SIGINT and SIGHUP until Server reads them, and returns the set of them: a signal between binding the
// address and serving it would leave the path behind. Main thread, before other threads are started.
sigset_t hold_end_signals();

class Server final : private Outbox, private daemon::Admission::Daemon {
public:
    struct Options {
        std::string address;
        bool keep_socket = false;    // it belongs to a service manager, which listens on when this agent ends
        bool forever = false;        // does not leave when idle
        bool own_user_only = false;  // serves no other user, although it listens at a path
    };

    // Asks the providers for their NICs. A provider that has not answered within TimeLimit::agent_discovery has none
    // until it answers.
    Server(Options options, AgentSettings settings, Providers& providers, Fd listener);
    ~Server();

    // Returns when no client needs the agent any more, or it was told to end.
    void run();
    // A thread asks some provider at this moment.
    bool asks_providers() const { return inquiries_.busy(); }

private:
    static constexpr int64_t kLook = 500 * kMillisecond;  // between two looks at clients that are silent or stalled
    static constexpr int64_t kTaking = 2 * kMillisecond;  // between two looks whether files have been taken
    enum class Watch : uint64_t { listener = 1, signals = 2, links = 3, inquiries = 4, first_client = 16 };
    // Two watched descriptors per client share its key; the lowest bit tells them apart. Admission has given the
    // number.
    static constexpr uint64_t kProcessBit = 1;
    static constexpr uint64_t kFirstClient = static_cast<uint64_t>(Watch::first_client);
    static constexpr uint64_t key_of(uint64_t number) { return kFirstClient + 2 * number; }
    static constexpr uint64_t number_of(uint64_t key) { return (key - kFirstClient) / 2; }

    void send(uint64_t session, Mail mail) override;
    bool all_out(uint64_t session) override;
    void drop(uint64_t session, const char* why) override;
    void discard(uid_t user, std::vector<Fd> files) override { closers_.close(user, std::move(files)); }

    void watch(int fd, uint32_t events, uint64_t data);
    void adjust(Client& c);
    bool serves(daemon::Program&) override;
    bool has_room(uid_t user) override { return agent_.has_room(user); }
    void turn_away(const daemon::Program&) override;
    void log_shortage(const char* component) override;
    bool enter(daemon::Program&) override;
    void evict(uint64_t number) override;
    void add_client(daemon::Program&, Fd to_hand_out, const std::string& refusal);
    void gather(int timeout_ms, int64_t* now);
    void serve_in_turns();
    void serve(uint64_t key, uint32_t events);
    void serve_ended(Client& c);
    enum class ReadResult { all, more, closed };
    ReadResult read_from(Client& c, int most);
    bool listens_to(const Client& c) const;
    void settle_account(Client& c);
    void lose(Client& c, const char* why);
    void reap();
    void look_at_clients(int64_t now);
    void look_at_waiting(int64_t now);
    uint64_t count_in_flight(uid_t user);
    void list_nics();
    bool ask_providers(bool here_where_no_thread_starts);
    NicChanges take_answers(int64_t now);
    void watch_links();
    void note_report(int64_t now);
    void look_at_links(int64_t now);
    void look_at_nics(int64_t now);
    int timeout_ms(int64_t now) const;
    void note_keepers(int64_t now);
    int64_t leaving_at() const;
    bool time_to_leave(int64_t now);
    void finish();

    Options options_;
    int64_t linger_ns_, client_stall_ns_;
    Fd epoll_, signals_;
    Closers closers_;
    daemon::Admission admission_;
    bool own_users_only_;
    Users users_;
    Providers& providers_;
    Agent agent_;
    DescriptorThrottle throttle_;
    LinkWatch links_;
    NicInquiries inquiries_;
    InquiryTimes inquiry_times_;
    std::unordered_map<uint64_t, std::unique_ptr<Client>> clients_;  // by key
    std::unordered_map<uint64_t, Client*> by_session_;
    std::vector<uint64_t> dead_;            // keys; removed between events, when no code holds a reference
    std::unordered_set<uint64_t> writers_;  // keys of clients that do not take their messages at once
    std::unordered_set<uint64_t> waiting_;  // keys of clients whose user's processes are to take files first
    fair::Turns turns_;
    int64_t idle_since_;
    int64_t next_look_ = 0;       // at silent and stalled clients
    int64_t next_retry_ = 0;      // of what had too many descriptors in flight
    int64_t next_taking_ = 0;     // look at waiting clients
    int64_t links_due_ = kNever;  // when to look at the interfaces
    std::string why_no_reports_;  // of changed interfaces
    bool nics_answered_ = false;  // by some provider, and not taken over yet
    bool watches_inquiries_ = false;
    bool asks_all_ = true;        // the last inquiry has reached each provider
    bool had_keepers_ = false;    // some session has kept us already
    bool holds_back_ = false;     // some client, until the next look
    bool stop_ = false;
};

}  // namespace viaduct::kagent
