// SPDX-License-Identifier: BSD-2-Clause
// An exported MPI function in two parts: its body, and the entry that programs call. The entry has all arguments, so a
// body that has failed is told with them; a body that has not costs one comparison.
#pragma once

#include <mpi.h>

#include <tuple>
#include <type_traits>

#include "mpi-adi/mpi/noted.hpp"

namespace viaduct::mpi {

// An argument of a call. Its parameter's type and name are in the text of the parameters.
struct Value {
    long long number = 0;
    const void* pointer = nullptr;
};

template <typename T>
Value value_of(T argument) {
    if constexpr (std::is_pointer_v<T>) {
        return {0, reinterpret_cast<const void*>(argument)};
    } else {
        return {static_cast<long long>(argument), nullptr};
    }
}

// Makes the text of an error from the call, and asks the error handler; or notes what the call has made, when the code
// is checking::kCallToNote. `parameters` is how the function writes them.
[[gnu::cold]] int end_failed_call(const char* function, const char* parameters, const Value* values, int count,
                                  int code);

template <typename... Arguments>
[[gnu::cold, gnu::noinline]] int failed_call(const char* function, const char* parameters, int code,
                                             Arguments... arguments) {
    const Value values[] = {value_of(arguments)..., {}};
    return end_failed_call(function, parameters, values, sizeof...(arguments), code);
}

// What the debugging mode looks at before the call: collective calls that have no schedule of their own.
void before_call(const char* function, const char* parameters, const Value* values, int count);

template <typename... Arguments>
[[gnu::cold, gnu::noinline]] void look_before(const char* function, const char* parameters, Arguments... arguments) {
    const Value values[] = {value_of(arguments)..., {}};
    before_call(function, parameters, values, sizeof...(arguments));
}

// The object that a call is about to end. It has ended when the call has taken its handle away, also where the call
// fails afterwards; a call that leaves the handle has ended nothing.
template <bool ends>
class ObjectEnd {
public:
    template <typename... Arguments>
    explicit ObjectEnd(const char*, Arguments...) {}
};
template <>
class ObjectEnd<true> {
public:
    ObjectEnd(const char* function, const int* place) : function_(function) {
        if (checking::noting != checking::Noting::yes || place == nullptr) [[likely]]
            return;
        place_ = place;
        handle_ = *place;
    }
    ~ObjectEnd() {
        if (place_ != nullptr && *place_ != handle_) [[unlikely]]
            note_end(function_, handle_);
    }
    ObjectEnd(const ObjectEnd&) = delete;
    ObjectEnd& operator=(const ObjectEnd&) = delete;

private:
    const char* function_;
    const int* place_ = nullptr;
    int handle_ = 0;
};

template <typename Function>
struct TypesOf;
template <typename... Arguments>
struct TypesOf<int(Arguments...)> {
    using type = std::tuple<Arguments...>;
};
template <typename Function, int index>
using ArgumentType = std::tuple_element_t<index, typename TypesOf<Function>::type>;

}  // namespace viaduct::mpi

#define VIADUCT_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, n, ...) n
#define VIADUCT_COUNT(...) \
    __VA_OPT__(VIADUCT_PICK(__VA_ARGS__, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0))
#define VIADUCT_JOIN(a, b) a##b
#define VIADUCT_TAKE(f, i) ::viaduct::mpi::ArgumentType<decltype(f), i> a##i
#define VIADUCT_TAKE_(f)
#define VIADUCT_TAKE_1(f) VIADUCT_TAKE(f, 0)
#define VIADUCT_TAKE_2(f) VIADUCT_TAKE_1(f), VIADUCT_TAKE(f, 1)
#define VIADUCT_TAKE_3(f) VIADUCT_TAKE_2(f), VIADUCT_TAKE(f, 2)
#define VIADUCT_TAKE_4(f) VIADUCT_TAKE_3(f), VIADUCT_TAKE(f, 3)
#define VIADUCT_TAKE_5(f) VIADUCT_TAKE_4(f), VIADUCT_TAKE(f, 4)
#define VIADUCT_TAKE_6(f) VIADUCT_TAKE_5(f), VIADUCT_TAKE(f, 5)
#define VIADUCT_TAKE_7(f) VIADUCT_TAKE_6(f), VIADUCT_TAKE(f, 6)
#define VIADUCT_TAKE_8(f) VIADUCT_TAKE_7(f), VIADUCT_TAKE(f, 7)
#define VIADUCT_TAKE_9(f) VIADUCT_TAKE_8(f), VIADUCT_TAKE(f, 8)
#define VIADUCT_TAKE_10(f) VIADUCT_TAKE_9(f), VIADUCT_TAKE(f, 9)
#define VIADUCT_TAKE_11(f) VIADUCT_TAKE_10(f), VIADUCT_TAKE(f, 10)
#define VIADUCT_TAKE_12(f) VIADUCT_TAKE_11(f), VIADUCT_TAKE(f, 11)
#define VIADUCT_TAKE_13(f) VIADUCT_TAKE_12(f), VIADUCT_TAKE(f, 12)
#define VIADUCT_TAKE_14(f) VIADUCT_TAKE_13(f), VIADUCT_TAKE(f, 13)
#define VIADUCT_BEHIND_COMMA(...) __VA_OPT__(, ) __VA_ARGS__
#define VIADUCT_PASS_
#define VIADUCT_PASS_1 a0
#define VIADUCT_PASS_2 VIADUCT_PASS_1, a1
#define VIADUCT_PASS_3 VIADUCT_PASS_2, a2
#define VIADUCT_PASS_4 VIADUCT_PASS_3, a3
#define VIADUCT_PASS_5 VIADUCT_PASS_4, a4
#define VIADUCT_PASS_6 VIADUCT_PASS_5, a5
#define VIADUCT_PASS_7 VIADUCT_PASS_6, a6
#define VIADUCT_PASS_8 VIADUCT_PASS_7, a7
#define VIADUCT_PASS_9 VIADUCT_PASS_8, a8
#define VIADUCT_PASS_10 VIADUCT_PASS_9, a9
#define VIADUCT_PASS_11 VIADUCT_PASS_10, a10
#define VIADUCT_PASS_12 VIADUCT_PASS_11, a11
#define VIADUCT_PASS_13 VIADUCT_PASS_12, a12
#define VIADUCT_PASS_14 VIADUCT_PASS_13, a13

// Defines MPI_X and PMPI_X, the first a weak name that a tool may replace; what follows is the body, a try block.
// Inside the library nothing calls MPI_X, so that a tool sees the program's calls and no others.
#define VIADUCT_MPI_ENTRY(name, parameters) \
    VIADUCT_MPI_ENTRY_WITH(name, parameters, VIADUCT_COUNT parameters, #parameters)
#define VIADUCT_MPI_ENTRY_WITH(name, parameters, n, text) VIADUCT_MPI_ENTRY_OF(name, parameters, n, text)
#define VIADUCT_MPI_ENTRY_OF(name, parameters, n, text) \
    namespace viaduct_body { \
    static inline int name parameters; \
    } \
    extern "C" std::remove_reference_t<decltype(::name)> name \
        __attribute__((weak, visibility("default"), alias("P" #name))); \
    extern "C" __attribute__((visibility("default"))) int P##name(VIADUCT_JOIN(VIADUCT_TAKE_, n)(::name)) { \
        if constexpr (::viaduct::mpi::is_looked_at_before(#name)) \
            if (::viaduct::mpi::checking::on) [[unlikely]] \
                ::viaduct::mpi::look_before(#name, text VIADUCT_BEHIND_COMMA(VIADUCT_JOIN(VIADUCT_PASS_, n))); \
        [[maybe_unused]] const ::viaduct::mpi::ObjectEnd<::viaduct::mpi::ends_an_object(#name)> end( \
            #name VIADUCT_BEHIND_COMMA(VIADUCT_JOIN(VIADUCT_PASS_, n))); \
        const int code = viaduct_body::name(VIADUCT_JOIN(VIADUCT_PASS_, n)); \
        if (code != MPI_SUCCESS) [[unlikely]] \
            return ::viaduct::mpi::failed_call(#name, text,                                                \
                                               code VIADUCT_BEHIND_COMMA(VIADUCT_JOIN(VIADUCT_PASS_, n)));        \
        if constexpr (::viaduct::mpi::makes_an_object(#name, text)) \
            if (::viaduct::mpi::checking::may_note()) [[unlikely]] \
                return ::viaduct::mpi::failed_call( \
                    #name, text, \
                    ::viaduct::mpi::checking::kCallToNote VIADUCT_BEHIND_COMMA(VIADUCT_JOIN(VIADUCT_PASS_, n))); \
        return MPI_SUCCESS; \
    } \
    static inline int viaduct_body::name parameters
