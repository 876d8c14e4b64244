// SPDX-License-Identifier: BSD-2-Clause
#include "engine.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace viaduct::adi_test {

namespace {
Engine* engine = nullptr;

void need(int rc) {
    if (rc == MPIP_SUCCESS) return;
    std::fprintf(stderr, "device: %s\n", mpip_last_error());
    CHECK(rc == MPIP_SUCCESS);
}
}  // namespace

// The processes of a protocol, without those that come late (and for these, without all).
void Engine::chain(int protocol, int late) {
    procinfo** last = &task_.ti_proto[protocol];
    task_.ti_nproto[protocol] = 0;
    for (procinfo& info : infos_) {
        const int rank = info.pi_proc->p_gid.pg_wrank;
        if (info.pi_proto != protocol || (protocol != MPIP_PROTO_SELF && std::max(rank, job_.rank()) >= late))
            continue;
        *last = &info;
        last = &info.pi_next;
        ++task_.ti_nproto[protocol];
    }
    *last = nullptr;
}

void Engine::add_late() {
    for (int p = 1; p < NPROTO; ++p) {
        chain(p, INT32_MAX);
        if (task_.ti_nproto[p] > 0) need(mpip_protocols[p].pt_addconns(&task_, task_.ti_renvs[p]));
    }
}

void Engine::part_from(const std::vector<int>& ranks) {
    std::vector<process_t*> leaving;
    leaving.reserve(ranks.size());
    for (const int rank : ranks) leaving.push_back(process(rank));
    struct protocol* module = leaving.front()->p_proto;
    const int count = static_cast<int>(leaving.size());
    void* info = nullptr;
    need(module->pt_remconns(leaving.data(), count, &info));
    need(module->pt_closeconns(leaving.data(), count, info));
}

Engine::Engine(Job& job, const char* forced, int late) : job_(job) {
    bool sockets_too = false;
    if (std::strcmp(forced, "rails") == 0) {  // via with several NICs, by the environment
        forced = "via";
        const char* rails = std::getenv("CMPI_VIA_NICS");
        sockets_too = rails != nullptr && std::strstr(rails, "tcp") != nullptr;
    }
    engine = this;
    const size_t n = static_cast<size_t>(job.size());
    processes_.resize(n);
    infos_.resize(n);
    for (size_t i = 0; i < n; ++i) {
        processes_[i].p_gid.pg_wrank = static_cast<int>(i);
        processes_[i].p_conns = 1;
        infos_[i].pi_proc = &processes_[i];
        by_rank_.push_back(&processes_[i]);
    }
    task_.ti_flags = TASK_WORLD;
    task_.ti_index = job.rank();
    task_.ti_nprocs = task_.ti_nlocal = job.size();
    task_.ti_nhosts = 1;
    std::snprintf(task_.ti_job, sizeof task_.ti_job, "adi-test-%d", static_cast<int>(::getppid()));
    task_.ti_procs = infos_.data();
    ::gethostname(infos_[static_cast<size_t>(job.rank())].pi_host, sizeof infos_[0].pi_host - 1);

    const mpip_upcalls upcalls = {CMPI_ADI_VERSION, up_arrived, up_completed, up_peer_failed,
                                  up_withdraw,      up_release, up_post,      up_progress, nullptr,    nullptr};
    need(mpip_set_upcalls(&upcalls));
    for (int p = 0; p < NPROTO; ++p) {
        const char* name = mpip_protocol_name(p);
        const bool wanted =
            p == MPIP_PROTO_SELF || std::strcmp(name, forced) == 0 || (p == MPIP_PROTO_TCP && sockets_too);
        void* env = nullptr;
        if (wanted) {
            need(mpip_map_functions(name, &mpip_protocols[p]));
            need(mpip_protocols[p].pt_initialize());
            need(mpip_protocols[p].pt_initconns(&task_, &env));
        }
        cards_[p] = job.exchange(std::string(
            static_cast<const char*>(env), env == nullptr ? 0 : static_cast<size_t>(task_.ti_myenvsize[p])));
        for (const std::string& card : cards_[p]) {
            flat_[p] += card;
            sizes_[p].push_back(static_cast<int>(card.size()));
        }
        task_.ti_renvs[p] = flat_[p].data();
        task_.ti_renvsizes[p] = sizes_[p].data();
    }
    int whom = -1;
    need(mpip_getconns(&task_, forced, &whom));
    bool used[NPROTO];
    for (int p = 0; p < NPROTO; ++p) {
        used[p] = task_.ti_nproto[p] > 0;
        if (late < job.size()) chain(p, late);
    }
    for (int p = 0; p < NPROTO; ++p) {
        if (used[p]) need(mpip_protocols[p].pt_makeconns(&task_, task_.ti_renvs[p]));
    }
    for (int p = 0; p < NPROTO; ++p) {
        if (used[p]) need(mpip_protocols[p].pt_completeconns(&task_));
    }
    comm_.c_sndctxt = comm_.c_rcvctxt = 0x1234567800000004;
    comm_.c_rank = job.rank();
    comm_.c_size = job.size();
    comm_.c_procs = by_rank_.data();
}

void Engine::finalize() {
    if (finalized_) return;
    finalized_ = true;
    for (int p = 0; p < NPROTO; ++p) {
        if (task_.ti_nproto[p] == 0) continue;
        need(mpip_protocols[p].pt_closeconns(nullptr, 0, nullptr));
    }
    for (int p = 0; p < NPROTO; ++p) {
        if (mpip_protocols[p].pt_loaded != 0) need(mpip_protocols[p].pt_finalize());
    }
}

Engine::~Engine() { finalize(); }

int Engine::progress() {
    int done = 0;
    int used = 0;
    int last = 0;
    for (int p = 1; p < NPROTO; ++p) {
        if (task_.ti_nproto[p] == 0) continue;
        const int rc = mpip_protocols[p].pt_progress_nblk(1);
        if (rc < 0) return rc;
        done += rc;
        ++used;
        last = p;
    }
    if (done != 0) {
        idle_ = 0;
    } else if (++idle_ > 2000 && used == 1 && !stays_awake) {
        mpip_protocols[last].pt_block(1000);
    } else if (idle_ > 20) {
        ::sched_yield();
    }
    return done;
}

void Engine::progress_for(int milliseconds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    do {
        progress();
    } while (std::chrono::steady_clock::now() < until);
}

bool Engine::matches(const mpip_req_t& req, const process_t* from, const envelope& env) {
    return req.r_ctxt == env.ev_ctxt && (req.r_proc == nullptr || req.r_proc == from) &&
           (req.r_tag == kAny || req.r_tag == env.ev_tag);
}

int Engine::up_arrived(process_t* from, const envelope* env, const void* data, size_t here, void* held,
                       mpip_req_t** match) {
    Engine& e = *engine;
    const bool whole = (env->ev_mode & MPIP_MODE_RTS) == 0 && here == static_cast<size_t>(env->ev_len);
    for (auto it = e.posted_.begin(); it != e.posted_.end(); ++it) {
        mpip_req_t* req = *it;
        if (!matches(*req, from, *env)) continue;
        e.posted_.erase(it);
        req->r_proc = from;
        req->r_tag = env->ev_tag;
        req->r_rank = env->ev_rank;
        if (whole) {
            mpip_req_deliver_all(req, data, here);
            return MPIP_IN_TAKEN;
        }
        *match = req;
        return MPIP_IN_MATCHED;
    }
    auto message = std::make_unique<Message>();
    message->um_env = *env;
    message->um_next = nullptr;
    message->um_proc = from;
    message->um_buf = nullptr;
    message->um_data = held;
    if (whole) {
        message->data.reset(new char[here + 1]);
        std::memcpy(message->data.get(), data, here);
        message->um_buf = message->data.get();
        message->um_data = nullptr;
        e.unexpected_bytes_ += here;
    } else {
        CHECK(held != nullptr);
    }
    e.unexpected_.push_back(std::move(message));
    return whole ? MPIP_IN_TAKEN : MPIP_IN_HELD;
}

void Engine::up_completed(mpip_req_t*) { ++engine->completed; }
void Engine::up_peer_failed(process_t* proc, int) {
    if (!engine->expect_loss) std::fprintf(stderr, "process %d: %s\n", engine->rank(), mpip_last_error());
    engine->failed_.push_back(proc->p_gid.pg_wrank);
    for (auto it = engine->posted_.begin(); it != engine->posted_.end();) {
        mpip_req_t* req = *it;
        if (req->r_proc != proc) {
            ++it;
            continue;
        }
        it = engine->posted_.erase(it);
        req->r_error = MPIP_ERR_PROC_FAILED;
        mpip_req_done(req);
    }
}

unexmsg_t* Engine::up_withdraw(process_t* from, reqaddr_t sendreq) {
    for (auto it = engine->unexpected_.begin(); it != engine->unexpected_.end(); ++it) {
        if ((*it)->um_proc != from || (*it)->um_env.ev_sendreq != sendreq || sendreq == 0) continue;
        Message* message = it->release();
        engine->unexpected_.erase(it);
        return message;
    }
    return nullptr;
}

unexmsg_t* Engine::take_unexpected() {
    Message* message = unexpected_.front().release();
    unexpected_.pop_front();
    return message;
}

void Engine::up_release(unexmsg_t* message) { delete static_cast<Message*>(message); }
int Engine::up_post(mpip_req_t* req) { return engine->post(*req); }
int Engine::up_progress() { return engine->progress(); }

int Engine::post(mpip_req_t& req) {
    for (auto it = unexpected_.begin(); it != unexpected_.end(); ++it) {
        if (!matches(req, (*it)->um_proc, (*it)->um_env)) continue;
        const std::unique_ptr<Message> message = std::move(*it);
        unexpected_.erase(it);
        req.r_proc = message->um_proc;
        req.r_tag = message->um_env.ev_tag;
        req.r_rank = message->um_env.ev_rank;
        if (message->um_buf == nullptr)
            return req.r_proc->p_proto->pt_uirecv(req.r_proc, message.get(), &req);
        unexpected_bytes_ -= static_cast<size_t>(message->um_env.ev_len);
        mpip_req_deliver_all(&req, message->um_buf, static_cast<size_t>(message->um_env.ev_len));
        return MPIP_SUCCESS;
    }
    if (req.r_proc != nullptr && (req.r_proc->p_flags & MPIP_PROC_TRANSPORTERR) != 0) {
        req.r_error = MPIP_ERR_PROC_FAILED;  // lost already: nothing will come
        mpip_req_done(&req);
        return MPIP_SUCCESS;
    }
    posted_.push_back(&req);
    return MPIP_SUCCESS;
}

void Engine::isend(mpip_req_t& req, int to, int tag, const void* data, size_t bytes, int mode,
                   const mpip_type_t* type, size_t count) {
    req = {};
    process_t* proc = process(to);
    req.r_flags = MPIP_REQ_SEND;
    req.r_proc = proc;
    if (type == nullptr && proc->p_proto->pt_fsend(proc, data, bytes, nullptr, tag, &comm_,
                                                   mode | MPIP_MODE_TRY) == MPIP_SUCCESS) {
        req.r_state = MPIP_REQ_DONE;
        req.r_length = static_cast<int64_t>(bytes);
        return;
    }
    req.r_buf = const_cast<void*>(data);
    req.r_bytes = bytes;
    req.r_type = type;
    req.r_count = count;
    req.r_mode = mode;
    req.r_tag = tag;
    req.r_ctxt = comm_.c_sndctxt;
    req.r_rank = comm_.c_rank;
    mpip_enqsend(proc, &req);
    proc->p_proto->pt_queuedsend(proc);
}

void Engine::irecv(mpip_req_t& req, int from, int tag, void* data, size_t room, const mpip_type_t* type,
                   size_t count) {
    req = {};
    req.r_state = MPIP_REQ_RECVHEAD;
    req.r_proc = from == kAny ? nullptr : process(from);
    req.r_tag = tag;
    req.r_ctxt = comm_.c_rcvctxt;
    req.r_buf = data;
    req.r_bytes = room;
    req.r_type = type;
    req.r_count = count;
    CHECK(post(req) == MPIP_SUCCESS);
}

int Engine::wait(mpip_req_t& req) {
    while ((req.r_state & MPIP_REQ_DONE) == 0) CHECK(progress() >= 0);
    return req.r_error;
}

void Engine::send(int to, int tag, const void* data, size_t bytes, int mode) {
    mpip_req_t req;
    isend(req, to, tag, data, bytes, mode);
    CHECK(wait(req) == MPIP_SUCCESS);
}

size_t Engine::receive(int from, int tag, void* data, size_t room) {
    mpip_req_t req;
    irecv(req, from, tag, data, room);
    CHECK(wait(req) == MPIP_SUCCESS);
    return static_cast<size_t>(req.r_length);
}

bool Engine::cancel_receive(mpip_req_t& req) {
    for (auto it = posted_.begin(); it != posted_.end(); ++it) {
        if (*it != &req) continue;
        posted_.erase(it);
        return true;
    }
    return false;
}

void Engine::barrier() {
    constexpr int kTag = 0x7ffffff0;
    char nothing = 0;
    for (int step = 1; step < size(); step *= 2) {
        mpip_req_t out, in;
        irecv(in, (rank() - step + size()) % size(), kTag + step % 8, &nothing, 0);
        isend(out, (rank() + step) % size(), kTag + step % 8, &nothing, 0);
        CHECK(wait(in) == MPIP_SUCCESS);
        CHECK(wait(out) == MPIP_SUCCESS);
    }
}

}  // namespace viaduct::adi_test
