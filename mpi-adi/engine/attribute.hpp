// SPDX-License-Identifier: BSD-2-Clause
// Attributes: values that a program attaches to communicators and datatypes under keys of its own, with callbacks when
// the object is duplicated or freed. Called with the engine's lock held; callbacks may call MPI again.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "mpi-adi/engine/handle.hpp"

namespace viaduct::mpi {

// In which language and width a value was set: the ABI's numbers, used by the Fortran layer.
enum class AttributeKind : int { pointer = 0, aint = 1, integer = 3 };

using CopyProxy = int (*)(MPI_Comm_copy_attr_function*, int, int, void*, AttributeKind, void*, void**, int*);
using DeleteProxy = int (*)(MPI_Comm_delete_attr_function*, int, int, AttributeKind, void*, void*);

struct Keyval {
    int handle = MPI_KEYVAL_INVALID;
    HandleType object = HandleType::comm;
    MPI_Comm_copy_attr_function* copy = nullptr;
    MPI_Comm_delete_attr_function* destroy = nullptr;
    CopyProxy copy_proxy = nullptr;  // how to call functions written in Fortran
    DeleteProxy destroy_proxy = nullptr;
    void* extra_state = nullptr;
    int references = 1;  // the program's, and one for each value set
    bool freed = false;
};

class AttributeSet {
  public:
    struct Value {
        Keyval* keyval;
        AttributeKind kind;
        intptr_t value;
    };

    // Replaces an old value, whose delete callback runs first; its error, if any, leaves the old value in place.
    [[nodiscard]] int set(int object, Keyval* keyval, intptr_t value, AttributeKind kind);
    const Value* find(const Keyval* keyval) const;
    [[nodiscard]] int erase(int object, const Keyval* keyval);
    // The last value set goes first.
    [[nodiscard]] int clear(int object);
    [[nodiscard]] int copy_to(int object, AttributeSet& other) const;

  private:
    std::vector<Value> values_;
};

[[nodiscard]] int keyval_create(HandleType object, MPI_Comm_copy_attr_function* copy,
                                MPI_Comm_delete_attr_function* destroy, void* extra_state, int* keyval);
// The key of a handle when it belongs to this kind of object, else null. A freed key lives on in its values.
Keyval* keyval_of(int handle, HandleType object);
[[nodiscard]] int keyval_free(int* handle, HandleType object);
// Whether the program has a key of any kind of object by this handle, and has not freed it.
bool keyval_is_kept(int handle);

// Hands a stored value to a caller that expects `wanted`.
void deliver(const AttributeSet::Value& value, AttributeKind wanted, void* out);

}  // namespace viaduct::mpi
