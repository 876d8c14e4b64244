// SPDX-License-Identifier: BSD-2-Clause
// A process that waits for ever ends by SIGALRM, before the test's time is over: the launcher then says which one it
// was.
#pragma once

#include <unistd.h>

namespace time_limit {

// `most` are the seconds of a process that runs alone. ctest ends a test after three times as many.
inline void begin(unsigned most) { ::alarm(most * 5 / 2); }

}  // namespace time_limit
