// SPDX-License-Identifier: BSD-2-Clause
// hot_calls MODE ROUNDS: both ends of a connection in one thread, and so many rounds of the hot calls.
// Nothing is timed: instructions.py runs it under callgrind and counts. Modes: queue, cq, echo (each message
// is answered, and sends are taken back behind the answer), idle (polls that find nothing).
#include <sys/mman.h>
#include <vipl.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr uint32_t kReceives = 64;
constexpr size_t kRegionBytes = 1 << 16;

void check(VIP_RETURN answer, const char* call) {
    if (answer == VIP_SUCCESS) return;
    std::fprintf(stderr, "%s answers %d\n", call, static_cast<int>(answer));
    std::exit(1);
}

union Address {
    VIP_NET_ADDRESS head;
    unsigned char room[64];
};

Address address(const VIP_NIC_ATTRIBUTES& nic, char end) {
    Address a = {};
    a.head.HostAddressLen = nic.NicAddressLen;
    a.head.DiscriminatorLen = 1;
    unsigned char* bytes = a.room + offsetof(VIP_NET_ADDRESS, HostAddress);
    std::memcpy(bytes, nic.LocalNicAddress, nic.NicAddressLen);
    bytes[nic.NicAddressLen] = static_cast<unsigned char>(end);
    return a;
}

struct Ends {
    VIP_NIC_HANDLE nic = nullptr;
    VIP_CQ_HANDLE cq = nullptr;
    VIP_VI_HANDLE from = nullptr, to = nullptr;
    VIP_MEM_HANDLE memory = 0;
    VIP_DESCRIPTOR* descriptors = nullptr;  // [0] sends, the last two answer, the others receive
    std::byte* data = nullptr;
};

VIP_DESCRIPTOR* prepare(const Ends& ends, uint32_t i) {
    VIP_DESCRIPTOR* d = ends.descriptors + i;
    *d = {};
    d->CS.SegCount = 1;
    d->CS.Length = 8;
    d->DS[0].Local.Data.Address = ends.data + i * 64;
    d->DS[0].Local.Handle = ends.memory;
    d->DS[0].Local.Length = 8;
    return d;
}

Ends connect(bool with_cq) {
    Ends ends;
    char name[] = "/dev/via_eth0";
    check(VipOpenNic(name, &ends.nic), "VipOpenNic");
    VIP_NIC_ATTRIBUTES nic;
    check(VipQueryNic(ends.nic, &nic), "VipQueryNic");
    auto* memory = static_cast<std::byte*>(
        ::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) std::exit(1);
    VIP_MEM_ATTRIBUTES plain = {nullptr, VIP_FALSE, VIP_FALSE};
    check(VipRegisterMem(ends.nic, memory, kRegionBytes, &plain, &ends.memory), "VipRegisterMem");
    ends.descriptors = reinterpret_cast<VIP_DESCRIPTOR*>(memory);
    ends.data = memory + kRegionBytes / 2;
    if (with_cq) check(VipCreateCQ(ends.nic, 2 * kReceives, &ends.cq), "VipCreateCQ");
    VIP_VI_ATTRIBUTES vi = {
        VIP_SERVICE_RELIABLE_DELIVERY, nic.MaxTransferSize, nullptr, nullptr, VIP_FALSE, VIP_FALSE};
    check(VipCreateVi(ends.nic, &vi, nullptr, nullptr, &ends.from), "VipCreateVi");
    check(VipCreateVi(ends.nic, &vi, nullptr, ends.cq, &ends.to), "VipCreateVi");
    for (uint32_t i = 1; i <= kReceives; ++i)
        check(VipPostRecv(ends.to, prepare(ends, i), ends.memory), "VipPostRecv");
    Address a = address(nic, 'a'), b = address(nic, 'b');
    check(VipConnectPeerRequest(ends.from, &a.head, &b.head, 10'000), "VipConnectPeerRequest");
    check(VipConnectPeerRequest(ends.to, &b.head, &a.head, 10'000), "VipConnectPeerRequest");
    check(VipConnectPeerWait(ends.from, &vi), "VipConnectPeerWait");
    check(VipConnectPeerWait(ends.to, &vi), "VipConnectPeerWait");
    return ends;
}

VIP_DESCRIPTOR* receive(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* d = nullptr;
    VIP_RETURN answer;
    while ((answer = VipRecvDone(vi, &d)) == VIP_NOT_DONE) {
    }
    check(answer, "VipRecvDone");
    return d;
}

void post(const Ends& ends, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* d, decltype(&VipPostSend) call) {
    d->CS.Status = 0;
    check(call(vi, d, ends.memory), "posting");
}

void take_back(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* d = nullptr;
    VIP_RETURN answer;
    while ((answer = VipSendDone(vi, &d)) == VIP_NOT_DONE) {
    }
    check(answer, "VipSendDone");
}

// There and back; each end takes back what it sent when the answer is there.
void echo(const Ends& ends, VIP_DESCRIPTOR* send, VIP_DESCRIPTOR* answer, bool first) {
    post(ends, ends.from, send, VipPostSend);
    post(ends, ends.to, receive(ends.to), VipPostRecv);
    if (!first) take_back(ends.to);
    post(ends, ends.to, answer, VipPostSend);
    post(ends, ends.from, receive(ends.from), VipPostRecv);
    take_back(ends.from);
}

void await_arrival(const Ends& ends) {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN is_receive = VIP_FALSE;
    VIP_RETURN answer;
    while ((answer = VipCQDone(ends.cq, &vi, &is_receive)) == VIP_NOT_DONE) {
    }
    check(answer, "VipCQDone");
}

void exchange(const Ends& ends, VIP_DESCRIPTOR* send) {
    post(ends, ends.from, send, VipPostSend);
    take_back(ends.from);
    if (ends.cq != nullptr) await_arrival(ends);
    post(ends, ends.to, receive(ends.to), VipPostRecv);
}

void poll_nothing(const Ends& ends) {
    VIP_DESCRIPTOR* d = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN is_receive = VIP_FALSE;
    if (VipRecvDone(ends.to, &d) != VIP_NOT_DONE) std::exit(1);
    if (VipCQDone(ends.cq, &vi, &is_receive) != VIP_NOT_DONE) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    const char* mode = argc == 3 ? argv[1] : "";
    const bool queue = std::strcmp(mode, "queue") == 0, idle = std::strcmp(mode, "idle") == 0;
    const bool echoes = std::strcmp(mode, "echo") == 0;
    if (!queue && !idle && !echoes && std::strcmp(mode, "cq") != 0) {
        std::fprintf(stderr, "usage: hot_calls queue|cq|echo|idle ROUNDS\n");
        return 2;
    }
    const long rounds = std::atol(argv[2]);
    const Ends ends = connect(!queue && !echoes);
    VIP_DESCRIPTOR* send = prepare(ends, 0);
    VIP_DESCRIPTOR* answer = prepare(ends, kReceives + 1);
    if (echoes) {
        post(ends, ends.from, prepare(ends, kReceives + 2), VipPostRecv);
        echo(ends, send, answer, true);
    } else {
        exchange(ends, send);
    }
    for (long i = 0; i < rounds; ++i)
        echoes ? echo(ends, send, answer, false) : idle ? poll_nothing(ends) : exchange(ends, send);
    VipDisconnect(ends.from);
    VipDisconnect(ends.to);
    return 0;
}
