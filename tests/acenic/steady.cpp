// SPDX-License-Identifier: BSD-2-Clause
// Traffic that goes on for ever and checks every byte, for tests that kill what is around it.
//
//   steady server NUMBER             answers one client after the other
//   steady client HOST NUMBER        until SIGTERM; any loss is an error
//
// Each line of output is a word and a time of CLOCK_MONOTONIC in seconds: "open", "connected", "lost" (the
// peer), "nic-died" (then the NIC is opened again), "done MESSAGES". STEADY_NIC names another NIC than acenic0.
// Uses vipl.h and nothing else of the product.
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "../eventually.hpp"

namespace {

constexpr uint32_t kLargest = 20'000, kReceives = 4;
constexpr VIP_ULONG kTimeout = 10'000;  // ms
constexpr useconds_t kPause = 1'000;
constexpr std::chrono::milliseconds kErrorFollows{400};  // the end of the connection

std::atomic<bool> stop{false}, nic_died{false};
VIP_NIC_HANDLE nic;
VIP_NIC_ATTRIBUTES attributes;
VIP_PROTECTION_HANDLE ptag;
std::byte* memory;
VIP_MEM_HANDLE handle;

double now() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void say(const char* word) {
    std::printf("%s %.6f\n", word, now());
    std::fflush(stdout);
}

[[noreturn]] void fail(const char* what, int code) {
    std::printf("failed %.6f\n", now());
    std::fprintf(stderr, "steady[%d]: %s: %d\n", getpid(), what, code);
    std::exit(1);
}

void must(VIP_RETURN code, const char* what) {
    if (code != VIP_SUCCESS) fail(what, code);
}

void on_error(VIP_PVOID, VIP_ERROR_DESCRIPTOR* e) {
    if (e->ErrorCode == VIP_ERROR_CATASTROPHIC) nic_died.store(true);
}

struct Slot {  // a descriptor and behind it the data
    VIP_DESCRIPTOR* descriptor;
    std::byte* data;
};
constexpr size_t kSlotBytes = 1024 + (kLargest + 1023) / 1024 * 1024;

Slot slot(uint32_t i) {
    std::byte* at = memory + i * kSlotBytes;
    return {reinterpret_cast<VIP_DESCRIPTOR*>(at), at + 1024};
}

void fill(const Slot& s, uint32_t bytes) {
    std::memset(s.descriptor, 0, sizeof *s.descriptor);
    s.descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV;
    s.descriptor->CS.Length = bytes;
    s.descriptor->CS.SegCount = 1;
    s.descriptor->DS[0].Local.Data.Address = s.data;
    s.descriptor->DS[0].Local.Handle = handle;
    s.descriptor->DS[0].Local.Length = bytes;
}

void open_nic() {
    nic_died.store(false);
    const char* const name = std::getenv("STEADY_NIC");
    must(VipOpenNic(const_cast<char*>(name != nullptr ? name : "acenic0"), &nic), "VipOpenNic");
    must(VipErrorCallback(nic, nullptr, on_error), "VipErrorCallback");
    must(VipNSInit(nic, nullptr), "VipNSInit");
    must(VipQueryNic(nic, &attributes), "VipQueryNic");
    must(VipCreatePtag(nic, &ptag), "VipCreatePtag");
    VIP_MEM_ATTRIBUTES how{};
    how.Ptag = ptag;
    must(VipRegisterMem(nic, memory, kSlotBytes * (kReceives + 1), &how, &handle), "VipRegisterMem");
    say("open");
}

VIP_VI_HANDLE new_vi() {
    VIP_VI_ATTRIBUTES how{};
    how.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    how.MaxTransferSize = kLargest;
    how.Ptag = ptag;
    VIP_VI_HANDLE vi;
    must(VipCreateVi(nic, &how, nullptr, nullptr, &vi), "VipCreateVi");
    for (uint32_t i = 0; i < kReceives; ++i) {
        fill(slot(i), kLargest);
        must(VipPostRecv(vi, slot(i).descriptor, handle), "VipPostRecv");
    }
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

uint32_t size_of(uint64_t number) {
    return 8 + static_cast<uint32_t>(number * 2'654'435'761u % (kLargest - 8));
}

void write_message(std::byte* to, uint64_t number) {
    std::memcpy(to, &number, 8);
    for (uint32_t i = 8; i < size_of(number); ++i) to[i] = static_cast<std::byte>(number * 31 + i * 7);
}

bool is_message(const std::byte* at, uint32_t bytes, uint64_t number) {
    static std::vector<std::byte> expected(kLargest);
    write_message(expected.data(), number);
    return bytes == size_of(number) && std::memcmp(at, expected.data(), bytes) == 0;
}

bool send_one(VIP_VI_HANDLE vi, const Slot& s, uint32_t bytes) {
    fill(s, bytes);
    if (VipPostSend(vi, s.descriptor, handle) != VIP_SUCCESS) return false;
    VIP_DESCRIPTOR* d;
    return VipSendWait(vi, VIP_INFINITE, &d) == VIP_SUCCESS;
}

// Until the connection ends; what is received goes back.
void echo(VIP_VI_HANDLE vi) {
    const Slot out = slot(kReceives);
    for (;;) {
        VIP_DESCRIPTOR* d;
        if (VipRecvWait(vi, VIP_INFINITE, &d) != VIP_SUCCESS) return;
        const uint32_t bytes = d->CS.Length;
        auto* data = reinterpret_cast<std::byte*>(d) + 1024;
        std::memcpy(out.data, data, bytes);
        fill({d, data}, kLargest);
        if (VipPostRecv(vi, d, handle) != VIP_SUCCESS || !send_one(vi, out, bytes)) return;
    }
}

// Until SIGTERM (true) or the end of the connection.
bool talk(VIP_VI_HANDLE vi, uint64_t* number) {
    const Slot out = slot(kReceives);
    while (!stop.load()) {
        write_message(out.data, *number);
        if (!send_one(vi, out, size_of(*number))) return false;
        VIP_DESCRIPTOR* d;
        if (VipRecvWait(vi, VIP_INFINITE, &d) != VIP_SUCCESS) return false;
        auto* data = reinterpret_cast<std::byte*>(d) + 1024;
        if (!is_message(data, d->CS.Length, *number)) fail("another message than expected", 0);
        fill({d, data}, kLargest);
        if (VipPostRecv(vi, d, handle) != VIP_SUCCESS) return false;
        ++*number;
        usleep(kPause);  // sleeps: the pace of the messages
    }
    return true;
}

// The error comes a little later than the end of the connection.
bool has_nic_died() {
    const auto has_died = [] { return nic_died.load(); };
    return viaduct::tests::eventually("the NIC's error", has_died, {.limit = kErrorFollows}).holds;
}

void reopen() {
    say("nic-died");
    must(VipCloseNic(nic), "VipCloseNic");
    open_nic();
}

[[noreturn]] void serve(uint32_t number) {
    for (;;) {
        VIP_NET_ADDRESS* local = address(nullptr, number);
        auto* remote = static_cast<VIP_NET_ADDRESS*>(std::calloc(1, 256));
        VIP_VI_ATTRIBUTES theirs;
        VIP_CONN_HANDLE connection;
        VIP_VI_HANDLE vi = new_vi();
        const VIP_RETURN waited = VipConnectWait(nic, local, VIP_INFINITE, remote, &theirs, &connection);
        if (waited == VIP_SUCCESS && VipConnectAccept(connection, vi) == VIP_SUCCESS) {
            say("connected");
            echo(vi);
            say("lost");
        } else if (waited != VIP_SUCCESS && !has_nic_died()) {
            fail("VipConnectWait", waited);
        }
        std::free(local);
        std::free(remote);
        const bool died = has_nic_died();
        end_vi(vi);
        if (died) reopen();
    }
}

int call(const char* host, uint32_t number) {
    uint64_t message = 1;
    for (;;) {
        VIP_NET_ADDRESS *local = address(nullptr, getpid()), *remote = address(host, number);
        VIP_VI_ATTRIBUTES theirs;
        VIP_VI_HANDLE vi = new_vi();
        VIP_RETURN asked = VIP_NO_MATCH;
        const double until = now() + 20;
        while ((asked == VIP_NO_MATCH || asked == VIP_REJECT || asked == VIP_TIMEOUT) && now() < until &&
               !stop.load())
            asked = VipConnectRequest(vi, local, remote, kTimeout, &theirs);
        bool done = stop.load();
        if (!done && asked == VIP_SUCCESS) {
            say("connected");
            done = talk(vi, &message);
            if (!done) say("lost");
        }
        std::free(local);
        std::free(remote);
        if (done) {
            end_vi(vi);
            std::printf("done %llu\n", static_cast<unsigned long long>(message - 1));
            return 0;
        }
        if (!has_nic_died()) fail("the connection ended, or none was made", asked);
        end_vi(vi);
        reopen();
    }
}

}  // namespace

int main(int argc, char** argv) {
    const bool serves = argc == 3 && std::strcmp(argv[1], "server") == 0;
    const bool calls = argc == 4 && std::strcmp(argv[1], "client") == 0;
    if (!serves && !calls) {
        std::fprintf(stderr, "steady server NUMBER | steady client HOST NUMBER\n");
        return 2;
    }
    struct sigaction action {};
    action.sa_handler = [](int) { stop.store(true); };
    sigaction(SIGTERM, &action, nullptr);
    memory = static_cast<std::byte*>(
        std::aligned_alloc(4096, (kSlotBytes * (kReceives + 1) + 4095) / 4096 * 4096));
    std::memset(memory, 0, kSlotBytes * (kReceives + 1));
    open_nic();
    const auto number = static_cast<uint32_t>(std::atoi(argv[argc - 1]));
    if (serves) serve(number);
    return call(argv[2], number);
}
