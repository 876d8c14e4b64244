// SPDX-License-Identifier: BSD-2-Clause
// What tests of AgentLink share: requests, and servers that are no vipkad.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "agent_testing.hpp"
#include "tests/temporary_folder.hpp"

namespace viaduct::agent_testing {

using kagent::Type;

inline Deadline in_ms(int64_t ms) { return now_ns() + ms * kMs; }

inline Mail open_request(uint64_t id) {
    kagent::OpenNic o;
    std::strcpy(o.device, "fake0");
    o.context_id = id;
    return Mail::of(Type::kOpenNic, o);
}

inline Mail wait_request(uint64_t context, const std::string& d) {
    kagent::ConnWait w;
    w.context_id = context;
    w.local.discriminator_len = static_cast<uint16_t>(d.size());
    std::memcpy(w.local.discriminator, d.data(), d.size());
    return Mail::of(Type::kConnWait, w);
}

inline Mail connect_request(uint64_t context, const NicAddress& host, const std::string& d,
                            uint32_t timeout_ms = 0xFFFFFFFF) {
    kagent::ConnRequest r;
    r.context_id = context;
    r.remote.host = host;
    r.remote.discriminator_len = static_cast<uint16_t>(d.size());
    std::memcpy(r.remote.discriminator, d.data(), d.size());
    r.timeout_ms = timeout_ms;
    return Mail::of(Type::kConnRequest, r);
}

inline NicAddress open_nic(AgentLink& link, uint64_t id) {
    Mail answer;
    EXPECT_EQ(link.call(open_request(id), &answer, in_ms(5000)), Status::ok) << link.last_error();
    kagent::Opened o;
    EXPECT_TRUE(answer.get(&o));
    return o.nic.address;
}

// A vipkad that notes each of its starts, and what it does before it is one.
class SlowVipkad {
public:
    SlowVipkad(Place& place, const std::string& first) {
        std::ofstream(script()) << "#!/bin/sh\necho $$ >>" << starts() << "\n"
                                << first << "\nexec " << VIADUCT_TEST_VIPKAD << " \"$@\"\n";
        ::chmod(script().c_str(), 0700);
        place.set("VIADUCT_VIPKAD", script().c_str());
    }
    size_t how_many() const {
        std::ifstream lines(starts());
        return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(lines), {}, '\n'));
    }
    std::string starts() const { return folder_.path() / "starts"; }

private:
    std::string script() const { return folder_.path() / "vipkad"; }
    const TemporaryFolder folder_;
};

// One that waits on its way until the test lets it go.
class GatedVipkad : public SlowVipkad {
public:
    explicit GatedVipkad(Place& place) : SlowVipkad(place, "read go <$(dirname $0)/gate") {
        EXPECT_EQ(::mkfifo(gate().c_str(), 0600), 0);
        gate_ = Fd(::open(gate().c_str(), O_RDWR | O_CLOEXEC));
    }
    void let_all_go() const {
        const std::string lines(64, '\n');
        EXPECT_EQ(::write(gate_.get(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    }

private:
    std::string gate() const { return std::filesystem::path(starts()).replace_filename("gate"); }
    Fd gate_;
};

}  // namespace viaduct::agent_testing
