// SPDX-License-Identifier: BSD-2-Clause
// An object with static storage that has no destructor. exit() destroys static objects while threads still run: helper
// threads of the library, and threads of the program that wait inside a call. They must find everything in place until
// the process has ended.
#pragma once

#include <new>
#include <utility>

namespace viaduct {

template <class T>
class NeverDestroyed {
public:
    template <class... Arguments>
    explicit NeverDestroyed(Arguments&&... arguments) {
        ::new (&storage_) T(std::forward<Arguments>(arguments)...);
    }
    NeverDestroyed(const NeverDestroyed&) = delete;
    NeverDestroyed& operator=(const NeverDestroyed&) = delete;

    T& operator*() { return *std::launder(reinterpret_cast<T*>(&storage_)); }
    T* operator->() { return &**this; }
    const T& operator*() const { return *std::launder(reinterpret_cast<const T*>(&storage_)); }
    const T* operator->() const { return &**this; }

private:
    alignas(T) unsigned char storage_[sizeof(T)];
};

}  // namespace viaduct
