// SPDX-License-Identifier: BSD-2-Clause
// Holds pthread_cancel off for a scope. A program may cancel a thread that is inside a call of this library. Ended
// there, the thread would leave a lock taken or a protocol step half done. So each call that may reach a cancellation
// point (read, write, poll, sleeping, waiting on a condition) has this scope, and a cancelled thread ends at the
// program's next cancellation point. Any thread; costs atomic instructions.
#pragma once

#include <pthread.h>

namespace viaduct {

class CancellationHeldOff {
public:
    CancellationHeldOff() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~CancellationHeldOff() { ::pthread_setcancelstate(before_, nullptr); }
    CancellationHeldOff(const CancellationHeldOff&) = delete;
    CancellationHeldOff& operator=(const CancellationHeldOff&) = delete;

private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace viaduct
