// SPDX-License-Identifier: BSD-2-Clause
// Reduction operators against plain loops.
#include "mpi-adi/engine/op.hpp"

#include <gtest/gtest.h>

#include <complex>

namespace viaduct::mpi {
namespace {

template <typename T>
void expect_reduction(MPI_Op op, MPI_Datatype type, T (*model)(T, T)) {
    std::vector<T> in(37), inout(37);
    for (size_t i = 0; i < in.size(); ++i) {
        in[i] = T(i % 5);
        inout[i] = T((i * 3) % 7);
    }
    std::vector<T> expected(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
        expected[i] = model(in[i], inout[i]);
    }
    op_apply(*op_of(op), in.data(), inout.data(), MPI_Count(in.size()), *type_of(type));
    EXPECT_EQ(inout, expected) << "operator " << std::hex << op << " type " << type;
}

template <typename T>
void expect_arithmetic(MPI_Datatype type) {
    expect_reduction<T>(MPI_SUM, type, [](T a, T b) { return T(a + b); });
    expect_reduction<T>(MPI_PROD, type, [](T a, T b) { return T(a * b); });
    expect_reduction<T>(MPI_MAX, type, [](T a, T b) { return a > b ? a : b; });
    expect_reduction<T>(MPI_MIN, type, [](T a, T b) { return a < b ? a : b; });
    expect_reduction<T>(MPI_LAND, type, [](T a, T b) { return T(a != T(0) && b != T(0)); });
    expect_reduction<T>(MPI_LXOR, type, [](T a, T b) { return T((a != T(0)) != (b != T(0))); });
}

template <typename T>
void expect_bits(MPI_Datatype type) {
    expect_reduction<T>(MPI_BAND, type, [](T a, T b) { return T(a & b); });
    expect_reduction<T>(MPI_BOR, type, [](T a, T b) { return T(a | b); });
    expect_reduction<T>(MPI_BXOR, type, [](T a, T b) { return T(a ^ b); });
}

TEST(Operator, ArithmeticOnEveryKindOfNumber) {
    expect_arithmetic<signed char>(MPI_SIGNED_CHAR);
    expect_arithmetic<unsigned short>(MPI_UNSIGNED_SHORT);
    expect_arithmetic<int>(MPI_INT);
    expect_arithmetic<uint64_t>(MPI_UINT64_T);
    expect_arithmetic<float>(MPI_FLOAT);
    expect_arithmetic<double>(MPI_DOUBLE_PRECISION);
    expect_arithmetic<long double>(MPI_LONG_DOUBLE);
}

TEST(Operator, BitsOfIntegersAndBytes) {
    expect_bits<int>(MPI_INTEGER);
    expect_bits<int64_t>(MPI_OFFSET);
    expect_bits<unsigned char>(MPI_BYTE);
}

TEST(Operator, ComplexNumbersAddAndMultiply) {
    using C = std::complex<double>;
    expect_reduction<C>(MPI_SUM, MPI_C_DOUBLE_COMPLEX, [](C a, C b) { return a + b; });
    expect_reduction<C>(MPI_PROD, MPI_DOUBLE_COMPLEX, [](C a, C b) { return a * b; });
}

TEST(Operator, OfEqualValuesTheLowerIndexWins) {
    struct Item {
        double value;
        int index;
    };
    Item in[] = {{1, 7}, {5, 2}, {3, 1}}, inout[] = {{1, 3}, {4, 9}, {3, 4}};
    op_apply(*op_of(MPI_MAXLOC), in, inout, 3, *type_of(MPI_DOUBLE_INT));
    EXPECT_EQ(inout[0].index, 3);
    EXPECT_EQ(inout[1].value, 5);
    EXPECT_EQ(inout[1].index, 2);
    EXPECT_EQ(inout[2].index, 1);
}

TEST(Operator, IsRefusedOnTypesItIsNotDefinedFor) {
    EXPECT_EQ(op_check(*op_of(MPI_MAX), *type_of(MPI_C_FLOAT_COMPLEX)), MPI_ERR_OP);
    EXPECT_EQ(op_check(*op_of(MPI_BAND), *type_of(MPI_DOUBLE)), MPI_ERR_OP);
    EXPECT_EQ(op_check(*op_of(MPI_SUM), *type_of(MPI_BYTE)), MPI_ERR_OP);
    EXPECT_EQ(op_check(*op_of(MPI_SUM), *type_of(MPI_DOUBLE_INT)), MPI_ERR_OP);
    EXPECT_EQ(op_of(MPI_OP_NULL), nullptr);
}

TEST(Operator, OfTheProgramSeesTheHandleOfItsType) {
    static MPI_Datatype seen;
    MPI_Op op = op_create(
        [](void* in, void* inout, int* n, MPI_Datatype* type) {
            seen = *type;
            for (int i = 0; i < *n; ++i) {
                static_cast<int*>(inout)[i] -= static_cast<int*>(in)[i];
            }
        },
        false);
    int in[] = {1, 2}, inout[] = {10, 10};
    op_apply(*op_of(op), in, inout, 2, *type_of(MPI_INT));
    EXPECT_EQ(seen, MPI_INT);
    EXPECT_EQ(inout[1], 8);
    EXPECT_FALSE(op_of(op)->commutative);
    EXPECT_EQ(op_free(&op), MPI_SUCCESS);
    EXPECT_EQ(op, MPI_OP_NULL);
}

}  // namespace
}  // namespace viaduct::mpi
