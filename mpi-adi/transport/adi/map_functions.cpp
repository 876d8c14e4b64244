// SPDX-License-Identifier: BSD-2-Clause
// The protocol tables of this process, bound by name, and the choice of one protocol for each pair of
// processes.
#include <cstring>
#include <string>

#include "mpi-adi/transport/adi/entries.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"

using viaduct::adi::fail;

namespace {
void (*replacements[NPROTO])(struct protocol*);
}

extern "C" {

struct protocol mpip_protocols[NPROTO];
struct mpip_upcalls mpip_up;

const char* mpip_protocol_name(int number) {
    static constexpr const char* kNames[NPROTO] = {"self", "shm", "via", "tcp"};
    return number >= 0 && number < NPROTO ? kNames[number] : "";
}

int mpip_set_upcalls(const struct mpip_upcalls* upcalls) {
    if (upcalls->version != CMPI_ADI_VERSION) {
        return fail(MPIP_ERR_ARG, "the engine was built for version %u of the device, this is %d",
                    upcalls->version, CMPI_ADI_VERSION);
    }
    if (upcalls->arrived == nullptr || upcalls->completed == nullptr || upcalls->peer_failed == nullptr ||
        upcalls->withdraw == nullptr || upcalls->release == nullptr || upcalls->post == nullptr ||
        upcalls->progress == nullptr) {
        return fail(MPIP_ERR_ARG, "the engine left an upcall out");
    }
    if (const std::string wrong = viaduct::adi::wrong_variables(); !wrong.empty())
        return fail(MPIP_ERR_ARG, "%s", wrong.c_str());
    mpip_up = *upcalls;
    return MPIP_SUCCESS;
}

int mpip_replace_module(int number, void (*bind)(struct protocol*)) {
    if (number <= MPIP_PROTO_SELF || number >= NPROTO)
        return fail(MPIP_ERR_ARG, "no module takes the place of number %d", number);
    if (mpip_protocols[number].pt_loaded != 0)
        return fail(MPIP_ERR_ARG, "%s is in use", mpip_protocol_name(number));
    replacements[number] = bind;
    return MPIP_SUCCESS;
}

int mpip_map_functions(const char* pmname, struct protocol* table) {
    *table = {};
    table->pt_number = -1;
    for (int i = 0; i < NPROTO; ++i) {
        if (std::strcmp(pmname, mpip_protocol_name(i)) == 0) table->pt_number = i;
    }
    table->pt_name = mpip_protocol_name(table->pt_number);
    if (table->pt_number >= 0 && replacements[table->pt_number] != nullptr) {
        replacements[table->pt_number](table);
        table->pt_loaded = 1;
        return MPIP_SUCCESS;
    }
    switch (table->pt_number) {
        case MPIP_PROTO_SELF:
            VIADUCT_BIND_MODULE(table, self);
            break;
        case MPIP_PROTO_SHM:
            VIADUCT_BIND_MODULE(table, shm);
            break;
        case MPIP_PROTO_VIA:
            if (*viaduct::adi::param_text(viaduct::adi::Param::via_nics) != '\0') {
                VIADUCT_BIND_MODULE(table, rails);
            } else {
                VIADUCT_BIND_MODULE(table, via);
            }
            break;
        case MPIP_PROTO_TCP:
            VIADUCT_BIND_MODULE(table, tcp);
            break;
        default:
            return fail(MPIP_ERR_ARG, "there is no protocol module named '%s'", pmname);
    }
    table->pt_loaded = 1;
    return MPIP_SUCCESS;
}
}
