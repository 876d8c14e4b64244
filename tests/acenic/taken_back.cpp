// SPDX-License-Identifier: BSD-2-Clause
// Memory of sends that the port cannot take yet: it is taken back when the VI ends, or when
// the memory is deregistered. The test that runs the two stops the receiver while the sender waits for a line.
//
//   taken_back receive               both connections; says which messages of the first one came, all whole
//   taken_back send HOST vi|memory   what ends while its frames wait: the VI, or the registration alone
//
// Each line of output is a word, "received" with a number. Uses vipl.h and nothing else of Viaduct.
#include <sys/mman.h>
#include <unistd.h>
#include <vipl.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// More frames than wait in a small ring and before it, fewer than a connection's window lets out at once
// when it has been in use for a while.
constexpr uint32_t kMessage = 20'000, kMessages = 30, kWarmUp = 200;
// One for each message of a connection: a message without a receive breaks it, however busy the receiver's machine is.
constexpr uint32_t kReceives = kWarmUp + kMessages;
constexpr VIP_ULONG kTimeout = 10'000;  // ms
constexpr uint32_t kNumber = 7;          // discriminator of the receiver
constexpr size_t kSlot = 1024 + 20'480;  // a descriptor and behind it the data

VIP_NIC_HANDLE nic;
VIP_NIC_ATTRIBUTES attributes;
std::byte* memory;
VIP_MEM_HANDLE handle;

void say(const char* word) {
    std::printf("%s\n", word);
    std::fflush(stdout);
}

[[noreturn]] void fail(const char* what, int code) {
    std::fprintf(stderr, "taken_back[%d]: %s: %d\n", getpid(), what, code);
    std::exit(1);
}

void must(VIP_RETURN code, const char* what) {
    if (code != VIP_SUCCESS) fail(what, code);
}

void await_line() {
    for (int c = std::getchar(); c != '\n'; c = std::getchar())
        if (c == EOF) fail("no word on how to go on", 0);
}

VIP_DESCRIPTOR* descriptor(uint32_t i) { return reinterpret_cast<VIP_DESCRIPTOR*>(memory + i * kSlot); }
std::byte* data_of(const VIP_DESCRIPTOR* d) {
    return reinterpret_cast<std::byte*>(const_cast<VIP_DESCRIPTOR*>(d)) + 1024;
}

void fill(VIP_DESCRIPTOR* d, std::byte* data, VIP_MEM_HANDLE region) {
    std::memset(d, 0, sizeof *d);
    d->CS.Control = VIP_CONTROL_OP_SENDRECV;
    d->CS.Length = kMessage;
    d->CS.SegCount = 1;
    d->DS[0].Local.Data.Address = data;
    d->DS[0].Local.Handle = region;
    d->DS[0].Local.Length = kMessage;
}

void open_nic() {
    must(VipOpenNic(const_cast<char*>("acenic0"), &nic), "VipOpenNic");
    must(VipNSInit(nic, nullptr), "VipNSInit");
    must(VipQueryNic(nic, &attributes), "VipQueryNic");
    const size_t bytes = kReceives * kSlot;
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail("mmap", 0);
    memory = static_cast<std::byte*>(at);
    must(VipRegisterMem(nic, memory, bytes, nullptr, &handle), "VipRegisterMem");
}

VIP_VI_HANDLE new_vi() {
    VIP_VI_ATTRIBUTES how{};
    how.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    how.MaxTransferSize = kMessage;
    VIP_VI_HANDLE vi;
    must(VipCreateVi(nic, &how, nullptr, nullptr, &vi), "VipCreateVi");
    return vi;
}

void end_vi(VIP_VI_HANDLE vi) {
    VipDisconnect(vi);
    VIP_DESCRIPTOR* d;
    while (VipRecvDone(vi, &d) != VIP_NOT_DONE && d != nullptr) {
    }
    while (VipSendDone(vi, &d) != VIP_NOT_DONE && d != nullptr) {
    }
    must(VipDestroyVi(vi), "VipDestroyVi");
}

VIP_NET_ADDRESS* address(const char* host, uint32_t number) {
    auto* a = static_cast<VIP_NET_ADDRESS*>(std::calloc(1, 256));
    a->HostAddressLen = attributes.NicAddressLen;
    if (host == nullptr) {
        std::memcpy(a->HostAddress, attributes.LocalNicAddress, attributes.NicAddressLen);
    } else {
        must(VipNSGetHostByName(nic, const_cast<char*>(host), a, 0), "VipNSGetHostByName");
    }
    a->DiscriminatorLen = sizeof number;
    std::memcpy(a->HostAddress + a->HostAddressLen, &number, sizeof number);
    return a;
}

// ---- the receiver

bool is_whole(const VIP_DESCRIPTOR* d) {
    const std::byte* at = data_of(d);
    return d->CS.Length == kMessage && std::memcmp(at, at + 1, kMessage - 1) == 0;
}

// Until the connection ends; how many messages came.
uint32_t take_messages(VIP_VI_HANDLE vi) {
    for (uint32_t count = 0;; ++count) {
        VIP_DESCRIPTOR* d;
        if (VipRecvWait(vi, VIP_INFINITE, &d) != VIP_SUCCESS) return count;
        if (!is_whole(d)) fail("a message is not as it was sent, number", static_cast<int>(count));
        fill(d, data_of(d), handle);
        if (VipPostRecv(vi, d, handle) != VIP_SUCCESS) return count + 1;
    }
}

int receive() {
    open_nic();
    VIP_NET_ADDRESS* const local = address(nullptr, kNumber);
    for (int connection = 0; connection < 2; ++connection) {
        VIP_VI_HANDLE vi = new_vi();
        for (uint32_t i = 0; i < kReceives; ++i) {
            fill(descriptor(i), data_of(descriptor(i)), handle);
            must(VipPostRecv(vi, descriptor(i), handle), "VipPostRecv");
        }
        if (connection == 0) say("open");
        auto* remote = static_cast<VIP_NET_ADDRESS*>(std::calloc(1, 256));
        VIP_VI_ATTRIBUTES theirs;
        VIP_CONN_HANDLE request;
        must(VipConnectWait(nic, local, VIP_INFINITE, remote, &theirs, &request), "VipConnectWait");
        must(VipConnectAccept(request, vi), "VipConnectAccept");
        std::printf("received %u\n", take_messages(vi));
        std::fflush(stdout);
        std::free(remote);
        end_vi(vi);
    }
    std::free(local);
    return 0;
}

// ---- the sender

VIP_VI_HANDLE connect(const char* host) {
    VIP_VI_HANDLE vi = new_vi();
    VIP_NET_ADDRESS *const local = address(nullptr, getpid()), *const remote = address(host, kNumber);
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN asked = VIP_NO_MATCH;
    for (int tries = 0; tries < 100 && asked != VIP_SUCCESS; ++tries)
        asked = VipConnectRequest(vi, local, remote, kTimeout, &theirs);
    must(asked, "VipConnectRequest");
    std::free(local);
    std::free(remote);
    return vi;
}

void send_and_wait(VIP_VI_HANDLE vi, char letter) {
    VIP_DESCRIPTOR* const d = descriptor(0);
    fill(d, data_of(d), handle);
    std::memset(data_of(d), letter, kMessage);
    must(VipPostSend(vi, d, handle), "VipPostSend");
    VIP_DESCRIPTOR* sent;
    must(VipSendWait(vi, kTimeout, &sent), "VipSendWait");
}

int send(const char* host, bool vi_ends) {
    open_nic();
    const size_t bytes = (kMessage + 4095) / 4096 * 4096;
    void* const payload = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (payload == MAP_FAILED) fail("mmap", 0);
    std::memset(payload, 'z', bytes);
    VIP_MEM_HANDLE region;
    must(VipRegisterMem(nic, payload, bytes, nullptr, &region), "VipRegisterMem");
    VIP_VI_HANDLE vi = connect(host);
    for (uint32_t i = 0; i < kWarmUp; ++i) send_and_wait(vi, 'w');
    for (uint32_t i = 0; i < kMessages; ++i) fill(descriptor(i), static_cast<std::byte*>(payload), region);
    say("warm");
    await_line();
    for (uint32_t i = 0; i < kMessages; ++i) must(VipPostSend(vi, descriptor(i), handle), "VipPostSend");
    if (vi_ends) end_vi(vi);
    must(VipDeregisterMem(nic, payload, region), "VipDeregisterMem");
    // Nothing else is mapped there: a later read of it ends the process.
    if (::mmap(payload, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        fail("mmap", 0);
    say("unmapped");
    await_line();
    if (!vi_ends) {  // the first send whose payload was still wanted has failed, and the connection with it
        VIP_DESCRIPTOR* d;
        VIP_RETURN ended = VIP_SUCCESS;
        while (ended == VIP_SUCCESS) ended = VipSendWait(vi, kTimeout, &d);
        if (ended != VIP_DESCRIPTOR_ERROR) fail("VipSendWait", ended);
        end_vi(vi);
    }
    vi = connect(host);
    send_and_wait(vi, 'e');
    end_vi(vi);
    say("done");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "receive") == 0) return receive();
    const bool sends = argc == 4 && std::strcmp(argv[1], "send") == 0;
    if (sends && std::strcmp(argv[3], "vi") == 0) return send(argv[2], true);
    if (sends && std::strcmp(argv[3], "memory") == 0) return send(argv[2], false);
    std::fprintf(stderr, "taken_back receive | taken_back send HOST vi|memory\n");
    return 2;
}
