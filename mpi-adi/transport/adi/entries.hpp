// SPDX-License-Identifier: BSD-2-Clause
// The entries of a module under their names, mpip_<module>_<entry>, and the macro that binds them to a table. C59.
#pragma once

#include "mpi-adi/transport/adi/cmpi_adi.h"

#define VIADUCT_DECLARE_MODULE(pm)                                                                        \
    _Pragma("GCC visibility push(default)") extern "C" {                                                  \
    int mpip_##pm##_initialize(void);                                                                     \
    int mpip_##pm##_initconns(taskinfo_t*, void**);                                                       \
    int mpip_##pm##_makeconns(taskinfo_t*, void*);                                                        \
    int mpip_##pm##_addconns(taskinfo_t*, void*);                                                         \
    int mpip_##pm##_completeconns(taskinfo_t*);                                                           \
    int mpip_##pm##_remconns(process_t**, int, void**);                                                   \
    int mpip_##pm##_closeconns(process_t**, int, void*);                                                  \
    int mpip_##pm##_undoconns(taskinfo_t*, void*);                                                        \
    int mpip_##pm##_fsend(process_t*, const void*, size_t, const mpip_type_t*, int, mpip_comm_t*, int);   \
    int mpip_##pm##_frecv(process_t*, void*, size_t, const mpip_type_t*, int, mpip_comm_t*, mpip_req_t*); \
    int mpip_##pm##_urecv(process_t*, unexmsg_t*, void*, size_t, const mpip_type_t*, mpip_comm_t*,        \
                          mpip_req_t*);                                                                   \
    int mpip_##pm##_uirecv(process_t*, unexmsg_t*, mpip_req_t*);                                          \
    int mpip_##pm##_progress_blk(mpip_req_t*, int);                                                       \
    int mpip_##pm##_progress_nblk(int);                                                                   \
    void mpip_##pm##_postedreceive(process_t*);                                                           \
    void mpip_##pm##_unpostedreceive(process_t*);                                                         \
    void mpip_##pm##_queuedsend(process_t*);                                                              \
    void mpip_##pm##_dequeuedsend(process_t*);                                                            \
    void mpip_##pm##_postedrcvany(mpip_comm_t*);                                                          \
    void mpip_##pm##_unpostedrcvany(mpip_comm_t*);                                                        \
    void mpip_##pm##_matchedrcvany(mpip_comm_t*, process_t*);                                             \
    int mpip_##pm##_getevents(void**, unsigned*, unsigned*, unsigned*);                                   \
    int mpip_##pm##_getpolls(struct pollfd**, int*, int*);                                                \
    void mpip_##pm##_error_request(mpip_req_t*);                                                          \
    int mpip_##pm##_finalize(void);                                                                       \
    int mpip_##pm##_ping(mpip_comm_t*, int);                                                              \
    int mpip_##pm##_reach(taskinfo_t*, int);                                                              \
    int mpip_##pm##_block(unsigned);                                                                      \
    void* mpip_##pm##_expose(void*, size_t, struct mpip_region*);                                         \
    void mpip_##pm##_conceal(void*);                                                                      \
    int mpip_##pm##_access(mpip_req_t*, const struct mpip_region*, const struct mpip_piece*, size_t);     \
    int mpip_##pm##_change(mpip_req_t*, const struct mpip_region*, const struct mpip_change*);            \
    int mpip_##pm##_cancelsend(mpip_req_t*);                                                              \
    void mpip_##pm##_ufree(unexmsg_t*);                                                                   \
    void mpip_##pm##_pressure(int);                                                                       \
    void mpip_##pm##_bind(const struct mpip_device*, struct protocol*);                                   \
    }                                                                                                     \
    _Pragma("GCC visibility pop")

#define VIADUCT_BIND_MODULE(table, pm)                             \
    do {                                                           \
        (table)->pt_initialize = mpip_##pm##_initialize;           \
        (table)->pt_initconns = mpip_##pm##_initconns;             \
        (table)->pt_makeconns = mpip_##pm##_makeconns;             \
        (table)->pt_addconns = mpip_##pm##_addconns;               \
        (table)->pt_completeconns = mpip_##pm##_completeconns;     \
        (table)->pt_remconns = mpip_##pm##_remconns;               \
        (table)->pt_closeconns = mpip_##pm##_closeconns;           \
        (table)->pt_undoconns = mpip_##pm##_undoconns;             \
        (table)->pt_fsend = mpip_##pm##_fsend;                     \
        (table)->pt_frecv = mpip_##pm##_frecv;                     \
        (table)->pt_urecv = mpip_##pm##_urecv;                     \
        (table)->pt_uirecv = mpip_##pm##_uirecv;                   \
        (table)->pt_progress_blk = mpip_##pm##_progress_blk;       \
        (table)->pt_progress_nblk = mpip_##pm##_progress_nblk;     \
        (table)->pt_postedreceive = mpip_##pm##_postedreceive;     \
        (table)->pt_unpostedreceive = mpip_##pm##_unpostedreceive; \
        (table)->pt_queuedsend = mpip_##pm##_queuedsend;           \
        (table)->pt_dequeuedsend = mpip_##pm##_dequeuedsend;       \
        (table)->pt_postedrcvany = mpip_##pm##_postedrcvany;       \
        (table)->pt_unpostedrcvany = mpip_##pm##_unpostedrcvany;   \
        (table)->pt_matchedrcvany = mpip_##pm##_matchedrcvany;     \
        (table)->pt_getevents = mpip_##pm##_getevents;             \
        (table)->pt_getpolls = mpip_##pm##_getpolls;               \
        (table)->pt_error_request = mpip_##pm##_error_request;     \
        (table)->pt_finalize = mpip_##pm##_finalize;               \
        (table)->pt_ping = mpip_##pm##_ping;                       \
        (table)->pt_reach = mpip_##pm##_reach;                     \
        (table)->pt_block = mpip_##pm##_block;                     \
        (table)->pt_cancelsend = mpip_##pm##_cancelsend;           \
        (table)->pt_ufree = mpip_##pm##_ufree;                     \
        (table)->pt_pressure = mpip_##pm##_pressure;               \
    } while (0)

// The entries that are the same for every module of ours: counters of receives, and the blocking forms.
#define VIADUCT_COMMON_ENTRIES(pm)                                                                           \
    extern "C" {                                                                                             \
    int mpip_##pm##_frecv(process_t* p, void* b, size_t n, const mpip_type_t* t, int tag, mpip_comm_t* c,    \
                          mpip_req_t* s) {                                                                   \
        return viaduct::adi::blocking_receive(p, b, n, t, tag, c, s);                                        \
    }                                                                                                        \
    int mpip_##pm##_urecv(process_t* p, unexmsg_t* m, void* b, size_t n, const mpip_type_t* t,               \
                          mpip_comm_t* c, mpip_req_t* s) {                                                   \
        return viaduct::adi::blocking_unexpected(p, m, b, n, t, c, s);                                       \
    }                                                                                                        \
    int mpip_##pm##_progress_blk(mpip_req_t* req, int) { return viaduct::adi::wait_for(req); }               \
    int mpip_##pm##_remconns(process_t** p, int n, void** info) {                                            \
        return viaduct::adi::remove_logically(p, n, info);                                                   \
    }                                                                                                        \
    void mpip_##pm##_postedreceive(process_t* p) { ++p->p_nrecvs; }                                          \
    void mpip_##pm##_unpostedreceive(process_t* p) { --p->p_nrecvs; }                                        \
    void mpip_##pm##_dequeuedsend(process_t*) {}                                                             \
    void mpip_##pm##_postedrcvany(mpip_comm_t* c) { viaduct::adi::count_any(c, mpip_##pm##_postedreceive); } \
    void mpip_##pm##_unpostedrcvany(mpip_comm_t* c) {                                                        \
        viaduct::adi::count_any(c, mpip_##pm##_unpostedreceive);                                             \
    }                                                                                                        \
    void mpip_##pm##_matchedrcvany(mpip_comm_t* c, process_t* p) {                                           \
        mpip_##pm##_unpostedrcvany(c);                                                                       \
        ++p->p_nrecvs;                                                                                       \
    }                                                                                                        \
    }

namespace viaduct::adi {

// Any-source, second method of the design: every process of the communicator counts as expected from.
inline void count_any(mpip_comm_t* comm, void (*each)(process_t*)) {
    for (int rank = 0; comm->c_procs != nullptr && rank < comm->c_size; ++rank) each(comm->c_procs[rank]);
}

}  // namespace viaduct::adi
