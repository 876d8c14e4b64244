// SPDX-License-Identifier: BSD-2-Clause
// Connections between two NICs, one after the other: connects NIC PEER-NIC HOST COUNT LIMIT
// [LOSE MEND [meanwhile]]. The VI of NIC waits, that of PEER-NIC asks, and often asks first. HOST names NIC
// to the asking end. No connection may take longer than LIMIT seconds. LOSE is a command that makes the wire
// lose something: it is run before each request, and MEND, which ends it, half a second later. The waiter
// comes after that, or `meanwhile`: what comes of its answer is lost only then.
#include <vipl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr char kDiscriminator[] = "vm.connects";
constexpr auto kLossLasts = std::chrono::milliseconds(500);

void must(VIP_RETURN status, const char* what) {
    if (status == VIP_SUCCESS) return;
    std::printf("%s: status %d\n", what, static_cast<int>(status));
    std::fflush(stdout);
    std::_Exit(1);
}

struct Address {
    alignas(VIP_NET_ADDRESS) unsigned char bytes[256] = {};
    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes); }
    void set_discriminator() {
        get()->DiscriminatorLen = sizeof kDiscriminator;
        std::memcpy(get()->HostAddress + get()->HostAddressLen, kDiscriminator, sizeof kDiscriminator);
    }
};

// One end: a NIC with a VI of level Unreliable.
struct End {
    VIP_NIC_HANDLE nic = nullptr;
    VIP_PROTECTION_HANDLE ptag = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    Address own;

    explicit End(const char* name) {
        must(VipOpenNic(name, &nic), "VipOpenNic");
        must(VipErrorCallback(nic, nullptr, [](VIP_PVOID, VIP_ERROR_DESCRIPTOR*) {}), "VipErrorCallback");
        must(VipNSInit(nic, nullptr), "VipNSInit");
        must(VipCreatePtag(nic, &ptag), "VipCreatePtag");
        VIP_NIC_ATTRIBUTES nic_attributes;
        must(VipQueryNic(nic, &nic_attributes), "VipQueryNic");
        own.get()->HostAddressLen = nic_attributes.NicAddressLen;
        std::memcpy(own.get()->HostAddress, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen);
        own.set_discriminator();
        VIP_VI_ATTRIBUTES attributes{};
        attributes.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
        attributes.MaxTransferSize = 4096;
        attributes.Ptag = ptag;
        must(VipCreateVi(nic, &attributes, nullptr, nullptr, &vi), "VipCreateVi");
    }
};

// Asks until somebody waits. The seconds from `since` until the connection was there.
double ask(End& end, VIP_NET_ADDRESS* remote, VIP_ULONG limit_ms, Clock::time_point* since) {
    VIP_VI_ATTRIBUTES peer;
    VIP_RETURN status = VIP_NO_MATCH;
    while (status == VIP_NO_MATCH) status = VipConnectRequest(end.vi, end.own.get(), remote, limit_ms, &peer);
    must(status, "VipConnectRequest");
    return std::chrono::duration<double>(Clock::now() - *since).count();
}

void answer(End& end, VIP_ULONG limit_ms) {
    Address requester;
    requester.get()->HostAddressLen = end.own.get()->HostAddressLen;
    requester.get()->DiscriminatorLen = sizeof kDiscriminator;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    must(VipConnectWait(end.nic, end.own.get(), limit_ms, requester.get(), &attributes, &connection),
         "VipConnectWait");
    must(VipConnectAccept(connection, end.vi), "VipConnectAccept");
}

// Nobody answers, but whoever asks finds the place where somebody will.
void begin_to_listen(End& end) {
    Address requester;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    VipConnectWait(end.nic, end.own.get(), 10, requester.get(), &attributes, &connection);
}

void run(const std::string& command) {
    if (command.empty() || std::system(command.c_str()) == 0) return;
    std::printf("failed: %s\n", command.c_str());
    std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6 && argc != 8 && argc != 9) {
        std::fprintf(stderr, "usage: connects NIC PEER-NIC HOST COUNT LIMIT [LOSE MEND [meanwhile]]\n");
        return 2;
    }
    End waiter(argv[1]);
    End asker(argv[2]);
    const int count = std::atoi(argv[4]);
    const auto limit_ms = static_cast<VIP_ULONG>(1000 * std::atoi(argv[5]));
    const std::string lose = argc > 6 ? argv[6] : "", mend = argc > 6 ? argv[7] : "";
    const bool meanwhile = argc == 9;
    Address remote;
    remote.get()->HostAddressLen = asker.own.get()->HostAddressLen;
    must(VipNSGetHostByName(asker.nic, argv[3], remote.get(), 0), "VipNSGetHostByName");
    remote.set_discriminator();
    begin_to_listen(waiter);

    std::vector<double> seconds;
    for (int i = 0; i < count; ++i) {
        run(lose);
        double took = 0;
        Clock::time_point since = Clock::now();
        std::thread asking([&] { took = ask(asker, remote.get(), limit_ms, &since); });
        std::thread answering;
        if (meanwhile) answering = std::thread([&] { answer(waiter, limit_ms); });
        if (!lose.empty()) {
            std::this_thread::sleep_for(kLossLasts);
            run(mend);
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(i % 8 * 3));
        }
        meanwhile ? answering.join() : answer(waiter, limit_ms);
        asking.join();
        seconds.push_back(took);
        must(VipDisconnect(asker.vi), "VipDisconnect");
        must(VipDisconnect(waiter.vi), "VipDisconnect");
    }
    std::sort(seconds.begin(), seconds.end());
    std::printf("%d connections, the median took %.3f s, the longest %.3f s\n", count,
                seconds[seconds.size() / 2], seconds.back());
    VipCloseNic(asker.nic);
    VipCloseNic(waiter.nic);
    return 0;
}
