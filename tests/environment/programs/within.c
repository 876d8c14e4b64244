/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * environment_within WORD... -- PROGRAM...: surroundings that a process makes for itself before it becomes PROGRAM.
 *
 *   limit=NAME:N        both limits of RLIMIT_NAME, N in the kernel's unit or "unlimited"; soft=NAME:N only the soft one
 *   deny=CALL,CALL:EPERM  these system calls fail with EPERM or ENOSYS
 *   close=N             this descriptor is closed
 *   ignore=SIGNAL, default=SIGNAL, block=all
 *   nice=N, policy=idle, cpu=N
 *   user=N              user and group
 *   cgroup=FOLDER       joins it
 *   umask=OCTAL, env=NAME=VALUE
 *   orphan              a child becomes PROGRAM, its parent ends at once; daemon: as by daemon(3); doublefork: twice
 *   noprivs             PR_SET_NO_NEW_PRIVS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct name {
    const char* text;
    int number;
};

static const struct name kLimits[] = {
    {"NOFILE", RLIMIT_NOFILE},   {"AS", RLIMIT_AS},         {"DATA", RLIMIT_DATA},
    {"STACK", RLIMIT_STACK},     {"FSIZE", RLIMIT_FSIZE},   {"NPROC", RLIMIT_NPROC},
    {"CPU", RLIMIT_CPU},         {"MEMLOCK", RLIMIT_MEMLOCK}, {"CORE", RLIMIT_CORE},
    {"SIGPENDING", RLIMIT_SIGPENDING}, {"MSGQUEUE", RLIMIT_MSGQUEUE}, {"LOCKS", RLIMIT_LOCKS},
    {"RTPRIO", RLIMIT_RTPRIO},   {"NICE", RLIMIT_NICE},     {NULL, 0}};

static const struct name kCalls[] = {{"process_vm_readv", SYS_process_vm_readv},
                                     {"process_vm_writev", SYS_process_vm_writev},
                                     {"membarrier", SYS_membarrier},
                                     {"pidfd_open", SYS_pidfd_open},
                                     {"memfd_create", SYS_memfd_create},
                                     {"rseq", SYS_rseq},
                                     {"close_range", SYS_close_range},
                                     {"clone3", SYS_clone3},
                                     {"getrandom", SYS_getrandom},
                                     {"eventfd2", SYS_eventfd2},
                                     {"sched_setaffinity", SYS_sched_setaffinity},
                                     {"sched_yield", SYS_sched_yield},
                                     {"fallocate", SYS_fallocate},
                                     {"fstatfs", SYS_fstatfs},
                                     {"mincore", SYS_mincore},
                                     {"mremap", SYS_mremap},
                                     {"getsockopt", SYS_getsockopt},
                                     {"epoll_create1", SYS_epoll_create1},
                                     {"prlimit64", SYS_prlimit64},
                                     {"fcntl", SYS_fcntl},
                                     {"signalfd4", SYS_signalfd4},
                                     {NULL, 0}};

static const struct name kSignals[] = {{"PIPE", SIGPIPE}, {"CHLD", SIGCHLD}, {"TERM", SIGTERM}, {"HUP", SIGHUP}, {"XFSZ", SIGXFSZ},
                                       {"SEGV", SIGSEGV}, {"BUS", SIGBUS},   {"USR1", SIGUSR1}, {NULL, 0}};

static _Noreturn void stop(const char* what) {
    fprintf(stderr, "environment_within: %s: %s\n", what, strerror(errno));
    _exit(126);
}

static int number_of(const struct name* names, const char* text, size_t length) {
    for (; names->text != NULL; ++names)
        if (strlen(names->text) == length && memcmp(names->text, text, length) == 0) return names->number;
    errno = EINVAL;
    stop(text);
}

static void set_limit(const char* text, int hard) {
    const size_t length = strcspn(text, ":");
    const int which = number_of(kLimits, text, length);
    const char* number = text + length + 1;
    const rlim_t value = strcmp(number, "unlimited") == 0 ? RLIM_INFINITY : strtoull(number, NULL, 0);
    struct rlimit limit;
    if (getrlimit(which, &limit) != 0) stop(text);
    limit.rlim_cur = value;
    if (hard) limit.rlim_max = value;
    if (setrlimit(which, &limit) != 0) stop(text);
}

static void deny(const char* text) {
    enum { kMost = 32 };
    struct sock_filter filter[2 * kMost + 8];
    unsigned short count = 0;
    const char* end = strchr(text, ':');
    const unsigned error = end != NULL && strcmp(end, ":ENOSYS") == 0 ? ENOSYS : EPERM;
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    while (*text != '\0' && *text != ':' && count < 2 * kMost) {
        const size_t length = strcspn(text, ",:");
        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number_of(kCalls, text, length), 0, 1);
        filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
        text += length + (text[length] == ',');
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {count, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) stop("seccomp");
}

static void join(const char* folder) {
    char path[4096], own[32];
    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    const int length = snprintf(own, sizeof own, "%d", (int)getpid());
    if (file < 0 || write(file, own, (size_t)length) != length) stop(path);
    close(file);
}

static void leave_parent(int again) {
    const pid_t child = fork();
    if (child < 0) stop("fork");
    if (child > 0) _exit(0);
    if (again) {
        setsid();
        leave_parent(0);
    }
}

static void apply(char* word) {
    const size_t length = strcspn(word, "=");
    const char* value = word[length] == '=' ? word + length + 1 : "";
#define WORD(text) (length == sizeof(text) - 1 && memcmp(word, text, length) == 0)
    if (WORD("limit")) {
        set_limit(value, 1);
    } else if (WORD("soft")) {
        set_limit(value, 0);
    } else if (WORD("deny")) {
        deny(value);
    } else if (WORD("close")) {
        close(atoi(value));
    } else if (WORD("ignore")) {
        signal(number_of(kSignals, value, strlen(value)), SIG_IGN);
    } else if (WORD("default")) {
        signal(number_of(kSignals, value, strlen(value)), SIG_DFL);
    } else if (WORD("block")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    } else if (WORD("nice")) {
        if (setpriority(PRIO_PROCESS, 0, atoi(value)) != 0) stop(word);
    } else if (WORD("policy")) {
        const struct sched_param none = {0};
        if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) stop(word);
    } else if (WORD("cpu")) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)atoi(value), &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0) stop(word);
    } else if (WORD("user")) {
        const unsigned id = (unsigned)atoi(value);
        if (setgroups(0, NULL) != 0 || setgid(id) != 0 || setuid(id) != 0) stop(word);
    } else if (WORD("cgroup")) {
        join(value);
    } else if (WORD("umask")) {
        umask((mode_t)strtoul(value, NULL, 8));
    } else if (WORD("env")) {
        putenv(word + sizeof "env");
    } else if (WORD("orphan")) {
        leave_parent(0);
    } else if (WORD("doublefork")) {
        leave_parent(1);
    } else if (WORD("daemon")) {
        if (daemon(1, 0) != 0) stop(word);
    } else if (WORD("noprivs")) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) stop(word);
    } else {
        errno = EINVAL;
        stop(word);
    }
}

int main(int count, char** words) {
    int i = 1;
    for (; i < count && strcmp(words[i], "--") != 0; ++i) apply(words[i]);
    if (i + 1 >= count) {
        fprintf(stderr, "usage: environment_within WORD... -- PROGRAM...\n");
        return 2;
    }
    execvp(words[i + 1], words + i + 1);
    stop(words[i + 1]);
}
