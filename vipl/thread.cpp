// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/thread.hpp"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "core/log/log.hpp"

namespace viaduct::vipl {
namespace {

struct Start {
    char name[16] = {};
    void (*run)(void*);
    void* argument;
};

void* thread_main(void* raw) {
    const std::unique_ptr<Start> start(static_cast<Start*>(raw));
    ::pthread_setname_np(::pthread_self(), start->name);
    start->run(start->argument);
    return nullptr;
}

}  // namespace

Status start_thread(const char* name, size_t stack_bytes, void (*run)(void*), void* argument) {
    std::unique_ptr<Start> start(new (std::nothrow) Start);
    if (!start) return Status::out_of_resources;
    std::strncpy(start->name, name, sizeof(start->name) - 1);
    start->run = run;
    start->argument = argument;

    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack_bytes != kDefaultStack) ::pthread_attr_setstacksize(&attributes, stack_bytes);
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the new thread inherits the mask
    pthread_t thread;
    const int failed = ::pthread_create(&thread, &attributes, thread_main, start.get());
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_attr_destroy(&attributes);
    if (failed != 0) {
        errno = failed;
        VIADUCT_LOG(warn, "thread", "the system gives no thread for %s: %s", name, std::strerror(failed));
        return Status::out_of_resources;
    }
    start.release();
    return Status::ok;
}

}  // namespace viaduct::vipl
