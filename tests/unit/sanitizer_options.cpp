// SPDX-License-Identifier: BSD-2-Clause
// What the sanitizers have to know about this program, however it is started (cmake/ViaductTest.cmake tells the other
// programs by their environment; the discovery of GoogleTest tests passes on one variable only). Of the thread
// sanitizer: the short-lived child that starts the agent shares the memory of its parent, and its end looks like a leak
// of threads; children that start threads are tested.
#if defined(__SANITIZE_THREAD__)
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
    return "halt_on_error=1:second_deadlock_stack=1:report_thread_leaks=0:die_after_fork=0";
}
#endif
#if defined(__SANITIZE_ADDRESS__)
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
    return "detect_stack_use_after_return=1:strict_string_checks=1";
}
extern "C" __attribute__((visibility("default"))) const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1"; }
#endif
