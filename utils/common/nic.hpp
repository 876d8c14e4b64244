// SPDX-License-Identifier: BSD-2-Clause
// What every VIPL program does before its first message: a NIC, memory, addresses, one connected VI. Owners
// of one thing each, over vipl.h alone; failures are ToolErrors.
#pragma once

#include <vipl.h>

#include <cstddef>
#include <string>
#include <vector>

namespace viaduct::tools {

// Room for an address of any provider with the longest discriminator there is.
union Address {
    VIP_NET_ADDRESS head;
    unsigned char room[sizeof(VIP_NET_ADDRESS) + 512];
};

// "02:00:5e:00:00:01", and behind a slash the discriminator if `whole`.
std::string text_of(const VIP_NET_ADDRESS&, bool whole = false);

// The device that reaches a host named to a tool: the default NIC for none and for a NIC's own address.
std::string device_toward(const std::string& host);
inline constexpr const char* kDefaultDevice = "/dev/via_lo";
// The devices at which a server finds clients of this host and of others: the default NIC, then those of
// names.far_provider.
std::vector<std::string> served_devices();

class Nic {
public:
    explicit Nic(const std::string& device);
    ~Nic();
    Nic(const Nic&) = delete;
    Nic& operator=(const Nic&) = delete;

    VIP_NIC_HANDLE handle() const { return handle_; }
    const VIP_NIC_ATTRIBUTES& attributes() const { return attributes_; }
    std::string name() const { return attributes_.Name; }
    // This NIC's address with a discriminator.
    Address local(const std::string& discriminator) const;
    // The address of `host`: a name for the name service, "", or six bytes as text_of writes them.
    Address remote(const std::string& host, const std::string& discriminator);

private:
    VIP_NIC_HANDLE handle_ = nullptr;
    VIP_NIC_ATTRIBUTES attributes_{};
};

// Zeroed memory, present and registered, whole pages. Mapped: allocated by the library (VipxAllocMemory), so
// that peers reach it directly where the NIC can.
class Memory {
public:
    enum class Kind { plain, mapped };
    Memory(Nic&, size_t bytes, bool rdma, Kind = Kind::plain);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::byte* data() const { return data_; }
    size_t size() const { return size_; }
    VIP_MEM_HANDLE handle() const { return handle_; }

private:
    Nic& nic_;
    std::byte* data_ = nullptr;
    size_t size_ = 0;
    VIP_MEM_HANDLE handle_ = 0;
    Kind kind_;
};

// Connects as client, trying again for up to `connect_wait_ms` while no program waits there.
void request(Nic&, VIP_VI_HANDLE, Address local, Address remote, long connect_wait_ms);

// The reliability levels by name: unreliable, delivery, reception; 0 for anything else.
VIP_RELIABILITY_LEVEL level_named(const std::string&);
const char* name_of_level(VIP_RELIABILITY_LEVEL);

}  // namespace viaduct::tools
