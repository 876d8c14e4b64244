// SPDX-License-Identifier: BSD-2-Clause
// What a process tells the others about its NIC, and which peers can reach each other. Both sides judge by the same two
// cards.
#include "mpi-adi/transport/via/card.hpp"

#include <unistd.h>

#include <cstring>
#include <vector>

#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/via/nic.hpp"

namespace viaduct::via {

namespace {

constexpr uint32_t kMagic = 0x31414956;  // "VIA1"

}  // namespace

bool discovers(VIP_NIC_HANDLE nic, const unsigned char* address, size_t len) {
    constexpr VIP_ULONG kMost = 256;
    constexpr size_t kEach = sizeof(VIP_NET_ADDRESS) + 32;
    std::vector<unsigned char> room(kMost * kEach);
    std::vector<VIP_NET_ADDRESS*> pointers(kMost);
    for (size_t i = 0; i < kMost; ++i) pointers[i] = reinterpret_cast<VIP_NET_ADDRESS*>(&room[i * kEach]);
    VIP_AUTODISCOVERY_LIST list = {0, pointers.data(), kMost};
    if (VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list) != VIP_SUCCESS) return false;
    for (size_t i = 0; i < list.NumAdAddrs && i < kMost; ++i) {
        if (pointers[i]->HostAddressLen == len && std::memcmp(pointers[i]->HostAddress, address, len) == 0) {
            return true;
        }
    }
    return false;
}

Card make_card(const Nic& nic) {
    Card card = {};
    card.magic = kMagic;
    card.version = kWireVersion;
    card.host = adi::host_number("net");  // NICs are a network name space's
    card.network = adi::hash(adi::kHashSeed, nic.attributes.Name, std::strlen(nic.attributes.Name));
    card.pids = adi::host_number("pid");
    card.pid = static_cast<uint32_t>(::getpid());
    card.maxtransfersize = nic.attributes.MaxTransferSize;
    card.depth = static_cast<uint16_t>(nic.credit_rules.depth);
    card.reserve = static_cast<uint16_t>(nic.credit_rules.reserve);
    card.address_len = nic.attributes.NicAddressLen;
    std::memcpy(card.address, nic.attributes.LocalNicAddress, nic.attributes.NicAddressLen);
    const MemoryOffer& page = nic.connects.page.offer();
    card.page_device = page.device;
    card.page_inode = page.inode;
    card.page_mark = page.mark;
    card.page_descriptor = static_cast<uint32_t>(page.descriptor);
    return card;
}

MemoryOffer request_page_of(const Card& card) {
    return {card.page_device, card.page_inode, card.page_mark, static_cast<int32_t>(uint32_t{card.pid}),
            static_cast<int32_t>(uint32_t{card.page_descriptor})};
}

const Card* card_of(const taskinfo_t* task, int rank) {
    int size = 0;
    const Card* card = static_cast<const Card*>(mpip_environment(task, MPIP_PROTO_VIA, rank, &size));
    if (card == nullptr || size != sizeof(Card) || card->magic != kMagic || card->version != kWireVersion)
        return nullptr;
    if (card->address_len > sizeof card->address || card->depth == 0 || card->reserve < 2) return nullptr;
    return card;
}

bool reaches(const Nic& nic, const Card& mine, const Card& theirs) {
    // Accepting demands equal transfer sizes (spec/calls 4.3).
    if (mine.maxtransfersize != theirs.maxtransfersize) return false;
    if (mine.host == theirs.host) return mine.network == theirs.network;
    return discovers(nic.handle, theirs.address, theirs.address_len);
}

}  // namespace viaduct::via
