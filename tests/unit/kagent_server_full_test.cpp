// SPDX-License-Identifier: BSD-2-Clause
// vipkad without a descriptor left: a client that it refuses may have it replaced, if vipkad has inherited limits from
// the program that started it.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <set>
#include <string>
#include <system_error>

#include "vipkad_testing.hpp"

namespace viaduct {
namespace {

using namespace agent_testing;

// A limit that root cannot undo either: a filter of system calls, which allows all of them.
bool filter_calls() {
    sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    const sock_fprog program{1, &allow};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

std::filesystem::directory_iterator descriptors_of(pid_t pid) {
    return std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd");
}

// The descriptors of processes that it has. There are two for each client.
size_t count_pidfds(pid_t pid) {
    size_t count = 0;
    for (const auto& entry : descriptors_of(pid)) {
        std::error_code closed;
        if (std::filesystem::read_symlink(entry, closed).string().find("pidfd") != std::string::npos) ++count;
    }
    return count;
}

// The process may open `more` descriptors from now on.
void leave_descriptors(pid_t pid, rlim_t more) {
    std::set<rlim_t> open;
    for (const auto& entry : descriptors_of(pid)) open.insert(std::stoul(entry.path().filename()));
    rlim_t limit = 0;
    for (; more != 0 || open.contains(limit); ++limit)
        if (!open.contains(limit)) --more;
    const rlimit few{limit, limit};
    ASSERT_EQ(::prlimit(pid, RLIMIT_NOFILE, &few, nullptr), 0);
}

// A client takes three descriptors of vipkad. The last client finds none, one or two of them.
class FullVipkadTest : public testing::TestWithParam<rlim_t> {
protected:
    // The answer to the hello of one client more, whose connection is in `last`.
    Mail come() {
        last.reset();
        last = connect_to(place.address);
        return hello(last.get());
    }
    void fill() {
        ASSERT_TRUE(daemon.up);
        first = connect_to(place.address);
        ASSERT_EQ(hello(first.get()).type(), Type::kWelcome);
        ASSERT_TRUE(eventually("no other client is there", [&] { return count_pidfds(daemon.pid) == 2; }));
        leave_descriptors(daemon.pid, GetParam());
        Mail answer;
        for (answer = come(); answer.type() == Type::kWelcome; answer = come()) {
            inside.push_back(std::move(last));
            ASSERT_LT(inside.size(), 10u);
        }
        expect_refusal(answer);
    }
    static void expect_refusal(const Mail& answer) {
        kagent::Error e;
        ASSERT_TRUE(answer.type() == Type::kError && answer.get(&e));
        EXPECT_EQ(e.status, static_cast<int32_t>(Status::out_of_resources));
        EXPECT_NE(e.flaws, 0u);
        EXPECT_NE(std::string(e.text).find("no descriptors left"), std::string::npos) << e.text;
    }

    Place place;
    Daemon daemon{place.address, {"--automatic", "--linger-ms", "-1"}, filter_calls};
    Fd first, last;
    std::vector<Fd> inside;  // without them
};

TEST_P(FullVipkadTest, ItEndsForAClientThatItHasRefused) {
    ASSERT_NO_FATAL_FAILURE(fill());
    ASSERT_EQ(send_mail(last.get(), Mail(Type::kShutdown, 2)), Status::ok);
    Mail answer;
    ASSERT_EQ(receive_mail(last.get(), &answer), Status::ok);
    EXPECT_EQ(answer.type(), Type::kDone);
    EXPECT_TRUE(daemon.ends());
    EXPECT_EQ(daemon.status, 0);
}

TEST_P(FullVipkadTest, TheNextClientTakesThePlaceOfTheOneThatItHasRefused) {
    ASSERT_NO_FATAL_FAILURE(fill());
    for (int i = 0; i < 3; ++i) {
        const Fd before = std::move(last);
        ASSERT_NO_FATAL_FAILURE(expect_refusal(come()));
        EXPECT_TRUE(is_closed(before.get()));
    }
    EXPECT_EQ(daemon.wait_now(), -1);
    inside.clear();
    EXPECT_TRUE(eventually("a client is welcome again", [&] { return come().type() == Type::kWelcome; }));
}

INSTANTIATE_TEST_SUITE_P(Descriptors, FullVipkadTest, testing::Values(3, 4, 5));

}  // namespace
}  // namespace viaduct
