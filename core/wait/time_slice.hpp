// SPDX-License-Identifier: BSD-2-Clause
// Time slice: the shortest one that the kernel grants to this thread and those it makes. A thread that has a short one
// may run as soon as it is woken, instead of after the slice of a computing thread. Kernels before 6.12 have no
// slices of one thread: nothing is changed there. Delays no message.
#pragma once

namespace viaduct {

void take_short_slice();
// As it was, unless the program has set another one since. A forked child has it back from its beginning.
void give_slice_back();

}  // namespace viaduct
