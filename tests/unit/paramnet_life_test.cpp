// SPDX-License-Identifier: BSD-2-Clause
// The word by which peers know that a process is still the program they met: it is marked when the process
// dies and when it becomes another program, and children that it forks neither hold nor mark it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <thread>

#include "paramnet_fixture.hpp"
#include "providers/paramnet/life.hpp"

namespace viaduct::paramnet::test {
namespace {

class Life : public testing::Test {
protected:
    void SetUp() override {
        void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(page, MAP_FAILED);
        life_ = new (page) std::atomic<uint32_t>(0);
    }
    void TearDown() override { ::munmap(life_, 4096); }

    // A process with a thread that holds the word; `then` is what its first thread does meanwhile.
    template <class Then>
    pid_t holder(Then then) {
        const pid_t child = ::fork();
        if (child != 0) return child;
        std::thread([this] {
            const LifeHeld held(*life_);
            for (;;) ::pause();
        }).detach();
        while (*life_ == 0) std::this_thread::yield();
        then();
        for (;;) ::pause();
    }
    bool held() const { return *life_ != 0 && !has_ended(*life_); }
    static void end(pid_t process) {
        ::kill(process, SIGKILL);
        ::waitpid(process, nullptr, 0);
    }

    std::atomic<uint32_t>* life_ = nullptr;
};

TEST_F(Life, IsGivenBackInGoodOrder) {
    std::thread([this] {
        const LifeHeld held(*life_);
        EXPECT_EQ(*life_, static_cast<uint32_t>(::gettid()));
    }).join();
    EXPECT_EQ(*life_, 0u);
}

TEST_F(Life, IsMarkedWhenTheProcessIsKilled) {
    const pid_t child = holder([] {});
    ASSERT_TRUE(eventually([&] { return held(); }));
    end(child);
    EXPECT_TRUE(has_ended(*life_));
}

TEST_F(Life, IsMarkedWhenTheProcessBecomesAnotherProgram) {
    const pid_t child = holder([] { ::execlp("sleep", "sleep", "60", nullptr); });
    EXPECT_TRUE(eventually([&] { return has_ended(*life_); }));
    EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "it is not dead, only another program";
    end(child);
}

TEST_F(Life, IsOfNoConcernToForkedChildren) {
    for (const bool plainly : {true, false}) {
        const pid_t child = holder([plainly] {
            const pid_t grandchild = plainly ? ::fork() : ::_Fork();
            if (grandchild == 0) ::execlp("true", "true", nullptr);
            ::waitpid(grandchild, nullptr, 0);
            if (::fork() == 0) ::_exit(0);
            ::wait(nullptr);
            ::raise(SIGSTOP);
        });
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
        ASSERT_TRUE(WIFSTOPPED(status)) << "its children have ended";
        EXPECT_TRUE(held());
        end(child);
        EXPECT_TRUE(has_ended(life_->exchange(0)));
    }
}

// As the kernel does it when the peer's process execs: by a word that only the peer's side can write.
TEST(PeerLife, ConnectionIsLostWithinASecond) {
    TestPair pair(kLevel, Reach::cross_copy);
    pair.nic_b.context->owner->life.fetch_or(FUTEX_OWNER_DIED);
    EXPECT_TRUE(pair.a.is_told(VIP_ERROR_CONN_LOST));
    EXPECT_TRUE(pair.a.reaches(VIP_STATE_ERROR));
}

TEST(PeerLife, NothingIsCopiedIntoAnotherProgram) {
    TestPair pair(kLevel, Reach::cross_copy);
    fill(pair.a.data(), 4096, 1);
    fill(pair.b.data(), 4096, 2);
    pair.nic_b.context->owner->life.fetch_or(FUTEX_OWNER_DIED);
    pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), 4096, pair.b.data(), pair.b.region));
    VIP_DESCRIPTOR* d = pair.a.wait_send();
    ASSERT_NE(d, nullptr);
    EXPECT_EQ(status_of(d) & VIP_STATUS_DONE, VIP_STATUS_DONE);
    EXPECT_NE(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
    EXPECT_TRUE(filled(pair.b.data(), 4096, 2));
    EXPECT_TRUE(pair.a.is_told(VIP_ERROR_CONN_LOST));
    EXPECT_FALSE(pair.a.was_told(VIP_ERROR_RDMAW_PROT));
}

}  // namespace
}  // namespace viaduct::paramnet::test
