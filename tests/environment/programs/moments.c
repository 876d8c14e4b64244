/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "moments.h"

#include "../../eventually.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char** environ;

struct ending {
    pid_t child;
    int code;
};

static int has_ended(void* argument) {
    struct ending* const ending = argument;
    return waitpid(ending->child, &ending->code, WNOHANG) != 0;
}

static void wait_for(pid_t child, const char* what) {
    struct ending ending = {child, 0};
    if (!eventually_of(what, has_ended, &ending, &child, 1, time_limit() / 1e3)) {
        kill(child, SIGKILL);
        finish(5, "wrong: %s did not end", what);
    }
    const int code = ending.code;
    if (!WIFEXITED(code) || WEXITSTATUS(code) != 0) finish(5, "wrong: %s ended with status %x", what, (unsigned)code);
}

static void child_exits(struct end* end) {
    (void)end;
    const pid_t child = fork();
    if (child == 0) exit(0); /* with all that was registered by atexit */
    wait_for(child, "a child that exits");
}

static void child_leaves(struct end* end) {
    (void)end;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    wait_for(child, "a child that _exits");
}

/* _Fork(3) runs no handlers of pthread_atfork(3). */
static void plain_fork(struct end* end) {
    (void)end;
    const pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0) _exit(0);
    wait_for(child, "a child of the bare system call");
}

/* A child has nothing of its parent's connections and opens a NIC of its own. */
static void child_opens(struct end* end) {
    (void)end;
    const pid_t child = fork();
    if (child == 0) {
        VIP_NIC_HANDLE nic;
        status_call("VipOpenNic in a child(");
        const VIP_RETURN code = VipOpenNic("/dev/via_eth0", &nic);
        if (code != VIP_SUCCESS) _exit(1);
        status_call("VipCloseNic in a child(");
        _exit(VipCloseNic(nic) == VIP_SUCCESS ? 0 : 2);
    }
    wait_for(child, "a child that opens a NIC");
    status_call("");
}

static void grandchild_opens(struct end* end) {
    const pid_t child = fork();
    if (child == 0) {
        child_opens(end);
        _exit(0);
    }
    wait_for(child, "a child whose child opens a NIC");
}

static void vforks(struct end* end) {
    (void)end;
    for (int i = 0; i < 20; ++i) {
        const pid_t child = vfork();
        if (child == 0) {
            execl("/bin/true", "true", (char*)NULL);
            _exit(127);
        }
        wait_for(child, "a vforked program");
    }
}

static void spawns(struct end* end) {
    (void)end;
    char* words[] = {"true", NULL};
    for (int i = 0; i < 20; ++i) {
        pid_t child;
        if (posix_spawn(&child, "/bin/true", NULL, NULL, words, environ) != 0) finish(4, "posix_spawn");
        wait_for(child, "a spawned program");
    }
}

static void runs_shell(struct end* end) {
    (void)end;
    if (system("exit 0") != 0) finish(5, "wrong: system(3)");
}

/* Own files take the numbers of what was closed; nothing but what the program writes may come into them. */
enum { kOwnFiles = 24 };
static int own_files[kOwnFiles];
static int has_own_files;
static void closes_from(struct end* end) {
    (void)end;
    syscall(SYS_close_range, 3U, ~0U, 0U);
    for (int i = 0; i < kOwnFiles; ++i) own_files[i] = (int)syscall(SYS_memfd_create, "own", 0U);
    has_own_files = 1;
}

static void closes_standard(struct end* end) {
    (void)end;
    for (int i = 0; i < 3; ++i) close(i);
}

/* daemon(3): the parent ends by _exit, the child has other standard descriptors and no threads of the parent. */
static void daemonises(struct end* end) {
    (void)end;
    if (daemon(1, 0) != 0) finish(4, "daemon");
    status->pid = (int32_t)getpid();
    /* What was the parent's is dead with it: a correct program opens again. */
    end_open(end);
    end_close(end);
    finish(0, "works");
}

static void becomes_user(struct end* end) {
    (void)end;
    if (setgid(4242) != 0 || setuid(4242) != 0) finish(4, "setuid");
}

static void becomes_program(struct end* end) {
    (void)end;
    execl("/bin/sleep", "sleep", "30", (char*)NULL); /* sleeps: a program that does nothing */
    finish(4, "exec");
}

static void leaves_at_once(struct end* end) {
    (void)end;
    status_result("works");
    _exit(0);
}

/* The thread that main was ends; another one goes on. */
static void* rest(void* unused) {
    (void)unused;
    usleep(200000); /* sleeps: the main thread ends first */
    status_result("works");
    return NULL;
}
static void main_thread_ends(struct end* end) {
    (void)end;
    pthread_t other;
    if (pthread_create(&other, NULL, rest, NULL) != 0) finish(4, "pthread_create");
    pthread_exit(NULL);
}

static void blocks_signals(struct end* end) {
    (void)end;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

static void* signaller(void* main_thread) {
    for (;;) {
        pthread_kill(*(pthread_t*)main_thread, SIGUSR1);
        usleep(200); /* sleeps: the pace of the signals */
    }
    return NULL;
}
static void nothing(int signal) { (void)signal; }
static void is_interrupted(struct end* end) {
    (void)end;
    static pthread_t self, other;
    struct sigaction action = {0};
    action.sa_handler = nothing; /* no SA_RESTART */
    sigaction(SIGUSR1, &action, NULL);
    self = pthread_self();
    if (pthread_create(&other, NULL, signaller, &self) != 0) finish(4, "pthread_create");
}

static void limits_files(struct end* end) {
    (void)end;
    struct rlimit small = {3, 3};
    setrlimit(RLIMIT_NOFILE, &small);
}

static void limits_memory(struct end* end) {
    (void)end;
    struct rlimit small = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_AS, &small);
}

/* The agent is killed, or stands still, while all are connected: ENVIRONMENT_AGENT names the file of its number. */
static void to_agent(int signal) {
    const char* path = getenv("ENVIRONMENT_AGENT");
    FILE* file = path != NULL ? fopen(path, "r") : NULL;
    int pid = 0;
    if (file == NULL || fscanf(file, "%d", &pid) != 1 || pid <= 1 || kill(pid, signal) != 0) finish(4, "no agent to signal");
    fclose(file);
}
static void kills_agent(struct end* end) {
    (void)end;
    to_agent(SIGKILL);
}
static void stops_agent(struct end* end) {
    (void)end;
    to_agent(SIGSTOP);
}

static const struct {
    const char* name;
    void (*pass)(struct end*);
} kMoments[] = {{"child-exits", child_exits},
                {"child-_exits", child_leaves},
                {"bare-fork", plain_fork},
                {"child-opens", child_opens},
                {"grandchild-opens", grandchild_opens},
                {"vfork", vforks},
                {"spawn", spawns},
                {"system", runs_shell},
                {"closefrom", closes_from},
                {"close-standard", closes_standard},
                {"daemon", daemonises},
                {"setuid", becomes_user},
                {"exec", becomes_program},
                {"_exit", leaves_at_once},
                {"pthread_exit", main_thread_ends},
                {"block-signals", blocks_signals},
                {"interrupted", is_interrupted},
                {"no-files-left", limits_files},
                {"no-memory-left", limits_memory},
                {"kill-agent", kills_agent},
                {"stop-agent", stops_agent}};

void moment_pass(const char* name, struct end* end) {
    if (*name == '\0') return;
    for (size_t i = 0; i < sizeof kMoments / sizeof *kMoments; ++i) {
        if (strcmp(kMoments[i].name, name) != 0) continue;
        kMoments[i].pass(end);
        return;
    }
    finish(2, "no moment %s", name);
}

void moment_judge(void) {
    for (int i = 0; has_own_files && i < kOwnFiles; ++i) {
        const off_t size = lseek(own_files[i], 0, SEEK_END);
        if (size != 0)
            finish(5, "wrong: the program's own descriptor %d was %s", own_files[i], size < 0 ? "closed" : "written to");
    }
}
