// SPDX-License-Identifier: BSD-2-Clause
// A NIC as a rail: the whole transport via. Both sides request their connections, so no connect listener is needed.
#include <algorithm>
#include <cstring>

#include "core/process/process_age.hpp"
#include "mpi-adi/transport/adi/device.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/multirail/rail.hpp"
#include "mpi-adi/transport/via/post.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::multirail {

namespace {

// The kind of a NIC: accepting demands equal transfer sizes (spec/calls 4.3).
uint32_t network_number(const VIP_NIC_ATTRIBUTES& nic) {
    const uint64_t name = adi::hash(adi::kHashSeed, nic.Name, std::strlen(nic.Name));
    const auto number = static_cast<uint32_t>(adi::hash(name, &nic.MaxTransferSize, sizeof nic.MaxTransferSize));
    return number != 0 ? number : 1;
}

class ViaRail final : public Rail {
public:
    int open(const char* nic) {
        name_ = nic;
        via_.bind(adi::device, MPIP_PROTO_VIA);  // it counts for the protocol that it serves
        const int rc = via_.open(nic);
        if (rc != MPIP_SUCCESS) return rc;
        via_.nic.connects.on_demand = via_.nic.connects.mutual = true;
        if (via_.nic.attributes.NicAddressLen <= sizeof Card::Rail::address) return MPIP_SUCCESS;
        via_.finalize();
        return adi::fail(MPIP_ERR_OTHER, "NIC %s cannot be one of several: its address is too long", nic);
    }

    const std::string& name() const override { return name_; }
    std::string device() const override {
        const VIP_NIC_ATTRIBUTES& nic = via_.nic.attributes;
        return nic.Name + std::string(reinterpret_cast<const char*>(nic.LocalNicAddress), nic.NicAddressLen);
    }

    void describe(const taskinfo_t* task, Card* card, size_t at) override {
        via::Nic& nic = via_.nic;
        nic.choose_rules(task->ti_nprocs);
        nic.index = at;
        own_ = via::make_card(nic);
        // One number of receives for all: the least.
        if (card->depth == 0 || own_.depth < card->depth) card->depth = own_.depth;
        if (card->reserve == 0 || own_.reserve < card->reserve) card->reserve = static_cast<uint8_t>(own_.reserve);
        Card::Rail& told = card->rail[at];
        told.network = network_number(nic.attributes);
        told.address_len = static_cast<uint8_t>(nic.attributes.NicAddressLen);
        std::memcpy(told.address, nic.attributes.LocalNicAddress, told.address_len);
    }

    // Both sides judge alike: on one host by the kind of NIC, between hosts by what the NIC sees.
    bool reaches(const taskinfo_t*, int, const Card& mine, const Card& theirs, size_t at) const override {
        if (at >= theirs.rails) return false;
        const Card::Rail& a = mine.rail[at];
        const Card::Rail& b = theirs.rail[at];
        if (b.network == 0 || a.network != b.network || b.address_len > sizeof b.address) return false;
        return mine.host == theirs.host || via::discovers(via_.nic.handle, b.address, b.address_len);
    }

    int set_up(taskinfo_t* task, int peers) override {
        via::Nic& nic = via_.nic;
        const auto processes = static_cast<size_t>(task->ti_nprocs);
        nic.cards.resize(processes);
        if (nic.cq != nullptr) return via_.join(task, peers);
        nic.cards[static_cast<size_t>(task->ti_index)] = own_;
        return via_.set_up(task, peers);
    }

    protocol::Peer& make_lane(const taskinfo_t*, const Card& theirs, size_t at, int rank, process_t* proc,
                              protocol::UpperLayer& upper) override {
        via::Card& card = via_.nic.cards[static_cast<size_t>(rank)];
        card.host = theirs.host;
        card.pids = theirs.pids;
        card.pid = theirs.pid;
        card.depth = theirs.depth;
        card.reserve = theirs.reserve;
        card.address_len = theirs.rail[at].address_len;
        std::memcpy(card.address, theirs.rail[at].address, theirs.rail[at].address_len);
        via_.nic.cards_since = boot_ticks();
        return via_.make_connection(rank, proc, &upper);
    }

    void connect(protocol::Peer& peer) override {
        if (peer.lost()) via_.renew(peer);
        peer.lane->start_connecting();
    }

    int progress() override { return via_.progress(); }
    const protocol::LongRules* rules() const override { return &via_.rules(); }
    protocol::Memory* memory() override { return &via_; }
    size_t most_transfer() const override { return via_.nic.attributes.MaxTransferSize; }
    size_t whole_limit() const override { return std::min(via_.nic.eager_limit, via::MAX_DATA_SIZE); }
    void finalize() override { via_.finalize(); }

private:
    std::string name_;
    via::ViaTransport via_;
    via::Card own_ = {};
};

}  // namespace

std::unique_ptr<Rail> open_via_rail(const char* nic) {
    auto rail = std::make_unique<ViaRail>();
    if (rail->open(nic) != MPIP_SUCCESS) return nullptr;
    return rail;
}

}  // namespace viaduct::multirail
