// SPDX-License-Identifier: BSD-2-Clause
// Which ports are offered, and what is told of a device that cannot be: the step that failed, and its errno.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <net/if.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <string>
#include <vector>

#include "explained_agent.hpp"
#include "no_descriptors.hpp"
#include "providers/verbs/control.hpp"
#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs {
namespace {

using testing::HasSubstr;

// A host with one device and one address; one step fails with an errno.
struct FakeHost {
    std::string failing;
    int error = 0;
    int open_devices = 0;
    int channels = 0;
    int ids = 0;
    int lists = 0;
    bool is_behind_address = true;
    ibv_device device{};
    ibv_device* devices[2] = {&device, nullptr};
    ibv_context context{};
    rdma_event_channel channel{};
    rdma_cm_id id{};
    sockaddr_in address{};
    ifaddrs interface {};
    char name[5] = "eth0";

    // For functions that return -1 and set errno.
    bool fails(const char* step) const {
        if (failing != step) return false;
        errno = error;
        return true;
    }
};
FakeHost* host = nullptr;

ibv_device** host_device_list(int* count) {
    if (host->fails("get_device_list")) return nullptr;
    *count = 1;
    ++host->lists;
    return host->devices;
}
void host_free_device_list(ibv_device**) { --host->lists; }
const char* host_device_name(ibv_device*) { return "rxe0"; }
ibv_context* host_open_device(ibv_device*) {
    if (host->fails("open_device")) return nullptr;
    ++host->open_devices;
    return &host->context;
}
int host_close_device(ibv_context*) {
    --host->open_devices;
    return 0;
}
int host_query_device(ibv_context*, ibv_device_attr* attr) {
    if (host->failing == "query_device") return host->error;
    attr->max_qp = attr->max_cq = attr->max_mr = 64;
    attr->max_qp_wr = attr->max_cqe = 1024;
    attr->max_sge = 16;
    return 0;
}
int host_query_port(ibv_context*, uint8_t, ibv_port_attr* attr) {
    if (host->failing == "query_port") return host->error;
    attr->max_msg_sz = 1u << 30;
    attr->state = IBV_PORT_ACTIVE;
    return 0;
}
int host_addresses(ifaddrs** out) {
    if (host->fails("get_addresses")) return -1;
    ++host->lists;
    *out = &host->interface;
    return 0;
}
void host_free_addresses(ifaddrs*) { --host->lists; }
rdma_event_channel* host_create_channel() {
    if (host->fails("create_event_channel")) return nullptr;
    ++host->channels;
    return &host->channel;
}
void host_destroy_channel(rdma_event_channel*) { --host->channels; }
int host_create_id(rdma_event_channel*, rdma_cm_id** out, void*, rdma_port_space) {
    if (host->fails("create_id")) return -1;
    ++host->ids;
    *out = &host->id;
    return 0;
}
int host_destroy_id(rdma_cm_id*) {
    --host->ids;
    errno = EBADF;  // no caller may take it for the error of an earlier call
    return 0;
}
int host_bind(rdma_cm_id* id, sockaddr*) {
    if (host->fails("bind_addr")) return -1;
    id->verbs = host->is_behind_address ? &host->context : nullptr;
    id->port_num = 1;
    return 0;
}

class Defaults : public Settings {
public:
    const char* get(const char*, const char* fallback) const override { return fallback; }
    int64_t get_int(const char*, int64_t fallback) const override { return fallback; }
};

class Collected : public NicSink {
public:
    void offer(const NicInfo& nic) override {
        if (throws) throw std::bad_alloc();
        offered.push_back(nic);
    }
    void reject(const Rejection& r) override { rejected.push_back(r); }
    bool throws = false;
    std::vector<NicInfo> offered;
    std::vector<Rejection> rejected;
};

class VerbsDiscovery : public test::VerbsFixture {
protected:
    VerbsDiscovery() {
        host = &host_;
        host_.context.device = &host_.device;
        host_.address.sin_family = AF_INET;
        host_.address.sin_addr.s_addr = htonl(0xC0000201);
        host_.interface.ifa_addr = reinterpret_cast<sockaddr*>(&host_.address);
        host_.interface.ifa_name = host_.name;
        host_.interface.ifa_flags = IFF_UP;
        table_.get_device_list = host_device_list;
        table_.free_device_list = host_free_device_list;
        table_.get_device_name = host_device_name;
        table_.open_device = host_open_device;
        table_.close_device = host_close_device;
        table_.query_device = host_query_device;
        table_.query_port = host_query_port;
        table_.get_addresses = host_addresses;
        table_.free_addresses = host_free_addresses;
        table_.create_event_channel = host_create_channel;
        table_.destroy_event_channel = host_destroy_channel;
        table_.create_id = host_create_id;
        table_.destroy_id = host_destroy_id;
        table_.bind_addr = host_bind;
    }
    ~VerbsDiscovery() override {
        EXPECT_EQ(host_.open_devices, 0);
        EXPECT_EQ(host_.channels, 0);
        EXPECT_EQ(host_.ids, 0);
        EXPECT_EQ(host_.lists, 0);
    }
    void look() { EXPECT_EQ(discover(Defaults(), Hints(), sink_), Status::ok); }
    void look_where(const char* step, int error) {
        host_.failing = step;
        host_.error = error;
        look();
        EXPECT_TRUE(sink_.offered.empty());
    }
    void expect_of_device(const char* reason) {
        ASSERT_FALSE(sink_.rejected.empty());
        EXPECT_STREQ(sink_.rejected.back().name, "rxe0");
        EXPECT_THAT(sink_.rejected.back().reason, HasSubstr(reason));
    }

    FakeHost host_;
    Collected sink_;
};

TEST_F(VerbsDiscovery, APortBehindAnAddressIsOffered) {
    look();
    ASSERT_EQ(sink_.offered.size(), 1u);
    EXPECT_STREQ(sink_.offered[0].name, "verbs0");
    EXPECT_TRUE(sink_.rejected.empty());
}

TEST_F(VerbsDiscovery, ADeviceWithoutAnAddressIsToldAsOne) {
    host_.is_behind_address = false;
    look();
    EXPECT_EQ(sink_.rejected.size(), 1u);
    expect_of_device("no interface of it that is up has an IPv4 address");
}

TEST_F(VerbsDiscovery, SoIsOneThatBindingDoesNotFind) {
    look_where("bind_addr", ENODEV);
    EXPECT_EQ(sink_.rejected.size(), 1u);
    expect_of_device("no interface of it that is up has an IPv4 address");
}

TEST_F(VerbsDiscovery, AddressesThatCannotBeReadAreToldAsThat) {
    look_where("get_addresses", EACCES);
    EXPECT_EQ(sink_.rejected.size(), 1u);
    expect_of_device("the addresses of this host cannot be read: Permission denied");
}

TEST_F(VerbsDiscovery, AnAddressThatCannotBeLookedAtIsToldWithItsInterface) {
    for (const char* step : {"create_id", "bind_addr"}) {
        SCOPED_TRACE(step);
        sink_.rejected.clear();
        look_where(step, ENOMEM);
        ASSERT_EQ(sink_.rejected.size(), 2u);
        EXPECT_STREQ(sink_.rejected[0].name, "eth0");
        EXPECT_THAT(sink_.rejected[0].reason, HasSubstr("192.0.2.1: Cannot allocate memory"));
        expect_of_device("192.0.2.1: Cannot allocate memory");
    }
}

TEST_F(VerbsDiscovery, ADeviceThatCannotBeOpenedSaysWhy) {
    look_where("open_device", EACCES);
    EXPECT_EQ(sink_.rejected.size(), 1u);
    expect_of_device("the device cannot be opened: Permission denied");
}

// rdma_cm opens the device itself, and says ENODEV of one that it cannot open.
TEST_F(VerbsDiscovery, SoDoesOneThatRdmaCmCannotOpen) {
    host_.is_behind_address = false;
    look_where("open_device", EACCES);
    EXPECT_EQ(sink_.rejected.size(), 1u);
    expect_of_device("the device cannot be opened: Permission denied");
}

TEST_F(VerbsDiscovery, ADeviceThatCannotBeQueriedIsNotCalledUnopened) {
    look_where("query_device", EIO);
    expect_of_device("the device's attributes cannot be queried: Input/output error");
    look_where("query_port", EINVAL);
    expect_of_device("the port's attributes cannot be queried: Invalid argument");
    EXPECT_EQ(sink_.rejected.size(), 2u);
}

TEST_F(VerbsDiscovery, AnOpenSaysWhichStepHasFailed) {
    table_.alloc_pd = [](ibv_context*) -> ibv_pd* {
        host->fails("alloc_pd");
        return nullptr;
    };
    const struct {
        const char* step;
        int error;
        Status answer;
        const char* reason;
        const char* cure;
    } rows[] = {
        {"create_event_channel", ENOENT, Status::denied,
         "/dev/infiniband/rdma_cm cannot be opened: No such file or directory", "modprobe rdma_ucm"},
        {"create_id", EMFILE, Status::denied,
         "rdma_cm cannot find the device of address 192.0.2.1: Too many open files", "/dev/infiniband/rdma_cm"},
        {"bind_addr", ENODEV, Status::unknown_name, "no RDMA device has the address 192.0.2.1 any more",
         "ip address add"},
        {"open_device", EACCES, Status::denied, "the device rxe0 cannot be opened: Permission denied",
         "/dev/infiniband/uverbs*"},
        {"query_device", EIO, Status::denied, "the device's attributes cannot be queried: Input/output error", "dmesg"},
        {"alloc_pd", ENOMEM, Status::out_of_resources,
         "the device gives no protection domain: Cannot allocate memory", "ulimit -l"},
    };
    const Defaults settings;
    for (const auto& row : rows) {
        SCOPED_TRACE(row.step);
        host_.failing = row.step;
        host_.error = row.error;
        tests::ExplainedAgent agent;
        OpenArgs args;
        args.nic.address = address_of(host_.address.sin_addr);
        args.settings = &settings;
        args.agent = &agent;
        args.regions = &regions_;
        NicContext* opened = nullptr;
        EXPECT_EQ(open(args, &opened), row.answer);
        EXPECT_EQ(agent.reason, row.reason);
        EXPECT_THAT(agent.cure, HasSubstr(row.cure));
    }
}

TEST_F(VerbsDiscovery, AChannelThatCannotBeMadeSaysWhy) {
    look_where("create_event_channel", ENOENT);
    expect_of_device("/dev/infiniband/rdma_cm cannot be opened: No such file or directory");
}

TEST_F(VerbsDiscovery, AListThatCannotBeHadIsTold) {
    look_where("get_device_list", ENOMEM);
    ASSERT_EQ(sink_.rejected.size(), 1u);
    EXPECT_THAT(sink_.rejected[0].reason, HasSubstr("cannot be listed: Cannot allocate memory"));
}

TEST_F(VerbsDiscovery, AnAnswerWithoutDescriptorsIsNoListOfAllNics) {
    for (const char* step : {"get_device_list", "create_event_channel", "open_device"}) {
        SCOPED_TRACE(step);
        host_.failing = step;
        host_.error = EMFILE;
        const tests::NoDescriptors none;
        EXPECT_EQ(discover(Defaults(), Hints(), sink_), Status::out_of_resources);
    }
    EXPECT_TRUE(sink_.offered.empty());
}

TEST_F(VerbsDiscovery, AHostWithoutRdmaIsSilent) {
    look_where("get_device_list", ENOSYS);
    EXPECT_TRUE(sink_.rejected.empty());
}

// That nothing is left open is checked at the end of every test.
TEST_F(VerbsDiscovery, NothingIsLeftOpenWhenTheReceiverThrows) {
    sink_.throws = true;
    EXPECT_THROW((void)discover(Defaults(), Hints(), sink_), std::bad_alloc);
}

// Root of a child namespace has CAP_IPC_LOCK there, and the kernel counts its registered memory nevertheless.
TEST_F(VerbsDiscovery, TheLimitOfLockedMemoryCountsInAChildUserNamespace) {
    constexpr int kCannotUnshare = 77;
    const pid_t child = ::fork();
    if (child == 0) {
        const rlimit low{64 << 10, 64 << 10};
        if (::setrlimit(RLIMIT_MEMLOCK, &low) != 0 || ::unshare(CLONE_NEWUSER) != 0) ::_exit(kCannotUnshare);
        look();
        const bool told = sink_.offered.empty() && sink_.rejected.size() == 1 &&
                          std::string(sink_.rejected[0].reason).find("only 64 KiB") != std::string::npos;
        ::_exit(told ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kCannotUnshare) GTEST_SKIP() << "no user namespace can be made here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace viaduct::verbs
