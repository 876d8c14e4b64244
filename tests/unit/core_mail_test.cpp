// SPDX-License-Identifier: BSD-2-Clause
// Messages whose descriptors do not fit under the limit of the receiver.
#include "core/agent/mail.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>

namespace viaduct {
namespace {

Fd file_in_mail() { return Fd(::memfd_create("mail", MFD_CLOEXEC)); }

// As many descriptors as there are, and so many more.
class FewDescriptors {
public:
    explicit FewDescriptors(int more) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        for (int i = 0; i < more; ++i) free_.push_back(file_in_mail());
        const Fd next = file_in_mail();
        // Numbers below `next` may be free: they are taken.
        const rlimit few{static_cast<rlim_t>(next.get()), before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &few);
        for (Fd fd = file_in_mail(); fd.valid(); fd = file_in_mail()) taken_.push_back(std::move(fd));
        free_.clear();
    }
    ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
    std::vector<Fd> free_, taken_;
};

class MailTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::array<int, 2> ends{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
        here_ = Fd(ends[0]);
        there_ = Fd(ends[1]);
        Mail mail = Mail::of(kagent::Type::kConnConfirm, kagent::ConnConfirm{77}, 5);
        for (int i = 0; i < 3; ++i) mail.descriptors.push_back(file_in_mail());
        ASSERT_EQ(send_mail(here_.get(), mail), Status::ok);
    }
    Fd here_, there_;
};

TEST_F(MailTest, DescriptorsThatFitArrive) {
    const FewDescriptors limit(3);
    Mail got;
    ASSERT_EQ(receive_mail(there_.get(), &got), Status::ok);
    EXPECT_EQ(got.descriptors.size(), 3u);
    EXPECT_FALSE(got.descriptors_lost);
}

TEST_F(MailTest, OfDescriptorsThatDoNotAllFitTheFirstArrive) {
    for (const int room : {0, 2}) {
        Mail got;
        {
            const FewDescriptors limit(room);
            ASSERT_EQ(receive_mail(there_.get(), &got), Status::ok) << room;
        }
        EXPECT_TRUE(got.descriptors_lost);
        EXPECT_EQ(got.descriptors.size(), static_cast<size_t>(room));
        EXPECT_EQ(got.header.ticket, 5u) << "the requester is told";
        kagent::ConnConfirm body;
        EXPECT_TRUE(got.get(&body));
        EXPECT_EQ(body.connection_id, 77u);
        if (room == 0) SetUp();
    }
}

TEST(DescriptorsLeftTest, CountsWhatTheLimitLeaves) {
    const FewDescriptors limit(3);
    EXPECT_TRUE(descriptors_left(3));
    EXPECT_FALSE(descriptors_left(4));
    EXPECT_TRUE(descriptors_left(3)) << "none is kept";
}

}  // namespace
}  // namespace viaduct
