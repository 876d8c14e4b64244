// SPDX-License-Identifier: BSD-2-Clause
// Waits for words that other processes write into shared memory: no module reports them. A thread that is about to
// sleep at the modules, or beside one that does, announces all of them first; then those that write the words send a
// message (robust::Control::wake), which ends the sleep as each message does. A wake-up that does not come costs the
// time for which a thread sleeps at most.
#pragma once

namespace viaduct::mpi {

// One wait, from its first fruitless look to its end. With the engine's lock held.
class WordWait {
public:
    WordWait();
    WordWait(const WordWait&) = delete;
    WordWait& operator=(const WordWait&) = delete;
    // Tells the writers that a message is wanted. False: what is waited for is there already.
    [[nodiscard]] virtual bool announce() = 0;

protected:
    ~WordWait();

private:
    friend bool announce_word_waits();
    WordWait* before_ = nullptr;
    WordWait* after_ = nullptr;
};

// False: a wait has ended meanwhile, and there is nothing to sleep for.
[[nodiscard]] bool announce_word_waits();

}  // namespace viaduct::mpi
