// SPDX-License-Identifier: BSD-2-Clause
// Binary values as short words, there and back; and malformed words.
#include "mpi-adi/rte/cards.hpp"

#include <gtest/gtest.h>

#include <random>

namespace viaduct::rte {
namespace {

std::optional<std::string> join_pieces(const std::vector<std::string>& pieces) {
    return join_card([&](size_t i) -> std::optional<std::string> {
        if (i >= pieces.size()) return std::nullopt;
        return pieces[i];
    });
}

TEST(Cards, come_back_whole_at_every_length_and_limit) {
    std::mt19937 random(7);
    for (const size_t limit : {32u, 33u, 255u, 1023u}) {
        for (const size_t length : {0u, 1u, 12u, 13u, 14u, 508u, 509u, 600u, 5000u}) {
            std::string value(length, 0);
            for (char& c : value) c = static_cast<char>(random());
            const auto pieces = split_card(value, limit);
            for (const auto& piece : pieces) {
                EXPECT_LE(piece.size(), limit);
                EXPECT_EQ(piece.find_first_of(" \n"), std::string::npos);
            }
            EXPECT_EQ(join_pieces(pieces), value) << limit << " " << length;
        }
    }
}

TEST(Cards, too_long_to_be_counted_are_refused) {
    EXPECT_TRUE(split_card(std::string(200'000, 'x'), 32).empty());
}

TEST(Cards, of_another_form_are_ignored) {
    using Pieces = std::vector<std::string>;
    const Pieces bad[] = {{},        {""},        {"00"},         {".00"},       {"1.0"},  {"1.0g"},
                          {"1.0G"},  {"0."},      {"2.00"},       {"-1.00"},     {"x.00"}, {"99999.00"},
                          {"1 .00"}, {"2.", "0"}, {"2.00", "zz"}, {"3.00", "11"}};
    for (const auto& pieces : bad)
        EXPECT_EQ(join_pieces(pieces), std::nullopt) << (pieces.empty() ? "" : pieces[0]);
    EXPECT_EQ(join_pieces({"2.41", "42"}), "AB");
}

}  // namespace
}  // namespace viaduct::rte
