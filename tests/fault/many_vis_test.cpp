// SPDX-License-Identifier: BSD-2-Clause
// Many VIs lead to one process that dies: all break within the second, each is told of once, and every
// descriptor of every VI comes back through the one completion queue exactly once.
#include <gtest/gtest.h>

#include <map>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

constexpr std::size_t kVis = 32;
constexpr std::size_t kPerQueue = 4;

/// Our side of role "many": all VIs on one completion queue, two messages under way on each.
class Hall {
public:
    explicit Hall(VIP_RELIABILITY_LEVEL level) : end_(options_at(level)) {
        const std::string discriminator = conformance::unique_discriminator();
        Arguments arguments = conformance::client_arguments(end_, discriminator);
        arguments.insert(arguments.end(), {"0", "0", std::to_string(kVis)});
        child_ = std::make_unique<Child>("many", arguments);
        for (std::size_t i = 0; i < kVis; ++i) {
            vis_.push_back(i == 0 ? end_.vi : end_.create_vi());
            for (std::size_t k = 0; k < kPerQueue; ++k) post(vis_[i], message(), true);
            accept(vis_[i], discriminator + std::to_string(i));
        }
        const std::string said = child_->line();
        require(said == "ready", "the role said " + said);
    }

    ~Hall() {
        for (std::size_t i = 1; i < vis_.size(); ++i) conformance::retire(vis_[i]);
    }

    void serve() {
        for (const VIP_VI_HANDLE vi : vis_) {
            for (int i = 0; i < 2; ++i) post(vi, message(), false);
        }
    }

    /// Takes one completion. False when none came within the time.
    bool take(VIP_ULONG timeout) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        if (VipCQWait(end_.send_cq, timeout, &vi, &receive) != VIP_SUCCESS) return false;
        VIP_DESCRIPTOR* d = nullptr;
        const VIP_RETURN code = receive ? VipRecvDone(vi, &d) : VipSendDone(vi, &d);
        require(d != nullptr, "an entry without a descriptor");
        require(outstanding_.erase(d) == 1, "a descriptor that was not posted");
        require((d->CS.Status & VIP_STATUS_DONE) != 0, "an entry before its descriptor is done");
        if (code == VIP_SUCCESS) {
            ++good_;
            // What came goes back; what was sent becomes a receive again.
            d->CS.Status = 0;
            post(vi, d, receive == VIP_FALSE);
        } else {
            require((d->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0 ||
                        (d->CS.Status & VIP_STATUS_TRANSPORT_ERROR) != 0,
                    "an error that no dead peer explains");
        }
        return true;
    }

    /// The same with a limit of running time, in milliseconds.
    testing::AssertionResult take_in_time(std::int64_t limit) {
        return eventually([this] { return take(10); }, Millis(limit));
    }

    void kill() { child_->kill(); }
    std::size_t good() const { return good_; }
    std::size_t outstanding() const { return outstanding_.size(); }
    const std::vector<VIP_VI_HANDLE>& vis() const { return vis_; }
    const conformance::ErrorLog& errors() const { return end_.errors; }

private:
    static EndOptions options_at(VIP_RELIABILITY_LEVEL level) {
        EndOptions chosen;
        chosen.level = level;
        chosen.send_cq = kVis * kPerQueue * 2;
        chosen.one_cq = true;
        return chosen;
    }

    VIP_DESCRIPTOR* message() { return end_.message(end_.buffer(64), 64); }

    void post(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* d, bool receive) {
        outstanding_[d] = vi;
        require(receive ? VipPostRecv(vi, d, end_.region) : VipPostSend(vi, d, end_.region), "post");
    }

    void accept(VIP_VI_HANDLE vi, const std::string& discriminator) {
        Address local(end_.nic, discriminator);
        Address remote = Address::blank();
        VIP_VI_ATTRIBUTES attributes{};
        VIP_CONN_HANDLE connection = nullptr;
        require(VipConnectWait(end_.nic, local.get(), conformance::kLongWait, remote.get(), &attributes,
                               &connection),
                "VipConnectWait");
        require(VipConnectAccept(connection, vi), "VipConnectAccept");
    }

    End end_;
    std::unique_ptr<Child> child_;
    std::vector<VIP_VI_HANDLE> vis_;
    std::map<VIP_DESCRIPTOR*, VIP_VI_HANDLE> outstanding_;
    std::size_t good_ = 0;
};

class ManyVis : public conformance::AtEachLevel {};

INSTANTIATE_TEST_SUITE_P(Levels, ManyVis, VIADUCT_ALL_LEVELS, conformance::level_test_name);

TEST_P(ManyVis, AllBreakWithinASecondAndEachIsToldOnce) {
    NEEDS_LEVEL(GetParam());
    Hall hall(GetParam());
    hall.serve();
    while (hall.good() < 1000) ASSERT_TRUE(hall.take_in_time(5000)) << "after " << hall.good() << " completions";
    const Stopwatch killed;
    hall.kill();
    // Completions of before the kill are still answered; the answers come back flushed.
    while (hall.outstanding() != 0)
        ASSERT_TRUE(hall.take_in_time(1000)) << hall.outstanding() << " never came back";
    EXPECT_TRUE(conformance::in_time(killed, kOneSecondMeasured));
    EXPECT_FALSE(hall.take(0)) << "an entry too many";
    for (const VIP_VI_HANDLE vi : hall.vis()) EXPECT_EQ(VIP_STATE_ERROR, End::state_of(vi));
    EXPECT_TRUE(eventually([&] { return hall.errors().size() >= kVis; }, kOneSecond));
    EXPECT_TRUE(conformance::in_time(killed, kOneSecondMeasured));
    EXPECT_EQ(kVis, hall.errors().count(VIP_ERROR_CONN_LOST));
    EXPECT_EQ(kVis, hall.errors().size());
    for (const VIP_VI_HANDLE vi : hall.vis()) EXPECT_EQ(1u, hall.errors().count(vi));
}

TEST_P(ManyVis, WithoutAPoll) {
    NEEDS_LEVEL(GetParam());
    Hall hall(GetParam());
    hall.serve();
    const Stopwatch killed;
    hall.kill();
    for (const VIP_VI_HANDLE vi : hall.vis()) {
        EXPECT_TRUE(eventually([&] { return End::state_of(vi) == VIP_STATE_ERROR; }, kOneSecond));
    }
    EXPECT_TRUE(eventually([&] { return hall.errors().size() >= kVis; }, kOneSecond));
    EXPECT_TRUE(conformance::in_time(killed, kOneSecondMeasured));
    while (hall.outstanding() != 0)
        ASSERT_TRUE(hall.take_in_time(1000)) << hall.outstanding() << " never came back";
    EXPECT_EQ(kVis, hall.errors().count(VIP_ERROR_CONN_LOST));
}

}  // namespace
}  // namespace viaduct::fault
