// SPDX-License-Identifier: BSD-2-Clause
// A doubly linked list whose links lie in its elements: nothing is allocated, and an element leaves in
// constant time. One element may be on several lists, by different links.
#pragma once

namespace viaduct::mpi {

template <class T>
struct Link {
    T* next = nullptr;
    T* previous = nullptr;
};

template <class T, Link<T> T::*link>
class List {
public:
    bool empty() const { return first_ == nullptr; }
    T* first() const { return first_; }
    static T* next(const T* element) { return (element->*link).next; }

    void push_back(T* element) {
        (element->*link).next = nullptr;
        (element->*link).previous = last_;
        if (last_ != nullptr)
            (last_->*link).next = element;
        else
            first_ = element;
        last_ = element;
    }

    void push_front(T* element) {
        (element->*link).previous = nullptr;
        (element->*link).next = first_;
        if (first_ != nullptr)
            (first_->*link).previous = element;
        else
            last_ = element;
        first_ = element;
    }

    // At the end when there is no `behind`.
    void insert_before(T* element, T* behind) {
        if (behind == nullptr) return push_back(element);
        T* const before = (behind->*link).previous;
        if (before == nullptr) return push_front(element);
        (element->*link).previous = before;
        (element->*link).next = behind;
        (before->*link).next = element;
        (behind->*link).previous = element;
    }

    void erase(T* element) {
        T* const after = (element->*link).next;
        T* const before = (element->*link).previous;
        if (before != nullptr)
            (before->*link).next = after;
        else
            first_ = after;
        if (after != nullptr)
            (after->*link).previous = before;
        else
            last_ = before;
    }

private:
    T* first_ = nullptr;
    T* last_ = nullptr;
};

}  // namespace viaduct::mpi
