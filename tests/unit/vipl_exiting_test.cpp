// SPDX-License-Identifier: BSD-2-Clause
// Errors that come due while a thread of the program ends, however slowly, and while the process does.
#include "vipl/exiting.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/clock/clock.hpp"
#include "tests/eventually.hpp"
#include "tests/thread_sleeps.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/nic.hpp"

namespace viaduct::vipl {
namespace {

// A handler thread without a NIC behind it, and what it has told.
class Told {
public:
    Told() {
        dispatcher_->set_error_handler(
            [](VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
                auto& self = *static_cast<Told*>(context);
                const std::lock_guard lock(self.mutex_);
                self.codes_.push_back(error->ErrorCode);
            },
            this);
    }
    ~Told() { dispatcher_->close(); }

    void report(VIP_ERROR_CODE code) {
        AsyncError error;
        error.record.ErrorCode = code;
        error.due = deadline_from_timeout(0);
        dispatcher_->report(error);
    }
    std::vector<VIP_ERROR_CODE> codes() {
        const std::lock_guard lock(mutex_);
        return codes_;
    }
    bool reaches(size_t count) {
        return tests::eventually("the errors are told", [&] { return codes().size() >= count; }).holds;
    }
    // Whether the handler thread has looked at all that was reported, and waits.
    static bool waits() {
        return tests::eventually("the handler thread waits", [] { return tests::all_sleep("vipl-handlers"); }).holds;
    }

private:
    static Nic& no_nic() {
        static Nic nic;
        return nic;
    }
    std::shared_ptr<Dispatcher> dispatcher_ = std::make_shared<Dispatcher>(no_nic());
    std::mutex mutex_;
    std::vector<VIP_ERROR_CODE> codes_;
};

// What a thread does when it has come to one place of its end: says so, and waits to be let go.
struct Halt {
    std::latch reached{1};
    std::latch go_on{1};
    void stay() {
        reached.count_down();
        go_on.wait();
    }
};

TEST(ThreadEndTest, AnErrorIsToldWhileAKeyOfTheThreadIsDestroyedSlowly) {
    static Halt halt;
    Told told;
    pthread_key_t key;
    ASSERT_EQ(::pthread_key_create(&key, [](void*) { halt.stay(); }), 0);
    std::thread ending([key] {
        watch_this_thread();
        ::pthread_setspecific(key, &halt);
    });
    halt.reached.wait();
    told.report(VIP_ERROR_POST_DESC);
    EXPECT_TRUE(told.reaches(1));
    halt.go_on.count_down();
    ending.join();
    ::pthread_key_delete(key);
}

TEST(ThreadEndTest, ErrorsWaitInOrderUntilItIsKnownThatTheProcessGoesOn) {
    struct SlowToGo {
        explicit SlowToGo(Halt* where) : halt(where) {}
        ~SlowToGo() { halt->stay(); }
        Halt* halt;
    };
    Halt halt;
    Told told;
    std::thread ending([&] {
        thread_local const SlowToGo last(&halt);  // made first, destroyed after the library's own
        EXPECT_EQ(last.halt, &halt);
        watch_this_thread();
    });
    halt.reached.wait();
    EXPECT_EQ(process_end(), ProcessEnd::undecided);
    told.report(VIP_ERROR_POST_DESC);
    told.report(VIP_ERROR_RECVQ_EMPTY);
    EXPECT_TRUE(Told::waits());
    EXPECT_TRUE(told.codes().empty()) << "it may be exit() that destroys the objects of this thread";
    halt.go_on.count_down();
    EXPECT_TRUE(told.reaches(2));
    EXPECT_EQ(told.codes(), (std::vector{VIP_ERROR_POST_DESC, VIP_ERROR_RECVQ_EMPTY}));
    ending.join();
    EXPECT_EQ(process_end(), ProcessEnd::none);
}

TEST(ThreadEndTest, AThreadThatHasEndedLeavesNoDoubt) {
    for (int i = 0; i < 200; ++i) std::thread(watch_this_thread).join();
    EXPECT_EQ(process_end(), ProcessEnd::none);
}

// In a process of its own: 0 when nothing is told from the first moment of exit() on.
TEST(ProcessEndTest, NothingIsToldInsideExit) {
    static Told* told;
    const pid_t child = ::fork();
    if (child == 0) {
        told = new Told;
        std::atexit([] {
            if (process_end() == ProcessEnd::none) ::_exit(1);
            told->report(VIP_ERROR_CONN_LOST);
            if (!Told::waits()) ::_exit(4);
            ::_exit(told->codes().empty() ? 0 : 2);
        });
        watch_this_thread();
        std::exit(3);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace viaduct::vipl
