// SPDX-License-Identifier: BSD-2-Clause
// What a process tells the others about its NIC (spec/adi C61), and which peers can reach each other.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <cstddef>

#include "core/process/offered_memory.hpp"
#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/via/wire.hpp"

namespace viaduct::via {

class Nic;

struct Card {
    Le32 magic;
    Le32 version;
    Le64 host;     // processes with the same number share this host's NICs
    Le64 network;  // and this one the kind of NIC
    Le64 pids;     // pid means the same to those with the same number here
    Le32 pid;
    Le64 maxtransfersize;
    Le16 depth;    // receives it posts for each peer
    Le16 reserve;  // and those for packets without credit
    Le16 address_len;
    unsigned char address[20];
    // The page for requests (request_page.hpp); mark 0: none is offered.
    Le64 page_device;
    Le64 page_inode;
    Le64 page_mark;
    Le32 page_descriptor;
};
static_assert(sizeof(Card) < 128);

Card make_card(const Nic& nic);
// nullptr: it has none, or one that cannot be.
const Card* card_of(const taskinfo_t* task, int rank);
MemoryOffer request_page_of(const Card& card);
// Whether a NIC says of itself that it sees an address.
bool discovers(VIP_NIC_HANDLE nic, const unsigned char* address, size_t len);
bool reaches(const Nic& nic, const Card& mine, const Card& theirs);

}  // namespace viaduct::via
