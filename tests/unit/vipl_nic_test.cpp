// SPDX-License-Identifier: BSD-2-Clause
// The user agent with a real agent and the default NIC, where a test has to reach behind the exported calls:
// a NIC that fails, and the strict reading of the guide.
#include "vipl/nic.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include "core/agent/mail.hpp"
#include "core/clock/clock.hpp"
#include "core/stats/reader.hpp"
#include "core/wait/crowd_score.hpp"
#include "viaduct/kagent.hpp"
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

    VIP_VI_HANDLE create_vi(VIP_CQ_HANDLE of_receives = nullptr) const {
        VIP_VI_ATTRIBUTES attributes{};
        attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
        attributes.MaxTransferSize = 4096;
        VIP_VI_HANDLE made = nullptr;
        EXPECT_EQ(VipCreateVi(nic, &attributes, nullptr, of_receives, &made), VIP_SUCCESS);
        return made;
    }

    // The one of that number; zero until it is posted: a message without data.
    VIP_DESCRIPTOR* descriptor(int number = 0) {
        return reinterpret_cast<VIP_DESCRIPTOR*>(memory + number * 64);
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
    static inline std::atomic<bool> nic_is_closed{false};
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
            nic_is_closed = true;
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
    EXPECT_FALSE(SlowWake::nic_is_closed);
    SlowWake::go_on.count_down();
    of_provider.join();
    closing.join();
    EXPECT_TRUE(SlowWake::nic_is_closed);
}

// Operations of a NIC whose wake-up is a cancellation point, as a write is.
struct CancellableWake {
    static inline const DataOps* real;
    static inline DataOps ops;
    static inline thread_local int wakes = 0;

    static void put_under(Nic& nic) {
        real = nic.ops;
        ops = *real;
        ops.wake = [](NicContext* context) {
            ++wakes;
            ::pthread_testcancel();
            real->wake(context);
        };
        nic.ops = &ops;
    }
};

// A provider tells errors with locks of its own held, inside calls that hold off no cancellation.
TEST(AsyncErrorTest, AThreadThatIsCancelledDoesNotEndWhereItTellsOne) {
    End there, here;
    Errors errors;
    ASSERT_EQ(VipErrorCallback(here.nic, &errors, Errors::handler), VIP_SUCCESS);
    connect(here, there);
    CancellableWake::put_under(inside(here.nic));  // before there is a handler thread that could read it
    ASSERT_EQ(VipPostRecv(here.vi, here.descriptor(1), here.region), VIP_SUCCESS);
    const auto ignore = [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {};
    ASSERT_EQ(VipRecvNotify(here.vi, nullptr, ignore), VIP_SUCCESS);  // the handler thread sleeps in the provider
    ViCore& core = find_vi(here.vi)->core;
    std::atomic<bool> came_back{false};
    std::thread teller([&] {
        ::pthread_cancel(::pthread_self());
        while (CancellableWake::wakes == 0) {
            core.events->async_error(core, VIP_ERROR_RECVQ_EMPTY, VIP_RESOURCE_VI, 0, nullptr);
            std::this_thread::yield();
        }
        came_back = true;
    });
    teller.join();
    EXPECT_TRUE(came_back);
    EXPECT_EQ(VipErrorCallback(here.nic, nullptr, nullptr), VIP_SUCCESS);
}

// While it lasts, no thread can be started that leaves the size of its stack to the system.
class NoMoreThreads {
public:
    NoMoreThreads() {
        ::pthread_getattr_default_np(&before_);
        pthread_attr_t larger_than_all_addresses;
        ::pthread_attr_init(&larger_than_all_addresses);
        ::pthread_attr_setstacksize(&larger_than_all_addresses, size_t{1} << 52);
        EXPECT_EQ(::pthread_setattr_default_np(&larger_than_all_addresses), 0);
        ::pthread_attr_destroy(&larger_than_all_addresses);
    }
    ~NoMoreThreads() {
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }

private:
    pthread_attr_t before_;
};

TEST(NotifyTest, WhatIsRefusedForWantOfAThreadIsNeverMade) {
    End end;
    std::atomic<int> refused{0}, made{0};
    const auto count = [](VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {
        ++*static_cast<std::atomic<int>*>(context);
    };
    ASSERT_EQ(VipPostRecv(end.vi, end.descriptor(), end.region), VIP_SUCCESS);
    {
        const NoMoreThreads none;
        EXPECT_EQ(VipRecvNotify(end.vi, &refused, count), VIP_ERROR_RESOURCE);
    }
    EXPECT_EQ(VipRecvNotify(end.vi, &made, count), VIP_SUCCESS);
    EXPECT_EQ(VipDisconnect(end.vi), VIP_SUCCESS);  // flushes the receive
    for (int i = 0; i < 20000 && refused + made == 0; ++i) ::poll(nullptr, 0, 1);
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(made, 1);
}

TEST(NotifyTest, WhatIsRefusedOnACompletionQueueIsNeverMadeEither) {
    End end;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(end.nic, 4, &cq), VIP_SUCCESS);
    end.vi = end.create_vi(cq);
    std::atomic<int> refused{0}, made{0};
    const auto count = [](VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {
        ++*static_cast<std::atomic<int>*>(context);
    };
    ASSERT_EQ(VipPostRecv(end.vi, end.descriptor(), end.region), VIP_SUCCESS);
    {
        const NoMoreThreads none;
        EXPECT_EQ(VipCQNotify(cq, &refused, count), VIP_ERROR_RESOURCE);
    }
    EXPECT_EQ(VipCQNotify(cq, &made, count), VIP_SUCCESS);
    EXPECT_EQ(VipDisconnect(end.vi), VIP_SUCCESS);
    for (int i = 0; i < 20000 && refused + made == 0; ++i) ::poll(nullptr, 0, 1);
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(made, 1);
}

// How often empty polls have looked at everything else of the process' NICs.
uint64_t rounds() {
    stats::Picture picture;
    EXPECT_EQ(stats::look_at(::getpid(), &picture), stats::Look::ok);
    return stats::number_of(picture.process, "rounds");
}

// A poll beside others that want the processor gives way and looks twice; what is due every so many looks is
// due whichever of the two it falls on.
TEST(CqPollTest, LooksAroundAlsoWhereOthersWantTheProcessor) {
    const End end;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(end.nic, 4, &cq), VIP_SUCCESS);
    const auto polls_in_vain = [&](int count, bool crowd) {
        for (int i = 0; i < count; ++i) {
            crowd_hint.store(crowd);
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN is_receive = VIP_FALSE;
            EXPECT_EQ(VipCQDone(cq, &vi, &is_receive), VIP_NOT_DONE);
        }
    };
    for (const int looks_before : {0, 1}) {
        polls_in_vain(looks_before, false);
        const uint64_t before = rounds();
        polls_in_vain(640, true);
        EXPECT_GE(rounds(), before + 10) << "after " << looks_before;
    }
    EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
}

TEST(CqResizeTest, SeesCompletionsThatWereNotPolled) {
    constexpr int kMessages = 4;
    End here, there;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(there.nic, 2 * kMessages, &cq), VIP_SUCCESS);
    there.vi = there.create_vi(cq);
    connect(here, there);
    for (int i = 0; i < kMessages; ++i)
        ASSERT_EQ(VipPostRecv(there.vi, there.descriptor(i), there.region), VIP_SUCCESS);
    for (int i = 0; i < kMessages; ++i)
        ASSERT_EQ(VipPostSend(here.vi, here.descriptor(i), here.region), VIP_SUCCESS);

    EXPECT_EQ(VipResizeCQ(cq, kMessages - 1), VIP_ERROR_RESOURCE);
    EXPECT_EQ(VipResizeCQ(cq, kMessages), VIP_SUCCESS);

    for (int i = 0; i < kMessages; ++i) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN is_receive = VIP_FALSE;
        ASSERT_EQ(VipCQDone(cq, &vi, &is_receive), VIP_SUCCESS) << "entry " << i;
        VIP_DESCRIPTOR* got = nullptr;
        EXPECT_EQ(VipRecvDone(there.vi, &got), VIP_SUCCESS);
        EXPECT_EQ(got, there.descriptor(i));
    }
    EXPECT_EQ(there.state(), VIP_STATE_CONNECTED);
}

// Many mappings in a row: asking the kernel whether all is there takes a while.
struct ManyMappings {
    static constexpr size_t kPages = 4000;
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    char* const start = static_cast<char*>(
        ::mmap(nullptr, kPages* page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ManyMappings() {
        for (size_t i = 0; i < kPages; i += 2) ::mprotect(start + i * page, page, PROT_READ);
    }
    ~ManyMappings() { ::munmap(start, kPages * page); }
};

TEST(PtagTest, ADestroyedTagNeverComesBackAsThatOfARegion) {
    End end;
    const ManyMappings memory;
    std::atomic<VIP_PROTECTION_HANDLE> tag{nullptr};
    std::atomic<bool> done{false};
    std::thread others([&] {  // the same number again and again, each time another tag
        while (!done) {
            VIP_PROTECTION_HANDLE made = nullptr;
            EXPECT_EQ(VipCreatePtag(end.nic, &made), VIP_SUCCESS);
            tag = made;
            while (VipDestroyPtag(end.nic, made) == VIP_ERROR_RESOURCE) std::this_thread::yield();
        }
    });
    int foreign = 0;
    for (int i = 0; i < 200; ++i) {
        VIP_MEM_ATTRIBUTES asked{};
        while ((asked.Ptag = tag) == nullptr) std::this_thread::yield();
        VIP_MEM_HANDLE handle = 0;
        const size_t bytes = memory.kPages * memory.page;
        if (VipRegisterMem(end.nic, memory.start, bytes, &asked, &handle) != VIP_SUCCESS) continue;
        VIP_MEM_ATTRIBUTES got{};
        EXPECT_EQ(VipQueryMem(end.nic, memory.start, handle, &got), VIP_SUCCESS);
        foreign += got.Ptag != asked.Ptag ? 1 : 0;
        EXPECT_EQ(VipDeregisterMem(end.nic, memory.start, handle), VIP_SUCCESS);
    }
    done = true;
    others.join();
    EXPECT_EQ(foreign, 0);
}

// A device that refuses to change memory, and during whose call the program destroys a tag.
struct Refusal {
    static inline DataOps ops;
    static inline VIP_NIC_HANDLE nic;
    static inline VIP_PROTECTION_HANDLE tag;
    static inline VIP_RETURN destroyed;

    static void put_under(Nic& object) {
        ops = *object.ops;
        ops.region_changed = [](NicContext*, uint32_t, const Region&) {
            destroyed = VipDestroyPtag(nic, tag);
            return Status::out_of_resources;
        };
        object.ops = &ops;
    }
};

TEST(PtagTest, ATagThatARegionMayGetBackIsInUse) {
    End end;
    VIP_PROTECTION_HANDLE old_tag = nullptr, new_tag = nullptr;
    ASSERT_EQ(VipCreatePtag(end.nic, &old_tag), VIP_SUCCESS);
    ASSERT_EQ(VipCreatePtag(end.nic, &new_tag), VIP_SUCCESS);
    static char memory[64];
    VIP_MEM_ATTRIBUTES attributes{};
    attributes.Ptag = old_tag;
    VIP_MEM_HANDLE handle = 0;
    ASSERT_EQ(VipRegisterMem(end.nic, memory, sizeof memory, &attributes, &handle), VIP_SUCCESS);
    Refusal::nic = end.nic;
    Refusal::tag = old_tag;
    Refusal::put_under(inside(end.nic));

    attributes.Ptag = new_tag;
    EXPECT_EQ(VipSetMemAttributes(end.nic, memory, handle, &attributes), VIP_ERROR_RESOURCE);

    EXPECT_EQ(Refusal::destroyed, VIP_ERROR_RESOURCE);
    VIP_MEM_ATTRIBUTES got{};
    EXPECT_EQ(VipQueryMem(end.nic, memory, handle, &got), VIP_SUCCESS);
    EXPECT_EQ(got.Ptag, old_tag);
    EXPECT_EQ(VipDeregisterMem(end.nic, memory, handle), VIP_SUCCESS);
    EXPECT_EQ(VipDestroyPtag(end.nic, old_tag), VIP_SUCCESS) << "it stays in use";
    EXPECT_EQ(VipDestroyPtag(end.nic, new_tag), VIP_SUCCESS);
}

// An agent that ends between the opening of a NIC there and the entry into the list from which a new one
// learns: the NIC of this End is taken off the list while that happens.
TEST(NicOpenTest, ANewAgentLearnsOfANicThatItsPredecessorHasJustOpened) {
    End end;
    Nic& nic = inside(end.nic);
    AgentLink& link = nic.library->link;
    const uint64_t epoch = link.epoch();
    const auto known = [&] {
        kagent::Lease none;
        none.context_id = nic.context_id;
        Mail answer;
        return link.call(Mail::of(kagent::Type::kLease, none), &answer, now_ns() + 10'000'000'000) ==
               Status::ok;
    };
    ASSERT_TRUE(known());
    nic.library->remove_open(&nic);
    ASSERT_EQ(::kill(static_cast<pid_t>(link.welcome().agent_pid), SIGKILL), 0);
    while (link.epoch() == epoch) ASSERT_EQ(link.connect(), Status::ok) << link.last_error();
    nic.library->add_open(&nic);
    ASSERT_FALSE(known());

    EXPECT_EQ(assure_known(nic, epoch, kNever), Status::ok);
    EXPECT_TRUE(known());
    EXPECT_EQ(assure_known(nic, epoch, kNever), Status::ok) << "a second time does no harm";
    EXPECT_TRUE(known());
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

// The answer of VipDestroyVi for a VI with a completion that was not fetched, and whether a descriptor
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
