// SPDX-License-Identifier: BSD-2-Clause
// Datatypes against a model that keeps every byte of the type map in a list.
#include "mpi-adi/engine/datatype.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>

namespace viaduct::mpi {
namespace {

// A type and what it should be: where each byte of its packed form lies, in order, and its bounds.
struct Modelled {
    Datatype* type = nullptr;
    std::vector<MPI_Aint> bytes;
    MPI_Aint lb = 0, ub = 0;
    MPI_Count elements = 0;

    MPI_Aint extent() const { return ub - lb; }
};

using Random = std::mt19937;

int pick(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

Modelled basic(Random& random) {
    constexpr MPI_Datatype kTypes[] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX};
    const Datatype* type = type_of(kTypes[pick(random, 0, 5)]);
    Modelled made;
    made.type = make_repeated(1, 1, 0, *type);
    made.bytes.resize(size_t(type->size));
    std::iota(made.bytes.begin(), made.bytes.end(), MPI_Aint(0));
    made.ub = type->size;
    made.elements = 1;
    return made;
}

// Puts `n` items of the inner type at an offset and widens the bounds. A type map without entries bounds nothing.
void place(Modelled& outer, const Modelled& inner, MPI_Aint at, MPI_Count n, bool* any) {
    if (inner.bytes.empty() && !inner.type->sticky_lb) {
        return;
    }
    for (MPI_Count i = 0; i < n; ++i, at += inner.extent()) {
        for (MPI_Aint b : inner.bytes) {
            outer.bytes.push_back(at + b);
        }
        outer.lb = *any ? std::min(outer.lb, at + inner.lb) : at + inner.lb;
        outer.ub = *any ? std::max(outer.ub, at + inner.ub) : at + inner.ub;
        outer.elements += inner.elements;
        *any = true;
    }
}

Modelled vector_of(Random& random, const Modelled& inner) {
    Modelled made;
    int count = pick(random, 0, 5), block = pick(random, 0, 4);
    MPI_Aint stride = pick(random, -40, 40);
    bool any = false;
    for (int i = 0; i < count; ++i) {
        place(made, inner, i * stride, block, &any);
    }
    made.type = make_repeated(count, block, stride, *inner.type);
    return made;
}

Modelled blocks_of(Random& random, const Modelled& a, const Modelled& b) {
    Modelled made;
    std::vector<Datatype::Part> parts;
    bool any = false;
    for (int i = pick(random, 0, 5); i > 0; --i) {
        const Modelled& inner = pick(random, 0, 1) ? a : b;
        MPI_Aint at = pick(random, -100, 100);
        int n = pick(random, 0, 3);
        parts.push_back({at, n, inner.type});
        place(made, inner, at, n, &any);
    }
    made.type = make_blocks(parts, false);
    return made;
}

Modelled resized_of(Random& random, const Modelled& inner) {
    Modelled made = inner;
    made.lb = pick(random, -10, 10);
    made.ub = made.lb + pick(random, 0, 60);
    made.type = make_resized(*inner.type, made.lb, made.extent());
    return made;
}

bool has_markers(const Modelled& m) { return m.type->sticky_lb || m.type->sticky_ub; }

// `inner` outlives the call through the references of what is made of it.
Modelled random_type(Random& random, int depth) {
    if (depth == 0) {
        return basic(random);
    }
    Modelled inner = random_type(random, depth - 1);
    Modelled other = random_type(random, pick(random, 0, depth - 1));
    Modelled made;
    switch (pick(random, 0, 3)) {
        case 0: made = vector_of(random, inner); break;
        case 1: made = resized_of(random, inner); break;
        default:
            // The model has no rule for natural bounds beside markers.
            made =
                has_markers(inner) == has_markers(other) ? blocks_of(random, inner, other) : vector_of(random, inner);
    }
    inner.type->release();
    other.type->release();
    return made;
}

constexpr MPI_Aint kMiddle = 1 << 16;

std::vector<char> noise(size_t n) {
    std::vector<char> out(n);
    for (size_t i = 0; i < n; ++i) {
        out[i] = char(i * 131 + i / 251);
    }
    return out;
}

std::vector<char> expected_packing(const Modelled& m, const std::vector<char>& memory, int count) {
    std::vector<char> packed;
    for (int i = 0; i < count; ++i) {
        for (MPI_Aint b : m.bytes) {
            packed.push_back(memory[size_t(kMiddle + i * m.extent() + b)]);
        }
    }
    return packed;
}

class RandomDatatypes : public testing::TestWithParam<int> {};

TEST_P(RandomDatatypes, PackEveryByteInTypeMapOrder) {
    Random random{unsigned(GetParam())};
    Modelled m = random_type(random, pick(random, 1, 4));
    ASSERT_EQ(m.type->size, MPI_Count(m.bytes.size()));
    EXPECT_EQ(m.type->lb, m.lb);
    EXPECT_EQ(m.type->ub, m.ub);
    EXPECT_EQ(m.type->elements, m.elements);
    if (!m.bytes.empty()) {
        EXPECT_EQ(m.type->true_lb, *std::min_element(m.bytes.begin(), m.bytes.end()));
        EXPECT_EQ(m.type->true_ub, *std::max_element(m.bytes.begin(), m.bytes.end()) + 1);
    }

    const std::vector<char> memory = noise(2 * kMiddle);
    const int count = 3;
    std::vector<char> expected = expected_packing(m, memory, count);
    std::vector<char> packed(expected.size());
    m.type->pack(memory.data() + kMiddle, count, 0, packed.size(), packed.data());
    EXPECT_EQ(packed, expected);

    // Piece by piece from any byte on, as a transport does.
    std::fill(packed.begin(), packed.end(), char(0));
    for (size_t at = 0; at < packed.size();) {
        size_t n = std::min<size_t>(size_t(pick(random, 1, 37)), packed.size() - at);
        m.type->pack(memory.data() + kMiddle, count, at, n, packed.data() + at);
        at += n;
    }
    EXPECT_EQ(packed, expected);
    m.type->release();
}

TEST_P(RandomDatatypes, TellTheirPiecesInTypeMapOrder) {
    Random random{unsigned(GetParam()) + 104729};
    Modelled m = random_type(random, pick(random, 1, 4));
    std::vector<char> memory = noise(2 * kMiddle);
    constexpr int kCount = 3;
    const std::vector<char> expected = expected_packing(m, memory, kCount);
    for (const size_t bytes : {expected.size(), expected.size() / 2, std::min<size_t>(1, expected.size())}) {
        std::vector<mpip_piece> pieces(expected.size() + 1);
        const auto tell = [&](size_t room) {
            return m.type->d_pieces(m.type, memory.data() + kMiddle, kCount, bytes, pieces.data(), room);
        };
        const size_t count = tell(pieces.size());
        std::vector<char> found;
        for (size_t i = 0; i < count; ++i) {
            const char* at = static_cast<const char*>(pieces[i].pc_at);
            found.insert(found.end(), at, at + pieces[i].pc_bytes);
        }
        EXPECT_TRUE(found == std::vector<char>(expected.begin(), expected.begin() + std::ptrdiff_t(bytes)));
        if (count > 0) {
            EXPECT_EQ(tell(count), count);
            EXPECT_EQ(tell(count - 1), 0u);
        }
    }
    m.type->release();
}

TEST_P(RandomDatatypes, ShowTheirElementsInTypeMapOrder) {
    Random random{unsigned(GetParam())};
    Modelled m = random_type(random, pick(random, 1, 4));
    std::vector<MPI_Aint> bytes;
    for_each_basic(*m.type, -5, [&](const Datatype& basic, MPI_Aint at, MPI_Count n) {
        for (MPI_Count i = 0; i < n * basic.size; ++i) {
            bytes.push_back(at + i + 5);
        }
    });
    EXPECT_EQ(bytes, m.bytes);
    m.type->release();
}

// Any number of elements takes the bytes in which it is counted again.
TEST_P(RandomDatatypes, CountTheElementsThatTheirBytesHold) {
    Random random{unsigned(GetParam())};
    Modelled m = random_type(random, pick(random, 1, 4));
    for (MPI_Count n = 0; n <= 2 * m.elements; ++n) {
        EXPECT_EQ(count_elements(*m.type, bytes_of_elements(*m.type, n)), n);
    }
    m.type->release();
}

TEST_P(RandomDatatypes, UnpackTouchesNothingElse) {
    Random random{unsigned(GetParam()) + 7919};
    Modelled m = random_type(random, pick(random, 1, 4));
    const std::vector<char> before = noise(2 * kMiddle);
    const int count = 2;
    std::vector<char> packed(m.bytes.size() * size_t(count));
    for (size_t i = 0; i < packed.size(); ++i) {
        packed[i] = char(~i);
    }
    std::vector<char> expected = before;
    size_t next = 0;
    for (int i = 0; i < count; ++i) {
        for (MPI_Aint b : m.bytes) {
            expected[size_t(kMiddle + i * m.extent() + b)] = packed[next++];
        }
    }
    std::vector<char> memory = before;
    for (size_t at = 0; at < packed.size();) {
        size_t n = std::min<size_t>(size_t(pick(random, 1, 53)), packed.size() - at);
        m.type->unpack(memory.data() + kMiddle, count, at, n, packed.data() + at);
        at += n;
    }
    EXPECT_TRUE(memory == expected);
    m.type->release();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDatatypes, testing::Range(0, 200));

TEST(Datatype, VectorIsOneStridedRun) {
    Datatype* column = make_repeated(1000, 2, 64, *type_of(MPI_DOUBLE));
    ASSERT_EQ(column->runs.size(), 1u);
    EXPECT_EQ(column->runs[0].count, 1000);
    EXPECT_EQ(column->runs[0].length, 16);
    EXPECT_FALSE(column->contiguous);
    column->release();
}

TEST(Datatype, TouchingBlocksBecomeOnePiece) {
    const Datatype* integer = type_of(MPI_INT);
    Datatype* whole = make_blocks({{0, 2, integer}, {8, 1, integer}, {12, 4, integer}}, false);
    EXPECT_TRUE(whole->contiguous);
    ASSERT_EQ(whole->runs.size(), 1u);
    EXPECT_EQ(whole->runs[0].length, 28);
    whole->release();
}

TEST(Datatype, StructureIsPaddedToItsStrictestMember) {
    Datatype* padded = make_blocks({{0, 1, type_of(MPI_DOUBLE)}, {8, 1, type_of(MPI_CHAR)}}, true);
    EXPECT_EQ(padded->extent(), 16);
    EXPECT_EQ(padded->size, 9);
    EXPECT_FALSE(padded->contiguous);
    padded->release();
    // A type without an item in the structure pads nothing.
    Datatype* none = make_repeated(5, 0, 8, *type_of(MPI_DOUBLE));
    Datatype* beside = make_blocks({{0, 3, type_of(MPI_SHORT)}, {0, 5, none}}, true);
    EXPECT_EQ(beside->extent(), 6);
    beside->release();
    none->release();
}

TEST(Datatype, UpperMarkerBeatsPaddingAndData) {
    Datatype* marked = make_blocks({{0, 1, type_of(MPI_INT)}, {100, 1, type_of(MPI_UB)}}, true);
    EXPECT_EQ(marked->extent(), 100);
    EXPECT_EQ(marked->true_extent(), 4);
    marked->release();
}

TEST(Datatype, SubarrayHasTheExtentOfTheWhole) {
    const MPI_Count sizes[] = {4, 5, 6}, subsizes[] = {2, 3, 2}, starts[] = {1, 1, 3};
    Datatype* part = make_subarray(sizes, subsizes, starts, MPI_ORDER_C, *type_of(MPI_INT));
    EXPECT_EQ(part->extent(), 4 * 5 * 6 * 4);
    EXPECT_EQ(part->size, 2 * 3 * 2 * 4);
    std::vector<int> array(120);
    std::iota(array.begin(), array.end(), 0);
    std::vector<int> packed(12);
    part->pack(array.data(), 1, 0, 48, packed.data());
    EXPECT_EQ(packed.front(), 1 * 30 + 1 * 6 + 3);
    EXPECT_EQ(packed.back(), 2 * 30 + 3 * 6 + 4);
    part->release();
}

TEST(Datatype, DistributedArrayCoversEveryElementOnce) {
    const MPI_Count gsizes[] = {7, 10};
    const int how[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK},
              arguments[] = {2, MPI_DISTRIBUTE_DFLT_DARG}, processes[] = {2, 3};
    for (int order : {MPI_ORDER_C, MPI_ORDER_FORTRAN}) {
        std::vector<int> hits(70, 0);
        for (int rank = 0; rank < 6; ++rank) {
            Datatype* share = nullptr;
            ASSERT_EQ(make_darray(6, rank, gsizes, how, arguments, processes, order, *type_of(MPI_INT), &share),
                      MPI_SUCCESS);
            EXPECT_EQ(share->extent(), 70 * 4);
            std::vector<int> array(70), packed(size_t(share->size) / 4);
            std::iota(array.begin(), array.end(), 0);
            share->pack(array.data(), 1, 0, size_t(share->size), packed.data());
            for (int element : packed) {
                ++hits[size_t(element)];
            }
            share->release();
        }
        EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), 70);
    }
}

TEST(Datatype, CountsElementsOfAMessageThatEndsInsideAnItem) {
    Datatype* mixed = make_blocks({{0, 2, type_of(MPI_INT)}, {8, 1, type_of(MPI_DOUBLE)}}, true);
    EXPECT_EQ(count_elements(*mixed, 0), 0);
    EXPECT_EQ(count_elements(*mixed, 4), 1);
    EXPECT_EQ(count_elements(*mixed, 16), 3);
    EXPECT_EQ(count_elements(*mixed, 20), 4);
    EXPECT_EQ(count_elements(*mixed, 21), -1);
    mixed->release();
}

TEST(Datatype, HandleOfAFreedTypeIsInvalid) {
    MPI_Datatype handle =
        type_publish(make_repeated(2, 1, 8, *type_of(MPI_INT)), {MPI_COMBINER_VECTOR, {}, {}, {MPI_INT}, {}});
    MPI_Datatype kept = handle;
    EXPECT_NE(type_of(kept), nullptr);
    EXPECT_EQ(type_free(&handle), MPI_SUCCESS);
    EXPECT_EQ(handle, MPI_DATATYPE_NULL);
    EXPECT_EQ(type_of(kept), nullptr);
    EXPECT_EQ(type_free(&kept), MPI_ERR_TYPE);
    // As with MPICH, the next type has the handle that was freed last.
    MPI_Datatype next =
        type_publish(make_repeated(3, 1, 8, *type_of(MPI_INT)), {MPI_COMBINER_VECTOR, {}, {}, {MPI_INT}, {}});
    EXPECT_EQ(next, kept);
    EXPECT_EQ(type_free(&next), MPI_SUCCESS);
}

TEST(Datatype, BuiltinHandlesTellTheirSize) {
    for (MPI_Datatype handle : {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX, MPI_2INT}) {
        ASSERT_NE(type_of(handle), nullptr);
        EXPECT_EQ(type_of(handle)->size, basic_handle_size(handle));
    }
    EXPECT_EQ(type_of(MPI_DOUBLE_INT)->size, 12);
    EXPECT_EQ(type_of(MPI_DOUBLE_INT)->extent(), 16);
    EXPECT_EQ(type_of(MPI_DATATYPE_NULL), nullptr);
    EXPECT_EQ(type_of(0), nullptr);
}

template <typename First, typename Second>
struct InC {
    First first;
    Second second;
};

// A structure of two is as the compiler lays it out, and so is the pair of that kind where there is one.
template <typename First, typename Second>
void expect_as_in_c(MPI_Datatype first, MPI_Datatype second, MPI_Datatype pair = MPI_DATATYPE_NULL) {
    using Both = InC<First, Second>;
    EXPECT_EQ(type_of(first)->size, MPI_Count(sizeof(First)));
    EXPECT_EQ(type_of(second)->size, MPI_Count(sizeof(Second)));
    const MPI_Aint at = offsetof(Both, second);
    Datatype* made = make_blocks({{0, 1, type_of(first)}, {at, 1, type_of(second)}}, true);
    EXPECT_EQ(made->extent(), MPI_Aint(sizeof(Both))) << type_of(first)->name << ", " << type_of(second)->name;
    made->release();
    if (pair == MPI_DATATYPE_NULL) return;
    EXPECT_EQ(type_of(pair)->extent(), MPI_Aint(sizeof(Both))) << type_of(pair)->name;
    EXPECT_EQ(type_of(pair)->parts[1].offset, at) << type_of(pair)->name;
}

TEST(Datatype, StructuresAreAsInC) {
    expect_as_in_c<float, int>(MPI_FLOAT, MPI_INT, MPI_FLOAT_INT);
    expect_as_in_c<double, int>(MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT);
    expect_as_in_c<long, int>(MPI_LONG, MPI_INT, MPI_LONG_INT);
    expect_as_in_c<short, int>(MPI_SHORT, MPI_INT, MPI_SHORT_INT);
    expect_as_in_c<long double, int>(MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT);
    expect_as_in_c<char, long>(MPI_CHAR, MPI_LONG);
    expect_as_in_c<char, unsigned long>(MPI_CHAR, MPI_UNSIGNED_LONG);
    expect_as_in_c<char, long long>(MPI_CHAR, MPI_LONG_LONG);
    expect_as_in_c<char, double>(MPI_CHAR, MPI_DOUBLE);
    expect_as_in_c<char, long double>(MPI_CHAR, MPI_LONG_DOUBLE);
    expect_as_in_c<char, std::complex<double>>(MPI_CHAR, MPI_C_DOUBLE_COMPLEX);
    expect_as_in_c<char, std::complex<long double>>(MPI_CHAR, MPI_C_LONG_DOUBLE_COMPLEX);
    expect_as_in_c<char, MPI_Aint>(MPI_CHAR, MPI_AINT);
    expect_as_in_c<char, MPI_Offset>(MPI_CHAR, MPI_OFFSET);
    expect_as_in_c<char, MPI_Count>(MPI_CHAR, MPI_COUNT);
    expect_as_in_c<char, int64_t>(MPI_CHAR, MPI_INT64_T);
    expect_as_in_c<char, uint64_t>(MPI_CHAR, MPI_UINT64_T);
    expect_as_in_c<char, wchar_t>(MPI_CHAR, MPI_WCHAR);
}

}  // namespace
}  // namespace viaduct::mpi
