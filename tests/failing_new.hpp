// SPDX-License-Identifier: BSD-2-Clause
// The operators new of a program: on request, one call of them fails. Calls of all threads count, and calls of the
// shared libraries that the program has loaded.
#pragma once

// So many allocations succeed, the next one fails, and all later ones succeed.
void fail_allocation_after(long allocations);
// Whether it has failed; none fails any more.
bool allocation_has_failed();
