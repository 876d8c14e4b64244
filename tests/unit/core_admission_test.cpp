// SPDX-License-Identifier: BSD-2-Clause
// How a daemon admits programs: whom it serves, which silent program makes room, and how long one may be silent; and
// when a daemon without programs ends.
#include "core/daemon/admission.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "core/daemon/idle_end.hpp"
#include "no_descriptors.hpp"
#include "unix_listener.hpp"

namespace viaduct::daemon {
namespace {

constexpr size_t kOfOneUser = 3;
constexpr int64_t kSilent = 1000;

class AdmissionTest : public testing::Test, protected Admission::Daemon {
protected:
    AdmissionTest()
        : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
          admission_(listener_.listening(64), epoll_.get(), epoll_data_t{this}, {"test", kOfOneUser, 8, kSilent},
                     closers_) {}

    bool has_room(uid_t) override { return inside_.size() < room_; }
    void turn_away(const Program& p) override { turned_away_.push_back(p.refusal); }
    bool enter(Program& p) override {
        if (full_) return false;
        inside_.push_back(std::move(p));
        return true;
    }
    void evict(uint64_t number) override {
        evicted_.push_back(number);
        const auto p =
            std::find_if(inside_.begin(), inside_.end(), [&](const Program& one) { return one.number == number; });
        ASSERT_NE(p, inside_.end());
        admission_.settle(*p);
        if (!speaks_) inside_.erase(p);
    }

    Fd client() const { return listener_.client(); }
    static bool is_closed(const Fd& client) {
        pollfd p{client.get(), POLLIN, 0};
        return ::poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) != 0;
    }

    tests::UnixListener listener_;
    const Fd epoll_;
    Closers closers_;
    Admission admission_;
    bool full_ = false, speaks_ = false;
    size_t room_ = 1000;
    std::vector<Program> inside_;
    std::vector<Refusal> turned_away_;
    std::vector<uint64_t> evicted_;
};

TEST_F(AdmissionTest, AProgramComesInWithItsUserAndItsProcess) {
    const Fd one = client(), two = client();
    admission_.accept(*this);
    ASSERT_EQ(inside_.size(), 2u);
    EXPECT_EQ(inside_[0].user, ::geteuid());
    EXPECT_EQ(inside_[0].pid, ::getpid());
    EXPECT_GT(inside_[0].since, 0);
    EXPECT_LT(inside_[0].number, inside_[1].number);
    EXPECT_FALSE(is_closed(one));
}

TEST_F(AdmissionTest, TheOldestSilentProgramMakesRoom) {
    std::vector<Fd> clients;
    for (size_t i = 0; i < kOfOneUser + 2; ++i) clients.push_back(client());
    admission_.accept(*this);
    EXPECT_EQ(evicted_, (std::vector<uint64_t>{1, 2}));
    EXPECT_TRUE(is_closed(clients[0]));
    EXPECT_FALSE(is_closed(clients[2]));
    EXPECT_EQ(inside_.size(), kOfOneUser);
}

TEST_F(AdmissionTest, AProgramThatHasSpokenMakesNoRoom) {
    std::vector<Fd> clients;
    for (size_t i = 0; i < kOfOneUser; ++i) clients.push_back(client());
    admission_.accept(*this);
    admission_.settle(inside_[0]);
    admission_.settle(inside_[0]);
    clients.push_back(client());
    admission_.accept(*this);
    EXPECT_TRUE(evicted_.empty());
    // The oldest silent program has sent its first message meanwhile: it stays.
    speaks_ = true;
    clients.push_back(client());
    admission_.accept(*this);
    EXPECT_EQ(evicted_, (std::vector<uint64_t>{2}));
    EXPECT_FALSE(is_closed(clients[1]));
    EXPECT_EQ(inside_.size(), kOfOneUser + 2);
}

TEST_F(AdmissionTest, TheOldestSilentProgramOfAUserWithoutRoomMakesRoom) {
    room_ = 2;
    const Fd one = client(), two = client(), three = client();
    admission_.accept(*this);
    EXPECT_EQ(evicted_, std::vector<uint64_t>{1});
    EXPECT_EQ(inside_.size(), 2u);
    EXPECT_TRUE(turned_away_.empty());
}

TEST_F(AdmissionTest, AUserWithoutRoomWhoseProgramsHaveSpokenIsTurnedAway) {
    room_ = 1;
    const Fd one = client();
    admission_.accept(*this);
    ASSERT_EQ(inside_.size(), 1u);
    admission_.settle(inside_[0]);
    EXPECT_EQ(admission_.count_silent(), 0u);
    const Fd two = client();
    admission_.accept(*this);
    EXPECT_EQ(turned_away_, std::vector<Refusal>{Refusal::places});
    EXPECT_TRUE(is_closed(two));
    EXPECT_FALSE(is_closed(one));
    EXPECT_EQ(inside_.size(), 1u);
}

TEST_F(AdmissionTest, AUserWithoutRoomEntersADaemonThatItMayHaveReplaced) {
    room_ = 0;
    tests::UnixListener listener;
    Admission flawed(listener.listening(4), epoll_.get(), epoll_data_t{nullptr}, {"test", kOfOneUser, 8, kSilent, 1},
                     closers_);
    const Fd one = listener.client();
    flawed.accept(*this);
    ASSERT_EQ(inside_.size(), 1u);
    EXPECT_EQ(inside_[0].refusal, Refusal::places);
    EXPECT_TRUE(turned_away_.empty());
}

TEST_F(AdmissionTest, AProgramThatHasEndedCostsNoOtherOneItsPlace) {
    std::vector<Fd> clients;
    for (size_t i = 0; i < kOfOneUser; ++i) clients.push_back(client());
    admission_.accept(*this);
    client().reset();
    admission_.accept(*this);
    EXPECT_EQ(turned_away_, std::vector<Refusal>{Refusal::ended});
    EXPECT_TRUE(evicted_.empty());
    EXPECT_EQ(inside_.size(), kOfOneUser);
}

TEST_F(AdmissionTest, AnAcceptEndsAfterItsProgramsOrItsTime) {
    for (const auto& [most, time_ns, admitted] :
         {std::tuple{size_t{2}, int64_t{INT64_MAX}, size_t{2}}, std::tuple{size_t{16}, int64_t{0}, size_t{1}}}) {
        inside_.clear();
        tests::UnixListener listener;
        Admission brief(listener.listening(4), epoll_.get(), epoll_data_t{nullptr},
                        {"test", kOfOneUser, 8, kSilent, 0, most, time_ns}, closers_);
        const Fd one = listener.client(), two = listener.client(), three = listener.client();
        brief.accept(*this);
        EXPECT_EQ(inside_.size(), admitted);
    }
}

TEST_F(AdmissionTest, AProgramThatIsNotTakenIsClosedAndLeavesNothing) {
    full_ = true;
    for (size_t i = 0; i < 3 * kOfOneUser; ++i) {
        const Fd one = client();
        admission_.accept(*this);
        EXPECT_TRUE(is_closed(one));
    }
    EXPECT_TRUE(evicted_.empty());
}

TEST_F(AdmissionTest, NoEventComesForAProgramThatHasLeft) {
    const Fd one = client();
    admission_.accept(*this);
    ASSERT_EQ(inside_.size(), 1u);
    Program& p = inside_[0];
    ASSERT_TRUE(admission_.watch(p, &p));
    epoll_event e{};
    ASSERT_EQ(::send(one.get(), "x", 1, 0), 1);
    ASSERT_EQ(::epoll_wait(epoll_.get(), &e, 1, 0), 1);
    EXPECT_EQ(e.data.ptr, &p);
    const Fd held_by_a_child(::dup(p.socket.get()));
    admission_.release(p);
    EXPECT_FALSE(p.socket.valid());
    EXPECT_EQ(::epoll_wait(epoll_.get(), &e, 1, 0), 0);
}

TEST_F(AdmissionTest, AProgramMayBeSilentUntilItsDeadline) {
    const Fd one = client();
    admission_.accept(*this);
    ASSERT_EQ(inside_.size(), 1u);
    EXPECT_FALSE(admission_.is_late(inside_[0], inside_[0].since + kSilent));
    EXPECT_TRUE(admission_.is_late(inside_[0], inside_[0].since + kSilent + 1));
}

// It has admitted one program while there were descriptors.
struct FullDaemon final : Admission::Daemon {
    explicit FullDaemon(uint32_t flaws)
        : epoll(::epoll_create1(EPOLL_CLOEXEC)),
          admission(listener.listening(16), epoll.get(), epoll_data_t{this}, {"test", kOfOneUser, 8, kSilent, flaws},
                    closers) {}
    bool enter(Program& p) override {
        inside.push_back(std::move(p));
        return true;
    }
    void evict(uint64_t) override { ADD_FAILURE() << "no program is silent"; }
    void admit() { admission.accept(*this); }
    // False: it has not entered.
    bool admit_first() {
        first = listener.client();
        admit();
        if (inside.size() != 1) return false;
        admission.settle(inside[0]);
        inside.reserve(2);
        second = listener.client();
        return true;
    }

    tests::UnixListener listener;
    const Fd epoll;
    Closers closers;
    Admission admission;
    std::vector<Program> inside;
    Fd first, second;  // clients
};

// The programs that are inside once the second one has come without a descriptor for it.
size_t inside_when_full(FullDaemon& daemon) {
    if (!daemon.admit_first()) return 0;
    const tests::NoDescriptors none;
    daemon.admit();
    return daemon.inside.size();
}

TEST(FullDaemonTest, AProgramWithoutADescriptorIsTurnedAway) {
    FullDaemon daemon(0);
    EXPECT_EQ(inside_when_full(daemon), 1u);
}

TEST(FullDaemonTest, AProgramThatMayHaveTheDaemonReplacedEntersWithoutRoom) {
    FullDaemon daemon(1);
    ASSERT_EQ(inside_when_full(daemon), 2u);
    EXPECT_EQ(daemon.inside[0].refusal, Refusal::none);
    EXPECT_EQ(daemon.inside[1].refusal, Refusal::descriptors);
}

TEST(FullDaemonTest, TheDescriptorOfAProgramThatLeavesIsKeptForTheNextOne) {
    FullDaemon daemon(1);
    ASSERT_TRUE(daemon.admit_first());
    const tests::NoDescriptors none;
    daemon.admit();
    ASSERT_EQ(daemon.inside.size(), 2u);
    daemon.admission.release(daemon.inside[1]);
    EXPECT_FALSE(Fd(::dup(0)).valid());
}

TEST(IdleEndTest, ADaemonEndsALingerAfterItsLastProgram) {
    constexpr int64_t kLinger = 100;
    IdleEnd end(kLinger, 1000);
    EXPECT_EQ(end.left(1000), kLinger);
    EXPECT_FALSE(end.is_due(1099));
    EXPECT_TRUE(end.is_due(1100));
    end.note_use(2000);
    EXPECT_FALSE(end.is_due(2099));
    EXPECT_EQ(end.left(2099), 1);
    EXPECT_EQ(end.left(9000), 0);
    EXPECT_TRUE(end.is_due(9000));
}

TEST(IdleEndTest, ADaemonThatStaysEndsOnceItRefuses) {
    IdleEnd end(-1, 1000);
    EXPECT_FALSE(end.is_due(INT64_MAX));
    EXPECT_EQ(end.left(1000), INT64_MAX);
    end.set_linger(10);
    EXPECT_TRUE(end.is_due(1010));
}

}  // namespace
}  // namespace viaduct::daemon
