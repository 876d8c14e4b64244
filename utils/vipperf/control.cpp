// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/control.hpp"

#include <cstring>

#include "utils/common/error.hpp"
#include "utils/common/limits.hpp"

namespace viaduct::vipperf {

namespace {

constexpr size_t kReceives = 4;  // one message is under way at a time
constexpr size_t kBuffersAt = (kReceives + 1) * sizeof(VIP_DESCRIPTOR);

}  // namespace

Control::Control(const std::string& device)
    : nic_(device), memory_(nic_, kBuffersAt + (kReceives + 1) * kControlBytes, false) {
    make_vi();
}

Control::~Control() { VipDisconnect(vi_); }

void Control::make_vi() {
    VIP_VI_ATTRIBUTES wanted{
        VIP_SERVICE_RELIABLE_DELIVERY, kControlBytes, nullptr, nullptr, VIP_FALSE, VIP_FALSE};
    tools::check(VipCreateVi(nic_.handle(), &wanted, nullptr, nullptr, &vi_), "VipCreateVi");
    for (size_t i = 0; i < kReceives; ++i) {
        descriptor(i)->DS[0].Local = {{}, memory_.handle(), kControlBytes};
        descriptor(i)->DS[0].Local.Data.Address = buffer(i);
        post_receive(descriptor(i));
    }
}

VIP_DESCRIPTOR* Control::descriptor(size_t index) {
    return reinterpret_cast<VIP_DESCRIPTOR*>(memory_.data()) + index;
}

std::byte* Control::buffer(size_t index) { return memory_.data() + kBuffersAt + index * kControlBytes; }

void Control::post_receive(VIP_DESCRIPTOR* d) {
    d->CS = {};
    d->CS.SegCount = 1;
    d->CS.Length = kControlBytes;
    tools::check(VipPostRecv(vi_, d, memory_.handle()), "VipPostRecv");
}

bool Control::accept(const std::string& discriminator, VIP_ULONG wait_ms) {
    tools::Address local = nic_.local(discriminator), remote{};
    VIP_VI_ATTRIBUTES theirs{};
    VIP_CONN_HANDLE request = nullptr;
    const VIP_RETURN result =
        VipConnectWait(nic_.handle(), &local.head, wait_ms, &remote.head, &theirs, &request);
    if (result == VIP_TIMEOUT) return false;
    tools::check(result, "VipConnectWait");
    const VIP_RETURN accepted = VipConnectAccept(request, vi_);
    if (accepted != VIP_SUCCESS) {  // an unknown client at our discriminator
        VipConnectReject(request);
        return false;
    }
    peer_ = tools::text_of(remote.head);
    return true;
}

void Control::request(const std::string& host, const std::string& discriminator, long connect_wait_ms) {
    const tools::Address remote = nic_.remote(host, discriminator);
    tools::request(nic_, vi_, nic_.local("vipperf-control"), remote, connect_wait_ms);
    peer_ = tools::text_of(remote.head);
}

template <class Record>
void Control::send_record(Record record) {
    record.magic = kMagic;
    record.version = kProtocol;
    std::byte* out = buffer(kReceives);
    std::memset(out, 0, kControlBytes);
    std::memcpy(out, &record, sizeof record);
    VIP_DESCRIPTOR* d = descriptor(kReceives);
    *d = VIP_DESCRIPTOR{};
    d->CS.SegCount = 1;
    d->CS.Length = kControlBytes;
    d->DS[0].Local = {{}, memory_.handle(), kControlBytes};
    d->DS[0].Local.Data.Address = out;
    tools::check(VipPostSend(vi_, d, memory_.handle()), "VipPostSend");
    VIP_DESCRIPTOR* sent = nullptr;
    if (VipSendWait(vi_, tools::limit_ms(TimeLimit::message_send), &sent) != VIP_SUCCESS)
        throw tools::ToolError("the other end has left");
}

template <class Record>
bool Control::receive_record(Record* record, VIP_ULONG wait_ms) {
    VIP_DESCRIPTOR* d = nullptr;
    const VIP_RETURN result = VipRecvWait(vi_, wait_ms, &d);
    if (result == VIP_TIMEOUT) return false;
    if (result != VIP_SUCCESS) throw tools::ToolError("the other end has left");
    const bool whole = d->CS.Length == kControlBytes;
    std::memcpy(record, d->DS[0].Local.Data.Address, sizeof *record);
    post_receive(d);
    if (!whole || record->magic != kMagic || record->version != kProtocol)
        throw tools::ToolError("the other end is no vipperf of this version");
    return true;
}

void Control::send(Command command) { send_record(command); }
void Control::send(Answer answer) { send_record(answer); }
bool Control::receive(Command* command, VIP_ULONG wait_ms) { return receive_record(command, wait_ms); }
bool Control::receive(Answer* answer, VIP_ULONG wait_ms) { return receive_record(answer, wait_ms); }

}  // namespace viaduct::vipperf
