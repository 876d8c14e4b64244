// SPDX-License-Identifier: BSD-2-Clause
// What a process tells the others about its NIC, and who can reach whom. Both sides judge by the same two
// cards.
#include <unistd.h>

#include <cstring>

#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/via/device.hpp"
#include "mpi-adi/transport/via/discovery.hpp"

namespace viaduct::via {

namespace {

constexpr uint32_t kMagic = 0x31414956;  // "VIA1"

}  // namespace

Card make_card() {
    Card card = {};
    card.magic = kMagic;
    card.version = kWireVersion;
    card.host = adi::host_number("net");  // NICs are a network name space's
    card.network = adi::hash(adi::kHashSeed, viadev.attributes.Name, std::strlen(viadev.attributes.Name));
    card.pids = adi::host_number("pid");
    card.pid = static_cast<uint32_t>(::getpid());
    card.maxtransfersize = viadev.attributes.MaxTransferSize;
    card.depth = static_cast<uint16_t>(viadev.credit_rules.depth);
    card.reserve = static_cast<uint16_t>(viadev.credit_rules.reserve);
    card.address_len = viadev.attributes.NicAddressLen;
    std::memcpy(card.address, viadev.attributes.LocalNicAddress, viadev.attributes.NicAddressLen);
    return card;
}

const Card* card_of(const taskinfo_t* task, int rank) {
    int size = 0;
    const Card* card = static_cast<const Card*>(mpip_environment(task, MPIP_PROTO_VIA, rank, &size));
    if (card == nullptr || size != sizeof(Card) || card->magic != kMagic || card->version != kWireVersion)
        return nullptr;
    if (card->address_len > sizeof card->address || card->depth == 0 || card->reserve < 2) return nullptr;
    return card;
}

bool reaches(const Card& mine, const Card& theirs) {
    // Accepting demands equal transfer sizes (spec/calls 4.3).
    if (mine.maxtransfersize != theirs.maxtransfersize) return false;
    if (mine.host == theirs.host) return mine.network == theirs.network;
    return discovers(viadev.nic, theirs.address, theirs.address_len);
}

}  // namespace viaduct::via
