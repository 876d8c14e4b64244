// SPDX-License-Identifier: BSD-2-Clause
// A small engine for the tests: matching in plain lists, waiting by yielding, errors noted. It uses the
// device exactly as docs/adi.md tells an engine writer to.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "job.hpp"
#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::adi_test {

constexpr int kAny = -1;

class Engine {
public:
    // Connects all processes; `forced` is the protocol for the others. Ranks from `late` on join with add_late().
    Engine(Job& job, const char* forced, int late = INT32_MAX);
    void add_late();
    // Parts from some, which do the same.
    void part_from(const std::vector<int>& ranks);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    int rank() const { return job_.rank(); }
    int size() const { return job_.size(); }
    process_t* process(int rank) { return &processes_[static_cast<size_t>(rank)]; }
    mpip_comm_t* comm() { return &comm_; }

    // Starts a send; the request is done at once when the fast way took it.
    void isend(mpip_req_t& req, int to, int tag, const void* data, size_t bytes,
               int mode = MPIP_MODE_STANDARD, const mpip_type_t* type = nullptr, size_t count = 0);
    void irecv(mpip_req_t& req, int from, int tag, void* data, size_t room, const mpip_type_t* type = nullptr,
               size_t count = 0);
    int wait(mpip_req_t& req);
    void send(int to, int tag, const void* data, size_t bytes, int mode = MPIP_MODE_STANDARD);
    size_t receive(int from, int tag, void* data, size_t room);
    bool cancel_receive(mpip_req_t& req);
    void barrier();
    int progress();
    // For so long. Never a number of passes: on a busy machine each may cost a turn of all others.
    void progress_for(int milliseconds);
    // Leaves orderly; the destructor does it otherwise.
    void finalize();

    size_t unexpected() const { return unexpected_.size(); }
    // The first of them, taken off; it goes back by release().
    unexmsg_t* take_unexpected();
    static void release(unexmsg_t* message) { up_release(message); }
    size_t unexpected_bytes() const { return unexpected_bytes_; }
    const std::vector<int>& failed() const { return failed_; }
    bool expect_loss = false;  // losing a process is no news
    bool stays_awake = false;  // progress never sleeps, however long there is nothing to do
    uint64_t completed = 0;    // upcalls for MPIP_REQ_NOTIFY

private:
    struct Message : unexmsg {
        std::unique_ptr<char[]> data;
    };
    static int up_arrived(process_t*, const envelope*, const void*, size_t, void*, mpip_req_t**);
    static void up_completed(mpip_req_t*);
    static void up_peer_failed(process_t*, int);
    static unexmsg_t* up_withdraw(process_t*, reqaddr_t);
    static void up_release(unexmsg_t*);
    static int up_post(mpip_req_t*);
    static int up_progress();
    static bool matches(const mpip_req_t& req, const process_t* from, const envelope& env);
    int post(mpip_req_t& req);
    void chain(int protocol, int late);

    Job& job_;
    std::vector<process_t> processes_;
    std::vector<process_t*> by_rank_;
    std::vector<procinfo> infos_;
    std::vector<std::string> cards_[NPROTO];
    std::string flat_[NPROTO];
    std::vector<int> sizes_[NPROTO];
    taskinfo_t task_ = {};
    mpip_comm_t comm_ = {};
    std::list<mpip_req_t*> posted_;
    std::list<std::unique_ptr<Message>> unexpected_;
    size_t unexpected_bytes_ = 0;
    std::vector<int> failed_;
    unsigned idle_ = 0;
    bool finalized_ = false;
};

}  // namespace viaduct::adi_test
