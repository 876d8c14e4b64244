// SPDX-License-Identifier: BSD-2-Clause
// Opening, describing and closing NICs (spec/calls 4.1, spec/compat 4, 5), management information, error
// callback registration and user data.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <thread>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

VIP_NIC_HANDLE open_nic() {
    VIP_NIC_HANDLE nic = nullptr;
    require(VipOpenNic(options().nic.c_str(), &nic), "VipOpenNic");
    return nic;
}

/// A name without the digits at its end.
std::string family(std::string name) {
    while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back()))) {
        name.pop_back();
    }
    return name;
}

std::set<int> open_files() {
    std::set<int> files;
    DIR* folder = opendir("/proc/self/fd");
    while (const dirent* entry = readdir(folder)) {
        const int fd = std::atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(folder)) {
            files.insert(fd);
        }
    }
    closedir(folder);
    return files;
}

TEST(NicOpen, EachOpenOfOneDeviceGivesAHandleOfItsOwn) {
    std::set<VIP_NIC_HANDLE> handles;
    for (int i = 0; i < 32; ++i) {
        VIP_NIC_HANDLE nic = nullptr;
        ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipOpenNic(options().nic.c_str(), &nic)));
        EXPECT_NE(nic, nullptr);
        EXPECT_TRUE(handles.insert(nic).second) << "the same handle twice";
    }
    for (const VIP_NIC_HANDLE nic : handles) {
        CONFORM(VIP_SUCCESS, kNone, VipCloseNic(nic));
    }
}

TEST(NicOpen, NullArgumentsAreRefused) {
    VIP_NIC_HANDLE nic = nullptr;
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipOpenNic(nullptr, &nic));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipOpenNic(options().nic.c_str(), nullptr));
}

TEST(NicOpen, WithoutRoomForFilesTheAnswerIsErrorResource) {
    const End before;  // the library has its own files
    rlimit usual{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const int next = dup(STDERR_FILENO);
    ASSERT_GE(next, 0);
    close(next);
    for (int room = 0; room < 8; ++room) {
        rlimit few = usual;
        few.rlim_cur = static_cast<rlim_t>(next + room);
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        VIP_NIC_HANDLE nic = nullptr;
        const VIP_RETURN opened = VipOpenNic(options().nic.c_str(), &nic);
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
        EXPECT_TRUE(opened == VIP_SUCCESS || opened == VIP_ERROR_RESOURCE)
            << code_name(opened) << " with room for " << room;
        if (opened == VIP_SUCCESS) {
            require(VipCloseNic(nic), "VipCloseNic");
        }
    }
}

TEST(NicOpen, NumbersBeyondTheNicsPresentFail) {
    const std::string stem = family(options().nic);
    if (stem == options().nic) {
        GTEST_SKIP() << "the name of the NIC under test does not end in a number";
    }
    VIP_NIC_HANDLE nic = nullptr;
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipOpenNic((stem + "9999").c_str(), &nic));
}

TEST(NicOpen, CountingNamesUpComesToAnEnd) {
    for (const std::string stem : {"VINIC", "nic", "/dev/clanvi", "/dev/via_eth"}) {
        constexpr int kTooMany = 256;
        int number = 0;
        VIP_NIC_HANDLE nic = nullptr;
        while (number < kTooMany && VipOpenNic((stem + std::to_string(number)).c_str(), &nic) == VIP_SUCCESS) {
            VipCloseNic(nic);
            ++number;
        }
        EXPECT_LT(number, kTooMany) << stem << " never fails (spec/compat D7, D9)";
    }
}

TEST(NicOpen, LegacyNamesOpenTheDefaultNic) {
    if (options().nic != "/dev/via_eth0") {
        GTEST_SKIP() << "names of old belong to the default NIC, another one is under test";
    }
    for (const char* name : {"/dev/via_eth0", "/etc/via_lo", "/dev/via_lo", "/dev/clanvi0", "nic0", "VINIC0"}) {
        VIP_NIC_HANDLE nic = nullptr;
        EXPECT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipOpenNic(name, &nic))) << name;
        VipCloseNic(nic);
    }
}

TEST(NicOpen, FilesOfTheLibraryAreCloseOnExecAndAboveStandardError) {
    const std::set<int> before = open_files();
    End end;
    for (const int fd : open_files()) {
        if (before.count(fd) == 0) {
            EXPECT_GT(fd, 2);
            EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << "file " << fd;
        }
    }
}

TEST(NicClose, OpeningAndClosingLeavesNoFileBehind) {
    { Pair warm_up; }  // librdmacm keeps each device open that it has met
    const std::size_t before = open_files().size();
    for (int i = 0; i < 20; ++i) {
        Pair pair;
    }
    EXPECT_TRUE(eventually([&] { return open_files().size() <= before; }))
        << before << " files before, " << open_files().size() << " after";
}

TEST(NicClose, AClosedNicHasNoListener) {
    const auto listening = [] {
        std::size_t sockets = 0;
        for (const int fd : open_files()) {
            int listens = 0;
            socklen_t bytes = sizeof listens;
            sockets += getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && listens != 0;
        }
        return sockets;
    };
    const std::size_t before = listening();
    for (int i = 0; i < 4; ++i) {
        Pair pair;
    }
    EXPECT_TRUE(eventually([&] { return listening() <= before; })) << listening() - before << " more";
}

TEST(NicClose, TheHandleIsDeadAfterwards) {
    const VIP_NIC_HANDLE nic = open_nic();
    CONFORM(VIP_SUCCESS, kNone, VipCloseNic(nic));
    VIP_NIC_ATTRIBUTES attributes{};
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQueryNic(nic, &attributes));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCloseNic(nic));
}

TEST(NicClose, EverythingMadeUnderTheHandleDiesWithIt) {
    End end;
    VIP_CQ_HANDLE cq = nullptr;
    require(VipCreateCQ(end.nic, 4, &cq), "VipCreateCQ");
    end.receive(64);
    const VIP_VI_HANDLE vi = end.vi;
    CONFORM(VIP_SUCCESS, kNone, VipCloseNic(end.nic));
    end.nic = nullptr;
    VIP_VI_HANDLE from = nullptr;
    VIP_BOOLEAN recv = VIP_FALSE;
    VIP_DESCRIPTOR* d = nullptr;
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCQDone(cq, &from, &recv));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipRecvDone(vi, &d));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipDisconnect(vi));
}

TEST(NicClose, ThePeerOfAConnectedViLearnsOfIt) {
    Pair pair;
    pair.server.receive(64);
    require(VipCloseNic(pair.client.nic), "VipCloseNic");
    pair.client.nic = nullptr;
    EXPECT_TRUE(pair.server.reaches(VIP_STATE_ERROR, kOneSecond));
    EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_CONN_LOST, kOneSecond));
    const Outcome flushed = reap_recv(pair.server.vi);
    EXPECT_EQ(flushed.code, VIP_DESCRIPTOR_ERROR);
    EXPECT_TRUE(flushed.errors() & VIP_STATUS_DESC_FLUSHED_ERROR);
}

TEST(NicClose, SleepingWaitersOfEveryKindWakeUp) {
    End end;
    const VIP_VI_HANDLE receiver = end.vi;
    const VIP_VI_HANDLE pending = end.create_vi();
    VIP_CQ_HANDLE cq = nullptr;
    require(VipCreateCQ(end.nic, 4, &cq), "VipCreateCQ");
    VIP_DESCRIPTOR* posted = end.receive(64);
    Address local(end.nic, unique_discriminator());
    Address unused(end.nic, unique_discriminator());
    require(VipConnectPeerRequest(pending, local.get(), unused.get(), VIP_INFINITE), "VipConnectPeerRequest");

    VIP_DESCRIPTOR* received = nullptr;
    std::atomic<int> started{0};
    auto recv_wait = in_background([&] { return ++started, VipRecvWait(receiver, VIP_INFINITE, &received); });
    auto cq_wait = in_background([&] {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN recv = VIP_FALSE;
        return ++started, VipCQWait(cq, VIP_INFINITE, &vi, &recv);
    });
    auto connect_wait = in_background([&, nic = end.nic] {
        Address from = Address::blank();
        VIP_VI_ATTRIBUTES attributes{};
        VIP_CONN_HANDLE connection = nullptr;
        return ++started, VipConnectWait(nic, local.get(), VIP_INFINITE, from.get(), &attributes, &connection);
    });
    auto peer_wait = in_background([&] {
        VIP_VI_ATTRIBUTES attributes{};
        return ++started, VipConnectPeerWait(pending, &attributes);
    });
    ASSERT_TRUE(eventually([&] { return started == 4; }));
    EXPECT_FALSE(ready(recv_wait, kQuietTime)) << "the waiter did not sleep";
    CONFORM(VIP_SUCCESS, kNone, VipCloseNic(end.nic));
    end.nic = nullptr;
    EXPECT_TRUE(ready(recv_wait) && ready(cq_wait) && ready(connect_wait) && ready(peer_wait));
    const VIP_RETURN woken = recv_wait.get();
    if (woken == VIP_DESCRIPTOR_ERROR) {
        EXPECT_EQ(received, posted);
        EXPECT_TRUE(posted->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
    } else {
        CONFORM_RESULT("VipRecvWait", VIP_INVALID_PARAMETER, VS::kNone, woken);
    }
    CONFORM_RESULT("VipCQWait", VIP_INVALID_PARAMETER, VS::kNone, cq_wait.get());
    CONFORM_RESULT("VipConnectWait", VIP_INVALID_PARAMETER, VS::kNone, connect_wait.get());
    CONFORM_RESULT("VipConnectPeerWait", VIP_INVALID_PARAMETER, VS::kNone, peer_wait.get());
}

TEST(NicClose, MemoryFreedWhileRegisteredIsNotTouched) {
    const VIP_NIC_HANDLE nic = open_nic();
    constexpr std::size_t kBytes = 1 << 16;
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    VIP_MEM_HANDLE handle = 0;
    CONFORM(VIP_SUCCESS, kNone, VipRegisterMem(nic, memory, kBytes, nullptr, &handle));
    munmap(memory, kBytes);
    CONFORM(VIP_SUCCESS, kNone, VipCloseNic(nic));
}

TEST(NicQuery, NullArgumentsAreRefused) {
    const VIP_NIC_HANDLE nic = open_nic();
    VIP_NIC_ATTRIBUTES attributes{};
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQueryNic(nic, nullptr));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQueryNic(nullptr, &attributes));
    VipCloseNic(nic);
}

TEST(NicQuery, TheLimitsAreAtLeastWhatProgramsCountOn) {
    const VIP_NIC_HANDLE nic = open_nic();
    VIP_NIC_ATTRIBUTES a;
    std::memset(&a, 0x5A, sizeof a);
    ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipQueryNic(nic, &a)));
    EXPECT_NE(std::memchr(a.Name, 0, sizeof a.Name), nullptr) << "the name has no end";
    EXPECT_NE(a.Name[0], '\0');
    EXPECT_EQ(a.NicAddressLen, 6) << "programs take it as a constant (spec/compat N2)";
    EXPECT_NE(a.LocalNicAddress, nullptr);
    EXPECT_EQ(a.ThreadSafe, VIP_TRUE);
    EXPECT_GE(a.MaxDiscriminatorLen, 16);
    EXPECT_GE(a.MaxVI, 1024u);
    EXPECT_GE(a.MaxDescriptorsPerQueue, 1024u);
    EXPECT_GE(a.MaxSegmentsPerDesc, options().segments) << "252, unless --segments says that the device has fewer";
    EXPECT_GE(a.MaxCQ, 128u);
    EXPECT_GE(a.MaxCQEntries, 1024u);
    EXPECT_GE(a.MaxTransferSize, 65600u) << "spec/compat N6";
    EXPECT_LT(a.MaxTransferSize, 1ul << 31) << "programs copy it into an int";
    EXPECT_GE(a.NativeMTU, 1024u) << "a tiny MTU becomes a tiny packet size (spec/compat N8)";
    EXPECT_GE(a.MaxPtags, a.MaxVI);
    EXPECT_GE(a.MaxRegisterRegions, 10000u);
    EXPECT_GE(a.MaxRegisterBlockBytes, a.MaxTransferSize);
    EXPECT_GE(a.MaxRegisterBytes, a.MaxRegisterBlockBytes);
    EXPECT_EQ(a.ReliabilityLevelSupport & ~VIP_BASE_SERVICES, 0);
    EXPECT_NE(a.ReliabilityLevelSupport & VIP_SERVICE_UNRELIABLE, 0);
    EXPECT_EQ(a.RDMAReadSupport & ~(VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION), 0);
    EXPECT_EQ(a.RDMAReadSupport & ~a.ReliabilityLevelSupport, 0);
    VipCloseNic(nic);
}

TEST(NicQuery, TheAnswerNeverChanges) {
    End one;
    End two;
    VIP_NIC_ATTRIBUTES again{};
    ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipQueryNic(one.nic, &again)));
    EXPECT_EQ(again.LocalNicAddress, one.limits.LocalNicAddress);
    EXPECT_EQ(again.MaxTransferSize, two.limits.MaxTransferSize);
    EXPECT_EQ(again.ReliabilityLevelSupport, two.limits.ReliabilityLevelSupport);
    EXPECT_STREQ(again.Name, two.limits.Name);
    EXPECT_EQ(std::memcmp(again.LocalNicAddress, two.limits.LocalNicAddress, again.NicAddressLen), 0)
        << "two opens of one device have one address";
}

TEST(NicOrder, AnyOrderOfTheFirstCallsWorks) {
    // The four orders of spec/compat D10, each step checked.
    for (int order = 0; order < 4; ++order) {
        const VIP_NIC_HANDLE nic = open_nic();
        VIP_NIC_ATTRIBUTES attributes{};
        VIP_PROTECTION_HANDLE ptag = nullptr;
        VIP_CQ_HANDLE cq = nullptr;
        ErrorLog log;
        const auto ns = [&] { CONFORM(VIP_SUCCESS, kNone, VipNSInit(nic, nullptr)); };
        const auto query = [&] { CONFORM(VIP_SUCCESS, kNone, VipQueryNic(nic, &attributes)); };
        const auto tag = [&] { CONFORM(VIP_SUCCESS, kNone, VipCreatePtag(nic, &ptag)); };
        const auto queue = [&] { CONFORM(VIP_SUCCESS, kNone, VipCreateCQ(nic, 16, &cq)); };
        const auto callback = [&] { CONFORM(VIP_SUCCESS, kNone, VipErrorCallback(nic, &log, &ErrorLog::handler)); };
        switch (order) {
            case 0: ns(), query(); break;
            case 1: callback(), ns(), query(), tag(); break;
            case 2: query(), tag(), queue(), callback(), ns(); break;
            default: query(), callback(), queue(), ns(), ns(); break;
        }
        CONFORM(VIP_SUCCESS, kNone, VipErrorCallback(nic, nullptr, nullptr));
        VipCloseNic(nic);
    }
}

TEST(ErrorCallback, RegistersReplacesAndSilences) {
    End end;
    ErrorLog second;
    CONFORM(VIP_SUCCESS, kNone, VipErrorCallback(end.nic, &second, &ErrorLog::handler));
    CONFORM(VIP_SUCCESS, kNone, VipErrorCallback(end.nic, nullptr, nullptr));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipErrorCallback(nullptr, &second, &ErrorLog::handler));
}

TEST(SystemManagement, AutodiscoveryFillsNoMoreThanItsRoom) {
    End end;
    constexpr std::size_t kRoom = 64;
    std::vector<Address> addresses(kRoom, Address::blank());
    std::vector<VIP_NET_ADDRESS*> array;
    for (Address& address : addresses) {
        array.push_back(address.get());
    }
    VIP_AUTODISCOVERY_LIST list{0, array.data(), kRoom};
    const VIP_RETURN result = VipQuerySystemManagementInfo(end.nic, VIP_SMI_AUTODISCOVERY, &list);
    if (result == VIP_ERROR_RESOURCE) {
        CONFORM_RESULT("VipQuerySystemManagementInfo", VIP_ERROR_RESOURCE, VS::kNone, result);
        cannot_show("VipQuerySystemManagementInfo", VIP_SUCCESS, VS::kNone, "the NIC has no autodiscovery");
        return;
    }
    cannot_show("VipQuerySystemManagementInfo", VIP_ERROR_RESOURCE, VS::kNone, "the NIC has autodiscovery");
    ASSERT_TRUE(CONFORM_RESULT("VipQuerySystemManagementInfo", VIP_SUCCESS, VS::kNone, result));
    ASSERT_LE(list.NumAdAddrs, kRoom);
    for (VIP_ULONG i = 0; i < list.NumAdAddrs; ++i) {
        EXPECT_EQ(array[i]->HostAddressLen, end.limits.NicAddressLen);
    }
    VIP_AUTODISCOVERY_LIST none{0, array.data(), 0};
    CONFORM(VIP_SUCCESS, kNone, VipQuerySystemManagementInfo(end.nic, VIP_SMI_AUTODISCOVERY, &none));
    EXPECT_EQ(none.NumAdAddrs, 0u);
}

TEST(SystemManagement, UnknownTypesAndNullArgumentsAreRefused) {
    End end;
    VIP_AUTODISCOVERY_LIST list{0, nullptr, 0};
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQuerySystemManagementInfo(end.nic, 4711, &list));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQuerySystemManagementInfo(end.nic, 0, &list));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQuerySystemManagementInfo(end.nic, VIP_SMI_AUTODISCOVERY, nullptr));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQuerySystemManagementInfo(nullptr, VIP_SMI_AUTODISCOVERY, &list));
}

TEST(UserData, BelongsToTheVi) {
    End end;
    const VIP_VI_HANDLE other = end.create_vi();
    int first = 0;
    int second = 0;
    EXPECT_EQ(VipGetUserData(end.vi), nullptr);
    VipSetUserData(end.vi, &first);
    VipSetUserData(other, &second);
    EXPECT_EQ(VipGetUserData(end.vi), &first);
    EXPECT_EQ(VipGetUserData(other), &second);
    VipDestroyVi(other);
    EXPECT_EQ(VipGetUserData(other), nullptr);
    VipSetUserData(other, &first);
    VipSetUserData(nullptr, &first);
    EXPECT_EQ(VipGetUserData(nullptr), nullptr);
}

}  // namespace
}  // namespace viaduct::conformance
