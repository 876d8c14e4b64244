// SPDX-License-Identifier: BSD-2-Clause
// What the library does inside fork() in the child allocates and frees nothing: another thread of the parent
// may hold a lock of the allocator at that moment, and of an allocator other than the C library's no thread gives
// it back in the child. Child handlers run in the order of their registration: one before and one after the
// library's say when it is its turn.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vipl.h>

#include <cstddef>
#include <cstdio>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void __libc_free(void* memory);
}

namespace {

constexpr int kAllocated = 3;
bool in_the_handlers = false;  // of the library, in the child

void look() {
    if (in_the_handlers) ::_exit(kAllocated);
}

void begins() { in_the_handlers = true; }
void ends() { in_the_handlers = false; }

int exit_code_of_a_child() {
    const pid_t child = ::fork();
    if (child == 0) {
        void* works_again = __libc_malloc(16);
        ::_exit(works_again != nullptr ? 0 : 1);
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

extern "C" {
void* malloc(std::size_t size) {
    look();
    return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
    look();
    return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
    look();
    return __libc_realloc(old, size);
}
void free(void* memory) {
    look();
    __libc_free(memory);
}
}

int main() {
    char device[] = "nic0";
    VIP_NIC_HANDLE nic = nullptr;
    if (::pthread_atfork(nullptr, nullptr, begins) != 0 || VipOpenNic(device, &nic) != VIP_SUCCESS ||
        ::pthread_atfork(nullptr, nullptr, ends) != 0) {
        std::puts("FAILED: set-up");
        return 1;
    }
    static char memory[4096];
    VIP_MEM_ATTRIBUTES attributes{};
    VIP_MEM_HANDLE region = 0;
    const VIP_RETURN registered = VipRegisterMem(nic, memory, sizeof memory, &attributes, &region);
    const int code = exit_code_of_a_child();
    if (code == kAllocated) std::puts("FAILED: the library allocates or frees while the child is made");
    const VIP_RETURN closed = VipCloseNic(nic);
    std::printf("child %d, register %d, close %d\n", code, registered, closed);
    return code == 0 ? 0 : 1;
}
