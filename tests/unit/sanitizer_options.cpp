// SPDX-License-Identifier: BSD-2-Clause
// What the thread sanitizer has to know about this program, however it is started: the short-lived child that starts the
// agent shares the memory of its parent, and its end looks like a leak of threads; children that start threads are tested.
#if defined(__SANITIZE_THREAD__)
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0:die_after_fork=0"; }
#endif
