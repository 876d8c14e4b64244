// SPDX-License-Identifier: BSD-2-Clause
// NICs, VIs, completion queues, handles and the name service.
#include <cstring>

#include "ends.hpp"
#include "rows.hpp"

namespace mistakes {

namespace {

VIP_NIC_ATTRIBUTES info() {
    VIP_NIC_ATTRIBUTES a;
    must(VipQueryNic(nic(), &a), "VipQueryNic");
    return a;
}

// Why a VI with these attributes cannot be made.
std::string refused_vi(VIP_VI_ATTRIBUTES a, VIP_CQ_HANDLE send = nullptr) {
    VIP_VI_HANDLE vi;
    VipCreateVi(nic(), &a, send, nullptr, &vi);
    return last(nic());
}

std::string no_name() {
    VIP_NIC_HANDLE handle;
    VipOpenNic(nullptr, &handle);
    return last(nullptr);
}

std::string long_name() {
    VIP_NIC_HANDLE handle;
    VipOpenNic(std::string(300, 'n').c_str(), &handle);
    return last(nullptr);
}

std::string closed_nic() {
    const VIP_NIC_HANDLE closed = open();
    must(VipCloseNic(closed), "VipCloseNic");
    VIP_NIC_ATTRIBUTES a;
    VipQueryNic(closed, &a);
    return last(closed);
}

std::string closed_twice() {
    const VIP_NIC_HANDLE closed = open();
    must(VipCloseNic(closed), "VipCloseNic");
    VipCloseNic(closed);
    return last(closed);
}

std::string no_result() {
    VipQueryNic(nic(), nullptr);
    return last(nic());
}

std::string vi_as_nic() {
    const VIP_VI_HANDLE vi = vi_of(nic(), attributes());
    VIP_NIC_ATTRIBUTES a;
    VipQueryNic(vi, &a);
    VipDestroyVi(vi);
    return last(vi);
}

std::string no_level() { return refused_vi(attributes(0)); }
std::string two_levels() { return refused_vi(attributes(VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY)); }

std::string no_transfer_size() {
    VIP_VI_ATTRIBUTES a = attributes();
    a.MaxTransferSize = 0;
    return refused_vi(a);
}

std::string large_transfer_size() {
    VIP_VI_ATTRIBUTES a = attributes();
    a.MaxTransferSize = info().MaxTransferSize + 1;
    return refused_vi(a);
}

std::string uncleared_qos() {
    VIP_VI_ATTRIBUTES a = attributes();
    a.QoS = &a;
    return refused_vi(a);
}

std::string destroyed_tag() {
    VIP_VI_ATTRIBUTES a = attributes();
    must(VipCreatePtag(nic(), &a.Ptag), "VipCreatePtag");
    must(VipDestroyPtag(nic(), a.Ptag), "VipDestroyPtag");
    return refused_vi(a);
}

std::string foreign_tag() {
    const VIP_NIC_HANDLE other = open();
    VIP_VI_ATTRIBUTES a = attributes();
    must(VipCreatePtag(other, &a.Ptag), "VipCreatePtag");
    std::string text = refused_vi(a);
    VipCloseNic(other);
    return text;
}

std::string unreliable_read() {
    VIP_VI_ATTRIBUTES a = attributes(VIP_SERVICE_UNRELIABLE);
    a.EnableRdmaRead = VIP_TRUE;
    return refused_vi(a);
}

std::string foreign_queue() {
    const VIP_NIC_HANDLE other = open();
    VIP_CQ_HANDLE cq;
    must(VipCreateCQ(other, 16, &cq), "VipCreateCQ");
    std::string text = refused_vi(attributes(), cq);
    VipCloseNic(other);
    return text;
}

std::string destroyed_queue() {
    VIP_CQ_HANDLE cq;
    must(VipCreateCQ(nic(), 16, &cq), "VipCreateCQ");
    must(VipDestroyCQ(cq), "VipDestroyCQ");
    return refused_vi(attributes(), cq);
}

std::string destroy_connected() {
    const Pair pair;
    VipDestroyVi(pair.a);
    return last(pair.a);
}

std::string destroy_posted() {
    const Memory memory(nic());
    const VIP_VI_HANDLE vi = vi_of(nic(), attributes());
    must(VipPostRecv(vi, fill(memory.descriptor(), memory.data(), memory.handle, 64), memory.handle), "VipPostRecv");
    VipDestroyVi(vi);
    std::string text = last(vi);
    VipDisconnect(vi);
    VipDestroyVi(vi);
    return text;
}

std::string change_connected() {
    const Pair pair;
    VIP_VI_ATTRIBUTES a = attributes();
    VipSetViAttributes(pair.a, &a);
    return last(pair.a);
}

std::string no_entries() {
    VIP_CQ_HANDLE cq;
    VipCreateCQ(nic(), 0, &cq);
    return last(nic());
}

std::string many_entries() {
    VIP_CQ_HANDLE cq;
    VipCreateCQ(nic(), info().MaxCQEntries + 1, &cq);
    return last(nic());
}

struct WithQueue {
    WithQueue() {
        must(VipCreateCQ(nic(), 16, &cq), "VipCreateCQ");
        VIP_VI_ATTRIBUTES a = attributes();
        must(VipCreateVi(nic(), &a, cq, cq, &vi), "VipCreateVi");
    }
    ~WithQueue() {
        VipDestroyVi(vi);
        VipDestroyCQ(cq);
    }
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE vi;
};

std::string destroy_used_queue() {
    const WithQueue made;
    VipDestroyCQ(made.cq);
    return last(made.cq);
}

std::string wait_beside_queue() {
    const WithQueue made;
    VIP_DESCRIPTOR* d;
    VipRecvWait(made.vi, 10, &d);
    return last(made.vi);
}

std::string queue_without_vis() {
    VIP_CQ_HANDLE cq;
    must(VipCreateCQ(nic(), 16, &cq), "VipCreateCQ");
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receives;
    VipCQWait(cq, 50, &vi, &receives);
    std::string text = last(cq);
    VipDestroyCQ(cq);
    return text;
}

std::string nothing_completes() {
    const WithQueue made;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receives;
    VipCQWait(made.cq, 50, &vi, &receives);
    return last(made.cq);
}

std::string notify_beside_queue() {
    const WithQueue made;
    VipRecvNotify(made.vi, nullptr, [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {});
    return last(made.vi);
}

std::string unstarted_names() {
    const VIP_NIC_HANDLE fresh = open();
    Address out;
    char name[] = "localhost";
    VipNSGetHostByName(fresh, name, out.get(), 0);
    std::string text = last(fresh);
    VipCloseNic(fresh);
    return text;
}

std::string unknown_host() {
    must(VipNSInit(nic(), nullptr), "VipNSInit");
    Address out;
    char name[] = "no-such-host.invalid";
    VipNSGetHostByName(nic(), name, out.get(), 0);
    return last(nic());
}

std::string unknown_information() {
    char room[64];
    VipQuerySystemManagementInfo(nic(), 99, room);
    return last(nic());
}

}  // namespace

Rows rows_objects() {
    return {
        {"open.null", "VipOpenNic without a name", no_name, {"VipOpenNic", "DeviceName is NULL"}},
        {"open.long", "VipOpenNic with a name of 300 characters", long_name, {"300 characters", "DeviceName"}},
        {"nic.closed", "a NIC handle used after VipCloseNic", closed_nic, {"NicHandle", "closed"}},
        {"nic.twice", "VipCloseNic twice", closed_twice, {"VipCloseNic", "closed"}},
        {"nic.null", "VipQueryNic without a place for the result", no_result, {"VipQueryNic", "Attributes is NULL"}},
        {"nic.vi", "a VI handle passed for a NIC handle", vi_as_nic, {"NicHandle", "is the handle of a VI"}},
        {"vi.level",
         "VipCreateVi with ReliabilityLevel 0",
         no_level,
         {"VIP_INVALID_RELIABILITY_LEVEL", "is 0", "VIP_SERVICE_"}},
        {"vi.levels", "VipCreateVi with two reliability levels", two_levels, {"ReliabilityLevel is 0x3", "one bit"}},
        {"vi.size0",
         "VipCreateVi with MaxTransferSize 0",
         no_transfer_size,
         {"VIP_INVALID_MTU", "MaxTransferSize is 0", "takes 1 to"}},
        {"vi.size",
         "VipCreateVi with MaxTransferSize above that of the NIC",
         large_transfer_size,
         {"VIP_INVALID_MTU", "takes 1 to"}},
        {"vi.qos",
         "VipCreateVi with attributes that were not cleared",
         uncleared_qos,
         {"VIP_INVALID_QOS", "QoS", "NULL"}},
        {"vi.ptag.destroyed", "VipCreateVi with a tag that was destroyed", destroyed_tag, {"VIP_INVALID_PTAG", "Ptag"}},
        {"vi.ptag.foreign",
         "VipCreateVi with a tag of another NIC handle",
         foreign_tag,
         {"VIP_INVALID_PTAG", "this handle of NIC"}},
        {"vi.read", "EnableRdmaRead on an Unreliable VI", unreliable_read, {"VIP_INVALID_RDMAREAD", "EnableRdmaRead"}},
        {"vi.cq.foreign",
         "a completion queue of another NIC handle",
         foreign_queue,
         {"SendCQHandle", "another NIC handle"}},
        {"vi.cq.destroyed",
         "a completion queue that was destroyed",
         destroyed_queue,
         {"SendCQHandle", "completion queue"}},
        {"vi.destroy.connected",
         "VipDestroyVi while connected",
         destroy_connected,
         {"VIP_INVALID_STATE", "Connected", "VipDisconnect"}},
        {"vi.destroy.posted",
         "VipDestroyVi with receives posted",
         destroy_posted,
         {"VIP_ERROR_RESOURCE", "1 receives", "VipDisconnect"}},
        {"vi.change",
         "VipSetViAttributes while connected",
         change_connected,
         {"VipSetViAttributes", "Connected", "Idle"}},
        {"cq.empty", "VipCreateCQ with no entries", no_entries, {"EntryCount is 0"}},
        {"cq.large", "VipCreateCQ with too many entries", many_entries, {"EntryCount is", "MaxCQEntries"}},
        {"cq.used", "VipDestroyCQ before the VIs", destroy_used_queue, {"2 work queues", "destroy the VIs first"}},
        {"cq.unused",
         "VipCQWait on a completion queue that no VI was given",
         queue_without_vis,
         {"VipCQWait: VIP_TIMEOUT", "0 work queues", "VipCreateVi"}},
        {"cq.nothing",
         "VipCQWait, and nothing completes",
         nothing_completes,
         {"VipCQWait: VIP_TIMEOUT", "2 work queues", "vipstat"}},
        {"cq.wait",
         "VipRecvWait on a queue that has a completion queue",
         wait_beside_queue,
         {"VipRecvWait", "VipCQWait"}},
        {"cq.notify",
         "VipRecvNotify on a queue that has a completion queue",
         notify_beside_queue,
         {"VipRecvNotify", "VipCQNotify"}},
        {"names.unstarted",
         "VipNSGetHostByName before VipNSInit",
         unstarted_names,
         {"VIP_ERROR_NAMESERVICE", "VipNSInit first"}},
        {"names.unknown", "the name of an unknown host", unknown_host, {"no-such-host.invalid", "vip_hosts"}},
        {"management",
         "VipQuerySystemManagementInfo with an unknown InfoType",
         unknown_information,
         {"InfoType 99", "VIP_SMI_AUTODISCOVERY"}},
    };
}

}  // namespace mistakes
