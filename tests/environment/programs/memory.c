/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "memory.h"

#include <sys/syscall.h>

#include "end.h"

static void* mapped(size_t bytes, int flags, int file) {
    void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    if (file >= 0) close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static void* of_file(size_t bytes, int flags, int file) {
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) return NULL;
    return mapped(bytes, flags, file);
}

static int unnamed_file(void) {
    const char* folder = getenv("ROW");
    return open(folder != NULL ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static void* advised(size_t bytes, int advice) {
    void* memory = mapped(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    return memory != NULL && madvise(memory, bytes, advice) == 0 ? memory : NULL;
}

static void* try_kind(const char* kind, size_t bytes) {
    const int own = MAP_PRIVATE | MAP_ANONYMOUS;
#define IS(text) (strcmp(kind, text) == 0)
    if (IS("anonymous")) return mapped(bytes, own, -1);
    if (IS("shared")) return mapped(bytes, MAP_SHARED | MAP_ANONYMOUS, -1);
    if (IS("populated")) return mapped(bytes, own | MAP_POPULATE, -1);
    if (IS("noreserve")) return mapped(bytes, own | MAP_NORESERVE, -1);
    if (IS("growsdown")) return mapped(bytes, own | MAP_GROWSDOWN | MAP_STACK, -1);
    if (IS("huge")) return mapped((bytes + (2U << 20) - 1) & ~((size_t)(2U << 20) - 1), own | MAP_HUGETLB, -1);
    if (IS("device")) return mapped(bytes, MAP_PRIVATE, open("/dev/zero", O_RDWR | O_CLOEXEC));
    if (IS("memfd")) return of_file(bytes, MAP_SHARED, memfd_create("environment", MFD_CLOEXEC));
    if (IS("file-shared")) return of_file(bytes, MAP_SHARED, unnamed_file());
    if (IS("file-private")) return of_file(bytes, MAP_PRIVATE, unnamed_file());
    if (IS("secret")) return of_file(bytes, MAP_SHARED, (int)syscall(SYS_memfd_secret, 0U));
    if (IS("dontfork")) return advised(bytes, MADV_DONTFORK);
    if (IS("wipeonfork")) return advised(bytes, MADV_WIPEONFORK);
    if (IS("mergeable")) return advised(bytes, MADV_MERGEABLE);
    if (IS("hugepage")) return advised(bytes, MADV_HUGEPAGE);
    if (IS("locked")) {
        void* memory = mapped(bytes, own, -1);
        return memory != NULL && mlock(memory, bytes) == 0 ? memory : NULL;
    }
#undef IS
    finish(2, "no kind of memory %s", kind);
}

void* memory_of_kind(size_t bytes) {
    const char* kind = getenv("ENVIRONMENT_MEMORY");
    void* memory = NULL;
    if (kind == NULL || *kind == '\0') {
        if (posix_memalign(&memory, 4096, bytes) != 0) finish(4, "out of memory");
        memset(memory, 0, bytes);
        return memory;
    }
    memory = try_kind(kind, bytes);
    if (memory == NULL) finish(77, "skipped: this system gives no memory of the kind %s", kind);
    memset(memory, 0, bytes);
    return memory;
}
