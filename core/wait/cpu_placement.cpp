// SPDX-License-Identifier: BSD-2-Clause
#include "core/wait/cpu_placement.hpp"

#include <sched.h>

#include <sstream>

namespace viaduct {

void CpuPlacement::place(size_t own, size_t count) {
    static_assert(sizeof(OfferedMark) <= sizeof(Place));
    places_ = reinterpret_cast<Place*>(segment_.data() + sizeof(Place));
    own_ = own;
    count_ = count;
}

bool CpuPlacement::create(size_t own, size_t count) {
    leave();
    segment_ = offer_memory("cmpi-placement", bytes_for(count), &offer_);
    if (!segment_.valid()) return false;
    place(own, count);
    return true;
}

std::string CpuPlacement::name() const {
    if (!segment_.valid()) return {};
    std::ostringstream words;
    words << offer_.process << ' ' << offer_.descriptor << ' ' << offer_.device << ' ' << offer_.inode << ' '
          << offer_.mark;
    return words.str();
}

bool CpuPlacement::open(const std::string& name, size_t own, size_t count) {
    leave();
    std::istringstream words(name);
    MemoryOffer offer;
    if (!(words >> offer.process >> offer.descriptor >> offer.device >> offer.inode >> offer.mark)) return false;
    if (open_offered(offer, bytes_for(count), &segment_) != Opened::ok) return false;
    offer_ = offer;
    place(own, count);
    return true;
}

void CpuPlacement::leave() {
    segment_.reset();
    places_ = nullptr;
    count_ = 0;
}

bool CpuPlacement::shared_with(size_t other) {
    if (other >= count_ || other == own_) return false;
    const int cpu = ::sched_getcpu();
    if (cpu < 0) return false;
    const uint32_t here = static_cast<uint32_t>(cpu) + 1;
    // Written when it is another one, so that readers keep the cache line.
    std::atomic<uint32_t>& own = places_[own_].cpu;
    if (own.load(std::memory_order_relaxed) != here) own.store(here, std::memory_order_relaxed);
    return places_[other].cpu.load(std::memory_order_relaxed) == here;
}

}  // namespace viaduct
