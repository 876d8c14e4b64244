// SPDX-License-Identifier: BSD-2-Clause
// A child that is forked while another thread opens the first NIC of the process opens one, too: neither what
// that thread has locked nor what it has half initialised stays so in the child. The thread is held up where
// it makes the library (as the fork handlers are registered) and where it loads the provider; the fork comes
// in the middle.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "../../eventually.hpp"

namespace {

constexpr unsigned kTimeout = 20;  // s, of the child
constexpr std::chrono::milliseconds kHeldUp{300};

enum Place : int { nowhere, registering, loading };
std::atomic<int> wanted{nowhere};
std::atomic<bool> reached{false};

// Of the real functions. Once only: the child passes.
void hold_up_at(Place place) {
    int expected = place;
    if (!wanted.compare_exchange_strong(expected, nowhere)) return;
    reached = true;
    std::this_thread::sleep_for(kHeldUp);  // sleeps: the loading thread is held up; fork() may wait for its end
}

VIP_RETURN open_and_close() {
    char device[] = "nic0";
    VIP_NIC_HANDLE nic = nullptr;
    const VIP_RETURN opened = VipOpenNic(device, &nic);
    return opened == VIP_SUCCESS ? VipCloseNic(nic) : opened;
}

// In a process of its own, whose first NIC it is.
int fork_at(Place place) {
    wanted = place;
    std::thread opener([] {
        if (const VIP_RETURN code = open_and_close(); code != VIP_SUCCESS) std::printf("parent: %d\n", code);
    });
    const auto has_come = [] { return reached.load(); };
    if (const auto waited = viaduct::tests::eventually("the library comes by there", has_come); !waited) {
        std::printf("FAILED: %s\n", waited.message.c_str());
        std::fflush(stdout);
        ::_exit(1);
    }
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(kTimeout);
        ::_exit(open_and_close() == VIP_SUCCESS ? 0 : 1);
    }
    int status = 0;
    const bool ended = ::waitpid(child, &status, 0) == child;
    opener.join();
    if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        std::printf("FAILED: the child %s\n", WIFSIGNALED(status) ? "hung" : "got no NIC");
        return 1;
    }
    return 0;
}

int run_alone(Place place) {
    std::fflush(stdout);
    const pid_t alone = ::fork();
    if (alone == 0) {
        const int result = fork_at(place);
        std::fflush(stdout);
        ::_exit(result);
    }
    int status = 0;
    ::waitpid(alone, &status, 0);
    const bool fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    std::printf("%s while %s\n", fine ? "fine" : "FAILED",
                place == loading ? "a provider is loaded" : "the library is made");
    return fine ? 0 : 1;
}

}  // namespace

// The library finds these before those of the C library.
extern "C" {
[[gnu::visibility("default")]] void* dlopen(const char* file, int mode) {
    static const auto real = reinterpret_cast<void* (*)(const char*, int)>(::dlsym(RTLD_NEXT, "dlopen"));
    if (file != nullptr && std::strstr(file, "paramnet") != nullptr) hold_up_at(loading);
    return real(file, mode);
}

// What pthread_atfork calls.
[[gnu::visibility("default")]]
int __register_atfork(void (*before)(), void (*parent)(), void (*child)(), void* object) {
    using Register = int (*)(void (*)(), void (*)(), void (*)(), void*);
    static const auto real = reinterpret_cast<Register>(::dlsym(RTLD_NEXT, "__register_atfork"));
    hold_up_at(registering);
    return real(before, parent, child, object);
}
}

int main() { return run_alone(registering) | run_alone(loading); }
