// SPDX-License-Identifier: BSD-2-Clause
// Queues that a program does not look at. Completions are taken off the device by polls and waits; a
// program that posts and never asks would not be told that a send has failed, nor its peer that there was no
// receive, and a completion queue that is not polled would overflow unnoticed. So the progress thread looks where
// the program does not: at sends that have been out for a while, and, less often, at the groups of connected
// VIs. A program that polls is left alone: its locks are not taken, and it pays two stores and a load.
#pragma once

#include "providers/verbs/endpoint.hpp"
#include "providers/verbs/nic.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::verbs {

// A send that has been out for one to two times as long is looked at, and a group that was not polled.
inline constexpr int64_t kSendTimeout = 100'000'000;
inline constexpr int64_t kGroupTimeout = 1'000'000'000;
// So many looks in a row find nothing out before the sends are watched no more. Beginning again costs the
// sender a system call, and a program that sends now and then is mostly found between two sends.
inline constexpr uint32_t kEmptyLooks = 10;

// [S] What the queue has given to the device, and what it has heard of, has changed.
void note_sends(Endpoint&);
// Progress thread. When to look again, or kNever.
Deadline watch_sends(NicContext&, int64_t now);
Deadline watch_groups(NicContext&, int64_t now);

}  // namespace viaduct::verbs
