// SPDX-License-Identifier: BSD-2-Clause
// Cards there and back, cards of another form, and which ranks are crowded.
#include "mpi-adi/engine/card.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace viaduct::mpi {
namespace {

TEST(Card, comes_back_as_it_was) {
    Card card;
    card.number = 0x89abcdef;
    card.host = "node17";
    card.processors = std::string("\x03\x00\x80", 3);
    card.group = "26:4711";
    card.placement = "4711 17 99";
    card.environments = {{"shm", std::string("\0\1\2", 3)}, {"tcp", std::string(700, 'x')}};
    const auto back = Card::decode(card.encode());
    ASSERT_TRUE(back);
    EXPECT_EQ(back->number, card.number);
    EXPECT_EQ(back->host, card.host);
    EXPECT_EQ(back->processors, card.processors);
    EXPECT_EQ(back->group, card.group);
    EXPECT_EQ(back->placement, card.placement);
    EXPECT_EQ(back->environments, card.environments);
    ASSERT_NE(back->environment_of("tcp"), nullptr);
    EXPECT_EQ(*back->environment_of("tcp"), std::string(700, 'x'));
    EXPECT_EQ(back->environment_of("tc"), nullptr);
}

TEST(Card, cut_short_or_too_long_is_refused) {
    Card card;
    card.host = "h";
    card.environments = {{"via", "environment"}};
    const std::string good = card.encode();
    for (size_t length = 0; length < good.size(); length++)
        EXPECT_FALSE(Card::decode(good.substr(0, length))) << length;
    EXPECT_FALSE(Card::decode(good + "x"));
    std::string other_version = good;
    other_version[0] = 99;
    EXPECT_FALSE(Card::decode(other_version));
}

TEST(Card, of_random_bytes_never_does_harm) {
    std::mt19937 random(3);
    for (int i = 0; i < 20'000; i++) {
        std::string bytes(random() % 40, 0);
        for (char& c : bytes) c = static_cast<char>(random() % 4);
        if (const auto card = Card::decode(bytes)) {
            EXPECT_EQ(card->encode(), bytes);
        }
    }
}

bool crowded(std::string_view own, const std::vector<std::string_view>& all) {
    return is_crowded(own, all.data(), all.size());
}

TEST(Crowd, is_more_ranks_than_the_processors_they_share) {
    EXPECT_FALSE(crowded("\x03", {"\x03", "\x03"}));
    EXPECT_TRUE(crowded("\x03", {"\x03", "\x03", "\x03"}));
    EXPECT_FALSE(crowded("\x01", {"\x01", "\x02", "\x04"})) << "each is bound to one of its own";
    EXPECT_TRUE(crowded("\x01", {"\x01", "\x03"}));
    EXPECT_FALSE(crowded(std::string_view("\x00\x01", 2), {std::string_view("\x00\x01", 2), "\x01"}));
}

TEST(Crowd, own_processors_are_some) {
    bool any = false;
    for (const char byte : own_processors()) any |= byte != 0;
    EXPECT_TRUE(any);
}

}  // namespace
}  // namespace viaduct::mpi
