// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/port_device.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <rte_alarm.h>
#include <rte_bus_vdev.h>
#include <rte_mbuf.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "core/shm/fd.hpp"
#include "providers/acenic/eal.hpp"

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

std::string package_of(const std::string& driver) {
    std::string part = driver;
    std::replace(part.begin(), part.end(), '_', '-');
    if (part == "net-virtio-user") part = "net-virtio";
    return dpdk_package(part.c_str());
}

// A joined port's socket is a file in a folder.
void explain_no_socket(const PortSpec& spec, std::string* why, std::string* cure) {
    const std::string folder = spec.socket.substr(0, spec.socket.rfind('/') + 1);
    if (::access(folder.c_str(), spec.listens ? W_OK | X_OK : X_OK) == 0) return;
    *why = "the folder of the socket " + spec.socket + " cannot be used: " + std::strerror(errno);
    *cure = "make the folder, let this user write to it, or name another one";
}

// af_packet's device is a packet socket with rings of locked memory.
void explain_no_ring(const PortSpec& spec, std::string* why, std::string* cure) {
    const Fd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!socket.valid()) {
        const int error = errno;
        *why = std::string("no packet socket can be had: ") + std::strerror(error);
        *cure = error == EPERM
                    ? "give the process CAP_NET_RAW: as root, by setcap cap_net_raw+ep PROGRAM, or in a user namespace "
                      "of its own"
                    : "look at the limits of the process (ulimit -a) and at its filter of system calls";
        return;
    }
    if (::if_nametoindex(spec.interface.c_str()) == 0) {
        *why = "there is no interface " + spec.interface + " any more";
        *cure = "name one that `ip link` shows, in acenic.ports";
        return;
    }
    const size_t bytes = size_t{2} * kSmallRing * (spec.mtu > 1900 ? 16384 : 2048);
    void* const ring = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
    if (ring != MAP_FAILED) {
        ::munmap(ring, bytes);
        return;
    }
    *why = "its rings take " + std::to_string(bytes >> 10) + " KiB of locked memory: " + std::strerror(errno);
    *cure = "raise the limit of locked memory (ulimit -l), or make the MTU of the interface smaller";
}

}  // namespace

bool remove_stale(const std::string& path, int type) {
    sockaddr_un name{};
    if (path.empty() || path.size() >= sizeof name.sun_path) return true;  // the driver will say so
    const Fd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.data(), path.size());
    if (!socket.valid()) return true;  // as above
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return false;
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

void explain_no_device(const PortSpec& spec, std::string* why, std::string* cure) {
    *why = "the driver " + spec.driver + " makes no device" + last_dpdk_line();
    *cure = "is its package installed, " + package_of(spec.driver) + "? VIADUCT_LOG=info shows all that DPDK says";
    if (!spec.socket.empty()) explain_no_socket(spec, why, cure);
    if (spec.driver == "net_af_packet") explain_no_ring(spec, why, cure);
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
