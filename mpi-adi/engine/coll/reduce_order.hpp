// SPDX-License-Identifier: BSD-2-Clause
// In which order messages put the contributions to a reduction together (at_once.cpp, reduce.cpp), for those that
// reduce otherwise and must come to the same bits. An order calls combine(into, from) for ranks, one after the other,
// and gives the rank whose contribution is then the result. Of operators that commute.
#pragma once

#include <cstddef>

namespace viaduct::mpi::coll {

// From here on it pays that each process reduces a part only.
constexpr size_t kHalvingBytes = 32 << 10;
// Up to here a call of three or four ranks is done at once.
constexpr size_t kAtOnceBytes = 256;

inline int power_below(int n) {
    int p = 1;
    while (p * 2 <= n) p *= 2;
    return p;
}

// The rank of one among those that are left when a reduction has been folded to a power of two (fold() in reduce.cpp).
inline int unfolded(int rank, int excess) { return rank < excess ? rank * 2 + 1 : rank + excess; }

// To all.
struct AllOrder {
    enum class Kind { in_turn, doubling, halving };
    int members;
    Kind kind;

    int last() const { return kind == Kind::in_turn ? 0 : unfolded(0, members - power_below(members)); }
    template <class Combine>
    int operator()(Combine&& combine) const {
        if (kind == Kind::in_turn) {
            for (int rank = 1; rank < members; ++rank) combine(0, rank);
            return 0;
        }
        const int all = power_below(members), excess = members - all;
        const auto level = [&](int mask) {
            for (int one = 0; one < all; ++one)
                if ((one & mask) == 0 && (kind == Kind::halving ? one < mask : one % (2 * mask) == 0))
                    combine(unfolded(one, excess), unfolded(one + mask, excess));
        };
        for (int one = 0; one < excess; ++one) combine(2 * one + 1, 2 * one);
        if (kind == Kind::doubling)
            for (int mask = 1; mask < all; mask *= 2) level(mask);
        else
            for (int mask = all / 2; mask > 0; mask /= 2) level(mask);
        return last();
    }
};

inline AllOrder all_order(int members, size_t count, size_t bytes) {
    const bool few = members == 3 || members == 4;
    const bool halves = count >= size_t(power_below(members)) && bytes >= kHalvingBytes;
    return {members, few && bytes <= kAtOnceBytes ? AllOrder::Kind::in_turn
                     : halves                     ? AllOrder::Kind::halving
                                                  : AllOrder::Kind::doubling};
}

// To one: up a binomial tree whose top is the root.
struct RootOrder {
    int members;
    int root;

    template <class Combine>
    int operator()(Combine&& combine) const {
        for (int mask = 1; mask < members; mask *= 2)
            for (int one = 0; one + mask < members; one += 2 * mask)
                combine((one + root) % members, (one + mask + root) % members);
        return root;
    }
};

}  // namespace viaduct::mpi::coll
