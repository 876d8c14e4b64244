// SPDX-License-Identifier: BSD-2-Clause
// See word_wait.hpp.
#include "mpi-adi/engine/word_wait.hpp"

namespace viaduct::mpi {
namespace {

WordWait* newest_word_wait = nullptr;

}  // namespace

WordWait::WordWait() : after_(newest_word_wait) {
    if (after_ != nullptr) after_->before_ = this;
    newest_word_wait = this;
}

WordWait::~WordWait() {
    (before_ != nullptr ? before_->after_ : newest_word_wait) = after_;
    if (after_ != nullptr) after_->before_ = before_;
}

bool announce_word_waits() {
    bool all_wait = true;
    for (WordWait* wait = newest_word_wait; wait != nullptr; wait = wait->after_)
        if (!wait->announce()) all_wait = false;
    return all_wait;
}

}  // namespace viaduct::mpi
