// SPDX-License-Identifier: BSD-2-Clause
// One end of a memif link ends and comes back, again and again, while the other end sends and receives without a
// pause. Both ends are ports of this process, on one processor: DPDK's thread serves the end of the one port while the
// thread of the other port stands in the middle of a burst. A program of its own, since it may crash and starts DPDK.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "providers/acenic/port.hpp"
#include "tests/eventually.hpp"
#include "tests/temporary_folder.hpp"

namespace viaduct::acenic {
namespace {

constexpr uint32_t kBytes = 8000;
constexpr uint32_t kFramesEachWay = 64;
constexpr int kEnds = 40;

// The whole process has the processor that it is on.
void stay_on_one_processor() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
}

class MemifEnds : public testing::TestWithParam<const char*> {
protected:
    PortSpec end_of_link(const std::string& role) const {
        PortSpec spec;
        Rejection rejection;
        const std::string mac = role == "server" ? "02:00:00:00:0a:02" : "02:00:00:00:0a:01";
        // The driver has one entry for each name of a socket in a process: the ends have two names of one socket.
        const std::string name = folder_.path().string() + (role == "server" ? "/./pair" : "/pair");
        const std::string text = "net_memif,socket=" + name + ",role=" + role + ",mac=" + mac + ",mtu=9000";
        EXPECT_TRUE(read_port(text.c_str(), "", 0, &spec, &rejection)) << rejection.reason;
        return spec;
    }
    static std::unique_ptr<Port> open(const PortSpec& spec) {
        std::string why, cure;
        std::unique_ptr<Port> port = Port::open(spec, &why, &cure);
        EXPECT_NE(port, nullptr) << why << "; " << cure;
        return port;
    }
    // Receives what is there and sends one frame; how many frames came.
    static uint32_t exchange(Port& port, const NicAddress& to) {
        const uint32_t came = port.receive([](auto, const NicAddress&) {});
        if (std::byte* const frame = port.begin_frame(kBytes)) {
            std::memset(frame, 0, kBytes);
            port.end_frame(frame, kBytes, to);
        }
        port.transmit();
        return came;
    }

private:
    TemporaryFolder folder_;
};

TEST_P(MemifEnds, TheOtherEndGoesOn) {
    const std::string stays = GetParam();
    const PortSpec staying = end_of_link(stays);
    const PortSpec ending = end_of_link(stays == "server" ? "client" : "server");
    stay_on_one_processor();
    const std::unique_ptr<Port> port = open(staying);
    ASSERT_NE(port, nullptr);
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> came{0};
    std::thread thread([&] {
        while (!stop.load()) came.fetch_add(exchange(*port, ending.address));
    });
    for (int end = 1; end <= kEnds && !HasFailure(); ++end) {
        SCOPED_TRACE(end);
        std::unique_ptr<Port> other = open(ending);
        const uint64_t before = came.load();
        uint64_t there = 0;
        EXPECT_TRUE(other != nullptr && tests::eventually("frames both ways", [&] {
                        there += exchange(*other, staying.address);
                        return there >= kFramesEachWay && came.load() - before >= kFramesEachWay;
                    }));
        other.reset();
    }
    stop.store(true);
    thread.join();
}

INSTANTIATE_TEST_SUITE_P(Each, MemifEnds, testing::Values("server", "client"),
                         [](const auto& role) { return std::string(role.param) + "Stays"; });

}  // namespace
}  // namespace viaduct::acenic
