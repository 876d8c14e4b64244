/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * environment_actions serve|connect NAME ACTION [MOMENT]: one end of what a program does with VIA. The two ends meet at
 * the discriminator NAME. ACTION is one of the functions below; `pingpong:200:64` has two numbers. MOMENT is
 * something that this end does to itself as soon as it is connected (moments.c).
 */
#include <sys/resource.h>

#include "../../eventually.h"
#include "crowd.h"
#include "end.h"
#include "moments.h"

struct numbers {
    unsigned first, second;
};

static void echo(struct end* end, int serving, unsigned times, unsigned bytes, unsigned pause_us) {
    for (unsigned i = 0; i < times; ++i) {
        if (serving) {
            end_expect(end, bytes, i);
            end_post_receive(end);
            if (pause_us) usleep(pause_us); /* sleeps: the peer waits meanwhile */
            fill(end->memory + kSend, bytes, i + 1);
            end_send(end, bytes);
        } else {
            fill(end->memory + kSend, bytes, i);
            end_send(end, bytes);
            end_expect(end, bytes, i + 1);
            end_post_receive(end);
        }
    }
}

static void action_pingpong(struct end* end, int serving, struct numbers numbers) {
    echo(end, serving, numbers.first ? numbers.first : 200, numbers.second ? numbers.second : 64, 0);
}

/* The client writes into the server's window and reads it back; nothing of that may land in its own. */
static void action_rdma(struct end* end, int serving, struct numbers numbers) {
    const unsigned times = numbers.first ? numbers.first : 4;
    unsigned long where[2];
    if (serving) {
        where[0] = (unsigned long)(end->memory + kWindow);
        where[1] = end->handle;
        memcpy(end->memory + kSend, where, sizeof where);
        end_expect(end, 64, 1);
        end_post_receive(end);
        end_send(end, sizeof where);
        end_expect(end, 64, 2);
        if (!filled(end->memory + kWindow, kWindowBytes, times)) finish(5, "wrong: what was written is not in the window");
        return;
    }
    fill(end->memory + kSend, 64, 1);
    end_send(end, 64);
    if (end_receive(end) != sizeof where) finish(5, "wrong: not the address of a window");
    memcpy(where, end->memory + kReceive, sizeof where);
    for (unsigned i = 1; i <= times; ++i) {
        fill(end->memory + kSend, kWindowBytes, i);
        end_rdma(end, VIP_CONTROL_OP_RDMAWRITE, where[0], (VIP_MEM_HANDLE)where[1], kWindowBytes);
        memset(end->memory + kSend, 0, kWindowBytes);
        end_rdma(end, VIP_CONTROL_OP_RDMAREAD, where[0], (VIP_MEM_HANDLE)where[1], kWindowBytes);
        if (!filled(end->memory + kSend, kWindowBytes, i)) finish(5, "wrong: read back something else than was written");
    }
    for (unsigned i = 0; i < kWindowBytes; ++i)
        if (end->memory[kWindow + i] != 0) finish(5, "wrong: the write landed in the writer's own window");
    fill(end->memory + kSend, 64, 2);
    end_send(end, 64);
}

static void action_long(struct end* end, int serving, struct numbers numbers) {
    echo(end, serving, numbers.first ? numbers.first : 6, kLargest, 0);
}

/* What one end does to itself in the middle. */
static const char* moment = "";

static int is_lost(void* argument) { return ((struct end*)argument)->lost; }

/*
 * The server is killed in the middle, or leaves by its moment; the client is told in time, and by no other word than a
 * lost connection.
 */
static void action_killed(struct end* end, int serving, struct numbers numbers) {
    (void)numbers;
    echo(end, serving, 3, 64, 0);
    if (serving) {
        if (*moment == '\0') {
            status_result("works"); /* at which the watchdog kills it */
            (void)CALL(pause());
        }
        moment_pass(moment, end);
        (void)CALL(pause());
    }
    VIP_DESCRIPTOR* done = NULL;
    const int64_t began = status_now_ns();
    const VIP_RETURN code = (VIP_RETURN)CALL(VipRecvWait(end->vi, time_limit(), &done));
    const int64_t ms = (status_now_ns() - began) / 1000000;
    if (code == VIP_TIMEOUT) finish(5, "wrong: the death of the peer was not noticed within %u ms", time_limit());
    if (code != VIP_DESCRIPTOR_ERROR) finish(5, "wrong: VipRecvWait: %s after %lld ms", code_name(code), (long long)ms);
    const pid_t self = getpid();
    if (!eventually_of("VIP_ERROR_CONN_LOST", is_lost, end, &self, 1, 2)) finish(5, "wrong: no VIP_ERROR_CONN_LOST");
}

/* A wait of some time sleeps: it takes less than half of a processor. */
static void action_sleep(struct end* end, int serving, struct numbers numbers) {
    (void)numbers;
    struct rusage before, after;
    const int64_t began = status_now_ns();
    getrusage(RUSAGE_SELF, &before);
    echo(end, serving, 4, 64, 100000);
    getrusage(RUSAGE_SELF, &after);
    const int64_t wall_us = (status_now_ns() - began) / 1000;
    const int64_t busy_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
                            after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
    if (!serving && busy_us * 2 > wall_us)
        finish(5, "wrong: a wait took %lld us of processor time in %lld us", (long long)busy_us, (long long)wall_us);
}

static const struct {
    const char* name;
    void (*run)(struct end*, int, struct numbers);
} kActions[] = {{"pingpong", action_pingpong},
                {"rdma", action_rdma},
                {"long", action_long},
                {"killed", action_killed},
                {"sleep", action_sleep}};

static void connects(struct end* end, int serving, const char* name, unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
        end_post_receive(end);
        if (serving) {
            end_accept(end, name);
        } else {
            end_connect(end, name);
        }
        echo(end, serving, 1, 64, 0);
        if (!serving) {
            end_disconnect(end);
            continue;
        }
        /* The one that has the last answer disconnects first. */
        VIP_DESCRIPTOR* done = NULL;
        const VIP_RETURN code = (VIP_RETURN)CALL(VipRecvWait(end->vi, time_limit(), &done));
        if (code == VIP_TIMEOUT || code == VIP_SUCCESS) finish(5, "wrong: the peer's disconnect gave %s", code_name(code));
        end_disconnect(end);
    }
}

/* The library's own handlers of exit(3) come after this. */
static int all_well(void) {
    moment_judge();
    status_result("works");
    return 0;
}

int main(int count, char** words) {
    status_open();
    if (count < 4) {
        fprintf(stderr, "usage: %s serve|connect NAME ACTION [MOMENT]\n", words[0]);
        return 2;
    }
    const int serving = strcmp(words[1], "serve") == 0;
    const char* action = words[3];
    struct numbers numbers = {0, 0};
    const char* colon = strchr(action, ':');
    if (colon != NULL) sscanf(colon, ":%u:%u", &numbers.first, &numbers.second);
    const size_t length = strcspn(action, ":");

    static struct end end;
    moment = count > 4 ? words[4] : "";
    if (length == 5 && strncmp(action, "crowd", length) == 0) {
        crowd(numbers.first ? numbers.first : 40);
        return all_well();
    }
    end_open(&end);
    if (strncmp(action, "open", length) == 0) {
        moment_pass(moment, &end);
        end_close(&end);
        return all_well();
    }
    if (strncmp(action, "connects", length) == 0) {
        connects(&end, serving, words[2], numbers.first ? numbers.first : 20);
        end_close(&end);
        return all_well();
    }
    for (size_t i = 0; i < sizeof kActions / sizeof *kActions; ++i) {
        if (strlen(kActions[i].name) != length || strncmp(kActions[i].name, action, length) != 0) continue;
        end_post_receive(&end);
        if (serving) {
            end_accept(&end, words[2]);
        } else {
            end_connect(&end, words[2]);
        }
        const int dying = kActions[i].run == action_killed;
        if (!dying) moment_pass(moment, &end);
        kActions[i].run(&end, serving, numbers);
        /* The client disconnects first, when it has all that it waits for. */
        if (serving) {
            VIP_DESCRIPTOR* done = NULL;
            (void)CALL(VipRecvWait(end.vi, time_limit(), &done));
        }
        end_disconnect(&end);
        end_close(&end);
        return all_well();
    }
    finish(2, "no action %s", action);
}
