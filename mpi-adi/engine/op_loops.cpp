// SPDX-License-Identifier: BSD-2-Clause
// The loops of the built-in operators: one instance for each operator and machine type, written so that the compiler
// vectorises them.
#include <complex>
#include <cstdint>
#include <cstring>

#include "mpi-adi/engine/op.hpp"

namespace viaduct::mpi {
namespace {

struct Max {
    template <typename T>
    static T apply(T a, T b) { return a > b ? a : b; }
};
struct Min {
    template <typename T>
    static T apply(T a, T b) { return a < b ? a : b; }
};
struct Sum {
    template <typename T>
    static T apply(T a, T b) { return T(a + b); }
};
struct Product {
    template <typename T>
    static T apply(T a, T b) { return T(a * b); }
};
struct LogicalAnd {
    template <typename T>
    static T apply(T a, T b) { return T((a != T(0)) & (b != T(0))); }
};
struct LogicalOr {
    template <typename T>
    static T apply(T a, T b) { return T((a != T(0)) | (b != T(0))); }
};
struct LogicalXor {
    template <typename T>
    static T apply(T a, T b) { return T((a != T(0)) != (b != T(0))); }
};
struct BitAnd {
    template <typename T>
    static T apply(T a, T b) { return T(a & b); }
};
struct BitOr {
    template <typename T>
    static T apply(T a, T b) { return T(a | b); }
};
struct BitXor {
    template <typename T>
    static T apply(T a, T b) { return T(a ^ b); }
};

template <typename Op, typename T>
void loop(const void* in, void* inout, size_t count) {
    const T* __restrict from = static_cast<const T*>(in);
    T* __restrict to = static_cast<T*>(inout);
    for (size_t i = 0; i < count; ++i) {
        to[i] = Op::apply(from[i], to[i]);
    }
}

// As C lays out a value and an index.
template <typename Value, typename Index>
struct Pair {
    Value value;
    Index index;
};

// The better value with its index; of equal values the lower index.
template <bool kMax, typename Value, typename Index>
void loop_location(const void* in, void* inout, size_t count) {
    using Item = Pair<Value, Index>;
    const Item* __restrict from = static_cast<const Item*>(in);
    Item* __restrict to = static_cast<Item*>(inout);
    for (size_t i = 0; i < count; ++i) {
        bool better = kMax ? from[i].value > to[i].value : from[i].value < to[i].value;
        if (better) {
            to[i].value = from[i].value;
            to[i].index = from[i].index;
        } else if (from[i].value == to[i].value && from[i].index < to[i].index) {
            to[i].index = from[i].index;
        }
    }
}

template <typename T>
OpLoop arithmetic(MPI_Op op) {
    switch (op) {
        case MPI_MAX: return loop<Max, T>;
        case MPI_MIN: return loop<Min, T>;
        case MPI_SUM: return loop<Sum, T>;
        case MPI_PROD: return loop<Product, T>;
        case MPI_LAND: return loop<LogicalAnd, T>;
        case MPI_LOR: return loop<LogicalOr, T>;
        case MPI_LXOR: return loop<LogicalXor, T>;
        default: return nullptr;
    }
}

template <typename T>
OpLoop bitwise(MPI_Op op) {
    switch (op) {
        case MPI_BAND: return loop<BitAnd, T>;
        case MPI_BOR: return loop<BitOr, T>;
        case MPI_BXOR: return loop<BitXor, T>;
        default: return nullptr;
    }
}

template <typename T>
OpLoop integer(MPI_Op op) {
    OpLoop found = arithmetic<T>(op);
    return found ? found : bitwise<T>(op);
}

template <typename T>
OpLoop complex_loop(MPI_Op op) {
    return op == MPI_SUM ? loop<Sum, T> : op == MPI_PROD ? loop<Product, T> : nullptr;
}

template <typename T>
OpLoop logical_loop(MPI_Op op) {
    return op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR ? arithmetic<T>(op) : nullptr;
}

template <typename Value, typename Index>
OpLoop location(MPI_Op op) {
    return op == MPI_MAXLOC   ? loop_location<true, Value, Index>
           : op == MPI_MINLOC ? loop_location<false, Value, Index>
                              : nullptr;
}

OpLoop signed_loop(MPI_Op op, MPI_Count size) {
    switch (size) {
        case 1: return integer<int8_t>(op);
        case 2: return integer<int16_t>(op);
        case 4: return integer<int32_t>(op);
        default: return integer<int64_t>(op);
    }
}

OpLoop unsigned_loop(MPI_Op op, MPI_Count size) {
    switch (size) {
        case 1: return integer<uint8_t>(op);
        case 2: return integer<uint16_t>(op);
        case 4: return integer<uint32_t>(op);
        default: return integer<uint64_t>(op);
    }
}

// Fortran's REAL*16 is IEEE quadruple; C's long double of the same size is not.
__extension__ using Quad = __float128;
// Numbers of 16 bits are added and multiplied as wider ones and rounded after each step.
__extension__ using Half = _Float16;
struct ComplexQuad {
    Quad re, im;
    friend ComplexQuad operator+(ComplexQuad a, ComplexQuad b) { return {a.re + b.re, a.im + b.im}; }
    friend ComplexQuad operator*(ComplexQuad a, ComplexQuad b) {
        return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    }
};

OpLoop floating_loop(MPI_Op op, const Datatype& type) {
    switch (type.size) {
        case 2: return arithmetic<Half>(op);
        case 4: return arithmetic<float>(op);
        case 8: return arithmetic<double>(op);
        default: return type.handle == MPI_REAL16 ? arithmetic<Quad>(op) : arithmetic<long double>(op);
    }
}

OpLoop complex_of(MPI_Op op, const Datatype& type) {
    switch (type.size) {
        case 8: return complex_loop<std::complex<float>>(op);
        case 16: return complex_loop<std::complex<double>>(op);
        default:
            return type.handle == MPI_COMPLEX32 ? complex_loop<ComplexQuad>(op)
                                                : complex_loop<std::complex<long double>>(op);
    }
}

OpLoop pair_loop(MPI_Op op, MPI_Datatype type) {
    switch (type) {
        case MPI_FLOAT_INT: return location<float, int>(op);
        case MPI_DOUBLE_INT: return location<double, int>(op);
        case MPI_LONG_INT: return location<long, int>(op);
        case MPI_SHORT_INT: return location<short, int>(op);
        case MPI_LONG_DOUBLE_INT: return location<long double, int>(op);
        case MPI_2INT:
        case MPI_2INTEGER: return location<int, int>(op);
        case MPI_2REAL: return location<float, float>(op);
        case MPI_2DOUBLE_PRECISION: return location<double, double>(op);
        default: return nullptr;
    }
}

}  // namespace

OpLoop op_loop(MPI_Op op, const Datatype& type) {
    switch (type.basic) {
        case BasicClass::signed_integer: return signed_loop(op, type.size);
        case BasicClass::unsigned_integer: return unsigned_loop(op, type.size);
        case BasicClass::floating: return floating_loop(op, type);
        case BasicClass::complex: return complex_of(op, type);
        case BasicClass::logical: return type.size == 1 ? logical_loop<uint8_t>(op) : logical_loop<int32_t>(op);
        case BasicClass::byte: return type.handle == MPI_BYTE ? bitwise<uint8_t>(op) : nullptr;
        // Not the standard's, but programs add up characters as small integers.
        case BasicClass::character: return type.handle == MPI_CHAR ? integer<int8_t>(op) : nullptr;
        case BasicClass::pair: return pair_loop(op, type.handle);
        default: return nullptr;
    }
}

}  // namespace viaduct::mpi
