// SPDX-License-Identifier: BSD-2-Clause
// VIADUCT_PROTOCOL_ENTRIES(pm, module) defines the functions mpip_PM_* of a transport's function table (spec/adi 9).
// `module` is the transport's object, derived from Protocol; its member type LaneClass is the class of its lanes. And
// Protocol::send (pt_fsend), the fast path of a send: it calls L::put_eager() directly, not through a virtual function,
// and no frame is built before it. Called by the engine with its lock held.
#pragma once

#include <type_traits>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/entries.hpp"
#include "mpi-adi/transport/protocol/send.hpp"

namespace viaduct::protocol {

template <class L>
inline int Protocol::send(process_t* proc, const void* buf, size_t count, const mpip_type_t* type, int tag,
                          mpip_comm_t* comm, int mode) {
    Peer& p = *peer_of(proc);
    const size_t bytes = adi::bytes_of(count, type);
    const bool contiguous = type == nullptr || (type->d_flags & MPIP_TYPE_CONTIG) != 0;
    if (p.stops == 0 && proc->p_sendhead == nullptr && contiguous && (mode & MPIP_MODE_SYNC) == 0 &&
        static_cast<L&>(*p.lane).put_eager(buf, bytes, tag, comm->c_rank, comm->c_sndctxt, mode)) [[likely]] {
        ++counters_->mc_eager;
        return MPIP_SUCCESS;
    }
    if ((mode & MPIP_MODE_TRY) != 0) return MPIP_AGAIN;
    return adi::blocking_send(proc, buf, count, type, tag, comm, mode);
}

}  // namespace viaduct::protocol

#define VIADUCT_PROTOCOL_ENTRIES(pm, module)                                                                        \
    VIADUCT_DECLARE_MODULE(pm)                                                                                      \
    VIADUCT_COMMON_ENTRIES(pm)                                                                                      \
    extern "C" {                                                                                                    \
    int mpip_##pm##_initialize(void) { return module.initialize(); }                                                \
    int mpip_##pm##_reach(taskinfo_t* task, int rank) { return module.reaches(task, rank) ? 1 : 0; }                \
    int mpip_##pm##_makeconns(taskinfo_t* task, void*) { return module.connect(task); }                             \
    int mpip_##pm##_addconns(taskinfo_t* task, void*) { return module.connect(task); }                              \
    int mpip_##pm##_completeconns(taskinfo_t* task) { return module.complete(task); }                               \
    int mpip_##pm##_closeconns(process_t** procs, int count, void*) { return module.close(procs, count); }          \
    int mpip_##pm##_undoconns(taskinfo_t*, void*) {                                                                 \
        module.finalize();                                                                                          \
        return MPIP_SUCCESS;                                                                                        \
    }                                                                                                               \
    int mpip_##pm##_finalize(void) {                                                                                \
        module.finalize();                                                                                          \
        return MPIP_SUCCESS;                                                                                        \
    }                                                                                                               \
    int mpip_##pm##_fsend(process_t* proc, const void* buf, size_t count, const mpip_type_t* type, int tag,         \
                          mpip_comm_t* comm, int mode) {                                                            \
        using Module = std::remove_reference_t<decltype(module)>;                                                   \
        return module.send<Module::LaneClass>(proc, buf, count, type, tag, comm, mode);                             \
    }                                                                                                               \
    void mpip_##pm##_queuedsend(process_t* proc) { module.queued_send(proc); }                                      \
    int mpip_##pm##_uirecv(process_t*, unexmsg_t* message, mpip_req_t* req) { return module.uirecv(message, req); } \
    void mpip_##pm##_ufree(unexmsg_t* message) { module.ufree(message); }                                           \
    int mpip_##pm##_cancelsend(mpip_req_t* req) { return module.cancel_send(req); }                                 \
    void mpip_##pm##_error_request(mpip_req_t* req) { module.error_request(req); }                                  \
    void mpip_##pm##_pressure(int on) { module.pressure(on != 0); }                                                 \
    int mpip_##pm##_ping(mpip_comm_t* comm, int rank) { return module.ping(comm->c_procs[rank]); }                  \
    int mpip_##pm##_progress_nblk(int) { return module.progress(); }                                                \
    void* mpip_##pm##_expose(void* memory, size_t bytes, struct mpip_region* region) {                              \
        return module.expose(memory, bytes, region);                                                                \
    }                                                                                                               \
    void mpip_##pm##_conceal(void* exposed) { module.conceal(exposed); }                                            \
    int mpip_##pm##_access(mpip_req_t* req, const struct mpip_region* region, const struct mpip_piece* far,         \
                           size_t pieces) {                                                                         \
        return module.access(req, *region, far, pieces);                                                            \
    }                                                                                                               \
    int mpip_##pm##_change(mpip_req_t* req, const struct mpip_region* region, const struct mpip_change* change) {   \
        return module.change(req, *region, *change);                                                                \
    }                                                                                                               \
    int mpip_##pm##_block(unsigned timeout_us) { return module.block(timeout_us); }                                 \
    void mpip_##pm##_bind(const struct mpip_device* device, struct protocol* table) {                               \
        VIADUCT_BIND_MODULE(table, pm);                                                                             \
        table->pt_expose = mpip_##pm##_expose;                                                                      \
        table->pt_conceal = mpip_##pm##_conceal;                                                                    \
        table->pt_access = mpip_##pm##_access;                                                                      \
        table->pt_change = mpip_##pm##_change;                                                                      \
        module.bind(*device, table->pt_number);                                                                     \
    }                                                                                                               \
    }
