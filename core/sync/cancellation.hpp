// SPDX-License-Identifier: BSD-2-Clause
// Holds pthread_cancel off for a scope. Programs cancel their threads, and neither a lock that stays taken
// nor half a protocol step can be mended afterwards: calls that may meet a cancellation point (read, write,
// poll, sleeping, waiting on a condition) end first, and the thread ends at the program's own next one.
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
