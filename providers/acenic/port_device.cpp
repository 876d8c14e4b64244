// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/port_device.hpp"

#include <fcntl.h>
#include <rte_alarm.h>
#include <rte_bus_vdev.h>
#include <rte_mbuf.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "core/shm/fd.hpp"

namespace viaduct::acenic {

namespace {

constexpr uint16_t kSmallRing = 128;
constexpr uint32_t kPoolBuffers = 2047;

// The driver's arguments: for af_packet rings of so many frames, for memif buffers of one frame.
std::string arguments_of(const PortSpec& spec, uint32_t ring) {
    if (spec.driver == "net_memif") {
        const bool sized = spec.arguments.find(",rsize=") != std::string::npos;
        return spec.arguments + ",bsize=" + std::to_string((spec.mtu + kRoomAbove + 255) / 256 * 256) +
               (sized ? "" : ",rsize=10");
    }
    if (spec.driver == "net_vhost") return spec.arguments + ",queues=1";
    if (spec.driver == "net_virtio_user")
        return spec.arguments + ",queues=1,queue_size=1024,mrg_rxbuf=1,in_order=1";
    if (spec.driver != "net_af_packet") return spec.arguments;
    const char* const sizes = spec.mtu > 1900 ? ",blocksz=65536,framesz=16384" : ",blocksz=4096,framesz=2048";
    return spec.arguments + sizes + ",framecnt=" + std::to_string(ring) + ",qpairs=1";
}

}  // namespace

bool remove_stale(const std::string& path, int type) {
    sockaddr_un name{};
    if (path.empty() || path.size() >= sizeof name.sun_path) return true;  // the driver will say so
    const Fd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.data(), path.size());
    if (!socket.valid() ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0)
        return false;
    if (errno == ECONNREFUSED) ::unlink(path.c_str());
    return true;
}

void run_on_interrupt_thread(const std::function<void()>& work) {
    struct InterruptTask {
        const std::function<void()>& work;
        std::mutex mutex;
        std::condition_variable changed;
        bool done = false;
    } own{work, {}, {}};
    const auto run_task = [](void* at) {
        auto* const task = static_cast<InterruptTask*>(at);
        task->work();
        const std::scoped_lock lock(task->mutex);
        task->done = true;
        task->changed.notify_one();  // under the lock: after that there is no task any more
    };
    if (::rte_eal_alarm_set(1, run_task, &own) != 0) return work();
    std::unique_lock lock(own.mutex);
    own.changed.wait(lock, [&] { return own.done; });
}

void make_idle(int fd) {
    if (fd < 0) return;
    const Fd nothing(::eventfd(0, EFD_CLOEXEC));
    if (nothing.valid()) ::dup3(nothing.get(), fd, O_CLOEXEC);
}

bool make_device(const std::string& name, const PortSpec& spec) {
    if (::rte_vdev_init(name.c_str(), arguments_of(spec, kRing).c_str()) == 0) return true;
    if (spec.driver != "net_af_packet" || spec.mtu <= 1900) return false;
    return ::rte_vdev_init(name.c_str(), arguments_of(spec, kSmallRing).c_str()) == 0;
}

uint16_t room_for(const PortSpec& spec) {
    return static_cast<uint16_t>((spec.mtu > 1900 ? 16384 : 2048) + RTE_PKTMBUF_HEADROOM);
}

rte_mempool* make_pool(const std::string& name, uint16_t room) {
    rte_mempool* const pool =
        ::rte_pktmbuf_pool_create_by_ops(name.c_str(), kPoolBuffers, 0, 0, room, SOCKET_ID_ANY, "stack");
    if (pool != nullptr) return pool;
    return ::rte_pktmbuf_pool_create(name.c_str(), kPoolBuffers, 0, 0, room, SOCKET_ID_ANY);
}

}  // namespace viaduct::acenic
