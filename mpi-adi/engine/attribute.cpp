// SPDX-License-Identifier: BSD-2-Clause
// Keys and values of attributes. See attribute.hpp.
#include "mpi-adi/engine/attribute.hpp"

#include <algorithm>

#include "core/process/never_destroyed.hpp"

namespace viaduct::mpi {
namespace {

NeverDestroyed<ObjectTable<Keyval, HandleType::keyval>> keyvals;

void unreference(Keyval* keyval) {
    if (--keyval->references == 0) {
        keyvals->remove(keyval->handle);
        delete keyval;
    }
}

int call_delete(int object, const AttributeSet::Value& value) {
    const Keyval& key = *value.keyval;
    if (!key.destroy) {
        return MPI_SUCCESS;
    }
    void* attribute = reinterpret_cast<void*>(value.value);
    return key.destroy_proxy
               ? key.destroy_proxy(key.destroy, object, key.handle, value.kind, attribute, key.extra_state)
               : key.destroy(object, key.handle, attribute, key.extra_state);
}

}  // namespace

int AttributeSet::set(int object, Keyval* keyval, intptr_t value, AttributeKind kind) {
    auto same = [&](const Value& v) { return v.keyval == keyval; };
    auto old = std::find_if(values_.begin(), values_.end(), same);
    if (old != values_.end()) {
        if (int error = call_delete(object, Value(*old))) {
            return error;
        }
        old = std::find_if(values_.begin(), values_.end(), same);  // the callback may have changed the set
        if (old != values_.end()) {
            old->value = value;
            old->kind = kind;
            return MPI_SUCCESS;
        }
    }
    ++keyval->references;
    values_.push_back({keyval, kind, value});
    return MPI_SUCCESS;
}

const AttributeSet::Value* AttributeSet::find(const Keyval* keyval) const {
    auto found = std::find_if(values_.begin(), values_.end(), [&](const Value& v) { return v.keyval == keyval; });
    return found == values_.end() ? nullptr : &*found;
}

int AttributeSet::erase(int object, const Keyval* keyval) {
    const Value* found = find(keyval);
    if (!found) {
        return MPI_SUCCESS;
    }
    Value value = *found;
    if (int error = call_delete(object, value)) {
        return error;
    }
    std::erase_if(values_, [&](const Value& v) { return v.keyval == value.keyval; });
    unreference(value.keyval);
    return MPI_SUCCESS;
}

int AttributeSet::clear(int object) {
    while (!values_.empty()) {
        if (int error = erase(object, values_.back().keyval)) {
            return error;
        }
    }
    return MPI_SUCCESS;
}

int AttributeSet::copy_to(int object, AttributeSet& other) const {
    std::vector<Value> before = values_;
    for (const Value& value : before) {
        Keyval& key = *value.keyval;
        if (!key.copy) {
            continue;
        }
        int flag = 0;
        void* copied = nullptr;
        void* attribute = reinterpret_cast<void*>(value.value);
        int error = key.copy_proxy ? key.copy_proxy(key.copy, object, key.handle, key.extra_state, value.kind,
                                                    attribute, &copied, &flag)
                                   : key.copy(object, key.handle, key.extra_state, attribute, &copied, &flag);
        if (error) {
            return error;
        }
        if (flag) {
            ++key.references;
            other.values_.push_back({&key, value.kind, reinterpret_cast<intptr_t>(copied)});
        }
    }
    return MPI_SUCCESS;
}

int keyval_create(HandleType object, MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* destroy,
                  void* extra_state, int* keyval) {
    std::unique_ptr<Keyval> made(
        new Keyval{.object = object, .copy = copy, .destroy = destroy, .extra_state = extra_state});
    *keyval = keyvals->keep(std::move(made))->handle;
    return MPI_SUCCESS;
}

Keyval* keyval_of(int handle, HandleType object) {
    Keyval* found = keyvals->find(handle);
    return found && found->object == object ? found : nullptr;
}

int keyval_free(int* handle, HandleType object) {
    Keyval* found = keyval_of(*handle, object);
    if (!found) {
        return MPI_ERR_KEYVAL;
    }
    // A key that values still use is found under a copy of its handle; freeing it again changes nothing.
    if (!found->freed) {
        found->freed = true;
        unreference(found);
    }
    *handle = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

bool keyval_is_kept(int handle) {
    const Keyval* found = keyvals->find(handle);
    return found && !found->freed;
}

void deliver(const AttributeSet::Value& value, AttributeKind wanted, void* out) {
    switch (wanted) {
        case AttributeKind::pointer:
            // C sees an integer set by Fortran through a pointer to it, and its own values as they are.
            *static_cast<void**>(out) = value.kind == AttributeKind::pointer
                                            ? reinterpret_cast<void*>(value.value)
                                            : const_cast<intptr_t*>(&value.value);
            break;
        case AttributeKind::aint:
        case AttributeKind::integer:
            // The Fortran layer takes both as address-sized integers and narrows them itself.
            *static_cast<intptr_t*>(out) = value.kind == AttributeKind::integer ? int(value.value) : value.value;
            break;
    }
}

}  // namespace viaduct::mpi
