// SPDX-License-Identifier: BSD-2-Clause
// The table entries that every transport has alike; `module` is its object, whose lanes are of the class that
// its `LaneClass` names.
#pragma once

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/entries.hpp"
#include "mpi-adi/transport/protocol/send.hpp"

#define VIADUCT_PROTOCOL_ENTRIES(pm, module)                                                                \
    VIADUCT_COMMON_ENTRIES(pm)                                                                              \
    extern "C" {                                                                                            \
    int mpip_##pm##_initialize(void) { return module.initialize(); }                                        \
    int mpip_##pm##_reach(taskinfo_t* task, int rank) { return module.reaches(task, rank) ? 1 : 0; }        \
    int mpip_##pm##_makeconns(taskinfo_t* task, void*) { return module.connect(task); }                     \
    int mpip_##pm##_addconns(taskinfo_t* task, void*) { return module.connect(task); }                      \
    int mpip_##pm##_completeconns(taskinfo_t* task) { return module.complete(task); }                       \
    int mpip_##pm##_closeconns(process_t** procs, int count, void*) { return module.close(procs, count); }  \
    int mpip_##pm##_undoconns(taskinfo_t*, void*) {                                                         \
        module.finalize();                                                                                  \
        return MPIP_SUCCESS;                                                                                \
    }                                                                                                       \
    int mpip_##pm##_finalize(void) {                                                                        \
        module.finalize();                                                                                  \
        return MPIP_SUCCESS;                                                                                \
    }                                                                                                       \
    int mpip_##pm##_fsend(process_t* proc, const void* buf, size_t count, const mpip_type_t* type, int tag, \
                          mpip_comm_t* comm, int mode) {                                                    \
        return module.send<decltype(module)::LaneClass>(proc, buf, count, type, tag, comm, mode);           \
    }                                                                                                       \
    void mpip_##pm##_queuedsend(process_t* proc) { module.queued_send(proc); }                              \
    int mpip_##pm##_uirecv(process_t*, unexmsg_t* message, mpip_req_t* req) {                               \
        return module.uirecv(message, req);                                                                 \
    }                                                                                                       \
    void mpip_##pm##_ufree(unexmsg_t* message) { module.ufree(message); }                                   \
    int mpip_##pm##_cancelsend(mpip_req_t* req) { return module.cancel_send(req); }                         \
    void mpip_##pm##_error_request(mpip_req_t* req) { module.error_request(req); }                          \
    void mpip_##pm##_pressure(int on) { module.pressure(on != 0); }                                         \
    int mpip_##pm##_ping(mpip_comm_t* comm, int rank) { return module.ping(comm->c_procs[rank]); }          \
    int mpip_##pm##_progress_nblk(int) { return module.progress(); }                                        \
    int mpip_##pm##_block(unsigned timeout_us) {                                                            \
        module.block(timeout_us);                                                                           \
        return 0;                                                                                           \
    }                                                                                                       \
    }
