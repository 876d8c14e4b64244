// SPDX-License-Identifier: BSD-2-Clause
#include "utils/common/nic.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <viaduct/ext.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "core/agent/asked_name.hpp"
#include "core/agent/link.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/config/config.hpp"
#include "utils/common/error.hpp"

namespace viaduct::tools {

namespace {

constexpr size_t kHostAt = offsetof(VIP_NET_ADDRESS, HostAddress);
constexpr size_t kPage = 4096;
constexpr long kOneRequestMs = 5000;

void put_discriminator(Address& address, const std::string& discriminator) {
    std::memcpy(address.room + kHostAt + address.head.HostAddressLen, discriminator.data(),
                discriminator.size());
    address.head.DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
}

// "aa:bb:..." with exactly `count` bytes.
bool read_bytes(const std::string& text, unsigned char* out, size_t count) {
    if (text.size() != count * 3 - 1) return false;
    for (size_t i = 0; i < count; ++i) {
        unsigned value = 0;
        int used = 0;
        if (std::sscanf(text.c_str() + i * 3, "%2x%n", &value, &used) != 1 || used != 2) return false;
        if (i + 1 < count && text[i * 3 + 2] != ':') return false;
        out[i] = static_cast<unsigned char>(value);
    }
    return true;
}

// Why the kernel agent would not serve this process; empty: it would. VipOpenNic itself has one word for all of it.
std::string trouble_with_agent(const std::string& device) {
    LinkOptions options;
    options.hello_flags = kagent::kHelloTool;
    options.start_agent = false;
    AgentLink link(options);
    const kagent::NameText name = asked_name(device, Config::load().get("names", "default_provider"));
    Mail answer;
    const Status status =
        link.call(Mail::of(kagent::Type::kResolveName, name), &answer, now_ns() + limit_ns(TimeLimit::tool_agent));
    if (status == Status::ok) return {};
    kagent::Error refusal;
    std::string why = link.last_error();
    if (answer.type() == kagent::Type::kError && answer.get(&refusal)) why = viaduct::text_of(refusal.text);
    if (status == Status::unknown_name && !why.empty()) why += "; \"vipinfo\" lists those there are";
    if (why.empty()) why = status == Status::timeout ? "it does not answer; is it stopped?" : "no sensible answer";
    return fmt::format("kernel agent at {}: {}", agent_address(), why);
}

// The name of the NIC that is opened so; empty: none is.
std::string name_opened_by(const std::string& device) {
    VIP_NIC_HANDLE nic = nullptr;
    if (VipOpenNic(device.c_str(), &nic) != VIP_SUCCESS) return {};
    VIP_NIC_ATTRIBUTES attributes{};
    const bool known = VipQueryNic(nic, &attributes) == VIP_SUCCESS;
    VipCloseNic(nic);
    return known ? attributes.Name : "";
}

}  // namespace

std::string text_of(const VIP_NET_ADDRESS& address, bool whole) {
    const unsigned char* bytes = address.HostAddress;
    std::string out;
    for (size_t i = 0; i < address.HostAddressLen; ++i)
        out += fmt::format("{}{:02x}", i == 0 ? "" : ":", bytes[i]);
    if (!whole) return out;
    out += '/';
    for (size_t i = address.HostAddressLen; i < size_t{address.HostAddressLen} + address.DiscriminatorLen;
         ++i)
        out += bytes[i] > ' ' && bytes[i] < 127 ? static_cast<char>(bytes[i]) : '.';
    return out;
}

std::string device_toward(const std::string& host) {
    unsigned char bytes[kNicAddressBytes];
    return host.empty() || read_bytes(host, bytes, sizeof bytes) ? kDefaultDevice : "host:" + host;
}

std::vector<std::string> served_devices() {
    std::vector<std::string> devices = {kDefaultDevice};
    const std::string provider = Config::load().get("names", "far_provider"), standard = name_opened_by(kDefaultDevice);
    for (int i = 0; !provider.empty(); ++i) {
        const std::string name = provider + std::to_string(i);
        if (name_opened_by(name) != name) break;  // a name that no NIC has opens another one
        if (name != standard) devices.push_back(name);
    }
    return devices;
}

Nic::Nic(const std::string& device) {
    const VIP_RETURN result = VipOpenNic(device.c_str(), &handle_);
    if (result != VIP_SUCCESS) {
        const std::string agent = trouble_with_agent(device);
        const std::string why = agent.empty() ? last_error() : agent;
        throw ToolError(fmt::format("cannot open the NIC \"{}\": {}", device, why.empty() ? text_of(result) : why),
                        kExitNoNic);
    }
    check(VipQueryNic(handle_, &attributes_), "VipQueryNic");
    // What is measured would be another NIC than the one meant.
    if (const std::string said = last_error(); said.starts_with(fmt::format("VipOpenNic: unknown name '{}'", device)))
        std::fprintf(stderr, "%s\n", said.c_str());
}

Nic::~Nic() { VipCloseNic(handle_); }

Address Nic::local(const std::string& discriminator) const {
    Address address{};
    if (discriminator.size() > attributes_.MaxDiscriminatorLen) {
        throw ToolError(fmt::format("the discriminator \"{}\" is longer than the {} bytes of {}",
                                    discriminator, attributes_.MaxDiscriminatorLen, name()),
                        kExitUsage);
    }
    address.head.HostAddressLen = attributes_.NicAddressLen;
    std::memcpy(address.room + kHostAt, attributes_.LocalNicAddress, attributes_.NicAddressLen);
    put_discriminator(address, discriminator);
    return address;
}

Address Nic::remote(const std::string& host, const std::string& discriminator) {
    Address address = local(discriminator);
    if (host.empty() || read_bytes(host, address.room + kHostAt, attributes_.NicAddressLen)) return address;
    check(VipNSInit(handle_, nullptr), "VipNSInit");
    std::string name = host;
    const VIP_RETURN result = VipNSGetHostByName(handle_, name.data(), &address.head, 0);
    if (result != VIP_SUCCESS)
        throw ToolError(fmt::format("no address of \"{}\" on {}: {}", host, this->name(), text_of(result)));
    put_discriminator(address, discriminator);
    return address;
}

Memory::Memory(Nic& nic, size_t bytes, bool rdma, Kind kind)
    : nic_(nic), size_((std::max<size_t>(bytes, 1) + kPage - 1) / kPage * kPage), kind_(kind) {
    const VIP_BOOLEAN readable = rdma && nic.attributes().RDMAReadSupport != 0 ? VIP_TRUE : VIP_FALSE;
    VIP_MEM_ATTRIBUTES attributes{nullptr, rdma ? VIP_TRUE : VIP_FALSE, readable};
    if (kind == Kind::mapped) {
        VIP_PVOID memory = nullptr;
        check(VipxAllocMemory(nic.handle(), size_, 0, &attributes, &memory, &handle_), "VipxAllocMemory");
        data_ = static_cast<std::byte*>(memory);
        return;
    }
    void* memory =
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) throw ToolError(fmt::format("no memory for {} bytes", size_));
    data_ = static_cast<std::byte*>(memory);
    const VIP_RETURN result = VipRegisterMem(nic.handle(), data_, size_, &attributes, &handle_);
    if (result == VIP_SUCCESS) return;
    ::munmap(data_, size_);
    fail(result, "VipRegisterMem");
}

Memory::~Memory() {
    if (kind_ == Kind::mapped) {
        VipxFreeMemory(nic_.handle(), data_, handle_);
        return;
    }
    VipDeregisterMem(nic_.handle(), data_, handle_);
    ::munmap(data_, size_);
}

void request(Nic& nic, VIP_VI_HANDLE vi, Address local, Address remote, long connect_wait_ms) {
    const Deadline deadline = deadline_from_timeout(static_cast<uint64_t>(connect_wait_ms));
    VIP_VI_ATTRIBUTES theirs{};
    VIP_RETURN result;
    do {
        result = VipConnectRequest(vi, &local.head, &remote.head, kOneRequestMs, &theirs);
    } while (result == VIP_NO_MATCH && now_ns() < deadline);
    if (result == VIP_SUCCESS) return;
    throw ToolError(fmt::format("no connection through {} to {}: {}{}", nic.name(), text_of(remote.head, true),
                                text_of(result),
                                result == VIP_NO_MATCH ? "; the same tool with -s has to run there" : ""));
}

namespace {
constexpr struct {
    VIP_RELIABILITY_LEVEL level;
    const char* name;
} kLevels[] = {{VIP_SERVICE_UNRELIABLE, "unreliable"},
               {VIP_SERVICE_RELIABLE_DELIVERY, "delivery"},
               {VIP_SERVICE_RELIABLE_RECEPTION, "reception"}};
}  // namespace

VIP_RELIABILITY_LEVEL level_named(const std::string& name) {
    const auto* found =
        std::find_if(std::begin(kLevels), std::end(kLevels), [&](const auto& l) { return name == l.name; });
    return found == std::end(kLevels) ? VIP_RELIABILITY_LEVEL{0} : found->level;
}

const char* name_of_level(VIP_RELIABILITY_LEVEL level) {
    const auto* found =
        std::find_if(std::begin(kLevels), std::end(kLevels), [&](const auto& l) { return level == l.level; });
    return found == std::end(kLevels) ? "?" : found->name;
}

}  // namespace viaduct::tools
