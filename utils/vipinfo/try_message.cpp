// SPDX-License-Identifier: BSD-2-Clause
// The last check of vipinfo --doctor: see try_message in doctor.hpp.
#include <fmt/format.h>
#include <viaduct/ext.h>

#include <cstring>
#include <memory>
#include <vector>

#include "utils/common/limits.hpp"
#include "utils/vipinfo/doctor.hpp"

namespace viaduct::vipinfo {

using namespace tools;

namespace {

constexpr char kText[] = "Viaduct carries this message";

// Descriptor, then data, for each of the two directions; aligned as descriptors must be.
struct alignas(VIP_DESCRIPTOR_ALIGNMENT) Slot {
    VIP_DESCRIPTOR descriptor;
    char data[64];
};

struct Addresses {
    std::vector<char> local;
    std::vector<char> remote;
    VIP_NET_ADDRESS* of(std::vector<char>& bytes) { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes.data()); }
};

std::vector<char> make_address(const VIP_NIC_ATTRIBUTES& nic, uint32_t discriminator) {
    std::vector<char> bytes(4 + nic.NicAddressLen + sizeof discriminator);
    auto* address = reinterpret_cast<VIP_NET_ADDRESS*>(bytes.data());
    address->HostAddressLen = nic.NicAddressLen;
    address->DiscriminatorLen = sizeof discriminator;
    std::memcpy(bytes.data() + 4, nic.LocalNicAddress, nic.NicAddressLen);
    std::memcpy(bytes.data() + 4 + nic.NicAddressLen, &discriminator, sizeof discriminator);
    return bytes;
}

void fill(Slot& slot, VIP_MEM_HANDLE memory, size_t length) {
    std::memset(&slot.descriptor, 0, sizeof slot.descriptor);
    slot.descriptor.CS.SegCount = 1;
    slot.descriptor.CS.Length = static_cast<VIP_UINT32>(length);
    slot.descriptor.DS[0].Local.Data.Address = slot.data;
    slot.descriptor.DS[0].Local.Handle = memory;
    slot.descriptor.DS[0].Local.Length = static_cast<VIP_UINT32>(length);
}

// Runs the steps in order; the first that fails names itself.
class Trial {
public:
    explicit Trial(const std::string& device) : device_(device) {}
    ~Trial() {
        if (nic_ != nullptr) VipCloseNic(nic_);  // takes everything with it
    }

    std::string run() {
        if (!step("VipOpenNic", VipOpenNic(device_.c_str(), &nic_))) return failure_;
        if (!step("VipQueryNic", VipQueryNic(nic_, &attributes_))) return failure_;
        if (!step("VipRegisterMem", VipRegisterMem(nic_, slots_.get(), 2 * sizeof(Slot), nullptr, &memory_)))
            return failure_;
        if (!make_vi(&sender_) || !make_vi(&receiver_)) return failure_;
        fill(slots_[1], memory_, sizeof slots_[1].data);
        if (!step("VipPostRecv", VipPostRecv(receiver_, &slots_[1].descriptor, memory_))) return failure_;
        if (!connect()) return failure_;
        return carry();
    }

    const VIP_NIC_ATTRIBUTES& attributes() const { return attributes_; }

private:
    bool step(const char* call, VIP_RETURN result) {
        if (result == VIP_SUCCESS) return true;
        char text[1024];
        const bool told = VipxLastError(nullptr, text, sizeof text) == VIP_SUCCESS;
        failure_ = told ? std::string(text) : fmt::format("{} answers {}", call, VipxErrorString(result));
        return false;
    }

    bool make_vi(VIP_VI_HANDLE* vi) {
        VIP_VI_ATTRIBUTES wanted{};
        wanted.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
        wanted.MaxTransferSize = attributes_.MaxTransferSize;
        return step("VipCreateVi", VipCreateVi(nic_, &wanted, nullptr, nullptr, vi));
    }

    bool connect() {
        Addresses one{make_address(attributes_, 1), make_address(attributes_, 2)};
        Addresses two{make_address(attributes_, 2), make_address(attributes_, 1)};
        VIP_VI_ATTRIBUTES remote{};
        return step("VipConnectPeerRequest", VipConnectPeerRequest(sender_, one.of(one.local), one.of(one.remote),
                                                                   limit_ms(TimeLimit::try_message))) &&
               step("VipConnectPeerRequest", VipConnectPeerRequest(receiver_, two.of(two.local), two.of(two.remote),
                                                                   limit_ms(TimeLimit::try_message))) &&
               step("VipConnectPeerWait", VipConnectPeerWait(sender_, &remote)) &&
               step("VipConnectPeerWait", VipConnectPeerWait(receiver_, &remote));
    }

    std::string carry() {
        std::memcpy(slots_[0].data, kText, sizeof kText);
        fill(slots_[0], memory_, sizeof kText);
        VIP_DESCRIPTOR* done = nullptr;
        if (!step("VipPostSend", VipPostSend(sender_, &slots_[0].descriptor, memory_)) ||
            !step("VipRecvWait", VipRecvWait(receiver_, limit_ms(TimeLimit::try_message), &done)) ||
            !step("VipSendWait", VipSendWait(sender_, limit_ms(TimeLimit::try_message), &done))) {
            return failure_;
        }
        return std::memcmp(slots_[1].data, kText, sizeof kText) == 0 ? "" : "the message arrived damaged";
    }

    std::string device_;
    std::string failure_;
    std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(2);
    VIP_NIC_ATTRIBUTES attributes_{};
    VIP_NIC_HANDLE nic_ = nullptr;
    VIP_MEM_HANDLE memory_ = 0;
    VIP_VI_HANDLE sender_ = nullptr;
    VIP_VI_HANDLE receiver_ = nullptr;
};

}  // namespace

Finding try_message(const std::string& device) {
    Trial trial(device);
    const std::string failure = trial.run();
    if (failure.empty()) {
        return {
            Verdict::ok, "message", fmt::format("two VIs of {} exchanged one", trial.attributes().Name), {}};
    }
    return {Verdict::problem, "message", fmt::format("a message through {}: {}", device, failure),
            "VIADUCT_LOG=info vipinfo --doctor shows what agent and provider say"};
}

}  // namespace viaduct::vipinfo
