// SPDX-License-Identifier: BSD-2-Clause
// The rails themselves: opening the NICs, what is told of them, queues, and the pool of packets, which every
// NIC has registered, so that a packet may change its rail.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/adi/counters.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/multirail/rails.hpp"
#include "mpi-adi/transport/via/card.hpp"

namespace viaduct::rails {

namespace {

void on_error(VIP_PVOID rail, VIP_ERROR_DESCRIPTOR*) {
    static_cast<Rail*>(rail)->errors.fetch_add(1, std::memory_order_release);
}

uint32_t network_number(const VIP_NIC_ATTRIBUTES& attributes) {
    const auto number =
        static_cast<uint32_t>(adi::hash(adi::kHashSeed, attributes.Name, std::strlen(attributes.Name)));
    return number != 0 ? number : 1;
}

// The names in CMPI_VIA_NICS; for "all", every NIC there is.
std::vector<std::string> wanted_nics() {
    const std::string given = adi::param_text(adi::Param::via_nics);
    std::vector<std::string> names;
    if (given == "all") {
        for (size_t i = 0; i < kMostRails; ++i) names.push_back("nic" + std::to_string(i));
        return names;
    }
    for (size_t from = 0; from <= given.size();) {
        const size_t comma = std::min(given.find(',', from), given.size());
        if (comma > from) names.push_back(given.substr(from, comma - from));
        from = comma + 1;
    }
    return names;
}

bool same_nic(const VIP_NIC_ATTRIBUTES& a, const VIP_NIC_ATTRIBUTES& b) {
    return std::strcmp(a.Name, b.Name) == 0 && a.NicAddressLen == b.NicAddressLen &&
           std::memcmp(a.LocalNicAddress, b.LocalNicAddress, a.NicAddressLen) == 0;
}

}  // namespace

int Rails::open_rail(const char* name) {
    auto rail = std::make_unique<Rail>();
    rail->name = name;
    const VIP_RETURN rc = VipOpenNic(name, &rail->nic);
    if (rc != VIP_SUCCESS)
        return adi::fail(MPIP_ERR_OTHER, "VipOpenNic(%s) answers %d", name, static_cast<int>(rc));
    const VIP_NIC_ATTRIBUTES& nic = rail->attributes;
    int why = MPIP_SUCCESS;
    if (const VIP_RETURN asked = VipQueryNic(rail->nic, &rail->attributes); asked != VIP_SUCCESS) {
        why = adi::fail(MPIP_ERR_OTHER, "VipQueryNic(%s) answers %d", name, static_cast<int>(asked));
    } else if (nic.MaxTransferSize < kBufferBytes || nic.MaxDiscriminatorLen < 24 ||
        nic.NicAddressLen > sizeof Card::Rail::address ||
        (nic.ReliabilityLevelSupport & VIP_SERVICE_RELIABLE_DELIVERY) == 0) {
        why = adi::fail(MPIP_ERR_OTHER, "NIC %s cannot be a rail: no reliable delivery, or limits too low",
                        name);
    }
    for (const auto& other : rails_) {
        if (why == MPIP_SUCCESS && same_nic(other->attributes, nic))
            why = adi::fail(MPIP_ERR_ARG, "%s and %s are the same NIC", other->name.c_str(), name);
    }
    // Without it nobody would tell of a broken lane.
    if (why == MPIP_SUCCESS && VipErrorCallback(rail->nic, rail.get(), on_error) != VIP_SUCCESS)
        why = adi::fail(MPIP_ERR_OTHER, "NIC %s takes no error callback", name);
    if (why != MPIP_SUCCESS) {
        adi::let_go(VipCloseNic(rail->nic));
        return why;
    }
    rail->index = rails_.size();
    rails_.push_back(std::move(rail));
    return MPIP_SUCCESS;
}

int Rails::initialize() {
    int rc = MPIP_SUCCESS;
    for (const std::string& name : wanted_nics()) {
        if (rails_.size() == kMostRails) break;
        const int opened = open_rail(name.c_str());
        if (opened != MPIP_SUCCESS) rc = opened;
    }
    // One NIC that is not there does not keep the others from working.
    if (rails_.empty())
        return rc != MPIP_SUCCESS ? rc : adi::fail(MPIP_ERR_ARG, "CMPI_VIA_NICS names no NIC");
    most_stripe_ = kMostStripe;
    for (const auto& rail : rails_)
        most_stripe_ = std::min<size_t>(most_stripe_, rail->attributes.MaxTransferSize);
    eager_limit_ = kMostPayload;
    rules_.memory = this;
    rules_.tells = true;
    rules_.wanted = protocol::Way::put;
    rules_.frames_up_to = kDirectFrom - 1;

    const long limit = adi::param_number(adi::Param::eager_limit);
    if (limit != 0) eager_limit_ = std::min<size_t>(static_cast<size_t>(limit), kMostPayload);
    mpip_properties& properties = mpip_protocols[MPIP_PROTO_VIA].pt_prop;
    properties = {};
    properties.mp_exclusivity = 20;
    properties.mp_latency_ns = 200;
    properties.mp_bandwidth_mb = static_cast<int>(10000 * rails_.size());
    properties.mp_eager_limit = eager_limit_;
    properties.mp_first_frag = kMostPayload;
    properties.mp_min_frag = kLeastStripe;
    properties.mp_max_frag = most_stripe_;
    properties.mp_cache_size = 256;
    properties.mp_flags = MPIP_PROP_PUT;
    mpip_protocols[MPIP_PROTO_VIA].pt_mtu = kBufferBytes;
    return MPIP_SUCCESS;
}

Card Rails::make_card(const taskinfo_t* task) {
    int depth = static_cast<int>(adi::param_number(adi::Param::prepost_depth));
    if (depth == 0) depth = std::clamp(1024 / std::max(1, task->ti_nprocs), 8, 64);
    for (const auto& rail : rails_) {
        const VIP_NIC_ATTRIBUTES& nic = rail->attributes;
        const auto each = static_cast<int>(std::min<VIP_ULONG>(nic.MaxCQEntries, 1 << 20)) / task->ti_nprocs;
        const auto queue = static_cast<int>(std::min<VIP_ULONG>(nic.MaxDescriptorsPerQueue, 1 << 15));
        while (depth > 4 && depth + via::CreditRules::for_depth(depth, 0).reserve > std::min(each, queue))
            depth /= 2;
    }
    credit_rules_ = via::CreditRules::for_depth(depth, 0);
    me_ = task->ti_index;
    card_ = {};
    card_.magic = kMagic;
    card_.pid = static_cast<uint32_t>(::getpid());
    card_.host = adi::host_number("net");
    card_.pids = adi::host_number("pid");
    card_.depth = static_cast<uint16_t>(credit_rules_.depth);
    card_.reserve = static_cast<uint8_t>(credit_rules_.reserve);
    card_.rails = static_cast<uint8_t>(rails_.size());
    for (const auto& rail : rails_) {
        Card::Rail& told = card_.rail[rail->index];
        told.network = network_number(rail->attributes);
        told.address_len = static_cast<uint8_t>(rail->attributes.NicAddressLen);
        std::memcpy(told.address, rail->attributes.LocalNicAddress, told.address_len);
    }
    return card_;
}

// Both sides judge alike: on one host by the kind of NIC, between hosts by what the NIC sees.
bool Rails::reaches_by(const Card& mine, const Card& theirs, size_t rail) const {
    if (rail >= mine.rails || rail >= theirs.rails) return false;
    const Card::Rail& a = mine.rail[rail];
    const Card::Rail& b = theirs.rail[rail];
    if (a.network == 0 || a.network != b.network || b.address_len > sizeof b.address) return false;
    return mine.host == theirs.host || via::discovers(rails_[rail]->nic, b.address, b.address_len);
}

int Rails::make_queues(int peers) {
    const auto each = static_cast<VIP_ULONG>(credit_rules_.depth + credit_rules_.reserve);
    for (const auto& rail : rails_) {
        const VIP_ULONG most = rail->attributes.MaxCQEntries;
        const auto depth = static_cast<int>(std::min<VIP_ULONG>(
            {rail->attributes.MaxDescriptorsPerQueue, 128, most / static_cast<VIP_ULONG>(peers)}));
        send_depth_ = send_depth_ == 0 ? depth : std::min(send_depth_, depth);
    }
    for (const auto& rail : rails_) {
        const VIP_ULONG most = rail->attributes.MaxCQEntries;
        const VIP_ULONG receives = std::min(most, static_cast<VIP_ULONG>(peers) * each + 16);
        const VIP_ULONG sends = static_cast<VIP_ULONG>(peers) * static_cast<VIP_ULONG>(send_depth_);
        VIP_RETURN rc;
        if (rail->cq == nullptr) {
            rc = VipCreatePtag(rail->nic, &rail->ptag);
            if (rc == VIP_SUCCESS) rc = VipCreateCQ(rail->nic, receives, &rail->cq);
            if (rc == VIP_SUCCESS) rc = VipCreateCQ(rail->nic, sends, &rail->scq);
        } else {
            rc = VipResizeCQ(rail->cq, receives);
            if (rc == VIP_SUCCESS) rc = VipResizeCQ(rail->scq, sends);
        }
        if (rc != VIP_SUCCESS)
            return adi::fail(MPIP_ERR_OTHER, "the queues of %s cannot be made: %d", rail->name.c_str(),
                             static_cast<int>(rc));
    }
    return MPIP_SUCCESS;
}

bool Rails::grow_pool() {
    const auto most = static_cast<size_t>(adi::param_number(adi::Param::vbuf_max));
    const size_t posted =
        bundles_.size() * rails_.size() * static_cast<size_t>(credit_rules_.depth + credit_rules_.reserve);
    size_t count = static_cast<size_t>(adi::param_number(adi::Param::vbuf_spares));
    if (total_ == 0) count += posted;
    if (total_ >= most) return false;
    count = std::min(count, most - total_);
    Region region = {};
    region.bytes = count * sizeof(Packet);
    region.memory = ::mmap(nullptr, region.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region.memory == MAP_FAILED) return false;
    for (const auto& rail : rails_) {
        VIP_MEM_ATTRIBUTES attributes = {rail->ptag, VIP_FALSE, VIP_FALSE};
        if (VipRegisterMem(rail->nic, region.memory, region.bytes, &attributes,
                           &region.handle[rail->index]) == VIP_SUCCESS)
            continue;
        for (size_t i = 0; i < rail->index; ++i)
            adi::let_go(VipDeregisterMem(rails_[i]->nic, region.memory, region.handle[i]));
        ::munmap(region.memory, region.bytes);
        return false;
    }
    auto* all = static_cast<Packet*>(region.memory);
    for (size_t i = count; i-- > 0;) {
        all[i].region = static_cast<uint16_t>(regions_.size());
        release(&all[i]);
    }
    regions_.push_back(region);
    total_ += count;
    return true;
}

Packet* Rails::get_packet() {
    if (free_ == nullptr) {
        for (const auto& rail : rails_) collect_sends(*rail);
        if (free_ == nullptr && !grow_pool()) return nullptr;
        ++adi::counters[MPIP_PROTO_VIA].mc_vbufs_grown;
    }
    Packet* p = free_;
    free_ = p->next;
    p->lane = nullptr;
    p->transfer = nullptr;
    p->numbered = p->with_nic = p->awaited = p->write = false;
    return p;
}

void Rails::release(Packet* p) {
    p->next = free_;
    free_ = p;
}

void Rails::free_pool() {
    for (const Region& region : regions_) {
        for (const auto& rail : rails_)
            adi::let_go(VipDeregisterMem(rail->nic, region.memory, region.handle[rail->index]));
        ::munmap(region.memory, region.bytes);
    }
    regions_.clear();
    free_ = nullptr;
    total_ = 0;
}

void Rails::finalize() {
    for (const auto& one : peers_) {
        if (one == nullptr || one->lane == nullptr) continue;
        Bundle& bundle = *bundle_of(*one);
        if (!one->lost()) cut(bundle);
        for (Lane& lane : bundle.lanes) {
            if (lane.vi != nullptr) adi::let_go(VipDestroyVi(lane.vi));
        }
        if (bundle.pidfd >= 0) ::close(bundle.pidfd);
        one->proc->p_flags &= ~MPIP_PROC_ATTACHED;
    }
    drop_peers();
    bundles_.clear();
    chores_.clear();
    free_pool();
    for (const auto& rail : rails_) close_rail(*rail);
    rails_.clear();
    lanes_to_make_ = stripes_ = send_depth_ = queue_peers_ = 0;
    opened_ = suspects_ = false;
}

void Rails::close_rail(Rail& rail) {
    if (rail.cq != nullptr) adi::let_go(VipDestroyCQ(rail.cq));
    if (rail.scq != nullptr) adi::let_go(VipDestroyCQ(rail.scq));
    if (rail.ptag != nullptr) adi::let_go(VipDestroyPtag(rail.nic, rail.ptag));
    adi::let_go(VipErrorCallback(rail.nic, nullptr, nullptr));
    adi::let_go(VipCloseNic(rail.nic));
}

}  // namespace viaduct::rails
