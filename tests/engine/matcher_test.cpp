// SPDX-License-Identifier: BSD-2-Clause
// Matching against a reference that has nothing but the rule: everything in one list, searched from the
// front.
#include "mpi-adi/engine/matcher.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <random>

namespace viaduct::mpi {
namespace {

// The rule of MPI, word by word: the first receive in the order of posting that a message fits, the first
// message in the order of arrival that a receive fits.
class Reference {
public:
    struct Receive {
        int id, source, tag;
    };
    struct Message {
        int id, source, tag;
    };

    // The receive that takes it, or -1: then it is kept.
    int arrive(int id, int source, int tag) {
        for (auto one = receives.begin(); one != receives.end(); ++one) {
            if (!fits(*one, source, tag)) continue;
            const int found = one->id;
            receives.erase(one);
            return found;
        }
        messages.push_back({id, source, tag});
        return -1;
    }
    // The message it takes, or -1: then it is kept.
    int post(int id, int source, int tag) {
        const int found = probe(source, tag);
        if (found < 0)
            receives.push_back({id, source, tag});
        else
            drop(found);
        return found;
    }
    int probe(int source, int tag) const {
        for (const auto& one : messages)
            if (fits({0, source, tag}, one.source, one.tag)) return one.id;
        return -1;
    }
    void drop(int message) {
        messages.remove_if([&](const Message& one) { return one.id == message; });
    }
    bool cancel(int receive) {
        return receives.remove_if([&](const Receive& one) { return one.id == receive; }) != 0;
    }

    std::list<Receive> receives;
    std::list<Message> messages;

private:
    static bool fits(const Receive& receive, int source, int tag) {
        return (receive.source == source || receive.source == MPI_ANY_SOURCE) &&
               (receive.tag == tag || receive.tag == MPI_ANY_TAG);
    }
};

class Matching : public testing::Test {
protected:
    ~Matching() override {
        while (Unexpected* one = matcher.first_message()) {
            matcher.remove(one);
            free_unexpected(one);
        }
        EXPECT_EQ(unexpected_bytes(), 0u);
    }

    Request* receive(int id, int source, int tag) {
        requests.emplace_back();
        Request* one = &requests.back();
        one->r_rank = source;
        one->r_tag = tag;
        one->r_fhandle = id;
        return one;
    }
    int arrive(int id, int source, int tag) {
        if (Request* one = matcher.take_receive(source, tag)) return one->r_fhandle;
        Unexpected* message = new_unexpected(0);
        message->um_env = envelope{};
        message->um_env.ev_rank = source;
        message->um_env.ev_tag = tag;
        message->um_env.ev_len = id;
        matcher.add(message);
        return -1;
    }
    int probe(int source, int tag) {
        const Unexpected* one = matcher.find(source, tag);
        return one == nullptr ? -1 : static_cast<int>(one->um_env.ev_len);
    }
    int post(Request* request) {
        Unexpected* one = matcher.find(request->r_rank, request->r_tag);
        if (one == nullptr) {
            matcher.post(request);
            return -1;
        }
        const int id = static_cast<int>(one->um_env.ev_len);
        matcher.remove(one);
        free_unexpected(one);
        return id;
    }

    Matcher matcher{6};
    std::deque<Request> requests;
};

TEST_F(Matching, takes_the_earlier_of_a_named_receive_and_one_from_anywhere) {
    post(receive(1, MPI_ANY_SOURCE, 5));
    post(receive(2, 3, 5));
    post(receive(3, MPI_ANY_SOURCE, MPI_ANY_TAG));
    EXPECT_EQ(arrive(0, 3, 5), 1);
    EXPECT_EQ(arrive(0, 3, 5), 2);
    EXPECT_EQ(arrive(0, 3, 5), 3);
    EXPECT_EQ(arrive(9, 3, 5), -1);
    EXPECT_EQ(probe(3, MPI_ANY_TAG), 9);
}

TEST_F(Matching, never_lets_a_message_overtake_another_of_its_source) {
    arrive(1, 2, 7);
    arrive(2, 2, 8);
    arrive(3, 1, 8);
    EXPECT_EQ(probe(2, MPI_ANY_TAG), 1);
    EXPECT_EQ(probe(MPI_ANY_SOURCE, 8), 2);
    EXPECT_EQ(post(receive(0, 2, 8)), 2);
    EXPECT_EQ(post(receive(0, MPI_ANY_SOURCE, 8)), 3);
    EXPECT_EQ(post(receive(0, MPI_ANY_SOURCE, MPI_ANY_TAG)), 1);
}

TEST_F(Matching, takes_a_source_only_when_its_process_is_that) {
    process_t zero{}, one{}, other{};
    process_t* peers[] = {&zero, &one};
    EXPECT_TRUE(matcher.plausible(&other, 7)) << "the communicator is not known yet";
    matcher.bind(peers, 2);
    EXPECT_TRUE(matcher.plausible(&one, 1));
    EXPECT_FALSE(matcher.plausible(&one, 0));
    EXPECT_FALSE(matcher.plausible(&other, 1));
    EXPECT_FALSE(matcher.plausible(&one, 2));
}

TEST_F(Matching, agrees_with_the_reference_in_any_order_of_events) {
    for (unsigned seed = 1; seed <= 40; seed++) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        Reference reference;
        const int sources = 1 + static_cast<int>(random() % 6);
        const int tags = 1 + static_cast<int>(random() % 4);
        std::vector<Request*> posted;
        for (int id = 0; id < 2000; id++) {
            const int source = static_cast<int>(random() % static_cast<unsigned>(sources));
            const int tag = static_cast<int>(random() % static_cast<unsigned>(tags));
            const int any_source = random() % 3 == 0 ? MPI_ANY_SOURCE : source;
            const int any_tag = random() % 3 == 0 ? MPI_ANY_TAG : tag;
            switch (random() % 8) {
                case 0:
                case 1:
                case 2:
                    ASSERT_EQ(arrive(id, source, tag), reference.arrive(id, source, tag));
                    break;
                case 3:
                case 4:
                case 5: {
                    Request* one = receive(id, any_source, any_tag);
                    const int found = post(one);
                    ASSERT_EQ(found, reference.post(id, any_source, any_tag));
                    if (found < 0) posted.push_back(one);
                    break;
                }
                case 6:
                    ASSERT_EQ(probe(any_source, any_tag), reference.probe(any_source, any_tag));
                    break;
                default:
                    if (posted.empty()) break;
                    Request* one = posted[random() % posted.size()];
                    // Only one that still waits may be taken back; the reference says which do.
                    if (reference.cancel(one->r_fhandle)) matcher.withdraw(one);
            }
        }
        while (!reference.receives.empty()) {
            const auto& next = reference.receives.front();
            const int source = next.source == MPI_ANY_SOURCE ? 0 : next.source;
            const int tag = next.tag == MPI_ANY_TAG ? 0 : next.tag;
            ASSERT_EQ(arrive(-7, source, tag), reference.arrive(-7, source, tag));
        }
        while (!reference.messages.empty()) {
            const int expected = reference.messages.front().id;
            ASSERT_EQ(post(receive(0, MPI_ANY_SOURCE, MPI_ANY_TAG)), expected);
            reference.drop(expected);
        }
        ASSERT_EQ(matcher.first_message(), nullptr);
        requests.clear();
    }
}

TEST(UnexpectedMessages, account_for_their_memory_and_use_it_again) {
    Unexpected* small = new_unexpected(100);
    const uint64_t one = unexpected_bytes();
    Unexpected* large = new_unexpected(100'000);
    EXPECT_GE(large->capacity, 100'000u);
    EXPECT_GE(unexpected_bytes(), one + 100'000);
    free_unexpected(large);
    EXPECT_EQ(unexpected_bytes(), one);
    free_unexpected(small);
    EXPECT_EQ(new_unexpected(512), small);
    free_unexpected(small);
    EXPECT_EQ(unexpected_bytes(), 0u);
}

}  // namespace
}  // namespace viaduct::mpi
