// SPDX-License-Identifier: BSD-2-Clause
// The user agent with a real agent and the default NIC, where a test has to reach behind the exported calls:
// a NIC that fails, and the strict reading of the guide.
#include "vipl/nic.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include "vipl/library.hpp"
#include "vipl/vi.hpp"

namespace viaduct::vipl {
namespace {

// The build's own agent and providers: this program lies in no folder from which they could be found.
void use_this_build() {
    const std::string vipkad = VIADUCT_TEST_VIPKAD;
    const std::string root = vipkad.substr(0, vipkad.rfind("/", vipkad.rfind('/') - 1));
    ::setenv("VIADUCT_VIPKAD", vipkad.c_str(), 1);
    ::setenv("VIADUCT_PROVIDER_PATH", (root + "/lib/viaduct").c_str(), 0);
}

struct Errors {
    std::atomic<int> catastrophic{0};
    std::atomic<int> others{0};
    static void handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
        auto& self = *static_cast<Errors*>(context);
        const bool of_nic =
            error->ErrorCode == VIP_ERROR_CATASTROPHIC && error->ResourceCode == VIP_RESOURCE_NIC;
        ++(of_nic ? self.catastrophic : self.others);
    }
};

// One NIC handle with registered memory for descriptors.
class End {
public:
    End() {
        use_this_build();
        EXPECT_EQ(VipOpenNic("nic0", &nic), VIP_SUCCESS);
        EXPECT_EQ(VipQueryNic(nic, &limits), VIP_SUCCESS);
        EXPECT_EQ(VipRegisterMem(nic, memory, sizeof memory, nullptr, &region), VIP_SUCCESS);
        vi = create_vi();
    }
    ~End() { VipCloseNic(nic); }

    VIP_VI_HANDLE create_vi() const {
        VIP_VI_ATTRIBUTES attributes{};
        attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
        attributes.MaxTransferSize = 4096;
        VIP_VI_HANDLE made = nullptr;
        EXPECT_EQ(VipCreateVi(nic, &attributes, nullptr, nullptr, &made), VIP_SUCCESS);
        return made;
    }

    VIP_DESCRIPTOR* descriptor() {
        auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(memory);
        std::memset(d, 0, sizeof *d);
        return d;
    }

    VIP_VI_STATE state() const {
        VIP_VI_STATE now;
        VIP_VI_ATTRIBUTES attributes;
        VIP_BOOLEAN send_empty, recv_empty;
        EXPECT_EQ(VipQueryVi(vi, &now, &attributes, &send_empty, &recv_empty), VIP_SUCCESS);
        return now;
    }

    VIP_NIC_HANDLE nic = nullptr;
    VIP_NIC_ATTRIBUTES limits{};
    VIP_VI_HANDLE vi = nullptr;
    VIP_MEM_HANDLE region = 0;
    alignas(64) char memory[4096] = {};
};

// Joins two VIs peer to peer: no second thread is needed.
void connect(End& a, End& b) {
    struct {
        VIP_NET_ADDRESS address;
        char rest[16];
    } one{}, two{};
    const auto fill = [](auto& to, const End& end, char discriminator) {
        to.address.HostAddressLen = end.limits.NicAddressLen;
        to.address.DiscriminatorLen = 1;
        auto* bytes = reinterpret_cast<char*>(&to) + 4;
        std::memcpy(bytes, end.limits.LocalNicAddress, end.limits.NicAddressLen);
        bytes[end.limits.NicAddressLen] = discriminator;
    };
    fill(one, a, '1');
    fill(two, b, '2');
    ASSERT_EQ(VipConnectPeerRequest(a.vi, &one.address, &two.address, 10000), VIP_SUCCESS);
    ASSERT_EQ(VipConnectPeerRequest(b.vi, &two.address, &one.address, 10000), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes;
    ASSERT_EQ(VipConnectPeerWait(a.vi, &attributes), VIP_SUCCESS);
    ASSERT_EQ(VipConnectPeerWait(b.vi, &attributes), VIP_SUCCESS);
}

Nic& inside(VIP_NIC_HANDLE handle) { return *static_cast<Nic*>(handle_table.find(handle, HandleKind::nic)); }

TEST(NicFailedTest, BreaksEveryConnectionAndIsToldOnce) {
    End here, there;
    Errors errors;
    ASSERT_EQ(VipErrorCallback(here.nic, &errors, Errors::handler), VIP_SUCCESS);
    const VIP_VI_HANDLE idle = here.create_vi();
    connect(here, there);
    ASSERT_EQ(VipPostRecv(here.vi, here.descriptor(), here.region), VIP_SUCCESS);

    nic_failed(inside(here.nic));

    EXPECT_EQ(here.state(), VIP_STATE_ERROR);
    VIP_DESCRIPTOR* flushed = nullptr;
    EXPECT_EQ(VipRecvDone(here.vi, &flushed), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(flushed, here.descriptor());
    for (int i = 0; i < 5000 && errors.catastrophic == 0; ++i) ::poll(nullptr, 0, 1);
    ::poll(nullptr, 0, 20);
    EXPECT_EQ(errors.catastrophic, 1);
    EXPECT_EQ(errors.others, 0);
    // A VI that was not connected has lost nothing.
    EXPECT_EQ(VipDestroyVi(idle), VIP_SUCCESS);
    EXPECT_EQ(VipErrorCallback(here.nic, nullptr, nullptr), VIP_SUCCESS);
}

// Operations of a NIC among which its wake-up stays for a while when one thread calls it.
struct SlowWake {
    static inline const DataOps* real;
    static inline DataOps ops;
    static inline std::latch reached{1};
    static inline std::latch go_on{1};
    static inline std::atomic<bool> nic_is_gone{false};
    static inline thread_local bool this_thread = false;

    static void put_under(Nic& nic) {
        real = nic.ops;
        ops = *real;
        ops.wake = [](NicContext* context) {
            if (this_thread) {
                reached.count_down();
                go_on.wait();
            }
            real->wake(context);
        };
        ops.close = [](NicContext* context) {
            nic_is_gone = true;
            real->close(context);
        };
        nic.ops = &ops;
    }
};

TEST(NicCloseTest, WaitsForAThreadOfTheProviderThatSettlesABrokenConnection) {
    End there;
    auto here = std::make_unique<End>();
    connect(*here, there);
    Nic& nic = inside(here->nic);
    Vi& vi = *find_vi(here->vi);
    SlowWake::put_under(nic);
    std::thread of_provider([&] {
        SlowWake::this_thread = true;
        vi.core.mark_broken({});
        vi.core.events->settle(vi.core);
    });
    SlowWake::reached.wait();
    std::thread closing([&] { here.reset(); });
    while (nic.handle.load() != 0) std::this_thread::yield();
    ::poll(nullptr, 0, 50);
    EXPECT_FALSE(SlowWake::nic_is_gone);
    SlowWake::go_on.count_down();
    of_provider.join();
    closing.join();
    EXPECT_TRUE(SlowWake::nic_is_gone);
}

TEST(NicPinTest, AClosedNicIsNotPinned) {
    use_this_build();
    VIP_NIC_HANDLE nic = nullptr;
    ASSERT_EQ(VipOpenNic("nic0", &nic), VIP_SUCCESS);
    Nic& object = inside(nic);
    EXPECT_TRUE(NicPin(nic));
    EXPECT_EQ(object.users.load(), 0U) << "a pin that has ended is still counted";
    ASSERT_EQ(VipCloseNic(nic), VIP_SUCCESS);
    EXPECT_FALSE(NicPin(nic));
    EXPECT_FALSE(NicPin::try_pin(object));
    EXPECT_EQ(object.users.load(), 0U);
}

// The answer of VipDestroyVi for a VI with a completion that nobody has fetched, and whether a descriptor
// outside of the region its handle names is let pass. In a process of its own: settings are read once.
int strict_answers() {
    End end;
    static char elsewhere[64];
    VIP_MEM_HANDLE other = 0;
    VipRegisterMem(end.nic, elsewhere, sizeof elsewhere, nullptr, &other);
    VipPostRecv(end.vi, end.descriptor(), other);
    const bool slip_refused = end.state() == VIP_STATE_ERROR;
    VipDisconnect(end.vi);  // a descriptor that was let pass is flushed now
    if (slip_refused) VipPostRecv(end.vi, end.descriptor(), end.region);
    VipDisconnect(end.vi);
    const bool destroy_refused = VipDestroyVi(end.vi) == VIP_ERROR_RESOURCE;
    return (slip_refused ? 1 : 0) + (destroy_refused ? 2 : 0);
}

int answers_with(const char* strict) {
    use_this_build();
    const pid_t child = ::fork();
    if (child == 0) {
        ::setenv("VIADUCT_VIPL_STRICT", strict, 1);
        ::_exit(strict_answers());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(PolicyTest, TheTolerantReadingLetsHabitsOfTheTimePass) { EXPECT_EQ(answers_with("0"), 0); }

TEST(PolicyTest, TheStrictReadingRefusesThem) { EXPECT_EQ(answers_with("1"), 3); }

}  // namespace
}  // namespace viaduct::vipl
