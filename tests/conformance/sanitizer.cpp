// SPDX-License-Identifier: BSD-2-Clause
// What the thread sanitizer has to know about tests that have both ends of a connection in one process. The ends are
// ordered by words of a segment that each of them maps for itself: two addresses, so the sanitizer sees no order
// between one end's copying and what the other end's test does with its buffer once it was handed back.
#if defined(__SANITIZE_THREAD__)
extern "C" {
const char* __tsan_default_suppressions();
const char* __tsan_default_options();

const char* __tsan_default_suppressions() {
    return "race:conformance::*::paint\n"
           "race:End_NoByteChangesAfterDisconnectReturned_Test\n";
}

// Opening a NIC in a forked child, which starts threads, is one of the things tested; so is what a signal handler ends.
const char* __tsan_default_options() { return "die_after_fork=0 report_signal_unsafe=0"; }
}
#endif
