// SPDX-License-Identifier: BSD-2-Clause
#include "core/wait/cpu_placement.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <sstream>

namespace viaduct {

void CpuPlacement::place(size_t own, size_t count) {
    static_assert(sizeof(Head) <= sizeof(Place));
    places_ = reinterpret_cast<Place*>(segment_.data() + sizeof(Place));
    own_ = own;
    count_ = count;
}

bool CpuPlacement::create(size_t own, size_t count) {
    leave();
    if (::getrandom(&token_, sizeof token_, GRND_NONBLOCK) != sizeof token_) return false;
    segment_ = Segment::create("cmpi-placement", bytes_for(count));
    if (!segment_.valid()) return false;
    reinterpret_cast<Head*>(segment_.data())->token = token_;
    place(own, count);
    return true;
}

std::string CpuPlacement::name() const {
    if (!segment_.valid()) return {};
    return std::to_string(::getpid()) + ' ' + std::to_string(segment_.fd()) + ' ' + std::to_string(token_);
}

bool CpuPlacement::open(const std::string& name, size_t own, size_t count) {
    leave();
    std::istringstream words(name);
    int pid = 0, fd = 0;
    if (!(words >> pid >> fd >> token_)) return false;
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
    Fd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!opened.valid()) return false;
    segment_ = Segment::map(std::move(opened), bytes_for(count), Segment::Access::read_write);
    if (!segment_.valid() || reinterpret_cast<const Head*>(segment_.data())->token != token_) {
        leave();
        return false;
    }
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
