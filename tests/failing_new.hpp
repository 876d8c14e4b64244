// SPDX-License-Identifier: BSD-2-Clause
// Operators new of a program, one of whose calls fails on request. Calls of all threads count, and those of the shared
// libraries that the program has loaded.
#pragma once

// From now on so many allocations succeed, and the one behind them fails. All behind that one succeed.
void fail_allocation_after(long allocations);
// Whether it has failed; none fails any more.
bool allocation_has_failed();
