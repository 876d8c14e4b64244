// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/thread.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "core/log/log.hpp"
#include "core/shm/own_mapping.hpp"

namespace viaduct::vipl {
namespace {

// ThreadSanitizer keeps nearly a megabyte of thread-local variables, and prints a warning for each stack that is less.
#ifdef __SANITIZE_THREAD__
constexpr size_t kLeastStack = size_t{2} << 20;
#else
constexpr size_t kLeastStack = 0;
#endif
constexpr size_t kLargerStack = size_t{1} << 20, kLargestStack = size_t{256} << 20;

struct Thread {
    char name[16] = {};
    void (*run)(void*) = nullptr;
    void* argument = nullptr;
    // The C library's stacks may lie, or have lain, in memory that the program has registered (own_mapping.hpp). A page
    // without access is below.
    void* stack = nullptr;
    size_t stack_bytes = 0;
    std::atomic<pid_t> left{0};  // its number, once it runs no code of ours
    Thread* next = nullptr;

    ~Thread() {
        if (stack != nullptr) ::munmap(stack, stack_bytes);
    }
};

// All whose stacks are there.
Thread* threads = nullptr;
std::mutex threads_mutex;

// Also where a handler of the program ends its thread.
struct Leaving {
    Thread& self;
    ~Leaving() { self.left.store(static_cast<pid_t>(::syscall(SYS_gettid)), std::memory_order_release); }
};

void* thread_main(void* raw) {
    auto* self = static_cast<Thread*>(raw);
    const Leaving leaving{*self};
    ::pthread_setname_np(::pthread_self(), self->name);
    self->run(self->argument);
    return nullptr;
}

// A thread has its number in the system until it touches no memory any more.
bool has_ended(const Thread& thread) {
    const pid_t number = thread.left.load(std::memory_order_acquire);
    if (number == 0) return false;
    const int saved = errno;
    const bool ended = ::syscall(SYS_tgkill, ::getpid(), number, 0) != 0 && errno == ESRCH;
    errno = saved;
    return ended;
}

void free_stacks() {
    const std::lock_guard lock(threads_mutex);
    for (Thread** at = &threads; *at != nullptr;) {
        Thread* thread = *at;
        if (!has_ended(*thread)) {
            at = &thread->next;
            continue;
        }
        *at = thread->next;
        delete thread;
    }
}

// Sets stack and attributes. `bytes`: kDefaultStack, or how many.
bool give_stack(Thread& thread, size_t bytes, pthread_attr_t* attributes) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    if (bytes == kDefaultStack && ::pthread_attr_getstacksize(attributes, &bytes) != 0) return false;
    bytes = (std::max(bytes, kLeastStack) + page - 1) / page * page + page;
    void* stack = map_own(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK);
    if (stack == nullptr) return false;
    thread.stack = stack;
    thread.stack_bytes = bytes;
    ::mprotect(stack, page, PROT_NONE);
    return ::pthread_attr_setstack(attributes, static_cast<std::byte*>(stack) + page, bytes - page) == 0;
}

int start_with(Thread& thread, size_t stack_bytes) {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = ENOMEM;
    if (give_stack(thread, stack_bytes, &attributes)) {
        sigset_t all, before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the new thread inherits the mask
        pthread_t id;
        failed = ::pthread_create(&id, &attributes, thread_main, &thread);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    ::pthread_attr_destroy(&attributes);
    return failed;
}

// The thread-local variables of the program and its libraries lie on the stack, too: EINVAL says that they need more.
int start(Thread& thread, size_t stack_bytes) {
    int failed = start_with(thread, stack_bytes);
    for (size_t larger = kLargerStack; failed == EINVAL && larger <= kLargestStack; larger *= 4) {
        ::munmap(thread.stack, thread.stack_bytes);
        thread.stack = nullptr;
        failed = start_with(thread, larger);
    }
    return failed;
}

}  // namespace

Status start_thread(const char* name, size_t stack_bytes, void (*run)(void*), void* argument) {
    free_stacks();
    std::unique_ptr<Thread> thread(new (std::nothrow) Thread);
    if (!thread) {
        errno = ENOMEM;
        return Status::out_of_resources;
    }
    std::strncpy(thread->name, name, sizeof(thread->name) - 1);
    thread->run = run;
    thread->argument = argument;
    if (const int failed = start(*thread, stack_bytes); failed != 0) {
        errno = failed;
        VIADUCT_LOG(warn, "thread", "the system gives no thread for %s: %s", name, std::strerror(failed));
        return Status::out_of_resources;
    }
    const std::lock_guard lock(threads_mutex);
    thread->next = threads;
    threads = thread.release();
    return Status::ok;
}

void clear_threads() {
    new (&threads_mutex) std::mutex;
    threads = nullptr;  // one of their stacks is the one that the child runs on, if such a thread has forked
}

}  // namespace viaduct::vipl
